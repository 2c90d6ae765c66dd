const powersOfTen = Array.from({ length: 23 }, (_, i) => Number(`1e${i}`));

/**
 * The decimal that exactly fills the bytes, if it has at most 15 digits and a small exponent: then one
 * multiplication or division rounds it right, and no string is made. NaN for all else, which is to be
 * parsed the long way. Scores are mostly such.
 */
export function shortDecimal(b: Uint8Array, s: number, n: number): number {
  const end = s + n;
  let i = s;
  const negative = n > 0 && b[s] === 45;
  if (negative || (n > 0 && b[s] === 43)) i++;
  let mantissa = 0;
  let digits = 0;
  let dot = -1;
  for (; i < end; i++) {
    const digit = b[i]! - 48;
    if (digit >= 0 && digit <= 9) {
      mantissa = mantissa * 10 + digit;
      digits++;
    } else if (b[i] === 46 && dot < 0) dot = digits;
    else break;
  }
  if (digits === 0 || digits > 15) return NaN;
  const exponent = i === end ? 0 : shortExponent(b, i, end);
  const power = dot < 0 ? exponent : exponent - (digits - dot);
  if (!(power >= -22 && power <= 22)) return NaN;
  const value = power < 0 ? mantissa / powersOfTen[-power]! : mantissa * powersOfTen[power]!;
  return negative ? -value : value;
}

/** Parses `e5`, `E-12`; NaN if invalid. */
function shortExponent(b: Uint8Array, s: number, end: number): number {
  let i = s + 1;
  const negative = i < end && b[i] === 45;
  if (negative || (i < end && b[i] === 43)) i++;
  if ((b[s]! | 32) !== 101 || i === end || end - i > 3) return NaN;
  let value = 0;
  for (; i < end; i++) {
    const digit = b[i]! - 48;
    if (digit < 0 || digit > 9) return NaN;
    value = value * 10 + digit;
  }
  return negative ? -value : value;
}
