// Quality of a table for time series: requests of several kinds and sizes, each alone and all of
// them mixed; compares the metered cost with the server's CPU time. None of these windows was used
// to make the table.

import type { OwnServer } from '../own-server.ts';
import { changesAtHalfSpeed, type Charges } from './capped.ts';
import type { InfluxLoad } from './influx-load.ts';
import type { Progress } from './progress.ts';
import { type Quality, qualityOf } from './quality.ts';
import type { RedisLoad } from './redis-load.ts';
import { taskLoad, warmUp } from './series-costs.ts';
import { seriesReferenceTasks, seriesTrialTasks } from './series-operations.ts';
import { inRounds, mixedLoads } from './windows.ts';

const rounds = 5;
const windowMs = 30;
const leastRequests = 2;
const mixedWindows = 28;
const referenceWindows = 8;
const mixedRounds = 4;
const mixedMs = 80;
const drawn = [3, 24] as const;

export class SeriesTrial {
  readonly #influx: InfluxLoad;
  readonly #load: RedisLoad;
  readonly #server: OwnServer;
  readonly #unitMicros: number;
  readonly #progress: Progress;

  constructor(
    influx: InfluxLoad,
    load: RedisLoad,
    server: OwnServer,
    unitMicros: number,
    progress: Progress,
  ) {
    this.#influx = influx;
    this.#load = load;
    this.#server = server;
    this.#unitMicros = unitMicros;
    this.#progress = progress;
  }

  async run(): Promise<Quality> {
    const tasks = seriesTrialTasks();
    const progress = this.#progress;
    const reference = seriesReferenceTasks();
    await warmUp(this.#influx, this.#load, [...tasks, ...reference], progress);
    const all = [...tasks, ...reference].map((task) => taskLoad(this.#influx, task));
    const loads = all.slice(0, tasks.length);
    const charged = (): Promise<number> => this.#charged();
    const found = await inRounds(all, this.#load, {
      progress,
      name: 'requests',
      rounds,
      windowMs,
      leastBatches: leastRequests,
      charged,
    });
    const mixes = [
      ...mixedLoads(loads, mixedWindows, drawn),
      ...mixedLoads(all.slice(loads.length), referenceWindows, drawn),
    ];
    const mixed = await inRounds(mixes, this.#load, {
      progress,
      name: 'mixed requests',
      rounds: mixedRounds,
      windowMs: mixedMs,
      leastBatches: 1,
      charged,
    });
    progress.step('at half speed');
    const changes = await changesAtHalfSpeed(loads, this.#server.pid, () => this.#charges());
    return qualityOf({ tried: tasks, found, mixed, referenceWindows, changes });
  }

  /** CPU microseconds charged to requests so far, without compaction. */
  async #charged(): Promise<number> {
    return ((await this.#charges())['cpu'] ?? 0) * this.#unitMicros;
  }

  /** By dimension. */
  async #charges(): Promise<Charges> {
    const text = await this.#server.metrics();
    const charges: Record<string, number> = {};
    const add = (dimension: string, line: string, units: string): void => {
      if (!line.includes('plane="influx"') || line.includes('class="background"')) return;
      charges[dimension] = (charges[dimension] ?? 0) + Number(units);
    };
    for (const [line, dimension, units] of text.matchAll(
      /^polyrow_pru_total\{.*dimension="(\w+)".*\} (\S+)$/gm,
    )) {
      add(dimension!, line, units!);
    }
    for (const [line, units] of text.matchAll(/^polyrow_tenant_ru_total\{.*\} (\S+)$/gm)) {
      add('ru', line, units!);
    }
    return charges;
  }
}
