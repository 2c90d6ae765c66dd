// Bytes with a meaning in line protocol.

const nul = 0x00;
const tab = 0x09;
export const newline = 0x0a;
export const space = 0x20;
export const quote = 0x22;
export const hash = 0x23;
export const comma = 0x2c;
export const minus = 0x2d;
export const dot = 0x2e;
export const zero = 0x30;
export const equals = 0x3d;
export const backslash = 0x5c;

/** InfluxDB's white space between the parts of a line. A carriage return is not among it. */
export function isBlank(c: number): boolean {
  return c === space || c === tab || c === nul;
}

/** Whether the newline at `at` is taken literally: an odd number of backslashes, none before `start`, precedes it. */
export function isEscapedNewline(buf: Uint8Array, start: number, at: number): boolean {
  let i = at;
  while (i > start && buf[i - 1] === backslash) i--;
  return ((at - i) & 1) === 1;
}
