// Guarantees of a shard besides correct rows: reads it avoids, files it keeps and releases, and its
// reports of damage.

import { inOneGo } from '../../../universal-row/slices.ts';
import { beforeEach, describe, expect, test } from 'vitest';
import { FaultyDisk } from '../../../storage-node/disk/faulty-disk.ts';
import { CorruptFileError } from '../parts.ts';
import { openShard } from './open-shard.ts';
import type { Shard } from './shard.ts';
import type { ShardScanRequest } from './shard-types.ts';
import { pointFiles, removeShardFiles } from './shard-files.ts';
import { counted, type Counts } from './testing/counted-parts.ts';
import { appendPoints, findSeries } from './testing/point-columns.ts';
import { seeded } from './testing/seeded.ts';
import { type ModelRow, type Piece, readInterleaved, type Values } from './testing/shard-model.ts';
import { directory, smallParts, startSeconds } from './testing/shard-trial.ts';

const fields = [
  { name: 'v', type: 'float' },
  { name: 'w', type: 'float' },
] as const;

let disk: FaultyDisk;
let now: number;
let counts: Counts;
let shard: Shard;

function open(): Shard {
  const made = counted(smallParts());
  counts = made.counts;
  const clock = { now: () => now, monotonic: () => now };
  const { parts } = made;
  return openShard({ disk, clock, directory, startSeconds, parts, coldAfterMs: 1000 });
}

beforeEach(() => {
  disk = new FaultyDisk({ rng: seeded(1) });
  now = 0;
  shard = open();
});

/** A row for each time; the value is the time unless told. */
function write(host: string, times: readonly number[], valueOf = (time: number): number => time) {
  const points = times.map((time) => {
    const values: Values = new Map([['v', valueOf(time)]]);
    return { key: `m,host=${host}`, time, values };
  });
  appendPoints(shard, 'm', fields, points);
}

function flush(): void {
  expect(shard.sealHead()).toBe(true);
  while (shard.flushSlice(0));
}

function compact(): void {
  while (shard.compactSlice(0));
}

const range = (from: number, to: number): number[] =>
  Array.from({ length: to - from }, (_, i) => from + i);

function request(more: Partial<ShardScanRequest> = {}): ShardScanRequest {
  const all = { from: -Infinity, to: Infinity, descending: false };
  return { measurement: 0, fields: ['v'], ...all, ...more };
}

/** By series, in the order of their keys. */
function scan(more: Partial<ShardScanRequest> = {}): Piece[][] {
  const view = inOneGo(shard.scan(request(more)).slices);
  try {
    return readInterleaved(Array.from(view.series, (series) => view.cursor(series)));
  } finally {
    view.close();
  }
}

const times = (pieces: readonly Piece[]): number[] =>
  (pieces.flat() as ModelRow[]).map(({ time }) => time);
const lastOnes = (to = Infinity): number[][] =>
  scan({ descending: true, rowsPerSeries: 1, to }).map(times);
const numbersOf = (...hosts: string[]): Uint32Array =>
  Uint32Array.from(hosts, (host) => findSeries(shard, `m,host=${host}`));

describe('the last point', () => {
  beforeEach(() => {
    write('a', range(0, 100));
    write('b', range(0, 90));
    flush();
  });

  test('is told without reading a block', () => {
    expect(lastOnes()).toEqual([[99], [89]]);
    expect(lastOnes()).toEqual([[99], [89]]);
    expect(counts.reads).toBe(0);
  });

  test('is the newest wherever it is', () => {
    lastOnes();
    write('a', [200]);
    write('b', [50], () => -1);
    expect(lastOnes()).toEqual([[200], [89]]);
    flush();
    expect(lastOnes()).toEqual([[200], [89]]);
    expect(lastOnes(60)).toEqual([[60], [60]]);
  });

  test('is another one when it was deleted', () => {
    lastOnes();
    expect([...shard.deleteRange(numbersOf('a', 'b'), 80, 95)]).toEqual([]);
    expect(lastOnes()).toEqual([[99], [79]]);
    shard.deleteRange(numbersOf('a'), 96, 99);
    expect(lastOnes()).toEqual([[79], [79]]);
    write('b', [85]);
    expect(lastOnes()).toEqual([[79], [85]]);
  });

  test('is the last that has one of the fields', () => {
    appendPoints(shard, 'm', fields, [
      { key: 'm,host=a', time: 300, values: new Map([['w', 1]]) },
      { key: 'm,host=a', time: 99, values: new Map([['w', 2]]) },
    ]);
    expect(lastOnes()).toEqual([[99], [89]]);
    flush();
    expect(lastOnes()).toEqual([[99], [89]]);
    const [[row]] = scan({ fields: ['v', 'w'], descending: true, rowsPerSeries: 1, to: 99 }) as [
      ModelRow[][],
    ];
    expect(row).toEqual([{ time: 99, values: [99, 2] }]);
  });
});

describe('what a query needs not read', () => {
  beforeEach(() => {
    write('a', range(0, 120));
    flush();
  });

  test('is a block whose summary does', () => {
    const [pieces] = scan({ summaries: { width: 0n, offset: 0n } });
    expect(counts.reads).toBe(0);
    expect(pieces!.every((piece) => !Array.isArray(piece))).toBe(true);
    // The ends are within blocks.
    scan({ from: 5, to: 113, summaries: { width: 0n, offset: 0n } });
    expect(counts.reads).toBe(2);
  });

  test('is a block whose rows cannot meet a condition', () => {
    const bounds = [{ field: 0, op: '>', value: 115 }] as const;
    expect(times(scan({ bounds })[0]!)).toEqual(expect.arrayContaining([116, 117, 118, 119]));
    expect(counts.reads).toBe(1);
  });

  test('but a block that a newer row changes is read', () => {
    write('a', [30], () => 1000);
    const bounds = [{ field: 0, op: '>', value: 115 }] as const;
    expect(times(scan({ bounds })[0]!)).toContain(30);
    expect(counts.reads).toBe(2);
  });
});

test('a long series comes in pieces, and cursors of one head do not disturb each other', () => {
  const long = range(0, 10_000);
  write('a', [...long, ...range(500, 600)]);
  write('b', long.toReversed());
  for (const descending of [false, true]) {
    const expected = descending ? long.toReversed() : long;
    for (const pieces of scan({ descending })) {
      expect(pieces.length).toBe(3);
      expect(times(pieces)).toEqual(expected);
    }
  }
});

test('a scan outlives compaction, deletion, closing and the removal of the files', () => {
  for (let i = 0; i < 4; i++) {
    write('a', range(i * 20, i * 20 + 20));
    flush();
  }
  write('a', [80]);
  const view = inOneGo(shard.scan(request()).slices);
  const old = pointFiles(disk, directory);
  compact();
  shard.deleteRange(numbersOf('a'), 0, 50);
  expect(pointFiles(disk, directory).length).toBe(old.length + 1);
  shard.close();
  removeShardFiles(disk, directory);
  expect(disk.list(directory)).toEqual([]);
  expect(counts.releases).toBe(4);
  const [series] = view.series;
  expect(times(readInterleaved([view.cursor(series!)])[0]!)).toEqual(range(0, 81));
  view.close();
  view.close();
  expect(counts.releases).toBe(5);
});

/** The disk removes files a round of the event loop later. */
const removed = (): Promise<void> => new Promise(setImmediate);

test('files that were merged go when their last reader has', async () => {
  for (let i = 0; i < 4; i++) {
    write('a', range(i * 20, i * 20 + 20));
    flush();
  }
  const views = [shard.scan(request()), shard.scan(request())];
  compact();
  expect(pointFiles(disk, directory).length).toBe(5);
  views[0]!.close();
  await removed();
  expect(pointFiles(disk, directory).length).toBe(5);
  views[1]!.close();
  await removed();
  expect(pointFiles(disk, directory).length).toBe(1);
});

describe('compaction', () => {
  test('makes a cold shard one file', () => {
    for (let i = 0; i < 3; i++) {
      write('a', [i]);
      flush();
    }
    compact();
    expect(shard.stats().files).toBe(3);
    now += 1000;
    compact();
    expect(shard.stats().files).toBe(1);
    expect(shard.compactSlice(0)).toBe(false);
  });

  test('leaves out removed series, and the file when nothing is left', async () => {
    write('a', range(0, 50));
    write('b', range(0, 50));
    flush();
    const bytes = shard.stats().diskBytes;
    const [a] = numbersOf('a');
    shard.index.removeSeries(a!);
    shard.compactFully();
    compact();
    expect(shard.stats().diskBytes).toBeLessThan(bytes);
    expect(scan().map(times)).toEqual([range(0, 50)]);
    shard.deleteRange(numbersOf('b'), 0, 100);
    shard.compactFully();
    compact();
    expect(shard.stats()).toMatchObject({ files: 0, tombstones: 0 });
    await removed();
    expect(pointFiles(disk, directory)).toEqual([]);
  });

  test('works for as long as it may, and a bit at least', () => {
    const hosts = range(0, 50).map(String);
    for (let i = 0; i < 4; i++) {
      for (const host of hosts) write(host, [i]);
      flush();
    }
    // Every look at the clock takes a millisecond.
    const clock = { now: () => now, monotonic: () => now++ };
    shard.close();
    shard = openShard({ disk, clock, directory, startSeconds, parts: smallParts() });
    let slices = 1;
    while (shard.compactSlice(5)) slices++;
    expect(slices).toBeGreaterThanOrEqual(10);
    expect(slices).toBeLessThan(20);
    expect(shard.stats().files).toBe(1);
  });
});

describe('damage', () => {
  const flip = (at: (bytes: Buffer) => number) => (bytes: Buffer) => {
    bytes[at(bytes)]! ^= 0x10;
  };
  let path: string;

  beforeEach(() => {
    write('a', range(0, 100), (time) => Math.sin(time));
    write('b', range(0, 100));
    flush();
    path = `${directory}/${pointFiles(disk, directory)[0]!}`;
    shard.close();
  });

  test('of the end of a file is reported when the shard is opened', () => {
    disk.corrupt(
      path,
      flip((bytes) => bytes.length - 20),
    );
    expect(open).toThrow(CorruptFileError);
    expect(open).toThrow(path);
  });

  test('of a block is reported when it is read, and compaction keeps the file', () => {
    disk.corrupt(
      path,
      flip(() => 100),
    );
    shard = open();
    expect(() => scan()).toThrow(CorruptFileError);
    expect(() => scan()).toThrow(path);
    expect(times(scan({ from: 90 })[1]!)).toEqual(range(90, 100));
    write('b', [200]);
    flush();
    shard.compactFully();
    expect(compact).toThrow(CorruptFileError);
    expect(times(scan({ from: 90 })[1]!)).toEqual([...range(90, 100), 200]);
    expect(pointFiles(disk, directory).length).toBe(2);
    expect(shard.hasRows(numbersOf('a')[0]!, 1, 2)).toBe(true);
  });

  test.each([3, 9, 13, 17, 30])('of the manifest at byte %i is reported', (at) => {
    disk.corrupt(
      `${directory}/manifest`,
      flip(() => at),
    );
    expect(open).toThrow(CorruptFileError);
    expect(open).toThrow('manifest');
  });

  test('is a missing or shortened manifest, or a missing file', () => {
    disk.corrupt(`${directory}/manifest`, (bytes) => bytes.subarray(0, bytes.length - 1));
    expect(open).toThrow(CorruptFileError);
    disk.remove(`${directory}/manifest`);
    expect(open).toThrow(CorruptFileError);
  });
});

test('is opened again with what was flushed, and knows what the log must do again', () => {
  expect(shard.persistedIndex).toBe(0);
  shard.appliedIndex = 7;
  write('a', [1, 2]);
  flush();
  shard.appliedIndex = 8;
  write('a', [3]);
  shard.close();
  shard = open();
  expect(shard.persistedIndex).toBe(7);
  expect(scan().map(times)).toEqual([[1, 2]]);
  shard.appliedIndex = 9;
  shard.deleteRange(numbersOf('a'), 1, 1);
  shard.persist();
  expect(shard.persistedIndex).toBe(9);
  shard.close();
  shard = open();
  expect(scan().map(times)).toEqual([[2]]);
});
