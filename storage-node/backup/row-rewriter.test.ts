import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { applyOps } from '../../engines/apply.ts';
import { decodeSnapshot, type EngineContents } from '../../engines/conformance/contents.ts';
import { MemoryEngine } from '../../engines/memory/memory-engine.ts';
import { RecordBatchWriter } from '../../universal-row/record-batch.ts';
import { Shape } from '../../universal-row/rows.ts';
import { RowRewriter } from './row-rewriter.ts';
import { RowTally } from './row-tally.ts';

type Put = (w: RecordBatchWriter) => void;

const text = fc.string({ unit: 'binary', maxLength: 6 });
const table = fc.integer({ min: 0, max: 3 });
const bytes = (value: string): [Buffer, number, number] => {
  const b = Buffer.from(value);
  return [b, 0, b.length];
};

/** A row and what is done to it, or something about whole tables. */
const change: fc.Arbitrary<Put> = fc.oneof(
  fc.tuple(table, text, text, fc.integer({ min: 0, max: 3 })).map(
    ([t, key, value, at]): Put =>
      (w) =>
        w.value(t, ...bytes(key), ...bytes(value), at),
  ),
  fc.tuple(table, text, fc.array(fc.tuple(text, text), { minLength: 1, maxLength: 20 })).map(
    ([t, key, fields]): Put =>
      (w) => {
        w.row(t, ...bytes(key));
        w.create(Shape.map);
        for (const [field, value] of fields) w.field(...bytes(field), ...bytes(value));
      },
  ),
  fc.tuple(table, text, fc.array(text, { minLength: 1, maxLength: 20 }), text).map(
    ([t, key, elements, to]): Put =>
      (w) => {
        w.row(t, ...bytes(key));
        w.create(Shape.array);
        for (const element of elements) w.push(element.length % 2 === 0, ...bytes(element));
        w.rename(...bytes(to));
        w.element(0, ...bytes('first'));
        w.insert(1, ...bytes('second'));
      },
  ),
  fc.tuple(table, text, fc.array(fc.tuple(fc.integer(), text), { minLength: 1 })).map(
    ([t, key, members]): Put =>
      (w) => {
        w.row(t, ...bytes(key));
        w.create(Shape.ranked);
        w.expire(77);
        for (const [score, member] of members) w.score(score, ...bytes(member));
      },
  ),
  fc.tuple(table, text).map(
    ([t, key]): Put =>
      (w) => {
        w.row(t, ...bytes(key));
        w.drop();
      },
  ),
  table.map(
    (t): Put =>
      (w) =>
        w.clear(t),
  ),
);

function batchOf(changes: readonly Put[]): Buffer {
  const w = new RecordBatchWriter();
  for (const put of changes) put(w);
  return Buffer.from(w.buf.subarray(0, w.pos));
}

function rewritten(
  batch: Buffer,
  map: (t: number) => number | undefined,
  sliceBytes: number,
): Buffer[] {
  const rewriter = new RowRewriter(map, sliceBytes);
  const slices: Buffer[] = [];
  for (const slice of rewriter.add(batch, 0, batch.length)) slices.push(Buffer.from(slice));
  const rest = rewriter.rest();
  return rest === undefined ? slices : [...slices, Buffer.from(rest)];
}

async function contentsAfter(batches: readonly Buffer[]): Promise<EngineContents> {
  const engine = new MemoryEngine();
  for (const batch of batches) applyOps(engine, batch, 0, batch.length);
  return decodeSnapshot(engine.exportSnapshot());
}

describe('rewriting a batch', () => {
  test('in slices of any size makes the same rows, of the tables wanted, under their numbers', async () => {
    const map = (t: number): number | undefined => (t === 2 ? undefined : t * 1000 + 5);
    await fc.assert(
      fc.asyncProperty(
        fc.array(change, { maxLength: 30 }),
        fc.integer({ min: 1, max: 400 }),
        async (changes, sliceBytes) => {
          const batch = batchOf(changes);
          const expected: EngineContents = new Map();
          for (const [name, row] of await contentsAfter([batch])) {
            const slash = name.indexOf('/');
            const to = map(Number(name.slice(0, slash)));
            if (to !== undefined) expected.set(`${to}${name.slice(slash)}`, row);
          }
          const slices = rewritten(batch, map, sliceBytes);
          expect(await contentsAfter(slices)).toEqual(expected);
        },
      ),
      { numRuns: 300 },
    );
  });

  test('of bytes that are none is a RangeError, and nothing else', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.uint8Array({ maxLength: 60 }),
          fc
            .tuple(fc.array(change, { minLength: 1 }), fc.nat(), fc.nat())
            .map(([changes, at, bit]) => {
              const batch = batchOf(changes);
              batch[at % batch.length]! ^= 1 << (bit % 8);
              return batch;
            }),
        ),
        (damaged) => {
          try {
            rewritten(Buffer.from(damaged), (t) => t, 100);
          } catch (error) {
            expect(error).toBeInstanceOf(RangeError);
          }
        },
      ),
      { numRuns: 2000 },
    );
  });

  test('a swap with a table that is left out is refused, one of both is left out', () => {
    const swap = batchOf([(w) => w.swap(1, 2)]);
    expect(() => rewritten(swap, (t) => (t === 1 ? t : undefined), 100)).toThrow(
      'table 1 is swapped',
    );
    expect(rewritten(swap, () => undefined, 100)).toEqual([]);
    expect(rewritten(swap, (t) => t + 1, 100)).toEqual([batchOf([(w) => w.swap(2, 3)])]);
  });
});

describe('a tally', () => {
  async function sumsOf(changes: readonly Put[]) {
    const engine = new MemoryEngine();
    const batch = batchOf(changes);
    applyOps(engine, batch, 0, batch.length);
    const tally = new RowTally(50);
    const rewriter = new RowRewriter((t) => t, Infinity, tally);
    for await (const exported of engine.exportSnapshot()) {
      for (const _ of rewriter.add(exported, 0, exported.length));
      rewriter.rest();
    }
    return tally.sums();
  }
  const value =
    (key: string, content: string, at = 0, t = 0): Put =>
    (w) =>
      w.value(t, ...bytes(key), ...bytes(content), at);
  const list =
    (...elements: string[]): Put =>
    (w) => {
      w.row(0, ...bytes('list'));
      w.create(Shape.array);
      for (const element of elements) w.push(false, ...bytes(element));
    };

  test('is the same in any order, and another one for another content', async () => {
    const [sum] = await sumsOf([value('a', '1'), value('b', '2', 10), value('c', '3', 90)]);
    expect(sum).toMatchObject({ table: 0, rows: 3, expiring: 2, due: 1 });
    const [same] = await sumsOf([value('c', '3', 90), value('a', '1'), value('b', '2', 10)]);
    expect(same).toEqual(sum);
    const others = [
      [value('a', '2'), value('b', '1', 10), value('c', '3', 90)],
      [value('a', '1'), value('b', '2', 11), value('c', '3', 90)],
      [value('a', '1'), value('b', '2'), value('c', '3', 90)],
      [value('a', '1'), value('bb', '2', 10), value('c', '3', 90)],
    ];
    for (const other of others) {
      expect((await sumsOf(other))[0]!.checksum).not.toBe(sum!.checksum);
    }
  });

  test('minds the order of a list, small or large', async () => {
    const large = Array.from({ length: 5000 }, (_, i) => `element ${i}`);
    for (const elements of [['a', 'b', 'c'], large]) {
      const [sum] = await sumsOf([list(...elements)]);
      const [swapped] = await sumsOf([list(elements[1]!, elements[0]!, ...elements.slice(2))]);
      expect(swapped!.elements).toBe(sum!.elements);
      expect(swapped!.checksum).not.toBe(sum!.checksum);
    }
  });
});
