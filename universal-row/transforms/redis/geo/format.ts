// Numbers as Redis's geo commands print them.

/** A distance with four digits behind the point, halves to the even one. */
export function distanceText(value: number): string {
  const scaled = value * 10_000;
  let whole = Math.round(scaled);
  if (scaled % 1 === 0.5 && whole % 2 !== 0) whole--;
  const digits = String(whole).padStart(5, '0');
  return `${digits.slice(0, -4)}.${digits.slice(-4)}`;
}

/** A coordinate: 17 digits behind the point without zeros at the end. */
export function coordinateText(value: number): string {
  let text = value.toFixed(17);
  const more = value.toFixed(18);
  // A tie between two, of which C prints the even one, JavaScript the greater one.
  const isTie = more.endsWith('5') && Number.isInteger(value * 2 ** 18);
  if (isTie && Number(more.at(-2)) % 2 === 0) text = more.slice(0, -1);
  text = text.replace(/\.?0+$/, '');
  return text === '-0' ? '0' : text;
}

/** As `%f` of C: for error texts. */
export function sixDigits(value: number): string {
  if (!Number.isFinite(value)) return value > 0 ? 'inf' : '-inf';
  const text = Math.abs(value) < 1e21 ? value.toFixed(6) : `${BigInt(value)}.000000`;
  return Object.is(value, -0) ? `-${text}` : text;
}
