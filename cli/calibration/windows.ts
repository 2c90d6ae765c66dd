// Loads measured in rounds: one window of each load a round. A disturbance of the machine then spoils one window of
// many loads instead of all windows of one. Disturbances only add to a window, so one of the smallest windows counts.

import { Lot } from './lot.ts';
import type { Progress } from './progress.ts';
import type { RedisLoad } from './redis-load.ts';

export interface WindowLoad {
  /** Sends one batch or request, or a mix of them, and resolves to how many commands were in it. */
  send: () => Promise<number>;
  /** Length of its windows, where it differs from the default. */
  windowMs?: number;
  /** How many are under way at most once it is sent; 1 where nothing is said. */
  underWay?: number;
}

/** The measured and charged cost of one request of a load. */
export interface Found {
  /** CPU microseconds. */
  measured: number;
  /** The server's charge for it in the same window. */
  charged: number;
}

interface RoundsOptions {
  progress: Progress;
  name: string;
  rounds: number;
  windowMs: number;
  /** Batches of a window, however long they take. */
  leastBatches: number;
  /** Units charged so far. */
  charged?: () => Promise<number>;
}

/** Best of the windows of each load. The first round of all is to warm the server up, and does not count. */
export async function inRounds(
  loads: readonly WindowLoad[],
  load: RedisLoad,
  options: RoundsOptions,
): Promise<Found[]> {
  const { progress, name, rounds, leastBatches } = options;
  const charged = options.charged ?? ((): Promise<number> => Promise.resolve(0));
  const lot = new Lot(loads.length);
  const found: Found[][] = loads.map(() => []);
  for (let round = 0; round <= rounds; round++) {
    progress.step(`${name}, round ${round} of ${rounds}`);
    // The order changes each time, so that no load always follows the same one.
    for (const at of lot.order(loads.length)) {
      const one = loads[at]!;
      const windowMs = one.windowMs ?? options.windowMs;
      const before = await charged();
      const { micros, commands } = await load.cpuOf(async () => {
        const end = performance.now() + (round === 0 ? windowMs / 2 : windowMs);
        return await sendAll((sent) =>
          sent < leastBatches || performance.now() < end ? one : undefined,
        );
      });
      const units = (await charged()) - before;
      if (round > 0) {
        found[at]!.push({ measured: micros / commands, charged: units / commands });
      }
    }
  }
  return found.map(leastDisturbed);
}

/** Sends the loads `next` returns for 0, 1, 2 …, and resolves to the number of commands. */
async function sendAll(next: (sent: number) => WindowLoad | undefined): Promise<number> {
  const pending: Promise<number>[] = [];
  let commands = 0;
  for (let sent = 0; ; sent++) {
    const one = next(sent);
    if (one === undefined) break;
    const { underWay = 1 } = one;
    while (pending.length >= underWay) commands += await pending.shift()!;
    pending.push(one.send());
  }
  for (const last of pending) commands += await last;
  return commands;
}

/** One of the smallest of several windows. */
function leastDisturbed(windows: readonly Found[]): Found {
  return [...windows].sort((a, b) => a.measured - b.measured)[windows.length >> 2]!;
}

/** The loads of each mixed window, by number, in order. */
export function drawnMixes(
  loads: number,
  windows: number,
  [least, most]: readonly [number, number],
): number[][] {
  const lot = new Lot(windows);
  return Array.from({ length: windows }, () =>
    Array.from({ length: least + lot.below(most - least) }, () => lot.below(loads)),
  );
}

/** All of these; it counts as one. */
export function mixOf(loads: readonly WindowLoad[]): WindowLoad {
  return {
    send: async () => {
      await sendAll((sent) => loads[sent]);
      return 1;
    },
  };
}

/** Windows in each of which a few of the loads are drawn by lot, and sent one after the other. */
export function mixedLoads(
  loads: readonly WindowLoad[],
  windows: number,
  drawn: readonly [least: number, most: number],
): WindowLoad[] {
  return drawnMixes(loads.length, windows, drawn).map((mix) => mixOf(mix.map((at) => loads[at]!)));
}
