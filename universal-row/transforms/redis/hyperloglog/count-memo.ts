// Cache of the last counts of dense HyperLogLogs, keyed by their registers: comparing those takes a
// tenth of the time of counting. The count depends on the registers alone, never on which rows were
// read.

import { denseBytes, headerBytes } from './sketch.ts';

const slots = 64;
const registerBytes = denseBytes - headerBytes;

interface Slot {
  readonly registers: Buffer;
  count: bigint;
}

const memo: (Slot | undefined)[] = Array.from({ length: slots }, () => undefined);

/** By the key that the HyperLogLog is under, so that one has one slot. */
function slotOf(b: Buffer, s: number, n: number): number {
  let hash = n;
  for (let i = Math.max(0, n - 16); i < n; i++) hash = (Math.imul(hash, 31) + b[s + i]!) | 0;
  return (hash >>> 0) % slots;
}

/**
 * The count of a dense HyperLogLog at `s`, which is under the key in `kb`; `count` is called where it is not known.
 */
export function memoizedCount(
  b: Buffer,
  s: number,
  kb: Buffer,
  ks: number,
  kn: number,
  count: () => bigint | undefined,
): bigint | undefined {
  const from = s + headerBytes;
  const at = slotOf(kb, ks, kn);
  const slot = memo[at];
  if (
    slot !== undefined &&
    b.compare(slot.registers, 0, registerBytes, from, s + denseBytes) === 0
  ) {
    return slot.count;
  }
  const counted = count();
  if (counted === undefined) return undefined;
  const kept = slot ?? { registers: Buffer.allocUnsafeSlow(registerBytes), count: counted };
  b.copy(kept.registers, 0, from, s + denseBytes);
  kept.count = counted;
  memo[at] = kept;
  return counted;
}
