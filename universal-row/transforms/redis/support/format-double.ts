// Numbers as C prints them, for Redis answers scores with `%.17g`.

/** `printf("%.17g")`, with `inf` and `-inf`. */
export function formatDouble(value: number): string {
  if (Number.isSafeInteger(value)) return Object.is(value, -0) ? '-0' : String(value);
  if (!Number.isFinite(value)) return Number.isNaN(value) ? 'nan' : value > 0 ? 'inf' : '-inf';
  const text = roundedTo17(value);
  const e = text.indexOf('e');
  const exponent = Number(text.slice(e + 1));
  const sign = value < 0 ? '-' : '';
  const digits = (
    text.slice(sign.length, sign.length + 1) + text.slice(sign.length + 2, e)
  ).replace(/0+$/, '');
  if (exponent < -4 || exponent >= 17) {
    const fraction = digits.length > 1 ? `.${digits.slice(1)}` : '';
    const size = String(Math.abs(exponent)).padStart(2, '0');
    return `${sign}${digits[0]}${fraction}e${exponent < 0 ? '-' : '+'}${size}`;
  }
  if (exponent < 0) return `${sign}0.${'0'.repeat(-exponent - 1)}${digits}`;
  if (digits.length <= exponent + 1) return sign + digits.padEnd(exponent + 1, '0');
  return `${sign}${digits.slice(0, exponent + 1)}.${digits.slice(exponent + 1)}`;
}

/** 17 significant digits with an exponent. A tie goes to the even digit as in C; JavaScript rounds it up. */
function roundedTo17(value: number): string {
  const exact = value.toExponential(60);
  const tie = /^(-?\d\.\d{16})50+(e.*)$/.exec(exact);
  if (tie !== null && Number(tie[1]!.at(-1)) % 2 === 0) return tie[1]! + tie[2]!;
  return value.toExponential(16);
}
