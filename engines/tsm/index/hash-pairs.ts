// Tables with open addressing, of pairs: a number from 1, and the 32-bit hash of the item it stands
// for. The hash nearly always decides whether a pair matches, before the item itself is read; and a
// table grows by one sequential pass, without access to the items.

/** A table of twice the size with the same pairs. */
export function grownPairs(before: Uint32Array): Uint32Array {
  const after = new Uint32Array(before.length * 2);
  for (let i = 0; i < before.length; i += 2) {
    if (before[i] !== 0) placePair(after, before[i]!, before[i + 1]!);
  }
  return after;
}

/** Into the first free slot. */
export function placePair(pairs: Uint32Array, number: number, hash: number): void {
  const mask = (pairs.length >>> 1) - 1;
  let slot = hash & mask;
  while (pairs[2 * slot] !== 0) slot = (slot + 1) & mask;
  pairs[2 * slot] = number;
  pairs[2 * slot + 1] = hash;
}
