// Numbers as text, in the forms of C's printf and strtod that Lua uses.

const decimal = /^[ \t\n\v\f\r]*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)[ \t\n\v\f\r]*$/;
const hexadecimal =
  /^[ \t\n\v\f\r]*([+-]?)0[xX]([0-9a-fA-F]*)(?:\.([0-9a-fA-F]*))?(?:[pP]([+-]?\d+))?[ \t\n\v\f\r]*$/;
const special = /^[ \t\n\v\f\r]*([+-]?)(?:(inf(?:inity)?)|nan)[ \t\n\v\f\r]*$/i;
const maxNumberLength = 512;

/** The number that fills the text, by strtod's rules with blanks around it; undefined when it is none. */
export function parseNumber(text: string): number | undefined {
  if (text.length > maxNumberLength) return undefined;
  const plain = decimal.exec(text);
  if (plain !== null) return Number(plain[1]);
  const hex = hexadecimal.exec(text);
  if (hex !== null) {
    const whole = hex[2]!;
    const fraction = hex[3] ?? '';
    if (whole.length + fraction.length === 0) return undefined;
    let value = 0;
    for (const digit of whole + fraction) value = value * 16 + Number.parseInt(digit, 16);
    const power = (hex[4] === undefined ? 0 : Number(hex[4])) - 4 * fraction.length;
    return (hex[1] === '-' ? -value : value) * 2 ** power;
  }
  const odd = special.exec(text);
  if (odd === null) return undefined;
  if (odd[2] === undefined) return NaN;
  return odd[1] === '-' ? -Infinity : Infinity;
}

/** The integer in base 2 to 36 that fills the text, as `tonumber(text, base)` has it. */
export function parseInBase(text: string, base: number): number | undefined {
  const match = /^[ \t\n\v\f\r]*([+-]?)([0-9a-zA-Z]+)[ \t\n\v\f\r]*$/.exec(text);
  if (match === null || text.length > maxNumberLength) return undefined;
  let digits = match[2]!;
  if (base === 16) digits = digits.replace(/^0[xX](?=.)/, '');
  let value = 0;
  for (const digit of digits) {
    const d = Number.parseInt(digit, 36);
    if (d >= base) return undefined;
    value = value * base + d;
  }
  // strtoul wraps negative numbers around.
  return match[1] === '-' ? (value === 0 ? 0 : 2 ** 64 - value) : value;
}

function nonFinite(value: number): string {
  if (value === Infinity) return 'inf';
  return value === -Infinity ? '-inf' : value !== value ? '-nan' : '';
}

/** `%.<precision>g`. */
export function formatG(value: number, precision: number, keepZeros = false): string {
  if (!Number.isFinite(value)) return nonFinite(value);
  const digits = Math.max(1, precision);
  if (value === 0) {
    const zero = Object.is(value, -0) ? '-0' : '0';
    return keepZeros && digits > 1 ? `${zero}.${'0'.repeat(digits - 1)}` : zero;
  }
  const [mantissa, power] = value.toExponential(Math.min(100, digits - 1)).split('e');
  const exponent = Number(power);
  if (exponent < -4 || exponent >= digits) {
    const kept = keepZeros ? mantissa! : dropZeros(mantissa!);
    return `${kept}e${exponent < 0 ? '-' : '+'}${String(Math.abs(exponent)).padStart(2, '0')}`;
  }
  const fixed = value.toFixed(Math.max(0, Math.min(100, digits - 1 - exponent)));
  return keepZeros ? fixed : dropZeros(fixed);
}

function dropZeros(text: string): string {
  return text.includes('.') ? text.replace(/\.?0+$/, '') : text;
}

/** `%.<precision>e`. */
export function formatE(value: number, precision: number): string {
  if (!Number.isFinite(value)) return nonFinite(value);
  const [mantissa, power] = value.toExponential(Math.min(100, precision)).split('e');
  const exponent = Number(power);
  return `${Object.is(value, -0) ? '-' : ''}${mantissa}e${exponent < 0 ? '-' : '+'}${String(Math.abs(exponent)).padStart(2, '0')}`;
}

/** `%.<precision>f`. */
export function formatF(value: number, precision: number): string {
  if (!Number.isFinite(value)) return nonFinite(value);
  const places = Math.min(100, precision);
  const sign = Object.is(value, -0) ? '-' : '';
  if (Math.abs(value) < 1e21) return sign + value.toFixed(places);
  const digits = BigInt(value).toString();
  return places === 0 ? digits : `${digits}.${'0'.repeat(places)}`;
}

/** As `tostring` shows a number: `%.14g`. */
export function numberText(value: number): string {
  // Up to 14 digits both write a whole number alike.
  if (Number.isInteger(value) && Math.abs(value) < 1e14) {
    return Object.is(value, -0) ? '-0' : String(value);
  }
  return formatG(value, 14);
}

/** As a number becomes a word of a Redis command: `%.17g`. */
export function argumentText(value: number): string {
  if (Number.isInteger(value) && Math.abs(value) < 1e15) {
    return Object.is(value, -0) ? '-0' : String(value);
  }
  return formatG(value, 17);
}
