// The x87 long double that INCRBYFLOAT and HINCRBYFLOAT compute with: a 64-bit mantissa, so that 3.0
// plus 1.1 is answered as 4.1, where a double would show its error. Held exactly as
// mantissa * 2^exponent, rounded to nearest even after each step as the hardware does.

interface LongDouble {
  mantissa: bigint;
  exponent: number;
  /** NaN is never made: see `addLongDoubles`. */
  infinite: boolean;
}

const mantissaBits = 64;
const minExponent = -16445;
const maxExponent = 16384;
const zero: LongDouble = { mantissa: 0n, exponent: 0, infinite: false };
// Redis reads and prints these into buffers of this many bytes.
const bufferBytes = 5 * 1024;

/** Result of strtold for exactly these bytes; undefined where Redis reports an invalid float. */
export function parseLongDouble(b: Buffer, s: number, n: number): LongDouble | undefined {
  if (n === 0 || n >= bufferBytes) return undefined;
  const text = b.toString('latin1', s, s + n);
  const decimal = /^([+-]?)(?:(\d+)(?:\.(\d*))?|\.(\d+))(?:[eE]([+-]?\d+))?$/.exec(text);
  if (decimal !== null) {
    const [, sign, whole = '', fraction = decimal[4] ?? '', , power = '0'] = decimal;
    const digits = BigInt(whole + fraction);
    return fromDecimal(sign === '-' ? -digits : digits, Number(power) - fraction.length);
  }
  const hex = /^([+-]?)0x(?:([0-9a-f]+)(?:\.([0-9a-f]*))?|\.([0-9a-f]+))(?:p([+-]?\d+))?$/i.exec(
    text,
  );
  if (hex !== null) {
    const [, sign, whole = '', fraction = hex[4] ?? '', , power = '0'] = hex;
    const digits = BigInt(`0x${whole}${fraction}`);
    return finite(sign === '-' ? -digits : digits, Number(power) - 4 * fraction.length);
  }
  const infinity = /^([+-]?)inf(?:inity)?$/i.exec(text);
  if (infinity === null) return undefined;
  return { mantissa: infinity[1] === '-' ? -1n : 1n, exponent: 0, infinite: true };
}

/** Undefined when the sum is infinite or not a number. */
export function addLongDoubles(x: LongDouble, y: LongDouble): LongDouble | undefined {
  if (x.infinite || y.infinite) return undefined;
  const exponent = Math.min(x.exponent, y.exponent);
  const sum =
    (x.mantissa << BigInt(x.exponent - exponent)) + (y.mantissa << BigInt(y.exponent - exponent));
  return finite(sum, exponent);
}

/** `printf("%.17Lf")` less its trailing zeros: how Redis writes these for people. */
export function formatLongDouble(value: LongDouble): string {
  const negative = value.mantissa < 0n;
  const size = negative ? -value.mantissa : value.mantissa;
  const scaled = size * 10n ** 17n;
  const rounded =
    value.exponent >= 0
      ? scaled << BigInt(value.exponent)
      : shiftRightToEven(scaled, -value.exponent);
  const digits = rounded.toString().padStart(18, '0');
  const whole = digits.slice(0, -17);
  const fraction = digits.slice(-17).replace(/0+$/, '');
  const text = fraction === '' ? whole : `${whole}.${fraction}`;
  return negative && text !== '0' ? `-${text}` : text;
}

/** digits * 10^power as a long double; undefined when it overflows, or vanishes though not zero. */
function fromDecimal(digits: bigint, power: number): LongDouble | undefined {
  if (digits === 0n) return zero;
  const size = digits.toString().length + power;
  if (size > 4940 || size < -4960) return undefined;
  if (power >= 0) return finite(digits * 10n ** BigInt(power), 0);
  // Enough bits before the division that the truncated part cannot affect the rounding: the lowest
  // bit is set for any remainder.
  const divisor = 10n ** BigInt(-power);
  const shift = Math.max(0, bitLength(divisor) - bitLength(digits) + mantissaBits + 3);
  const dividend = (digits < 0n ? -digits : digits) << BigInt(shift);
  const quotient = ((dividend / divisor) << 1n) | (dividend % divisor === 0n ? 0n : 1n);
  return finite(digits < 0n ? -quotient : quotient, -shift - 1);
}

function finite(mantissa: bigint, exponent: number): LongDouble | undefined {
  if (mantissa === 0n) return zero;
  const negative = mantissa < 0n;
  let size = negative ? -mantissa : mantissa;
  const excess = Math.max(bitLength(size) - mantissaBits, minExponent - exponent);
  let at = exponent;
  if (excess > 0) {
    size = shiftRightToEven(size, excess);
    at += excess;
    if (size === 0n) return undefined;
  }
  if (bitLength(size) + at > maxExponent) return undefined;
  return { mantissa: negative ? -size : size, exponent: at, infinite: false };
}

function shiftRightToEven(value: bigint, bits: number): bigint {
  const shift = BigInt(bits);
  const result = value >> shift;
  const rest = value - (result << shift);
  const half = 1n << (shift - 1n);
  return rest > half || (rest === half && (result & 1n) === 1n) ? result + 1n : result;
}

function bitLength(value: bigint): number {
  return (value < 0n ? -value : value).toString(2).length;
}
