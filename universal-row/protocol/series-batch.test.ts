import fc from 'fast-check';
import { expect, test } from 'vitest';
import { keyedHash } from '../keyed-hash.ts';
import { fieldTypes } from '../series/field-type.ts';
import type { PointBatch, PointColumn, PointGroup } from '../series/point-batch.ts';
import type { SeriesCache } from '../series/series-cache.ts';
import { encodeSeriesKey } from '../series/series-key.ts';
import { BatchWriter, type KeyTable, readBatch } from './series-batch.ts';
import { WireError, WireReader, WireWriter } from './wire.ts';

class TestKeys implements SeriesCache, KeyTable {
  readonly generation = 3;
  readonly all: Buffer[] = [];

  get cache(): SeriesCache {
    return this;
  }

  get size(): number {
    return this.all.length;
  }

  keys(handle: number): Buffer {
    return this.all[handle]!;
  }

  keyStart(): number {
    return 0;
  }

  keyEnd(handle: number): number {
    return this.all[handle]!.length;
  }

  keyHash(handle: number): number {
    return keyedHash(this.all[handle]!, 0, this.all[handle]!.length);
  }

  handleOf(buf: Buffer, start: number, end: number): number {
    const key = Buffer.from(buf.subarray(start, end));
    const found = this.all.findIndex((one) => one.equals(key));
    return found >= 0 ? found : this.all.push(key) - 1;
  }
}

/** Points as rows: what a batch means, however its arrays are laid out. */
type Row = [key: string, time: bigint, field: string, type: string, value: string];

function rowsOf({ groups, cache, baseSeconds, text, textEnds }: PointBatch): Row[] {
  const rows: Row[] = [];
  for (const group of groups) {
    for (let row = 0; row < group.rows; row++) {
      const handle = group.series[row]!;
      const key = cache.keys(handle).toString('utf8', cache.keyStart(handle), cache.keyEnd(handle));
      const time = BigInt(baseSeconds) * 1_000_000_000n + BigInt(group.times[row]!);
      for (const column of group.columns) {
        if (column.present !== undefined && column.present[row] !== 1) continue;
        const number = column.numbers[row]!;
        const start = number === 0 ? 0 : textEnds[number - 1]!;
        const value =
          column.type === 'string'
            ? text.toString('hex', start, textEnds[number])
            : `${column.wide?.[row] ?? number} ${Object.is(number, -0)}`;
        rows.push([key, time, column.field, column.type, value]);
      }
    }
  }
  return rows;
}

const anyColumn = fc.record({
  field: fc.string({ maxLength: 8 }),
  type: fc.constantFrom(...fieldTypes),
  isWide: fc.boolean(),
  isSparse: fc.boolean(),
});
const anyGroup = fc.record({
  measurement: fc.string({ minLength: 1, maxLength: 8, unit: 'grapheme-ascii' }),
  series: fc.array(fc.nat(5), { minLength: 1, maxLength: 60 }),
  columns: fc.array(anyColumn, { maxLength: 5 }),
});
const anyBatch = fc.record({
  baseSeconds: fc.integer(),
  groups: fc.array(anyGroup, { maxLength: 4 }),
  seed: fc.nat(),
});

type Shape = typeof anyBatch extends fc.Arbitrary<infer T> ? T : never;

function batchOf({ baseSeconds, groups, seed }: Shape): PointBatch {
  const keys = new TestKeys();
  let state = seed;
  const random = (below: number): number => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
  const texts: Buffer[] = [];
  const ends: number[] = [];
  const made = groups.map((group): PointGroup => {
    const rows = group.series.length;
    const handles = group.series.map((n) => {
      const name = { measurement: group.measurement, tags: [['tag', `${n}`] as const] };
      const key = n === 0 ? encodeSeriesKey({ ...name, tags: [] }) : encodeSeriesKey(name);
      return keys.handleOf(key, 0, key.length);
    });
    const columns = group.columns.map(({ field, type, isWide, isSparse }): PointColumn => {
      const canBeWide = isWide && (type === 'integer' || type === 'unsigned');
      const present = isSparse ? Uint8Array.from({ length: rows + 2 }, () => random(2)) : undefined;
      const numbers = new Float64Array(rows + 2).fill(NaN);
      const wide = canBeWide ? new BigInt64Array(rows + 2).fill(-7n) : undefined;
      let count = 0;
      for (let row = 0; row < rows; row++) {
        if (present !== undefined && present[row] === 0) continue;
        count++;
        if (type === 'string') {
          texts.push(Buffer.from('é'.repeat(random(9))));
          numbers[row] = ends.push((ends.at(-1) ?? 0) + texts.at(-1)!.length) - 1;
        } else if (wide !== undefined) wide[row] = (1n << 62n) + BigInt(random(1000));
        else if (type === 'float') numbers[row] = random(9) / 4 - 1 || -0;
        else numbers[row] = random(type === 'boolean' ? 2 : 1000);
      }
      return { field, type, numbers, wide, present, count };
    });
    const times = Float64Array.from({ length: rows + 2 }, () => random(2 ** 31) - 2 ** 30);
    return {
      measurement: group.measurement,
      rows,
      series: Uint32Array.from([...handles, 99, 99]),
      times,
      columns,
    };
  });
  return {
    cache: keys,
    generation: keys.generation,
    baseSeconds,
    rows: made.reduce((sum, { rows }) => sum + rows, 0),
    groups: made,
    text: Buffer.concat([...texts, Buffer.from('rest')]),
    textEnds: Uint32Array.from([...ends, 0]),
  };
}

function pieces(batch: PointBatch, maxBytes: number): Buffer[] {
  const writer = new BatchWriter();
  const all: Buffer[] = [];
  writer.begin(batch);
  while (writer.hasMore) {
    const out = new WireWriter();
    writer.write(out, maxBytes);
    all.push(Buffer.from(out.view()));
  }
  return all;
}

test('a batch arrives as it was sent, in one piece or in many', () => {
  fc.assert(
    fc.property(anyBatch, fc.constantFrom(1, 100, 1000, 1e9), (shape, maxBytes) => {
      const batch = batchOf(shape);
      const table = new TestKeys();
      let rows = 0;
      const read = pieces(batch, maxBytes).flatMap((bytes) => {
        const reader = new WireReader(bytes);
        const one = readBatch(reader, table);
        reader.done();
        rows += one.rows;
        for (const { columns } of one.groups) {
          for (const { count } of columns) expect(count).toBeGreaterThan(0);
        }
        return rowsOf(one);
      });
      expect(read).toEqual(rowsOf(batch));
      expect(rows).toBe(batch.rows);
    }),
  );
});

test('a damaged batch is refused, or is a batch', () => {
  fc.assert(
    fc.property(
      anyBatch,
      fc.array(fc.tuple(fc.nat(), fc.nat(255)), { minLength: 1, maxLength: 4 }),
      fc.nat(),
      (shape, changes, cut) => {
        const [bytes] = pieces(batchOf(shape), 1e9);
        if (bytes === undefined) return;
        for (const [at, by] of changes) bytes[at % bytes.length]! ^= by;
        const short = bytes.subarray(0, cut % 3 === 0 ? cut % bytes.length : bytes.length);
        try {
          rowsOf(readBatch(new WireReader(short), new TestKeys()));
        } catch (error) {
          expect(error).toBeInstanceOf(WireError);
        }
      },
    ),
  );
});

test('a count beyond the message takes no memory', () => {
  const writer = new WireWriter();
  writer.signed(0);
  writer.varint(0);
  writer.varint(1);
  writer.string('m');
  writer.varint(2 ** 50);
  const read = (): unknown => readBatch(new WireReader(writer.view()), new TestKeys());
  expect(read).toThrow(WireError);
});

test('a series of another measurement is refused', () => {
  const shape = {
    baseSeconds: 0,
    groups: [{ measurement: 'cpu', series: [1], columns: [] }],
    seed: 1,
  };
  const [bytes] = pieces(batchOf(shape), 1e9);
  const at = bytes!.indexOf('cpu,tag');
  bytes![at] = 'x'.charCodeAt(0);
  expect(() => readBatch(new WireReader(bytes!), new TestKeys())).toThrow(/another measurement/);
});
