// How good a table is for time series: requests of several kinds, with what the meter of a server says they
// cost against the CPU time that the server took.

import { type HttpRequest, type InfluxLoad, query } from './influx-load.ts';
import { errorsBy, type Cell } from './mix.ts';
import type { Progress } from './progress.ts';
import { type RedisLoad, undisturbed, windowsOfOne } from './redis-load.ts';
import { SeriesProbe, start, writeOf } from './series-costs.ts';
import type { ServerProcess } from './server-process.ts';

export interface SeriesQuality {
  cells: readonly Cell[];
  medianError: number;
  byOperation: Readonly<Record<string, { median: number; worst: number }>>;
}

const windowMs = 60;

interface Kind {
  name: string;
  /** Lines, or points that are read. */
  size: number;
  make: (i: number) => HttpRequest;
}

const kinds: readonly Kind[] = [
  ...[1, 100, 2000].map((size) => ({
    name: 'write',
    size,
    make: (i: number) => writeOf(size, 1_000_000 + i),
  })),
  ...[1000, 10_000, 50_000].map((size) => ({
    name: 'aggregate',
    size,
    make: () => query(`SELECT stddev(v) FROM long WHERE v > -1 AND time < ${start + size}s`),
  })),
  ...[100, 1000, 5000].map((size) => ({
    name: 'list',
    size,
    make: () => query(`SELECT v FROM long LIMIT ${size}`),
  })),
  { name: 'group', size: 1000, make: () => query('SELECT max(v) FROM wide GROUP BY host') },
  { name: 'group', size: 50_000, make: () => query(intervals) },
];

const intervals = `SELECT mean(v) FROM long WHERE v > -1 AND time >= ${start}s AND time < ${start + 50_000}s GROUP BY time(5m)`;

export class SeriesTrial {
  readonly #influx: InfluxLoad;
  readonly #load: RedisLoad;
  readonly #server: ServerProcess;
  readonly #unitMicros: number;
  readonly #progress: Progress;

  constructor(
    influx: InfluxLoad,
    load: RedisLoad,
    server: ServerProcess,
    unitMicros: number,
    progress: Progress,
  ) {
    this.#influx = influx;
    this.#load = load;
    this.#server = server;
    this.#unitMicros = unitMicros;
    this.#progress = progress;
  }

  async run(): Promise<SeriesQuality> {
    await new SeriesProbe(this.#influx, this.#progress).prepare();
    const cells: Cell[] = [];
    for (const kind of kinds) {
      this.#progress.step(`${kind.name} ${kind.size}`);
      cells.push({ operation: kind.name, size: kind.size, ...(await this.#cell(kind)) });
    }
    return { cells, ...errorsBy(cells) };
  }

  /** CPU units charged to requests so far: what is merged later is not among them. */
  async #charged(): Promise<number> {
    const text = await this.#server.metrics();
    let units = 0;
    for (const [line, found] of text.matchAll(
      /^polyrow_pru_total\{.*dimension="cpu".*\} (\S+)$/gm,
    )) {
      if (line.includes('plane="influx"') && !line.includes('background')) units += Number(found);
    }
    return units;
  }

  async #cell({ make }: Kind): Promise<Pick<Cell, 'measured' | 'predicted'>> {
    let next = 0;
    const send = async (): Promise<number> => {
      const end = performance.now() + windowMs;
      let requests = 0;
      do {
        await this.#influx.send(make(next++));
        requests++;
      } while (performance.now() < end);
      return requests;
    };
    await send();
    const found: Pick<Cell, 'measured' | 'predicted'>[] = [];
    for (let i = 0; i < windowsOfOne; i++) {
      const before = await this.#charged();
      const { micros, commands } = await this.#load.cpuOf(send);
      const units = (await this.#charged()) - before;
      found.push({ measured: micros / commands, predicted: (units * this.#unitMicros) / commands });
    }
    const measured = undisturbed(found.map((window) => window.measured));
    return found.find((window) => window.measured === measured)!;
  }
}
