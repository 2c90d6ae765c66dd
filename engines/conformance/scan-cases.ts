// Scans of rows and of fields: elements present throughout the scan are found, whatever changes
// happen meanwhile.

import assert from 'node:assert/strict';
import { Shape } from '../../universal-row/rows.ts';
import { range, tableOf, type ConformanceCase } from './case.ts';
import { map, ranked, set, value, type RowContent } from './contents.ts';
import { assertCursor, type Trial } from './trial.ts';
import type { Verbs } from './verbs.ts';

// A scan that needs more calls than this does not end.
const callsLimit = 100_000;
// How far beyond its budget one call may look.
const budgetSlack = 1000;

type Scan = (cursor: number) => Promise<{ next: number; found: string[] }>;

/** Scans to the end, with `between` run between the calls; returns everything seen. */
async function scanAll(
  scan: Scan,
  between: (call: number) => Promise<void> = async () => {},
): Promise<string[]> {
  const seen: string[] = [];
  let cursor = 0;
  for (let call = 0; call < callsLimit; call++) {
    const { next, found } = await scan(cursor);
    assertCursor(next);
    seen.push(...found);
    if (next === 0) return seen;
    cursor = next;
    await between(call);
  }
  assert.fail(`a scan has not ended after ${callsLimit} calls`);
}

function assertSeesAll(seen: readonly string[], wanted: readonly string[]): void {
  const set = new Set(seen);
  const missed = wanted.filter((key) => !set.has(key));
  assert.deepEqual(missed.slice(0, 5), [], `${missed.length} of ${wanted.length} were missed`);
}

function valuesOf(keys: readonly string[]): Record<string, RowContent> {
  return Object.fromEntries(keys.map((key) => [key, value('v')]));
}

/** Many rows in few steps. */
async function putAll(trial: Trial, keys: readonly string[]): Promise<void> {
  for (let i = 0; i < keys.length; i += 500) {
    await trial.run((v) => keys.slice(i, i + 500).forEach((key) => v.put(key, 'v')));
  }
}

const rowsAtRest: ConformanceCase[] = [0, 1, 5, 100, 5000].flatMap((size) =>
  [1, 10, 1000].map((budget) => ({
    name: `scan: ${size} rows, ${budget} at a time`,
    async run(trial: Trial) {
      const keys = range(size).map((i) => `key ${i}`);
      await putAll(trial, keys);
      let most = 0;
      const seen = await scanAll(async (cursor) => {
        const step = await trial.scan(0, cursor, budget);
        most = Math.max(most, step.found.length);
        return step;
      });
      assertSeesAll(seen, keys);
      assert.equal(new Set(seen).size, size, 'nothing else is seen');
      assert.ok(most <= budget + budgetSlack, `one call saw ${most}`);
      if (!trial.subject.supports.reopen) return;
      await trial.checkpointAndReopen();
      assertSeesAll(await scanAll((cursor) => trial.scan(0, cursor, budget)), keys);
    },
  })),
);

/** Changes made between the calls of a row scan. */
const rowChanges: readonly {
  name: string;
  size: number;
  between: (v: Verbs, call: number) => void;
}[] = [
  {
    name: 'rows are added',
    size: 300,
    between: (v, call) => {
      if (call < 40) range(50).forEach((i) => v.put(`new ${call} ${i}`, 'v'));
    },
  },
  {
    name: 'rows are dropped',
    size: 300,
    between: (v, call) =>
      range(40).forEach((i) => v.find(`gone ${call * 40 + i}`) && v.drop(`gone ${call * 40 + i}`)),
  },
  {
    name: 'rows are added and dropped',
    size: 500,
    between: (v, call) => {
      if (call < 40) range(30).forEach((i) => v.put(`new ${call} ${i}`, 'v'));
      if (call > 0 && call < 40) range(30).forEach((i) => v.drop(`new ${call - 1} ${i}`));
      range(20).forEach((i) => v.find(`gone ${call * 20 + i}`) && v.drop(`gone ${call * 20 + i}`));
    },
  },
  {
    name: 'the rows themselves are written',
    size: 300,
    between: (v, call) =>
      range(30).forEach((i) => v.put(`key ${(call * 30 + i) % 300}`, 'a longer value', 9e12)),
  },
  {
    name: 'other rows are renamed',
    size: 200,
    between: (v, call) =>
      range(20).forEach((i) => {
        const key = `gone ${call * 20 + i}`;
        if (v.find(key) !== 0) v.rename(key, `renamed ${key}`);
      }),
  },
];

const rowsInMotion: ConformanceCase[] = rowChanges.flatMap(({ name, size, between }) =>
  [7, 50].map((budget) => ({
    name: `scan: ${name} meanwhile, ${budget} at a time`,
    async run(trial: Trial) {
      const keys = range(size).map((i) => `key ${i}`);
      await putAll(trial, [...keys, ...range(1000).map((i) => `gone ${i}`)]);
      const seen = await scanAll(
        (cursor) => trial.scan(0, cursor, budget),
        async (call) => {
          await trial.run((v) => between(v, call));
        },
      );
      assertSeesAll(seen, keys);
    },
  })),
);

const rowsByTable: ConformanceCase[] = [
  {
    name: 'scan: sees the rows of its table only',
    async run(trial) {
      await trial.fill(tableOf(valuesOf(['a', 'b']), 0));
      await trial.fill(tableOf(valuesOf(['c', 'd']), 1));
      assert.deepEqual([...(await trial.keys(0))].sort(), ['a', 'b']);
      assert.deepEqual([...(await trial.keys(1))].sort(), ['c', 'd']);
      assert.equal((await trial.keys(2)).size, 0);
    },
  },
  {
    name: 'scan: a cursor of another life does no harm',
    async run(trial) {
      await putAll(
        trial,
        range(50).map((i) => `key ${i}`),
      );
      for (const cursor of [1, 12_345, 2 ** 31, 2 ** 32 + 1, 2 ** 53 - 1]) {
        const { found } = await trial.scan(0, cursor, 10);
        for (const key of found) assert.match(key, /^key \d+$/);
      }
    },
  },
];

type Scanned = typeof Shape.map | typeof Shape.set | typeof Shape.ranked;

const scannedShapes: readonly (readonly [name: string, shape: Scanned])[] = [
  ['map', Shape.map],
  ['set', Shape.set],
  ['ranked', Shape.ranked],
];

function containerOf(shape: Scanned, names: readonly string[]): RowContent {
  if (shape === Shape.map) return map(...names.flatMap((name) => [name, `=${name}`]));
  if (shape === Shape.set) return set(...names);
  return ranked(...names.flatMap((name, i) => [name, i % 5]));
}

function add(v: Verbs, shape: Scanned, name: string): void {
  if (shape === Shape.map) v.putField('k', name, `=${name}`);
  else if (shape === Shape.set) v.addMember('k', name);
  else v.putScore('k', name, 3);
}

function fieldScan(trial: Trial, shape: Scanned, budget: number): Scan {
  return (cursor) =>
    trial.read((v) => {
      const found: string[] = [];
      const next = v.table.scanFields(v.row('k'), cursor, budget, (fb, fs, fn, vb, vs, vn) => {
        const name = fb.toString('latin1', fs, fs + fn);
        found.push(name);
        const bytes = vb.toString('latin1', vs, vs + vn);
        assert.equal(bytes, shape === Shape.map ? `=${name}` : '', 'the value of a field');
      });
      return { next, found };
    });
}

const fieldsAtRest: ConformanceCase[] = scannedShapes.flatMap(([name, shape]) =>
  [1, 5, 129, 1000, 20_000].map((size) => ({
    name: `scanFields: a ${name} of ${size}`,
    async run(trial: Trial) {
      const names = range(size).map((i) => `field ${i}`);
      await trial.fill(tableOf({ k: containerOf(shape, names) }));
      for (const budget of size > 5000 ? [100] : [1, 10]) {
        const scan = fieldScan(trial, shape, budget);
        let most = 0;
        const seen = await scanAll(async (cursor) => {
          const step = await scan(cursor);
          most = Math.max(most, step.found.length);
          return step;
        });
        assertSeesAll(seen, names);
        assert.equal(new Set(seen).size, size, 'nothing else is seen');
        assert.ok(most <= budget + budgetSlack, `one call saw ${most}`);
      }
    },
  })),
);

const fieldChanges: readonly {
  name: string;
  stable: number;
  /** Further fields at the start, `gone 0` ... */
  gone: number;
  between: (v: Verbs, shape: Scanned, call: number) => void;
}[] = [
  {
    name: 'fields are added',
    stable: 300,
    gone: 0,
    between: (v, shape, call) => {
      if (call < 30) range(40).forEach((i) => add(v, shape, `new ${call} ${i}`));
    },
  },
  {
    name: 'fields are removed',
    stable: 300,
    gone: 900,
    between: (v, _, call) => range(40).forEach((i) => v.removeField('k', `gone ${call * 40 + i}`)),
  },
  {
    name: 'fields are added and removed',
    stable: 300,
    gone: 400,
    between: (v, shape, call) => {
      range(10).forEach((i) => v.removeField('k', `gone ${call * 10 + i}`));
      if (call < 30) range(20).forEach((i) => add(v, shape, `new ${call} ${i}`));
      if (call < 31) range(20).forEach((i) => v.removeField('k', `new ${call - 1} ${i}`));
    },
  },
  {
    name: 'a small container becomes a large one',
    stable: 100,
    gone: 0,
    between: (v, shape, call) => {
      if (call < 10) range(80).forEach((i) => add(v, shape, `new ${call} ${i}`));
    },
  },
  {
    name: 'a large container becomes a small one',
    stable: 20,
    gone: 980,
    between: (v, _, call) =>
      range(200).forEach((i) => v.removeField('k', `gone ${call * 200 + i}`)),
  },
];

const fieldsInMotion: ConformanceCase[] = scannedShapes.flatMap(([name, shape]) =>
  fieldChanges.map(({ name: change, stable, gone, between }) => ({
    name: `scanFields: ${change} meanwhile, in a ${name}`,
    async run(trial: Trial) {
      const names = range(stable).map((i) => `stable ${i}`);
      const others = range(gone).map((i) => `gone ${i}`);
      await trial.fill(tableOf({ k: containerOf(shape, [...names, ...others]) }));
      const seen = await scanAll(fieldScan(trial, shape, 10), async (call) => {
        await trial.run((v) => between(v, shape, call));
      });
      assertSeesAll(seen, names);
    },
  })),
);

export const scanCases: readonly ConformanceCase[] = [
  ...rowsAtRest,
  ...rowsInMotion,
  ...rowsByTable,
  ...fieldsAtRest,
  ...fieldsInMotion,
  {
    name: 'scanFields: a walk stops when the visitor says so',
    async run(trial) {
      const names = range(300).map((i) => `field ${i}`);
      await trial.fill(tableOf({ k: containerOf(Shape.map, names) }));
      const seen = await trial.read((v) => {
        let count = 0;
        v.table.scanFields(v.row('k'), 0, 100, () => ++count === 5);
        return count;
      });
      assert.equal(seen, 5);
    },
  },
];
