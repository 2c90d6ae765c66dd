// Whether requests are charged the same when the server has half of the processor. Charges are counted and not
// timed, so they should be.

import { HalfSpeed } from './half-speed.ts';
import type { WindowLoad } from './windows.ts';

/** Units charged so far, by dimension. */
export type Charges = Readonly<Record<string, number>>;

/** The largest change over all loads, as a fraction, by dimension. */
export async function changesAtHalfSpeed(
  loads: readonly WindowLoad[],
  pid: number,
  charges: () => Promise<Charges>,
): Promise<Charges> {
  const full = await chargesOfEach(loads, charges);
  const half = new HalfSpeed(pid);
  let capped: Charges[];
  try {
    capped = await chargesOfEach(loads, charges);
  } finally {
    half.end();
  }
  const changes: Record<string, number> = {};
  for (const [i, before] of full.entries()) {
    for (const [dimension, units] of Object.entries(before)) {
      const now = capped[i]![dimension]!;
      const change = units === now ? 0 : Math.abs(now / units - 1);
      changes[dimension] = Math.max(changes[dimension] ?? 0, change);
    }
  }
  return changes;
}

async function chargesOfEach(
  loads: readonly WindowLoad[],
  charges: () => Promise<Charges>,
): Promise<Charges[]> {
  const found: Charges[] = [];
  for (const one of loads) {
    const before = await charges();
    // Both variants of operations that alternate between two.
    await one.send();
    await one.send();
    const after = await charges();
    found.push(
      Object.fromEntries(
        Object.entries(after).map(([dimension, units]) => [
          dimension,
          units - (before[dimension] ?? 0),
        ]),
      ),
    );
  }
  return found;
}
