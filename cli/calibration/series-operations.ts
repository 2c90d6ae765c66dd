// The requests of time series that costs are learned from, and those that they are tried on.

import { type HttpRequest, query } from './influx-load.ts';

/** A request with a size: lines, points, or series. */
export interface SeriesTask {
  name: string;
  size: number;
  /** `i` counts up from 0 for each task. */
  make: (i: number) => HttpRequest;
}

/** Unix seconds of the first point. */
const start = 1_700_000_000;
/** Points of one series, a second apart. */
const longPoints = 50_000;
const wideSizes = [1, 8, 50, 300, 2000] as const;
const trainingWideSizes = [1, 4, 20, 100, 700, 2000] as const;
const linesPerBody = 10_000;

const nameOf = (i: number): string => `host${String(i).padStart(5, '0')}`;

/** One point of each of `count` hosts, at one second. */
function wideLines(count: number, second: number, measurement: string): string[] {
  return Array.from({ length: count }, (_, i) => {
    const time = (start + second) * 1000 + Math.floor(i / 1000);
    return `${measurement},host=${nameOf(i % 1000)},rack=r1 v=${(i % 97) + 0.25},n=${i}i ${time}000000`;
  });
}

/** Points of one series, a millisecond apart. */
function longLines(count: number, second: number): string[] {
  return Array.from(
    { length: count },
    (_, i) => `one v=${(i % 911) / 7} ${(start + second) * 1000 + i}000000`,
  );
}

function write(lines: readonly string[]): HttpRequest {
  return { method: 'POST', path: '/write?db=calibrate', body: Buffer.from(lines.join('\n')) };
}

/** The data that the queries read. */
export function* seriesData(): Generator<HttpRequest> {
  yield query('CREATE DATABASE calibrate');
  for (const size of new Set([...wideSizes, ...trainingWideSizes])) {
    for (let point = 0; point < 4; point++) {
      yield write(
        Array.from(
          { length: size },
          (_, i) =>
            `wide${size},host=${nameOf(i)},rack=r1 v=${i % 97}.25 ${start + point}000000000`,
        ),
      );
    }
  }
  for (let from = 0; from < longPoints; from += linesPerBody) {
    yield write(
      Array.from({ length: linesPerBody }, (_, k) => {
        const i = from + k;
        return `long v=${(i % 911) / 7},n=${i}i ${start + i}000000000`;
      }),
    );
  }
}

type MakerOf = (size: number) => SeriesTask['make'];

const asks =
  (text: (size: number) => string): MakerOf =>
  (size) => {
    const asked = query(text(size));
    return () => asked;
  };
const upTo = (size: number): string => `v > -1 AND time < ${start + size}s`;
const within = (size: number): string => `v > -1 AND time >= ${start}s AND time < ${start + size}s`;

/** Each task has seconds of its own, so that no point is written twice. */
let nextSecond = 1_000_000;
const writes =
  (linesOf: (count: number, second: number) => string[]): MakerOf =>
  (size) => {
    const first = (nextSecond += 1_000_000);
    return (i) => write(linesOf(size, first + i * 10));
  };

const writeOne = writes(longLines);
const writeWide = writes((count, second) => wideLines(count, second, 'load'));
const sum = asks((size) => `SELECT sum(v) FROM long WHERE ${upTo(size)}`);
const mean = asks((size) => `SELECT mean(v) FROM long WHERE ${upTo(size)}`);
const stddev = asks((size) => `SELECT stddev(v) FROM long WHERE ${upTo(size)}`);
const byTime = asks((size) => `SELECT mean(v) FROM long WHERE ${within(size)} GROUP BY time(5m)`);
const list = asks((size) => `SELECT v FROM long LIMIT ${size}`);
const listTwo = asks((size) => `SELECT v, n FROM long WHERE time < ${start + size}s`);
const byHost = asks((size) => `SELECT max(v) FROM wide${size} GROUP BY host`);
const last = asks((size) => `SELECT last(v) FROM wide${size} GROUP BY host`);
const ofAll = asks((size) => `SELECT mean(v) FROM wide${size}`);
const ofHost = asks((size) => `SELECT mean(v) FROM wide${size} WHERE host = '${nameOf(0)}'`);
const show = asks((size) => `SHOW TAG VALUES FROM wide${size} WITH KEY = host`);
const nothing = asks(() => 'SELECT v FROM nothing');
const long = asks((size) => {
  const terms = Array.from({ length: size }, (_, i) => `host = 'h${i}'`);
  return `SELECT v FROM nothing WHERE ${terms.join(' OR ')}`;
});

const tasksOf = (
  operations: Readonly<Record<string, readonly [MakerOf, readonly number[]]>>,
): SeriesTask[] =>
  Object.entries(operations).flatMap(([name, [makerOf, sizes]]) =>
    sizes.map((size) => ({ name, size, make: makerOf(size) })),
  );

const lineCounts = [1, 10, 100, 1000, 5000, 20_000] as const;
const pointCounts = [64, 512, 4096, 10_000, 25_000, 50_000] as const;
const rowCounts = [10, 100, 500, 1000, 5000, 10_000] as const;

/** Twelve operations in five or six sizes. */
export const seriesTrialTasks = (): SeriesTask[] =>
  tasksOf({
    'write one': [writeOne, lineCounts],
    'write many': [writeWide, lineCounts],
    sum: [sum, pointCounts],
    mean: [mean, pointCounts],
    stddev: [stddev, pointCounts],
    'by time': [byTime, pointCounts],
    list: [list, rowCounts],
    'list two': [listTwo, rowCounts],
    'by host': [byHost, wideSizes],
    last: [last, wideSizes],
    'of all': [ofAll, wideSizes],
    show: [show, wideSizes],
  });

const trainingLines = [1, 4, 30, 300, 2000, 10_000] as const;
const trainingPoints = [16, 256, 2048, 16_384, 40_000] as const;
const trainingRows = [1, 30, 300, 3000, 20_000] as const;

export const seriesTrainingTasks = (): SeriesTask[] =>
  tasksOf({
    nothing: [nothing, [0]],
    long: [long, [10, 60]],
    'write one': [writeOne, trainingLines],
    'write many': [writeWide, trainingLines],
    sum: [sum, trainingPoints],
    mean: [mean, trainingPoints],
    stddev: [stddev, trainingPoints],
    'by time': [byTime, trainingPoints],
    list: [list, trainingRows],
    'list two': [listTwo, trainingRows],
    'by host': [byHost, trainingWideSizes],
    last: [last, [4, 100, 2000]],
    'of all': [ofAll, trainingWideSizes],
    'of host': [ofHost, [20, 2000]],
    show: [show, trainingWideSizes],
  });

/** Some of them, of all kinds: by these it is known how fast a machine is. */
export const seriesReferenceTasks = (): SeriesTask[] =>
  tasksOf({
    'write one': [writeOne, [300]],
    'write many': [writeWide, [300]],
    sum: [sum, [2048]],
    list: [list, [300]],
    'by host': [byHost, [20]],
    'of all': [ofAll, [100]],
    show: [show, [100]],
  });

/** Bodies of so many lines each, in seconds of their own, and bytes of the log that come of each line. */
export function bodyOf(count: number, number: number): HttpRequest {
  return write(wideLines(count, 100_000_000 + number * 10, 'merged'));
}
