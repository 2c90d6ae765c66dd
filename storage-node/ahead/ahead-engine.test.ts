import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, test } from 'vitest';
import { assert } from '../../universal-row/assert.ts';
import { emptyBytes } from '../../universal-row/bytes.ts';
import { ReadFault } from '../../universal-row/errors.ts';
import { Shape } from '../../universal-row/rows.ts';
import { assertSameContents, decodeSnapshot } from '../../engines/conformance/contents.ts';
import type { Engine, RowTable } from '../../engines/engine.ts';
import { KvEngine } from '../../engines/kv/kv-engine.ts';
import { MemoryEngine } from '../../engines/memory/memory-engine.ts';
import type { MemoryTable } from '../../engines/memory/memory-table.ts';
import { Random, bytes, find, type Oracle } from '../../engines/memory/testing/oracle.ts';
import { writeOnce } from '../../engines/memory/testing/random-writes.ts';
import { AheadEngine } from './ahead-engine.ts';

const root = mkdtempSync(join(tmpdir(), 'polyrow-ahead-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));
let directories = 0;

const engines: { model: string; create: () => Engine }[] = [
  { model: 'memory', create: () => new MemoryEngine() },
  { model: 'kv', create: () => new KvEngine({ directory: join(root, String(directories++)) }) },
];

const spread = { keys: 12, fields: 40 };

function streamOnce(random: Random, engine: Engine): void {
  const table = engine.table(2);
  const name = `stream ${random.below(3)}`;
  const row = find(table, name);
  const key = bytes(String.fromCharCode(1 + random.below(20)));
  const text = bytes(random.text());
  if (row === 0) {
    const made = table.create(bytes(name), 0, name.length, Shape.stream);
    table.setStreamState(made, text, 0, Math.min(20, text.length));
    table.addStreamRecord(made, key, 0, 1, text, 0, text.length);
    return;
  }
  const isThere = table.streamRecord(row, key, 0, 1);
  switch (random.below(5)) {
    case 0:
      table.setStreamState(row, text, 0, Math.min(20, text.length));
      break;
    case 1:
      if (isThere) table.removeStreamRecord(row, key, 0, 1);
      else table.addStreamRecord(row, key, 0, 1, emptyBytes, 0, 0);
      break;
    case 2:
      table.removeStreamRecords(row, bytes('\u0002'), key);
      break;
    default:
      if (isThere) table.setStreamRecord(row, key, 0, 1, text, 0, text.length);
      else table.addStreamRecord(row, key, 0, 1, text, 0, text.length);
  }
}

/** Commands on tables 0 to 2; the same ones wherever the seed and the rows are the same. */
class Writer {
  readonly engine: Engine;
  oracles: Oracle[] = [new Map(), new Map()];

  constructor(engine: Engine) {
    this.engine = engine;
  }

  #command(random: Random): void {
    const { engine } = this;
    const kind = random.below(20);
    if (kind === 0) {
      engine.swapTables(0, 1);
      this.oracles.reverse();
    } else if (kind === 1) {
      const table = random.below(2);
      engine.table(table).clear();
      this.oracles[table] = new Map();
    } else if (kind < 5) streamOnce(random, engine);
    else {
      for (let i = random.below(4); i >= 0; i--) {
        const table = random.below(2);
        writeOnce(random, spread, engine.table(table), this.oracles[table]!);
      }
    }
  }

  tick(seed: number, index: number): void {
    const random = new Random(seed);
    for (let i = random.below(5); i >= 0; i--) {
      this.#command(random);
      this.engine.commit(index);
    }
  }
}

async function history(seed: number, inner: Engine): Promise<void> {
  const random = new Random(seed);
  await inner.open();
  const engine = new AheadEngine(inner, 7);
  const writer = new Writer(engine);
  const mirror = new Writer(new MemoryEngine());
  let committed = 0;
  for (let round = 0; round < 25; round++) {
    const ticks = Array.from({ length: 1 + random.below(4) }, () => random.below(2 ** 32));
    const kept = random.below(ticks.length + 1);
    for (const [i, one] of ticks.entries()) {
      writer.tick(one, 0);
      engine.assignPosition(committed + i + 1);
      engine.endTick();
      if (random.below(4) === 0) await same(engine, mirror.engine);
    }
    for (const one of ticks.slice(0, kept)) {
      engine.committed(++committed, committed);
      mirror.tick(one, committed);
      if (random.below(4) === 0) await same(engine, mirror.engine);
    }
    await engine.lost(committed + 1);
    writer.oracles = structuredClone(mirror.oracles);
    expect(inner.appliedIndexOf(7)).toBe(committed);
    expect(engine.aheadBytes).toBe(0);
    await same(inner, mirror.engine);
  }
  await engine.close();
}

async function same(engine: Engine, expected: Engine): Promise<void> {
  const [found, wanted] = [engine.exportSnapshot(), expected.exportSnapshot()];
  assertSameContents(
    await decodeSnapshot(found),
    await decodeSnapshot(wanted),
    'what is committed',
  );
}

describe.each(engines)('writes ahead of the commit, $model', ({ create }) => {
  test('are undone from the last one on, and never leave the engine', async () => {
    const seeds = fc.integer({ min: 0, max: 0xffffffff });
    await fc.assert(
      fc.asyncProperty(seeds, (seed) => history(seed, create())),
      { numRuns: 40 },
    );
  });

  // A copy of a large row is written so: first the row, and its elements with later entries.
  const one = bytes('one');
  const additions: Record<string, { shape: Shape; add: (table: RowTable, row: number) => void }> = {
    element: { shape: Shape.array, add: (table, row) => table.push(row, false, one, 0, 3) },
    'first element': { shape: Shape.array, add: (table, row) => table.push(row, true, one, 0, 3) },
    'inserted element': {
      shape: Shape.array,
      add: (table, row) => table.insertElement(row, 0, one, 0, 3),
    },
    field: {
      shape: Shape.map,
      add: (table, row) => table.putField(row, one, 0, 3, one, 0, 3),
    },
    member: {
      shape: Shape.set,
      add: (table, row) => table.putField(row, one, 0, 3, emptyBytes, 0, 0),
    },
    score: { shape: Shape.ranked, add: (table, row) => table.putScore(row, one, 0, 3, 1) },
  };
  test.each(Object.entries(additions))(
    'a row without elements stays when what is added to it is undone: %s',
    async (_, { shape, add }) => {
      const inner = create();
      await inner.open();
      const engine = new AheadEngine(inner, 7);
      engine.table(0).create(bytes('row'), 0, 3, shape);
      engine.commit();
      engine.assignPosition(1);
      engine.committed(1, 1);
      const elements = (): number | undefined => {
        const row = find(inner.table(0), 'row');
        return row === 0 ? undefined : inner.table(0).count(row);
      };
      for (let i = 0; i < 2; i++) add(engine.table(0), find(engine.table(0), 'row'));
      engine.commit();
      engine.assignPosition(2);
      expect(elements()).toBeGreaterThan(0);
      expect(await engine.takeState(elements)).toBe(0);
      await engine.lost(2);
      expect(elements()).toBe(0);
      await engine.close();
    },
  );
});

/** The next row that is looked up has to be read from disk first. */
class ColdEngine extends MemoryEngine {
  #cold: Promise<void> | undefined;

  turnCold(ready: Promise<void>): void {
    this.#cold = ready;
  }

  override table(id: number): MemoryTable {
    const find = (table: MemoryTable, args: Parameters<MemoryTable['find']>): number => {
      const ready = this.#cold;
      this.#cold = undefined;
      if (ready !== undefined) throw new ReadFault(ready);
      return table.find(...args);
    };
    return new Proxy<MemoryTable>(super.table(id), {
      get(table, name) {
        if (name === 'find') return (...args: Parameters<typeof find>[1]) => find(table, args);
        const value = (table as unknown as Record<PropertyKey, unknown>)[name];
        return typeof value === 'function' ? (value.bind(table) as unknown) : value;
      },
    });
  }
}

function put(engine: Engine, key: string): void {
  engine.table(0).putValue(bytes(key), 0, key.length, bytes('v'), 0, 1, 0);
  engine.commit(0);
}

test('states that are asked for at once are taken one after the other, and what is ahead stays', async () => {
  const inner = new MemoryEngine();
  const engine = new AheadEngine(inner, 7);
  put(engine, 'a');
  engine.assignPosition(1);
  engine.committed(1, 1);
  put(engine, 'b');
  engine.assignPosition(2);
  const first = await engine.committedRows();
  const others = [engine.committedRows(), engine.committedRows()].map(async (rows) => {
    const { index, batches } = await rows;
    expect(index).toBe(1);
    return decodeSnapshot(batches);
  });
  const [one, ...rest] = await Promise.all([decodeSnapshot(first.batches), ...others]);
  for (const contents of rest) assertSameContents(contents, one!, 'what is committed');
  expect(() => engine.takeState(() => assert(false, 'on purpose'))).toThrow('on purpose');
  engine.committed(2, 2);
  expect(find(inner.table(0), 'b')).not.toBe(0);
});

test('a tick that ends while rows are read for a state taken within it keeps its position', async () => {
  const inner = new ColdEngine();
  const engine = new AheadEngine(inner, 7);
  let ready = (): void => {};
  put(engine, 'a');
  inner.turnCold(
    new Promise((resolve) => {
      ready = resolve;
    }),
  );
  const taken = engine.takeState(() => inner.table(0).rowCount());
  expect(engine.moving).toBeDefined();
  engine.assignPosition(1);
  ready();
  expect(await taken).toBe(0);
  await engine.moving;
  put(engine, 'b');
  engine.assignPosition(2);
  engine.committed(1, 1);
  await engine.lost(2);
  expect(find(inner.table(0), 'a')).not.toBe(0);
  expect(find(inner.table(0), 'b')).toBe(0);
  expect(engine.aheadBytes).toBe(0);
});

test('a row that cannot be read while a state is taken ends all writing, and the half-undone rows count as no state', async () => {
  const inner = new ColdEngine();
  const engine = new AheadEngine(inner, 7);
  put(engine, 'a');
  engine.assignPosition(1);
  inner.turnCold(Promise.reject(new Error('read error')));
  await expect(engine.takeState(() => inner.table(0).rowCount())).rejects.toThrow('read error');
  await engine.moving;
  expect(engine.failure?.message).toBe('read error');
  engine.committed(1, 1);
  expect(engine.appliedIndexOf(7)).toBe(0);
  expect(inner.holdsBack).toBe(true);
  await expect(engine.checkpoint()).rejects.toThrow('read error');
  expect(() => engine.lost(1)).toThrow('read error');
  await engine.close();
});
