// A row that is copied from an engine to another is the same there, whatever it is and whatever had its key.

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { applyBatch } from '../../engines/apply.ts';
import { decodeSnapshot } from '../../engines/conformance/contents.ts';
import type { Engine } from '../../engines/engine.ts';
import { ReadFault } from '../../universal-row/errors.ts';
import { RecordBatchWriter } from '../../universal-row/record-batch.ts';
import { appendRow } from '../../universal-row/row-copy.ts';
import { Shape } from '../../universal-row/rows.ts';
import { kv, memory } from './subjects.ts';

const table = 2;

type WriteElements = (writer: RecordBatchWriter) => void;

interface AnyRow {
  readonly key: Buffer;
  readonly expireAt: number;
  readonly write: WriteElements;
}

const anyBytes = fc
  .oneof(
    fc.uint8Array({ maxLength: 24 }),
    fc.uint8Array({ maxLength: 6, max: 2 }),
    fc.uint8Array({ minLength: 240, maxLength: 300 }),
  )
  .map((bytes) => Buffer.from(bytes));
const some = <T>(item: fc.Arbitrary<T>) => fc.array(item, { minLength: 1, maxLength: 40 });
const distinct = <T>(item: fc.Arbitrary<T>, key: (one: T) => Buffer) =>
  fc.uniqueArray(item, {
    minLength: 1,
    maxLength: 40,
    selector: (one) => key(one).toString('hex'),
  });

const pairs = distinct(fc.tuple(anyBytes, anyBytes), ([field]) => field);
const scores = fc
  .oneof(fc.double({ noNaN: true }), fc.integer())
  .map((score) => (Object.is(score, -0) ? 0 : score));
const scored = distinct(fc.tuple(anyBytes, scores), ([member]) => member);
/** Keys of records are below `endOfRecords`. */
const records = pairs.map((all) => {
  const below = all.filter(([key]) => key[0] !== 0xff);
  return below.toSorted(([a], [b]) => a.compare(b));
});

const elements: Record<string, fc.Arbitrary<WriteElements>> = {
  map: pairs.map((entries) => (writer) => {
    writer.create(Shape.map);
    for (const [f, v] of entries) writer.field(f, 0, f.length, v, 0, v.length);
  }),
  set: pairs.map((entries) => (writer) => {
    writer.create(Shape.set);
    for (const [member] of entries) writer.field(member, 0, member.length, member, 0, 0);
  }),
  ranked: scored.map((members) => (writer) => {
    writer.create(Shape.ranked);
    for (const [member, score] of members) writer.score(score, member, 0, member.length);
  }),
  array: some(anyBytes).map((items) => (writer) => {
    writer.create(Shape.array);
    for (const item of items) writer.push(false, item, 0, item.length);
  }),
  stream: fc.tuple(anyBytes, records).map(([state, items]) => (writer) => {
    writer.create(Shape.stream);
    writer.streamState(state, 0, state.length);
    for (const [k, v] of items) writer.streamRecord(true, k, 0, k.length, v, 0, v.length);
  }),
};

/** Few, so that a row often takes the place of another. */
const anyKey = fc.oneof(
  fc.constantFrom('', 'k', 'key').map((key) => Buffer.from(key)),
  anyBytes,
);

const anyRow = (write: fc.Arbitrary<WriteElements>): fc.Arbitrary<AnyRow> =>
  fc.record({
    key: anyKey,
    expireAt: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 2 ** 45 })),
    write,
  });

function put(engine: Engine, { key, expireAt, write }: AnyRow): void {
  const writer = new RecordBatchWriter();
  writer.row(table, key, 0, key.length);
  write(writer);
  if (expireAt !== 0) writer.expire(expireAt);
  applyBatch(engine, writer.buf, 0, writer.pos, engine.appliedIndex + 1);
}

function putString(engine: Engine, key: Buffer, value: Buffer, expireAt: number): void {
  const writer = new RecordBatchWriter();
  writer.value(table, key, 0, key.length, value, 0, value.length, expireAt);
  applyBatch(engine, writer.buf, 0, writer.pos, engine.appliedIndex + 1);
}

function empty(engine: Engine): void {
  const writer = new RecordBatchWriter();
  writer.clear(table);
  applyBatch(engine, writer.buf, 0, writer.pos, engine.appliedIndex + 1);
}

async function copy(from: Engine, to: Engine, key: Buffer): Promise<void> {
  const writer = new RecordBatchWriter();
  for (;;) {
    try {
      writer.pos = 0;
      const rows = from.table(table);
      appendRow(rows, rows.find(key, 0, key.length), table, writer);
      applyBatch(to, writer.buf, 0, writer.pos, to.appliedIndex + 1);
      return;
    } catch (error) {
      if (!(error instanceof ReadFault)) throw error;
      await error.ready;
    }
  }
}

async function open(subject: typeof memory): Promise<Engine> {
  const engine = subject.create(subject.newDirectory());
  await engine.open();
  return engine;
}

describe.each([
  { from: memory, to: kv },
  { from: kv, to: memory },
])('from $from.model to $to.model', ({ from, to }) => {
  const rows: Record<string, fc.Arbitrary<(engine: Engine) => Buffer>> = {
    string: fc
      .tuple(anyBytes, anyBytes, fc.integer({ min: 0, max: 2 ** 45 }))
      .map(([key, value, expireAt]) => (engine) => {
        putString(engine, key, value, expireAt);
        return key;
      }),
  };
  for (const [name, write] of Object.entries(elements)) {
    rows[name] = anyRow(write).map((row) => (engine) => {
      put(engine, row);
      return row.key;
    });
  }
  const anyKind = fc.oneof(...Object.values(rows));

  test.each(Object.entries(rows))(
    'a %s',
    async (_, row) => {
      const [source, target] = [await open(from), await open(to)];
      await fc.assert(
        fc.asyncProperty(anyKind, row, async (before, after) => {
          empty(source);
          empty(target);
          before(target);
          await copy(source, target, before(source));
          await copy(source, target, after(source));
          const wanted = await decodeSnapshot(source.exportSnapshot());
          expect(wanted.size).toBeGreaterThan(0);
          expect(await decodeSnapshot(target.exportSnapshot())).toEqual(wanted);
        }),
        { numRuns: 60 },
      );
      await source.close();
      await target.close();
    },
    300_000,
  );

  test('no row', async () => {
    const [source, target] = [await open(from), await open(to)];
    await copy(source, target, Buffer.from('none'));
    expect(await decodeSnapshot(target.exportSnapshot())).toEqual(new Map());
    await source.close();
    await target.close();
  });
});
