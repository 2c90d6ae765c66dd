// Functions of single values.

/** With how many arguments they take. */
export const mathFunctions: ReadonlyMap<string, number> = new Map([
  ['abs', 1],
  ['acos', 1],
  ['asin', 1],
  ['atan', 1],
  ['atan2', 2],
  ['ceil', 1],
  ['cos', 1],
  ['exp', 1],
  ['floor', 1],
  ['ln', 1],
  ['log', 2],
  ['log10', 1],
  ['log2', 1],
  ['pow', 2],
  ['round', 1],
  ['sin', 1],
  ['sqrt', 1],
  ['tan', 1],
]);

/** Functions that keep integers as integers. */
export const keepsType: ReadonlySet<string> = new Set(['abs', 'ceil', 'floor', 'round']);

export function applyMath(name: string, x: number, y: number): number {
  switch (name) {
    case 'abs':
      return Math.abs(x);
    case 'acos':
      return Math.acos(x);
    case 'asin':
      return Math.asin(x);
    case 'atan':
      return Math.atan(x);
    case 'atan2':
      return Math.atan2(x, y);
    case 'ceil':
      return Math.ceil(x);
    case 'cos':
      return Math.cos(x);
    case 'exp':
      return Math.exp(x);
    case 'floor':
      return Math.floor(x);
    case 'ln':
      return Math.log(x);
    case 'log':
      return Math.log(x) / Math.log(y);
    case 'log10':
      return log2(x) * log10Of2;
    case 'log2':
      return log2(x);
    case 'pow':
      return x ** y;
    case 'round':
      return roundHalfAway(x);
    case 'sin':
      return Math.sin(x);
    case 'sqrt':
      return Math.sqrt(x);
    case 'tan':
      return Math.tan(x);
    default:
      return NaN;
  }
}

// Rounded from the exact quotient, which dividing two doubles misses.
const log10Of2 = 0.3010299956639812;

const bits = new DataView(new ArrayBuffer(8));

/** By fraction and exponent, so that powers of two come out exact. */
function log2(x: number): number {
  if (!(x >= 2.2250738585072014e-308 && x < Infinity)) return Math.log2(x);
  bits.setFloat64(0, x);
  const high = bits.getUint32(0);
  const exponent = (high >>> 20) - 1022;
  bits.setUint32(0, (high & 0x000fffff) | 0x3fe00000);
  const fraction = bits.getFloat64(0);
  if (fraction === 0.5) return exponent - 1;
  return Math.log(fraction) * Math.LOG2E + exponent;
}

function roundHalfAway(x: number): number {
  const whole = Math.trunc(x);
  return Math.abs(x - whole) >= 0.5 ? whole + Math.sign(x) : whole;
}
