// Conversion of a row between the structured form and an engine, and back, preserves the row.

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { applyBatch } from '../engines/apply.ts';
import type { Engine } from '../engines/engine.ts';
import { MemoryEngine } from '../engines/memory/memory-engine.ts';
import { anyBytes, flatValues, runs } from '../universal-row/arbitraries.ts';
import { RecordBatchWriter } from '../universal-row/record-batch.ts';
import { fromRows, toBatch } from '../universal-row/row-transfer.ts';
import { rowKey, type RowValue, type URow } from '../universal-row/row.ts';
import { sameRow } from '../universal-row/row-equality.ts';
import type { Scalar } from '../universal-row/scalar.ts';
import { mapRow, reduceRecords } from '../universal-row/translators/registry.ts';

const written = { version: 3, ts: 1_800_000_000_000 };

/** Scores that an engine keeps as they are. */
const scores = fc
  .oneof(fc.double({ noNaN: true }), fc.integer())
  .map((value) => (Object.is(value, -0) ? 0 : value));

const flat = flatValues(anyBytes, scores, 40);
const held = {
  ...flat,
  // Keys of records begin with a smaller byte: see `endOfRecords`.
  stream: flat.stream.map((value) => ({
    ...value,
    records: value.records.filter(([key]) => (key as Uint8Array)[0] !== 0xff),
  })),
};

const anyHeldRow = (value: fc.Arbitrary<RowValue>): fc.Arbitrary<URow> =>
  fc
    .tuple(anyBytes, value, fc.option(fc.integer({ min: 1, max: 2 ** 45 }), { nil: undefined }))
    .map(([key, rowValue, expireAt]) => ({
      key: rowKey([key]),
      value: rowValue,
      attrs: expireAt === undefined ? written : { ...written, expireAt },
    }));

function isEmpty(value: RowValue): boolean {
  switch (value.kind) {
    case 'map':
      return value.entries.length === 0;
    case 'set':
    case 'ranked':
      return value.members.length === 0;
    case 'array':
      return value.elements.length === 0;
    default:
      return false;
  }
}

function put(engine: Engine, rows: readonly URow[]): void {
  const writer = new RecordBatchWriter();
  for (const row of rows) toBatch(row, 2, writer);
  applyBatch(engine, writer.buf, 0, writer.pos, engine.appliedIndex + 1);
}

function get(engine: Engine, key: Scalar | undefined): URow | undefined {
  const bytes = Buffer.from(key as Uint8Array);
  const table = engine.table(2);
  return fromRows(table, table.find(bytes, 0, bytes.length), written);
}

describe.each([{ model: 'memory', create: () => new MemoryEngine() }])('$model', ({ create }) => {
  test.each(Object.entries(held))(
    'a %s row comes back from the engine as it went in',
    async (_, value) => {
      const engine = create();
      await engine.open();
      fc.assert(
        fc.property(anyHeldRow(value), (row) => {
          put(engine, [row]);
          const back = get(engine, row.key.partition[0]);
          if (isEmpty(row.value)) expect(back).toBeUndefined();
          else expect(back !== undefined && sameRow(back, row)).toBe(true);
          if (back === undefined) return;
          expect(sameRow(reduceRecords(mapRow(back)), row)).toBe(true);
        }),
        { numRuns: runs(400, 20_000) },
      );
      await engine.close();
    },
    600_000,
  );

  test('a row takes the place of whatever had its key, expiry and all', async () => {
    const anyOne = anyHeldRow(fc.oneof(...Object.values(held)));
    const engine = create();
    await engine.open();
    fc.assert(
      fc.property(anyOne, anyOne, (before, after) => {
        const row = { ...after, key: before.key };
        put(engine, [before, row]);
        const back = get(engine, row.key.partition[0]);
        if (isEmpty(row.value)) expect(back).toBeUndefined();
        else expect(back !== undefined && sameRow(back, row)).toBe(true);
      }),
      { numRuns: runs(300, 10_000) },
    );
    await engine.close();
  }, 600_000);
});

test('what an engine of bytes cannot hold exactly is refused, and nothing of it is written', () => {
  const writer = new RecordBatchWriter();
  const key = rowKey([Buffer.from('k')]);
  const check = (row: Partial<URow>, message: string) => {
    const whole: URow = { key, value: { kind: 'set', members: [] }, attrs: written, ...row };
    expect(() => toBatch(whole, 0, writer)).toThrow(message);
    expect(writer.pos).toBe(0);
  };
  check({ value: { kind: 'primitive', value: 'text' } }, 'bytes only');
  check({ value: { kind: 'map', entries: [[Buffer.of(1), 1n]] } }, 'bytes only');
  check({ value: { kind: 'ranked', members: [[Buffer.of(1), -0]] } }, 'cannot hold the score');
  check({ value: { kind: 'ranked', members: [[Buffer.of(1), NaN]] } }, 'cannot hold the score NaN');
  const records: [Scalar, Scalar][] = [[Buffer.of(0xff), Buffer.of(1)]];
  check({ value: { kind: 'stream', state: Buffer.of(1), records } }, 'cannot hold the record key');
  check({ value: { kind: 'document', root: null } }, 'cannot hold a document row');
  check({ key: rowKey([Buffer.of(1), Buffer.of(2)]) }, 'one partition key');
  check({ key: rowKey([Buffer.of(1)], [1]) }, 'no range key');
  check({ key: rowKey(['text']) }, 'bytes only');
});
