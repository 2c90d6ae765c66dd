// Tables: isolated from each other, swapped, cleared; the counters.

import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { Shape } from '../../universal-row/rows.ts';
import type { Engine } from '../engine.ts';
import { noise, range, tableOf, type ConformanceCase, type RowsByKey } from './case.ts';
import {
  array,
  assertSameContents,
  expiring,
  map,
  set,
  value,
  type EngineContents,
} from './contents.ts';
import type { Step, Trial } from './trial.ts';
import { largeSamples, samples } from './value-cases.ts';
import { Verbs } from './verbs.ts';

const at = 1_900_000_000_000;
const allSamples: RowsByKey = Object.fromEntries(samples);

type Tables = Record<number, RowsByKey>;

export function contentsOf(tables: Tables): EngineContents {
  const all: EngineContents = new Map();
  for (const [table, rows] of Object.entries(tables)) {
    for (const [name, content] of tableOf(rows, Number(table))) all.set(name, content);
  }
  return all;
}

/** As `writeCase`, over several tables. */
function tablesCase(
  name: string,
  given: Tables,
  when: Step<unknown>,
  then: Tables,
): ConformanceCase {
  return {
    name,
    async run(trial) {
      await trial.fill(contentsOf(given));
      if (trial.subject.supports.rollback) {
        await trial.undone(when);
        await trial.check(contentsOf(given));
      }
      await trial.run(when);
      await trial.check(contentsOf(then));
      await trial.settle();
      assertSameContents(await trial.contents(), contentsOf(then), 'after background work');
      if (trial.subject.supports.reopen) {
        await trial.checkpointAndReopen();
        await trial.check(contentsOf(then));
      }
    },
  };
}

export const on = (engine: Engine, table: number): Verbs => new Verbs(engine.table(table));

const apart: ConformanceCase[] = [
  tablesCase(
    'tables: the same key in several',
    { 0: { k: value('0') }, 1: { k: map('f', '1') }, 15: { k: array('x') } },
    (v, engine) => {
      v.put('k', 'changed');
      on(engine, 15).push('k', true, 'y');
    },
    { 0: { k: value('changed') }, 1: { k: map('f', '1') }, 15: { k: array('y', 'x') } },
  ),
  tablesCase(
    'tables: written to in any order in one step',
    {},
    (_, engine) => {
      for (const table of [9, 0, 300, 4]) on(engine, table).put('k', `in ${table}`);
    },
    {
      0: { k: value('in 0') },
      4: { k: value('in 4') },
      9: { k: value('in 9') },
      300: { k: value('in 300') },
    },
  ),
  tablesCase(
    'tables: of high numbers',
    { 65_535: { k: value('a') }, 65_536: { k: value('b') }, 2_000_000: { k: set('m') } },
    (_, engine) => {
      on(engine, 65_536).put('l', 'c');
      on(engine, 131_072).put('k', 'd');
      on(engine, 2_000_000).drop('k');
    },
    {
      65_535: { k: value('a') },
      65_536: { k: value('b'), l: value('c') },
      131_072: { k: value('d') },
    },
  ),
  tablesCase(
    'tables: one that loses its last row is listed no more',
    { 2: { k: value('v') }, 3: { k: set('m') } },
    (_, engine) => on(engine, 3).removeField('k', 'm'),
    { 2: { k: value('v') } },
  ),
  {
    name: 'tables: an empty engine has none, and looking makes none',
    async run(trial) {
      assert.deepEqual(trial.engine.tables(), []);
      const found = await trial.read((_, engine) => on(engine, 7).find('k'));
      assert.equal(found, 0);
      await trial.check(new Map());
    },
  },
  {
    name: 'tables: table() answers the same object',
    async run(trial) {
      const { engine } = trial;
      assert.equal(engine.table(3), engine.table(3));
      assert.notEqual(engine.table(3), engine.table(4));
      await trial.run((_, e) => on(e, 3).put('k', 'v'));
      const table = engine.table(3);
      await trial.run((_, e) => on(e, 3).put('l', 'v'));
      assert.equal(engine.table(3), table);
      await trial.run(() => table.clear());
      assert.equal(engine.table(3), table);
    },
  },
];

const swaps: ConformanceCase[] = [
  tablesCase(
    'swap: two tables with rows and expiries',
    { 0: { k: expiring(value('a'), at), l: value('b') }, 1: { k: map('f', '1') } },
    (_, engine) => engine.swapTables(0, 1),
    { 1: { k: expiring(value('a'), at), l: value('b') }, 0: { k: map('f', '1') } },
  ),
  tablesCase(
    'swap: with an empty table',
    { 0: allSamples },
    (_, engine) => engine.swapTables(0, 5),
    { 5: allSamples },
  ),
  tablesCase(
    'swap: with an empty table, the other way round',
    { 5: allSamples },
    (_, engine) => engine.swapTables(0, 5),
    { 0: allSamples },
  ),
  tablesCase('swap: with itself', { 1: allSamples }, (_, engine) => engine.swapTables(1, 1), {
    1: allSamples,
  }),
  tablesCase(
    'swap: twice',
    { 0: allSamples, 1: { k: value('v') } },
    (_, engine) => {
      engine.swapTables(0, 1);
      engine.swapTables(1, 0);
    },
    { 0: allSamples, 1: { k: value('v') } },
  ),
  tablesCase(
    'swap: three tables in turn',
    { 0: { k: value('0') }, 1: { k: value('1') }, 2: { k: value('2') } },
    (_, engine) => {
      engine.swapTables(0, 1);
      engine.swapTables(1, 2);
    },
    { 0: { k: value('1') }, 1: { k: value('2') }, 2: { k: value('0') } },
  ),
  tablesCase(
    'swap: writes before and after it in the same step',
    { 0: { k: value('0') }, 1: { k: map('f', '1') } },
    (_, engine) => {
      on(engine, 0).put('before', 'in 0');
      engine.swapTables(0, 1);
      on(engine, 0).putField('k', 'g', '2');
      on(engine, 1).put('after', 'in 1');
    },
    {
      0: { k: map('f', '1', 'g', '2') },
      1: { k: value('0'), before: value('in 0'), after: value('in 1') },
    },
  ),
  {
    name: 'swap: the tables live on under their new numbers',
    async run(trial) {
      await trial.fill(contentsOf({ 0: allSamples, 1: { k: value('v') } }));
      for (const i of range(5)) {
        await trial.run((_, engine) => engine.swapTables(0, 1));
        await trial.run((_, engine) => on(engine, 0).put(`step ${i}`, 'in 0'));
      }
      await trial.check(
        contentsOf({
          0: { k: value('v'), ...steps(0, 2, 4) },
          1: { ...allSamples, ...steps(1, 3) },
        }),
      );
    },
  },
];

function steps(...numbers: number[]): RowsByKey {
  return Object.fromEntries(numbers.map((i) => [`step ${i}`, value('in 0')]));
}

const clears: ConformanceCase[] = [
  tablesCase(
    'clear: one table of several',
    { 0: { ...allSamples, e: expiring(value('v'), at) }, 1: allSamples },
    (v) => {
      v.table.clear();
      assert.deepEqual([v.table.rowCount(), v.table.expiringRows, v.find('map')], [0, 0, 0]);
    },
    { 1: allSamples },
  ),
  tablesCase('clear: an empty table', { 1: allSamples }, (v) => v.table.clear(), {
    1: allSamples,
  }),
  tablesCase(
    'clear: then rows under the old keys, in the same step',
    { 0: allSamples },
    (v) => {
      v.table.clear();
      for (const [name] of samples) v.put(name, 'new');
      v.fill('array', map('f', '1'));
    },
    {
      0: {
        ...Object.fromEntries(samples.map(([name]) => [name, value('new')])),
        array: map('f', '1'),
      },
    },
  ),
  tablesCase(
    'clear: what the step wrote before goes as well',
    { 0: { k: value('v') } },
    (v) => {
      v.put('k', 'w');
      v.put('l', 'x');
      v.table.clear();
      v.put('m', 'y');
      v.table.clear();
      v.put('n', 'z');
    },
    { 0: { n: value('z') } },
  ),
  tablesCase(
    'clear: of a table swapped in',
    { 0: allSamples, 1: { k: value('v') } },
    (_, engine) => {
      engine.swapTables(0, 1);
      engine.table(0).clear();
    },
    { 1: allSamples },
  ),
  tablesCase(
    'clear: large containers, made again smaller',
    { 0: Object.fromEntries(largeSamples) },
    (v) => {
      v.table.clear();
      for (const [name, content] of samples) v.fill(name, content);
    },
    { 0: allSamples },
  ),
  {
    name: 'clear: rows come and go while the old ones are reclaimed',
    async run(trial) {
      const rows = Object.fromEntries(range(3000).map((i) => [`key ${i}`, value(noise(50, i))]));
      await putMany(trial, 3000);
      await trial.run((v) => v.table.clear());
      await putMany(trial, 3000);
      trial.engine.background(1);
      assertSameContents(await trial.contents(), tableOf(rows), 'while reclaiming');
      await trial.settle();
      await trial.check(tableOf(rows));
    },
  },
];

async function putMany(trial: Trial, count: number): Promise<void> {
  for (let i = 0; i < count; i += 500) {
    await trial.run((v) => range(500).forEach((n) => v.put(`key ${i + n}`, noise(50, i + n))));
  }
}

const stats: ConformanceCase[] = [
  {
    name: 'stats: whole numbers that are not negative',
    async run(trial) {
      await trial.fill(tableOf(Object.fromEntries([...samples, ...largeSamples])));
      const { extra, ...counts } = trial.engine.stats();
      for (const [name, count] of [...Object.entries(counts), ...Object.entries(extra)]) {
        assert.ok(Number.isFinite(count) && count >= 0, `${name} is ${count}`);
      }
      assert.ok(counts.memoryBytes >= counts.usedBytes || counts.usedBytes < 65_536);
    },
  },
  ...(['drop', 'clear'] as const).map((how) => ({
    name: `stats: ${how} gives back the memory and the disk that rows took`,
    async run(trial: Trial) {
      const before = await settled(trial);
      await putMany(trial, 5000);
      for (const [name, content] of largeSamples) await trial.fill(tableOf({ [name]: content }));
      const full = await settled(trial);
      assert.equal(full.rows, 5000 + largeSamples.length);
      if (how === 'clear') await trial.run((v) => v.table.clear());
      else await dropAll(trial);
      const limit = Math.max(65_536, (full.usedBytes - before.usedBytes) * 0.1);
      await eventually(trial, (after) => {
        assert.equal(after.rows, 0);
        assert.equal(after.pendingReclaimBytes, 0, 'pendingReclaimBytes');
        const kept = after.usedBytes - before.usedBytes;
        assert.ok(kept <= limit, `${kept} bytes are still used, ${limit} would do`);
      });
    },
  })),
  {
    name: 'stats: a table that is filled and cleared again and again takes no more',
    async run(trial) {
      const used: number[] = [];
      for (const _ of range(6)) {
        await putMany(trial, 2000);
        await trial.run((v) => v.table.clear());
        used.push((await settled(trial)).memoryBytes);
      }
      const growth = used.at(-1)! - used[1]!;
      assert.ok(growth <= 1024 * 1024, `memoryBytes after each round: ${used.join(' ')}`);
    },
  },
];

/** Dropped rows may have to reach the disk before their memory is freed. */
async function eventually(
  trial: Trial,
  check: (stats: ReturnType<Engine['stats']>) => void,
): Promise<void> {
  const end = performance.now() + 3000;
  for (;;) {
    const stats = await settled(trial);
    try {
      return check(stats);
    } catch (error) {
      if (performance.now() > end) throw error;
      await sleep(20);
    }
  }
}

async function settled(trial: Trial): Promise<ReturnType<Engine['stats']>> {
  await trial.settle();
  return trial.engine.stats();
}

async function dropAll(trial: Trial): Promise<void> {
  const keys = [...(await trial.keys())];
  for (let i = 0; i < keys.length; i += 500) {
    await trial.run((v) => keys.slice(i, i + 500).forEach((key) => v.drop(key)));
  }
}

const kibibyte = 1024;

/** Checks that table 0 stores about so many bytes. */
async function storesAbout(trial: Trial, bytes: number): Promise<void> {
  const stored = await trial.read((v) => v.table.storedBytes());
  // Some engines count the overhead of a large row besides its elements.
  const least = bytes === 0 ? 0 : bytes * 0.9 - 64 * kibibyte;
  const most = bytes === 0 ? 0 : bytes * 1.6 + 64 * kibibyte;
  assert.ok(stored >= least && stored <= most, `storedBytes is ${stored}, not about ${bytes}`);
}

/** 1,000 KiB, and 200 when they are overwritten; `left` are there when the row `k` is gone. */
function storedBytesCase(
  name: string,
  grow: Step<unknown>,
  overwrite: Step<unknown>,
  left: number,
): ConformanceCase {
  return {
    name: `storedBytes: ${name}`,
    async run(trial) {
      await storesAbout(trial, 0);
      await trial.run(grow);
      await storesAbout(trial, 200 * 5 * kibibyte);
      if (trial.subject.supports.rollback) {
        await trial.undone((v) => {
          overwrite(v, trial.engine);
          v.drop('k');
        });
        await storesAbout(trial, 200 * 5 * kibibyte);
      }
      if (trial.subject.supports.reopen) {
        await trial.checkpointAndReopen();
        await storesAbout(trial, 200 * 5 * kibibyte);
      }
      await trial.run(overwrite);
      await storesAbout(trial, 200 * kibibyte);
      await trial.run((v) => v.drop('k'));
      await storesAbout(trial, left);
      await trial.run((v) => v.table.clear());
      await storesAbout(trial, 0);
    },
  };
}

const large = (i: number) => noise(5 * kibibyte, i);
const small = (i: number) => noise(kibibyte, i);

const sizes: ConformanceCase[] = [
  storedBytesCase(
    'of values',
    (v) => {
      v.put('k', 'x');
      for (const i of range(200)) v.put(`k${i}`, large(i));
    },
    (v) => range(200).forEach((i) => v.put(`k${i}`, small(i))),
    200 * kibibyte,
  ),
  storedBytesCase(
    'of a map',
    (v) => range(200).forEach((i) => v.putFieldOf(v.container('k', Shape.map), `f${i}`, large(i))),
    (v) => range(200).forEach((i) => v.putFieldOf(v.row('k'), `f${i}`, small(i))),
    0,
  ),
  storedBytesCase(
    'of an array',
    (v) => range(200).forEach((i) => v.pushOf(v.container('k', Shape.array), false, large(i))),
    (v) => range(200).forEach((i) => v.setElement('k', i, small(i))),
    0,
  ),
];

const forgotten: ConformanceCase[] = [
  {
    name: 'tables: holds() tells which hold rows',
    async run(trial) {
      await trial.run((_, engine) => on(engine, 3).put('k', 'v'));
      assert.deepEqual(
        [3, 4, 100_000].map((table) => trial.engine.holds(table)),
        [true, false, false],
      );
      await trial.run((_, engine) => on(engine, 3).drop('k'));
      assert.equal(trial.engine.holds(3), false);
    },
  },
  {
    name: 'tables: one that was forgotten is as new when it is used again',
    async run(trial) {
      const kept: Tables = { 5: { k: value('kept') } };
      await trial.fill(contentsOf({ ...kept, 70_000: allSamples }));
      await trial.run((_, engine) => engine.table(70_000).clear());
      trial.engine.forget?.(70_000);
      await trial.check(contentsOf(kept));
      trial.engine.forget?.(5);
      await trial.check(contentsOf(kept));
      if (trial.subject.supports.reopen) {
        await trial.checkpointAndReopen();
        await trial.check(contentsOf(kept));
      }
      await trial.run((_, engine) => on(engine, 70_000).put('k', 'new'));
      trial.engine.forget?.(70_000);
      const both = contentsOf({ ...kept, 70_000: { k: value('new') } });
      await trial.check(both);
      if (!trial.subject.supports.reopen) return;
      await trial.checkpointAndReopen();
      await trial.check(both);
    },
  },
];

export const tableCases: readonly ConformanceCase[] = [
  ...sizes,
  ...forgotten,
  ...apart,
  ...swaps,
  ...clears,
  ...stats,
];
