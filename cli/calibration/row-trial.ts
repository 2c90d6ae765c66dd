// Quality of a table for rows: twelve operations in six sizes, each alone and all of them mixed;
// compares the metered cost with the server's CPU time. None of these windows was used to make the
// table.

import { changesAtHalfSpeed, type Charges } from './capped.ts';
import type { Progress } from './progress.ts';
import { qualityOf, type Quality } from './quality.ts';
import type { RedisLoad } from './redis-load.ts';
import { taskLoad, warmUp } from './row-costs.ts';
import { batchesOf, referenceTasks, trialTasks } from './row-operations.ts';
import { inRounds, mixedLoads, type WindowLoad } from './windows.ts';

const rounds = 6;
const windowMs = 20;
const leastBatches = 2;
const mixedWindows = 28;
const referenceWindows = 20;
const mixedRounds = 6;
const mixedMs = 80;
const drawn = [4, 28] as const;

/** CPU microseconds of a unit, for the model of the tables and for work that is not about rows. */
interface UnitMicros {
  rows: number;
  other: number;
}

export class RowTrial {
  readonly #load: RedisLoad;
  readonly #progress: Progress;
  readonly #unit: UnitMicros;

  readonly #pid: number;

  /** `pid` is the server's. */
  constructor(load: RedisLoad, pid: number, unit: UnitMicros, progress: Progress) {
    this.#load = load;
    this.#pid = pid;
    this.#unit = unit;
    this.#progress = progress;
  }

  async run(): Promise<Quality> {
    const load = this.#load;
    const progress = this.#progress;
    await warmUp(load, [...trialTasks, ...referenceTasks], progress);
    const all: WindowLoad[] = [];
    for (const task of [...trialTasks, ...referenceTasks]) {
      progress.step(`preparing ${task.name} of ${task.size} B`);
      all.push(taskLoad(load, await batchesOf(task, load), task.size));
    }
    const loads = all.slice(0, trialTasks.length);
    const charged = (): Promise<number> => this.#charged();
    const found = await inRounds(all, load, {
      progress,
      name: 'operations',
      rounds,
      windowMs,
      leastBatches,
      charged,
    });
    const mixes = [
      ...mixedLoads(loads, mixedWindows, drawn),
      ...mixedLoads(all.slice(loads.length), referenceWindows, drawn),
    ];
    const mixed = await inRounds(mixes, load, {
      progress,
      name: 'mixed operations',
      rounds: mixedRounds,
      windowMs: mixedMs,
      leastBatches: 1,
      charged,
    });
    progress.step('at half speed');
    const changes = await changesAtHalfSpeed(loads, this.#pid, () => this.#charges());
    return qualityOf({ tried: trialTasks, found, mixed, referenceWindows, changes });
  }

  /** CPU microseconds charged so far. */
  async #charged(): Promise<number> {
    const { rows, other } = await this.#cpuUnits();
    return rows * this.#unit.rows + other * this.#unit.other;
  }

  async #cpuUnits(): Promise<{ rows: number; other: number }> {
    const units = { rows: 0, other: 0 };
    for (const [name, dimension, count] of await this.#stats()) {
      if (dimension === 'cpu') units[name === 'other' ? 'other' : 'rows'] += count;
    }
    return units;
  }

  /** By dimension. */
  async #charges(): Promise<Charges> {
    const charges: Record<string, number> = {};
    for (const [, dimension, count] of await this.#stats()) {
      charges[dimension] = (charges[dimension] ?? 0) + count;
    }
    return charges;
  }

  /** Units by class and dimension, without background work. */
  async #stats(): Promise<[name: string, dimension: string, units: number][]> {
    const answer = await this.#load.ask(['RU', 'STATS']);
    return Array.from(
      answer.matchAll(
        /\r\n(read|write|scan|other)_(cpu|memory|io|network|ru)\r\n\$\d+\r\n([\d.e+-]+)(?=\r)/g,
      ),
      ([, name, dimension, units]) => [name!, dimension!, Number(units)],
    );
  }
}
