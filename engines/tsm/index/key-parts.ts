// Where the parts of a series key end.

const comma = 0x2c;
const equals = 0x3d;
const backslash = 0x5c;

/** The first bare comma of `keys[start, end)`, or bare equals sign if that ends the part, or `end`. */
export function partEnd(keys: Buffer, start: number, end: number, atEquals: boolean): number {
  for (let i = start; i < end; i++) {
    const c = keys[i]!;
    if (c === backslash) i++;
    else if (c === comma || (atEquals && c === equals)) return i;
  }
  return end;
}
