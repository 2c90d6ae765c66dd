// Whether some bytes stand at a place: the comparison by which series and tag values are found.

/** Properties that `viewed` of universal-row/bytes.ts adds to a buffer. */
interface Viewed {
  readonly view?: DataView;
}

/** Whether `a[at, at + length)` and `b[bt, bt + length)` are equal; quickest between viewed buffers. */
export function sameBytes(a: Buffer, at: number, b: Buffer, bt: number, length: number): boolean {
  const av = (a as Viewed).view;
  const bv = (b as Viewed).view;
  let i = 0;
  if (length >= 4 && av !== undefined && bv !== undefined) {
    const last = length - 4;
    for (; i < last; i += 4) if (av.getInt32(at + i) !== bv.getInt32(bt + i)) return false;
    // Perhaps going over some bytes again.
    return av.getInt32(at + last) === bv.getInt32(bt + last);
  }
  for (; i < length; i++) if (a[at + i] !== b[bt + i]) return false;
  return true;
}

/** Where `bytes` end in `keys[at, end)` when they stand there, else -1. */
export function matchBytes(bytes: Buffer, keys: Buffer, at: number, end: number): number {
  const after = at + bytes.length;
  return after <= end && sameBytes(bytes, 0, keys, at, bytes.length) ? after : -1;
}
