import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { FaultyDisk } from '../../../storage-node/disk/faulty-disk.ts';
import type { ColumnSummary } from '../../../universal-row/series/column.ts';
import type { FieldType } from '../../../universal-row/series/field-type.ts';
import { CorruptFileError } from '../parts.ts';
import { SharedBlockCache } from './shared-block-cache.ts';
import {
  columnOf,
  modelOf,
  type ModelRow,
  type ModelSeries,
  plainValue,
  rowsOf,
  type Value,
} from './testing/model-series.ts';
import { openTsmFile, type TsmFileReader } from './tsm-file-reader.ts';
import { TsmFileWriter, type TsmWriterOptions } from './tsm-file-writer.ts';

const path = 'shard/1.tsm';

/** Numbers from a seed, below a bound. */
function randomFrom(seed: number): (below: number) => number {
  let state = seed >>> 0;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

function newDisk(): FaultyDisk {
  const random = randomFrom(1);
  const disk = new FaultyDisk({ rng: { next: () => random(2 ** 30) / 2 ** 30 } });
  disk.makeDirectory('shard');
  return disk;
}

function write(
  disk: FaultyDisk,
  all: readonly ModelSeries[],
  options?: TsmWriterOptions,
  piece = Infinity,
): void {
  const writer = new TsmFileWriter(disk, path, options);
  for (const { series, measurement, types, rows } of all) {
    for (let at = 0; at < rows.length; at += piece) {
      writer.add(series, measurement, rowsOf(rows.slice(at, at + piece), types));
    }
  }
  writer.finish();
}

function readAll(file: TsmFileReader, series: number, fields: readonly number[]): ModelRow[] {
  return file
    .blocks(series, -Infinity, Infinity)
    .flatMap((block) => modelOf(file.read(block, series, fields)));
}

const types: readonly FieldType[] = ['float', 'integer', 'string', 'boolean', 'unsigned', 'float'];

function valueOf(type: FieldType, random: (below: number) => number): Value {
  switch (type) {
    case 'float':
      return random(3) === 0 ? Math.sin(random(1e6)) : random(1000) / 10;
    case 'integer':
      return random(40) === 0 ? -(2n ** 62n) : random(100) - 50;
    case 'unsigned':
      return random(1e6) * 1e9;
    case 'string':
      return `text ${random(random(2) === 0 ? 3 : 1e6)}`;
    case 'boolean':
      return random(2);
  }
}

/** Series with and without gaps, long and short, of some measurements. */
function makeSeries(seed: number, count: number, most: number): ModelSeries[] {
  const random = randomFrom(seed);
  const all: ModelSeries[] = [];
  let series = random(5);
  for (let i = 0; i < count; i++, series += 1 + random(random(4) === 0 ? 1000 : 1)) {
    const length = random(3) === 0 ? 1 + random(most) : 1 + random(9);
    const gaps = random(2) === 0;
    const rows: ModelRow[] = [];
    let time = random(1000) * 1e9;
    for (let row = 0; row < length; row++) {
      const values: (Value | undefined)[] = types.map((type) =>
        gaps && random(3) > 0 ? undefined : valueOf(type, random),
      );
      if (!values.some((value) => value !== undefined)) values[0] = 1;
      rows.push({ time, values });
      time += random(9) === 0 ? 1 + random(1e6) : 10e9;
    }
    all.push({ series, measurement: series % 3, types, rows });
  }
  return all;
}

const plain = (rows: readonly ModelRow[], fields: readonly number[]): ModelRow[] =>
  rows.map(({ time, values }) => ({
    time,
    values: fields.map((field) => plainValue(values[field])),
  }));

describe('rows', () => {
  test('are read back as they were written', () => {
    fc.assert(
      fc.property(
        fc.nat(),
        fc.integer({ min: 0, max: 30 }),
        fc.constantFrom(1, 7, 64, Infinity),
        fc.constantFrom({}, { blockRows: 16, sparseRows: 8, sharedRows: 20 }, { sparseRows: 0 }),
        fc.subarray([5, 4, 3, 2, 1, 0, 9]),
        (seed, count, piece, options, fields) => {
          const disk = newDisk();
          const all = makeSeries(seed, count, 150);
          write(disk, all, options, piece);
          const file = openTsmFile(disk, path);
          expect([...file.series]).toEqual(all.map(({ series }) => series));
          for (const { series, rows } of all) {
            expect(readAll(file, series, fields)).toEqual(plain(rows, fields));
          }
          const times = all.flatMap(({ rows }) => rows.map(({ time }) => time));
          expect(file.minTime).toBe(Math.min(...times));
          expect(file.maxTime).toBe(Math.max(...times));
          expect(file.bytes).toBe(disk.contents(path).length);
          file.close();
        },
      ),
      { numRuns: 60 },
    );
  });

  test('of a series that is not there are none', () => {
    const disk = newDisk();
    write(
      disk,
      makeSeries(1, 5, 100).filter(({ series }) => series !== 8),
    );
    const file = openTsmFile(disk, path);
    expect(file.blocks(8, -Infinity, Infinity)).toEqual([]);
    expect(file.blocks(1e6, -Infinity, Infinity)).toEqual([]);
  });

  test('of a range come in the blocks that touch it', () => {
    const disk = newDisk();
    const rows = Array.from({ length: 100 }, (_, i) => ({ time: i * 10, values: [i] }));
    write(disk, [{ series: 3, measurement: 0, types: ['float'], rows }], {
      blockRows: 20,
      sparseRows: 0,
    });
    const file = openTsmFile(disk, path);
    const check = (from: number, to: number, expected: number[]) =>
      expect(file.blocks(3, from, to).map((block) => block.minTime)).toEqual(expected);
    check(-Infinity, Infinity, [0, 200, 400, 600, 800]);
    check(190, 400, [0, 200, 400]);
    check(191, 199, []);
    check(500, 500, [400]);
    check(991, Infinity, []);
  });

  test('blocks are full, and the last one is not too small', () => {
    const disk = newDisk();
    const rows = Array.from({ length: 205 }, (_, i) => ({ time: i, values: [i] }));
    write(disk, [{ series: 0, measurement: 0, types: ['float'], rows }], { blockRows: 50 });
    const file = openTsmFile(disk, path);
    expect(file.blocks(0, 0, 1000).map(({ count }) => count)).toEqual([50, 50, 50, 55]);
  });

  test('series with few rows share blocks, by measurement', () => {
    const disk = newDisk();
    const all = Array.from({ length: 100 }, (_, series) => ({
      series,
      measurement: series % 2,
      types: ['integer', 'string'] as const,
      rows: [1, 2, 3].map((time) => ({
        time: time * 1e9 + series,
        values: [series, time === 2 ? undefined : 'x'],
      })),
    }));
    write(disk, all, { sharedRows: 60 });
    const cache = new SharedBlockCache(1);
    const file = openTsmFile(disk, path, cache);
    const numbers = all.map(({ series }) => file.blocks(series, 0, 9e9)[0]!.number);
    expect(new Set(numbers).size).toBe(6);
    expect(numbers[0]).toBe(numbers[2]);
    expect(numbers[0]).not.toBe(numbers[1]);
    for (const { series, rows } of all) {
      expect(readAll(file, series, [0, 1])).toEqual(plain(rows, [0, 1]));
      expect(file.summary(file.blocks(series, 0, 9e9)[0]!, series, [0])).toBeUndefined();
    }
    // Too small for anything.
    expect(cache.bytes).toBe(0);
  });

  test('many measurements wait no longer than memory allows', () => {
    const disk = newDisk();
    const all = Array.from({ length: 300 }, (_, series) => ({
      series,
      measurement: series % 100,
      types: ['integer'] as const,
      rows: [{ time: series, values: [series] }],
    }));
    const blocksOf = (waitingBytes: number) => {
      write(disk, all, { waitingBytes });
      const file = openTsmFile(disk, path);
      const numbers = all.map(({ series, rows }) => {
        expect(readAll(file, series, [0])).toEqual(rows);
        return file.blocks(series, 0, 9e9)[0]!.number;
      });
      return new Set(numbers).size;
    };
    expect(blocksOf(1e6)).toBe(100);
    expect(blocksOf(10_000)).toBe(300);
  });

  test('strings of any length', () => {
    const disk = newDisk();
    const rows = Array.from({ length: 300 }, (_, time) => ({
      time,
      values: [`${time} ${'lang '.repeat(time % 2 === 0 ? 2000 : 1)}`],
    }));
    const all = [
      { series: 0, measurement: 0, types: ['string'] as const, rows },
      { series: 1, measurement: 0, types: ['string'] as const, rows: rows.slice(0, 60) },
      { series: 2, measurement: 0, types: ['string'] as const, rows: rows.slice(0, 60) },
    ];
    write(disk, all);
    const file = openTsmFile(disk, path);
    for (const { series } of all) expect(readAll(file, series, [0])).toEqual(all[series]!.rows);
  });

  test('a field may come late, go early, and be one of thousands', () => {
    const disk = newDisk();
    const wide = Array.from({ length: 3000 }, (): FieldType => 'float');
    const rows = Array.from({ length: 100 }, (_, time) => {
      const values: (Value | undefined)[] = [];
      values[time * 17] = time;
      return { time, values };
    });
    write(disk, [{ series: 7, measurement: 0, types: wide, rows }], { blockRows: 40 });
    const file = openTsmFile(disk, path);
    expect(
      readAll(file, 7, [0, 17, 99 * 17, 5]).filter(({ values }) =>
        values.some((v) => v !== undefined),
      ),
    ).toEqual([
      { time: 0, values: [0, undefined, undefined, undefined] },
      { time: 1, values: [undefined, 1, undefined, undefined] },
      { time: 99, values: [undefined, undefined, 99, undefined] },
    ]);
  });
});

/** The contract, spelt out. */
function summaryOf(
  type: FieldType,
  rows: readonly ModelRow[],
  field: number,
): ColumnSummary | undefined {
  const known = rows.filter(({ values }) => values[field] !== undefined);
  if (known.length === 0) return undefined;
  const values = known.map((row) => plainValue(row.values[field])!);
  const least = (a: Value, b: Value) => (b < a ? b : a);
  const numeric = type !== 'string' && type !== 'boolean';
  const floatSum = () => values.reduce<number>((sum, v) => sum + Number(v), 0);
  const integerSum = () => {
    const sum = values.reduce<bigint>((s, v) => s + BigInt(v), 0n);
    return plainValue(type === 'unsigned' ? BigInt.asUintN(64, sum) : BigInt.asIntN(64, sum)) as
      | number
      | bigint;
  };
  return {
    type,
    count: known.length,
    first: values[0]!,
    firstTime: known[0]!.time,
    last: values.at(-1)!,
    lastTime: known.at(-1)!.time,
    min: type === 'string' ? undefined : values.reduce(least),
    max: type === 'string' ? undefined : values.reduce((a, b) => (b > a ? b : a)),
    sum: numeric ? (type === 'float' ? floatSum() : integerSum()) : undefined,
  };
}

describe('summaries', () => {
  test('are what the rows come to', () => {
    fc.assert(
      fc.property(fc.nat(), fc.constantFrom(10, 1000), (seed, blockRows) => {
        const disk = newDisk();
        const all = makeSeries(seed, 8, 120);
        write(disk, all, { blockRows, sparseRows: 0 });
        const file = openTsmFile(disk, path);
        const fields = [0, 1, 2, 3, 4, 5, 77];
        for (const { series, rows } of all) {
          for (const block of file.blocks(series, -Infinity, Infinity)) {
            const within = rows.filter(
              ({ time }) => time >= block.minTime && time <= block.maxTime,
            );
            expect(block.count).toBe(within.length);
            expect(file.summary(block, series, fields)).toEqual(
              fields.map((field) => summaryOf(types[field] ?? 'float', within, field)),
            );
          }
        }
      }),
      { numRuns: 40 },
    );
  });

  test('of extremes', () => {
    const check = (type: FieldType, values: readonly Value[]) => {
      const disk = newDisk();
      const rows = values.map((value, time) => ({ time, values: [value] }));
      write(disk, [{ series: 0, measurement: 0, types: [type], rows }], { sparseRows: 0 });
      const file = openTsmFile(disk, path);
      const block = file.blocks(0, 0, Infinity)[0]!;
      expect(file.summary(block, 0, [0])).toEqual([summaryOf(type, rows, 0)]);
    };
    check('float', [-0, -0]);
    check('float', [0.1, 0.2, 0.3]);
    check('float', [1e300, -1e300, 5e-324]);
    check('float', [1e15, 0.001]);
    check('integer', [Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER]);
    check('integer', [Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER, 7]);
    check('integer', [2n ** 63n - 1n, 1n]);
    check('integer', [-(2n ** 63n), -1n]);
    check('unsigned', [2n ** 64n - 1n, 2n ** 64n - 2n]);
    check(
      'unsigned',
      Array.from({ length: 9 }, () => Number.MAX_SAFE_INTEGER),
    );
    check('boolean', [0, 1, 1]);
    check('string', ['', 'ä']);
  });

  test('leave long strings to the rows', () => {
    const disk = newDisk();
    const rows = [{ time: 0, values: ['x'.repeat(1000), 1] }];
    write(disk, [{ series: 0, measurement: 0, types: ['string', 'float'], rows }]);
    const file = openTsmFile(disk, path);
    const block = file.blocks(0, 0, 9)[0]!;
    expect(file.summary(block, 0, [0])).toBeUndefined();
    expect(file.summary(block, 0, [1])).toMatchObject([{ count: 1, sum: 1 }]);
  });

  test('of a large directory', () => {
    const disk = newDisk();
    const all = Array.from({ length: 3000 }, (_, series) => ({
      series,
      measurement: 0,
      types: ['float', 'float', 'float', 'float'] as const,
      rows: [1, 2].map((time) => ({
        time,
        values: [Math.sin(series + time), Math.cos(series), 0.1, series / 7],
      })),
    }));
    write(disk, all, { sparseRows: 0 });
    const file = openTsmFile(disk, path);
    for (let i = 0; i < 3000; i++) {
      const series = (i * 1789) % 3000;
      const block = file.blocks(series, 0, 9)[0]!;
      expect(file.summary(block, series, [0])).toEqual([summaryOf('float', all[series]!.rows, 0)]);
    }
  });
});

describe('the writer', () => {
  const one = (time: number) => rowsOf([{ time, values: [1] }], ['float']);

  test('refuses series out of order', () => {
    const disk = newDisk();
    const writer = new TsmFileWriter(disk, path);
    writer.add(4, 0, one(1));
    expect(() => writer.add(3, 0, one(1))).toThrow('too late');
    expect(disk.exists(path)).toBe(false);
  });

  test('takes integers as they become wide', () => {
    const disk = newDisk();
    const writer = new TsmFileWriter(disk, path);
    const values = [1, 2n ** 60n, 3];
    values.forEach((value, i) =>
      writer.add(0, 0, {
        count: 1,
        times: Float64Array.of(i),
        columns: [columnOf('integer', [value])],
      }),
    );
    writer.finish();
    const file = openTsmFile(disk, path);
    expect(readAll(file, 0, [0]).map((row) => row.values[0])).toEqual(values);
  });

  test('knows how large the file gets', () => {
    const disk = newDisk();
    const writer = new TsmFileWriter(disk, path);
    for (let i = 0; i < 20_000; i++) writer.add(0, 0, one(i * i));
    const before = writer.bytes;
    writer.finish();
    const size = disk.contents(path).length;
    expect(before).toBeGreaterThan(size * 0.9);
    expect(before).toBeLessThanOrEqual(size);
  });

  test('leaves nothing behind when it is abandoned', () => {
    const disk = newDisk();
    const writer = new TsmFileWriter(disk, path);
    writer.add(0, 0, one(1));
    writer.abandon();
    writer.abandon();
    expect(disk.list('shard')).toEqual([]);
    expect(() => writer.add(1, 0, one(1))).toThrow('closed');
  });

  test('leaves nothing behind when the disk is full or fails', () => {
    for (const operation of ['write', 'sync', 'syncDirectory'] as const) {
      const disk = newDisk();
      disk.fault = (asked) => (asked === operation ? 'ENOSPC' : undefined);
      expect(() => write(disk, makeSeries(1, 20, 100))).toThrow('ENOSPC');
      expect(disk.list('shard')).toEqual([]);
    }
    const disk = newDisk();
    disk.capacityBytes = 1000;
    expect(() => write(disk, makeSeries(1, 20, 100))).toThrow('ENOSPC');
    expect(disk.list('shard')).toEqual([]);
  });

  test('tells the first failure when even the clearing away fails', () => {
    const disk = newDisk();
    disk.fault = (asked) => (asked === 'write' ? 'ENOSPC' : asked === 'remove' ? 'EIO' : undefined);
    expect(() => write(disk, makeSeries(1, 20, 100))).toThrow('ENOSPC');
  });

  test('has the file safe when it is finished', () => {
    const disk = newDisk();
    const all = makeSeries(5, 9, 90);
    write(disk, all);
    const file = openTsmFile(disk.crash(), path);
    for (const { series, rows } of all)
      expect(readAll(file, series, [0])).toEqual(plain(rows, [0]));
  });

  test('makes a file without rows', () => {
    const disk = newDisk();
    write(disk, []);
    const file = openTsmFile(disk, path);
    expect(file.series).toHaveLength(0);
    expect(file.minTime).toBe(Infinity);
  });
});

describe('damage', () => {
  const all = makeSeries(12, 9, 70);
  const options = { blockRows: 32, sparseRows: 8, sharedRows: 16 };

  function readEverything(disk: FaultyDisk): void {
    const file = openTsmFile(disk, path, new SharedBlockCache());
    const fields = [0, 1, 2, 3, 4, 5];
    for (const series of file.series) {
      for (const block of file.blocks(series, -Infinity, Infinity)) {
        file.read(block, series, fields);
        file.summary(block, series, fields);
      }
    }
    file.close();
  }

  test('a file cut off anywhere is not opened', () => {
    const disk = newDisk();
    write(disk, all, options);
    const whole = disk.contents(path);
    for (let length = 0; length < whole.length; length++) {
      disk.corrupt(path, () => whole.subarray(0, length));
      expect(() => openTsmFile(disk, path)).toThrow(CorruptFileError);
    }
    disk.corrupt(path, () => Buffer.concat([whole, Buffer.from([0])]));
    expect(() => openTsmFile(disk, path)).toThrow(CorruptFileError);
    disk.corrupt(path, () => whole);
    readEverything(disk);
  });

  test('no changed bit goes unnoticed', () => {
    const disk = newDisk();
    write(disk, all, options);
    const whole = disk.contents(path);
    for (let at = 0; at < whole.length; at++) {
      const changed = Buffer.from(whole);
      changed[at]! ^= 1 << (at % 8);
      disk.corrupt(path, () => changed);
      expect(() => readEverything(disk), `byte ${at}`).toThrow(CorruptFileError);
    }
  });

  test('is told with file and place', () => {
    const disk = newDisk();
    write(disk, all, options);
    disk.corrupt(path, (bytes) => {
      bytes[20]! ^= 1;
    });
    expect(() => readEverything(disk)).toThrow(
      /^shard\/1\.tsm is damaged at byte 16: wrong checksum$/,
    );
  });

  test('a missing file is not damage', () => {
    expect(() => openTsmFile(newDisk(), path)).toThrow('ENOENT');
  });
});

test('the cache of shared blocks stays within its bounds and forgets closed files', () => {
  const disk = newDisk();
  const all = Array.from({ length: 2000 }, (_, series) => ({
    series,
    measurement: 0,
    types: ['integer', 'float'] as const,
    rows: [{ time: series, values: [series, 1.5] }],
  }));
  write(disk, all, { sharedRows: 100 });
  const cache = new SharedBlockCache(16_000);
  const file = openTsmFile(disk, path, cache);
  for (let i = 0; i < 2000; i++) {
    const series = (i * 1789) % 2000;
    const fields = i % 3 === 0 ? [0] : [1, 0];
    expect(readAll(file, series, fields)).toEqual(plain(all[series]!.rows, fields));
    expect(cache.bytes).toBeLessThanOrEqual(16_000);
  }
  expect(cache.bytes).toBeGreaterThan(0);
  file.close();
  expect(cache.bytes).toBe(0);
});
