// Random histories against plain maps and arrays, with so little memory that most reads fault: with
// undone steps, reopening and swapped and cleared tables. In the end LevelDB holds no record that no row
// owns.

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, test } from 'vitest';
import { withinTime } from '../../test/support/time-limit.ts';
import { Shape } from '../../universal-row/rows.ts';
import {
  array,
  assertSameContents,
  map,
  ranked,
  rowName,
  set,
  value,
  type EngineContents,
  type RowContent,
} from '../conformance/contents.ts';
import { Trial } from '../conformance/trial.ts';
import { Verbs } from '../conformance/verbs.ts';
import { KvEngine, type KvEngineOptions } from './kv-engine.ts';
import { LevelStore } from './level-store.ts';
import { decodeRow, emptyRow } from './record.ts';

const root = mkdtempSync(join(tmpdir(), 'polyrow-kv-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));
let directories = 0;

type Model =
  | { shape: typeof Shape.value; expireAt: number; bytes: string }
  | { shape: typeof Shape.map; expireAt: number; fields: Map<string, string> }
  | { shape: typeof Shape.set; expireAt: number; members: Set<string> }
  | { shape: typeof Shape.ranked; expireAt: number; scores: Map<string, number> }
  | { shape: typeof Shape.array; expireAt: number; elements: string[] };

type Rows = Map<string, Model>;
type Tables = Map<number, Rows>;

interface Change {
  kind: string;
  table: number;
  key: string;
  other: string;
  name: string;
  bytes: string;
  number: number;
  side: boolean;
}

function copyOf(tables: Tables): Tables {
  return structuredClone(tables);
}

function contentOf(model: Model): RowContent {
  const { expireAt } = model;
  switch (model.shape) {
    case Shape.value:
      return { ...value(model.bytes), expireAt };
    case Shape.map:
      return { ...map(...[...model.fields].flat()), expireAt };
    case Shape.set:
      return { ...set(...model.members), expireAt };
    case Shape.ranked:
      return { ...ranked(...[...model.scores].flat()), expireAt };
    case Shape.array:
      return { ...array(...model.elements), expireAt };
  }
}

function contentsOf(tables: Tables): EngineContents {
  const contents: EngineContents = new Map();
  for (const [table, rows] of tables) {
    for (const [key, model] of rows) contents.set(rowName(table, key), contentOf(model));
  }
  return contents;
}

/** The same change on the model. */
function changeModel(tables: Tables, change: Change): void {
  const { kind, table, key, other, name, bytes, number, side } = change;
  const rows = tables.get(table) ?? new Map<string, Model>();
  tables.set(table, rows);
  const row = rows.get(key);
  switch (kind) {
    case 'put':
      rows.set(key, { shape: Shape.value, expireAt: number, bytes });
      return;
    case 'clear':
      rows.clear();
      return;
    case 'swap': {
      const into = side ? 1 : 2;
      const swapped = tables.get(into) ?? new Map<string, Model>();
      tables.set(into, rows);
      tables.set(table, swapped);
      return;
    }
    case 'field': {
      const into =
        row?.shape === Shape.map ? row : { shape: Shape.map, expireAt: 0, fields: new Map() };
      into.fields.set(name, bytes);
      rows.set(key, into);
      return;
    }
    case 'member': {
      const into =
        row?.shape === Shape.set
          ? row
          : { shape: Shape.set, expireAt: 0, members: new Set<string>() };
      into.members.add(name);
      rows.set(key, into);
      return;
    }
    case 'score': {
      const into =
        row?.shape === Shape.ranked ? row : { shape: Shape.ranked, expireAt: 0, scores: new Map() };
      into.scores.set(name, number - 50);
      rows.set(key, into);
      return;
    }
    case 'push': {
      const into =
        row?.shape === Shape.array
          ? row
          : { shape: Shape.array, expireAt: 0, elements: [] as string[] };
      if (side) into.elements.unshift(bytes);
      else into.elements.push(bytes);
      rows.set(key, into);
      return;
    }
  }
  if (row === undefined) return;
  switch (kind) {
    case 'drop':
      rows.delete(key);
      break;
    case 'expire':
      row.expireAt = number;
      break;
    case 'rename':
      rows.delete(key);
      rows.set(other, row);
      break;
    case 'patch':
      if (row.shape === Shape.value) {
        const padded = row.bytes.padEnd(number, '\0');
        row.bytes = padded.slice(0, number) + bytes + padded.slice(number + bytes.length);
      }
      break;
    case 'remove':
      if (row.shape === Shape.map) row.fields.delete(name);
      if (row.shape === Shape.set) row.members.delete(name);
      if (row.shape === Shape.ranked) row.scores.delete(name);
      if (row.shape === Shape.array) {
        row.elements.splice(number % row.elements.length, 1 + (number % 4));
      }
      if (sizeOf(row) === 0) rows.delete(key);
      break;
    case 'element':
      if (row.shape === Shape.array) row.elements[number % row.elements.length] = bytes;
      break;
    case 'insert':
      if (row.shape === Shape.array) {
        row.elements.splice(number % (row.elements.length + 1), 0, bytes);
      }
      break;
  }
}

function sizeOf(row: Model): number {
  switch (row.shape) {
    case Shape.value:
      return 1;
    case Shape.map:
      return row.fields.size;
    case Shape.set:
      return row.members.size;
    case Shape.ranked:
      return row.scores.size;
    case Shape.array:
      return row.elements.length;
  }
}

function changeEngine(engine: KvEngine, change: Change): void {
  const { kind, table, key, other, name, bytes, number, side } = change;
  const verbs = new Verbs(engine.table(table));
  const row = verbs.find(key);
  const shape = verbs.table.shape(row);
  const container = (wanted: Shape) => (shape === wanted ? row : verbs.create(key, wanted));
  switch (kind) {
    case 'put':
      verbs.put(key, bytes, number);
      return;
    case 'clear':
      verbs.table.clear();
      return;
    case 'swap':
      engine.swapTables(table, side ? 1 : 2);
      return;
    case 'field':
      verbs.putFieldOf(container(Shape.map), name, bytes);
      return;
    case 'member':
      verbs.putFieldOf(container(Shape.set), name, '');
      return;
    case 'score':
      verbs.putScoreOf(container(Shape.ranked), name, number - 50);
      return;
    case 'push':
      verbs.pushOf(container(Shape.array), side, bytes);
      return;
  }
  if (row === 0) return;
  const count = verbs.table.count(row);
  switch (kind) {
    case 'drop':
      verbs.drop(key);
      break;
    case 'expire':
      verbs.expire(key, number);
      break;
    case 'rename':
      verbs.rename(key, other);
      break;
    case 'patch':
      if (shape === Shape.value) verbs.patch(key, number, bytes);
      break;
    case 'remove':
      if (shape === Shape.array) {
        const at = number % count;
        verbs.removeElements(key, at, Math.min(1 + (number % 4), count - at));
      } else if (shape !== Shape.value) {
        verbs.removeFieldOf(row, name);
      }
      break;
    case 'element':
      if (shape === Shape.array) verbs.setElement(key, number % count, bytes);
      break;
    case 'insert':
      if (shape === Shape.array) verbs.insertElement(key, number % (count + 1), bytes);
      break;
  }
}

const text = (max: number) => fc.string({ unit: 'binary-ascii', maxLength: max });

const change: fc.Arbitrary<Change> = fc.record({
  kind: fc.constantFrom(
    ...[
      'put',
      'patch',
      'drop',
      'expire',
      'rename',
      'remove',
      'remove',
      'element',
      'insert',
      'swap',
    ],
    ...[
      'field',
      'field',
      'member',
      'member',
      'score',
      'score',
      'score',
      'push',
      'push',
      'push',
      'clear',
    ],
  ),
  table: fc.constantFrom(0, 0, 0, 1),
  key: fc.constantFrom('a', 'b', 'c', 'd', ''),
  other: fc.constantFrom('a', 'b', 'x'),
  name: fc.constantFrom(...[...Array(12).keys()].map((i) => `name ${i}`), ''),
  bytes: text(40),
  number: fc.nat(99),
  side: fc.boolean(),
});

interface Step {
  changes: Change[];
  how: 'done' | 'done again' | 'undone' | 'reopened';
}

const step: fc.Arbitrary<Step> = fc.record({
  changes: fc.array(change, { minLength: 1, maxLength: 6 }),
  how: fc.constantFrom(
    'done',
    'done',
    'done',
    'done',
    'done again',
    'undone',
    'undone',
    'reopened',
  ),
});

async function play(steps: readonly Step[], options: Partial<KvEngineOptions>): Promise<void> {
  const trial = await Trial.open({
    model: 'kv',
    supports: { rollback: true, reopen: true },
    create: (directory) => new KvEngine({ directory, ...options }),
    newDirectory: () => join(root, String(directories++)),
  });
  let tables: Tables = new Map();
  try {
    for (const { changes, how } of steps) {
      const before = copyOf(tables);
      for (const one of changes) changeModel(tables, one);
      const run = (_: Verbs, engine: unknown): void => {
        for (const one of changes) changeEngine(engine as KvEngine, one);
      };
      if (how === 'undone') {
        await trial.undone(run);
        tables = before;
      } else {
        await trial.run(run);
      }
      if (how === 'reopened') await trial.checkpointAndReopen();
      if (how !== 'done') assertSameContents(await trial.contents(), contentsOf(tables), how);
    }
    await trial.check(contentsOf(tables));
    await trial.settle();
    await trial.checkpointAndReopen();
    await trial.settle();
    await trial.check(contentsOf(tables));
  } finally {
    await trial.close();
  }
  await checkOwners(trial.directory, contentsOf(tables));
}

/** Every sub-record belongs to a row, as many as it should; and nothing else is left. */
async function checkOwners(directory: string, contents: EngineContents): Promise<void> {
  const level = new LevelStore(directory);
  await level.open();
  try {
    const page = await level.page(Buffer.alloc(1), Buffer.alloc(1, 255), false, 1e6, 1e9);
    const owners = new Map<number, number>();
    let rows = 0;
    let expiring = 0;
    page.keys.forEach((key, i) => {
      switch (String.fromCharCode(key[0]!)) {
        case 'm': {
          const row = { ...emptyRow };
          decodeRow(row, page.values[i]!);
          rows++;
          if (row.expireAt !== 0) expiring++;
          const records = row.shape === Shape.ranked ? 2 * row.count : row.count;
          if (row.shape !== Shape.value) owners.set(row.number, records);
          break;
        }
        case 'x':
          expiring--;
          break;
        case 't':
        case 'g':
          assert.fail('something is left to be purged');
      }
    });
    for (const key of page.keys) {
      if (key[0] !== 115) continue;
      const row = key.readUIntBE(1, 6);
      const left = owners.get(row);
      assert.ok(left !== undefined, `a sub-record of row ${row}, which is not there`);
      owners.set(row, left - 1);
    }
    assert.equal(rows, contents.size);
    assert.equal(expiring, 0, 'each expiring row is in the expiry index once');
    for (const [row, missing] of owners) assert.equal(missing, 0, `sub-records of row ${row}`);
  } finally {
    await level.close();
  }
}

describe('random histories', () => {
  const cases: [string, Partial<KvEngineOptions>, number][] = [
    ['no memory', { cacheBytes: 0 }, 25],
    ['little memory', { cacheBytes: 20_000 }, 25],
    ['ordered keys', { cacheBytes: 5_000, isOrdered: () => true }, 15],
  ];
  test.each(cases)('%s', async (_, options, numRuns) => {
    const histories = fc.array(step, { minLength: 1, maxLength: 40 });
    const run = withinTime(15_000, (steps: readonly Step[]) => play(steps, options));
    await fc.assert(fc.asyncProperty(histories, run), { numRuns });
    expect(directories).toBeGreaterThan(0);
  });
});
