// Exports, imports and checkpoints: whole, as of one moment, and the same on every engine.

import assert from 'node:assert/strict';
import { Shape } from '../../universal-row/rows.ts';
import { noise, oneMegabyte, range, tableOf, type ConformanceCase } from './case.ts';
import {
  array,
  assertSameContents,
  decodeSnapshot,
  expiring,
  map,
  ranked,
  set,
  value,
  type EngineContents,
} from './contents.ts';
import { batchOf } from './log-cases.ts';
import type { Step, Trial } from './trial.ts';
import { largeSamples, samples } from './value-cases.ts';
import { Verbs } from './verbs.ts';

const at = 1_900_000_000_000;

/** Rows of every shape and size in several tables. */
export const variedContents: EngineContents = new Map([
  ...tableOf({
    ...Object.fromEntries(samples),
    ...Object.fromEntries(largeSamples.map(([name, content]) => [`large ${name}`, content])),
    ...Object.fromEntries(samples.map(([name, c], i) => [`expiring ${name}`, expiring(c, at + i)])),
    'expiring large map': expiring(largeSamples[1]![1], at),
    'expiring large array': expiring(largeSamples[4]![1], at),
    '': value(''),
    '\0\xff': set('\0', '\xff', ''),
    edges: ranked('a', Infinity, 'b', -Infinity, 'c', 0, 'd', 5e-324),
    'huge value': value(noise(2 * oneMegabyte)),
    'huge element': array('small', noise(oneMegabyte), 'small'),
    'huge field': map('f', '1', noise(oneMegabyte), '2'),
  }),
  ...tableOf({ k: value('in 1'), l: expiring(array('x'), at) }, 1),
  ...tableOf({ k: map('in', '12') }, 12),
]);

/** Larger than several batches in one row. */
const longRows = tableOf({
  map: map(...range(6000).flatMap((i) => [`field ${i}`, noise(200, i)])),
  set: set(...range(6000).map((i) => `${i} ${noise(200, i)}`)),
  ranked: ranked(...range(6000).flatMap((i) => [`${i} ${noise(200, i)}`, i % 9])),
  array: expiring(array(...range(6000).map((i) => noise(200, i))), at),
});

/** Hands batches on in a buffer that is scribbled over once the next one is asked for. */
async function* lent(batches: AsyncIterable<Buffer>): AsyncIterable<Buffer> {
  for await (const batch of batches) {
    const copy = Buffer.from(batch);
    yield copy;
    copy.fill(0xee);
  }
}

/** Copies everything from one engine to another. */
export async function transfer(from: Trial, to: Trial): Promise<void> {
  await to.engine.importSnapshot(lent(from.engine.exportSnapshot()), from.engine.appliedIndex);
  to.index = from.engine.appliedIndex;
}

const exports: ConformanceCase[] = [
  {
    name: 'export: an empty engine',
    async run(trial) {
      await trial.check(new Map());
      await trial.run((v) => {
        v.put('k', 'v');
        v.drop('k');
      });
      await trial.check(new Map());
    },
  },
  {
    name: 'export: every shape and size, in several tables',
    async run(trial) {
      await trial.fill(variedContents);
      await trial.check(variedContents);
      await trial.check(variedContents);
    },
  },
  {
    name: 'export: rows larger than a batch are cut into several',
    async run(trial) {
      await trial.fill(longRows);
      let batches = 0;
      for await (const batch of trial.engine.exportSnapshot()) {
        assert.ok(batch.length <= 768 * 1024, `a batch of ${batch.length} bytes`);
        batches++;
      }
      assert.ok(batches >= 8, `${batches} batches for over 5 MB`);
      const other = await trial.another();
      await transfer(trial, other);
      await other.check(longRows);
    },
  },
  {
    name: 'export: thousands of small rows',
    async run(trial) {
      const rows: EngineContents = new Map();
      for (let i = 0; i < 6000; i += 500) {
        await trial.run((v) => range(500).forEach((n) => v.put(`key ${i + n}`, noise(100, n))));
        for (const n of range(500)) rows.set(`0/key ${i + n}`, value(noise(100, n)));
      }
      assertSameContents(await decodeSnapshot(trial.engine.exportSnapshot()), rows, 'exported');
    },
  },
  {
    name: 'export: of some tables',
    async run(trial) {
      await trial.fill(variedContents);
      const some = trial.engine.exportSnapshot((table) => table !== 0);
      await trial.run((v) => v.put('new', 'v'));
      const expected = [...variedContents].filter(([key]) => !key.startsWith('0/'));
      assertSameContents(await decodeSnapshot(some), new Map(expected), 'exported');
      const none = await decodeSnapshot(trial.engine.exportSnapshot((table) => table === 99));
      assertSameContents(none, new Map(), 'of an empty table');
      await trial.check(new Map([...variedContents, ...tableOf({ new: value('v') })]));
    },
  },
  {
    name: 'export: one that is given up does no harm',
    async run(trial) {
      await trial.fill(longRows);
      for await (const batch of trial.engine.exportSnapshot()) {
        assert.ok(batch.length > 0);
        break;
      }
      const never = trial.engine.exportSnapshot()[Symbol.asyncIterator]();
      await never.next();
      await never.return?.();
      await trial.run((v) => v.put('new', 'v'));
      await trial.check(new Map([...longRows, ...tableOf({ new: value('v') })]));
    },
  },
];

/** Writes made while an export is in progress. */
const meanwhile: readonly (readonly [name: string, step: (v: Verbs, round: number) => void])[] = [
  ['new rows', (v, round) => range(20).forEach((i) => v.put(`new ${round} ${i}`, 'v'))],
  [
    'rows overwritten',
    (v, round) => {
      v.put('value', `${round}`, at);
      v.put('huge value', `${round}`);
      v.put('large map', `${round}`);
    },
  ],
  [
    'rows dropped',
    (v) => {
      for (const [name] of samples) if (v.find(name) !== 0) v.drop(name);
      for (const [name] of largeSamples) if (v.find(`large ${name}`) !== 0) v.drop(`large ${name}`);
    },
  ],
  [
    'a field here, an element there',
    (v, round) => {
      v.putField('large map', `new ${round}`, 'v');
      v.putField('large map', 'f599', `${round}`);
      v.removeField('large map', `f${round}`);
      v.removeField('large set', `member ${600 - round}`);
      v.addMember('large set', `new ${round}`);
      v.putScore('large ranked', `m${round}`, 1000);
      v.putScore('edges', 'c', round);
      v.push('large array', true, `${round}`);
      v.pop('large array', false);
      v.setElement('large array', 300, `${round}`);
      v.patch('large value', 5, 'patched');
      v.patch('huge value', oneMegabyte, 'patched');
    },
  ],
  ['a clear', (v) => v.table.clear()],
  [
    'a clear, and rows under the same keys',
    (v) => {
      v.table.clear();
      for (const [name, content] of samples) v.fill(`large ${name}`, content);
    },
  ],
  [
    'renames',
    (v, round) => {
      for (const [name] of largeSamples) {
        const from = round === 0 ? `large ${name}` : `renamed ${round - 1} ${name}`;
        v.rename(from, `renamed ${round} ${name}`);
      }
    },
  ],
  [
    'expiries',
    (v, round) => {
      for (const [name] of samples) {
        v.expire(name, at + round);
        v.expire(`expiring ${name}`, 0);
      }
    },
  ],
  [
    'containers emptied and made again',
    (v, round) => {
      v.table.removeElements(v.row('large array'), 0, v.table.count(v.row('large array')));
      v.fill('large array', array(`${round}`));
      v.drop('large ranked');
      v.fill('large ranked', ranked('m', round));
    },
  ],
];

const momentary: ConformanceCase[] = [
  ...meanwhile.map(([name, step]) => duringExport(name, (v, _, round) => step(v, round))),
  duringExport('swaps', (_, engine, round) => engine.swapTables(round % 3, (round + 1) % 3)),
  duringExport('background work after a clear', (v, engine) => {
    v.table.clear();
    v.put('k', 'v');
    engine.background(5);
  }),
];

function duringExport(
  name: string,
  step: (v: Verbs, engine: Parameters<Step<void>>[1], round: number) => void,
): ConformanceCase {
  return {
    name: `export: as of the call, with ${name} meanwhile`,
    async run(trial) {
      await trial.fill(variedContents);
      let round = 0;
      const write = async () => {
        const now = round++;
        await trial.run((v, engine) => step(v, engine, now));
      };
      // The first write comes after the call and before the first batch is asked for.
      const batches = trial.engine.exportSnapshot();
      await write();
      const interrupted = async function* () {
        for await (const batch of batches) {
          yield batch;
          if (round < 5) await write();
        }
      };
      const exported = await decodeSnapshot(interrupted());
      assertSameContents(exported, variedContents, 'exported');
      // The engine itself has the writes made meanwhile.
      const now = await trial.contents();
      await trial.settle();
      await trial.check(now);
    },
  };
}

const imports: ConformanceCase[] = [
  {
    name: 'import: every shape and size, with the index',
    async run(trial) {
      await trial.fill(variedContents);
      const other = await trial.another();
      await transfer(trial, other);
      assert.equal(other.engine.appliedIndex, trial.index);
      await other.check(variedContents);
      await trial.check(variedContents);
    },
  },
  {
    name: 'import: replaces all rows there were',
    async run(trial) {
      const few = tableOf({ k: value('new'), map: array('x') });
      await trial.fill(few);
      const other = await trial.another();
      await other.fill(variedContents);
      await transfer(trial, other);
      await other.check(few);
      await other.settle();
      await other.check(few);
    },
  },
  {
    name: 'import: of nothing empties the engine and takes the index',
    async run(trial) {
      await trial.fill(variedContents);
      const other = await trial.another();
      await trial.engine.importSnapshot(other.engine.exportSnapshot(), 7_000);
      trial.index = 7_000;
      assert.equal(trial.engine.appliedIndex, 7_000);
      await trial.check(new Map());
      await trial.run((v) => v.put('k', 'v'));
      await trial.check(tableOf({ k: value('v') }));
    },
  },
  {
    name: 'import: the rows live on, and earlier entries do nothing',
    async run(trial) {
      await trial.fill(variedContents);
      const other = await trial.another();
      await transfer(trial, other);
      const pushToArray = batchOf((w, b) => {
        w.row(0, ...b('array'));
        w.push(false, ...b('late'));
      });
      await other.apply(pushToArray, other.index);
      await other.check(variedContents);
      await other.run((v) => {
        v.push('array', true, 'new');
        v.drop('map');
        v.put('value', 'changed');
      });
      const expected = new Map(variedContents);
      expected.set('0/array', array('new', ...(samples[4]![1].items as string[])));
      expected.delete('0/map');
      expected.set('0/value', value('changed'));
      await other.check(expected);
    },
  },
  {
    name: 'import: is there after a reopen',
    needs: 'reopen',
    async run(trial) {
      const other = await trial.another();
      await other.fill(variedContents);
      await trial.fill(tableOf({ old: value('v') }));
      await trial.checkpointAndReopen();
      await transfer(other, trial);
      await trial.checkpointAndReopen();
      await trial.check(variedContents);
    },
  },
  {
    name: 'import: a source that fails is an error',
    async run(trial) {
      await trial.fill(longRows);
      const other = await trial.another();
      const broken = async function* () {
        for await (const batch of trial.engine.exportSnapshot()) {
          yield batch;
          throw new Error('the source is gone');
        }
      };
      await assert.rejects(other.engine.importSnapshot(broken(), 5), /the source is gone/);
      await transfer(trial, other);
      await other.check(longRows);
    },
  },
];

const entry = (i: number): Buffer =>
  batchOf((w, b) => {
    w.value(0, ...b(`key ${i % 50}`), ...b(`${i}`), i % 3 === 0 ? at + i : 0);
    w.row(0, ...b('list'));
    if (i === 1) w.create(Shape.array);
    w.push(i % 2 === 0, ...b(`${i}`));
    if (i % 7 === 0) w.pop(true);
    w.row(0, ...b(`map ${i % 5}`));
    if (i <= 5) w.create(Shape.map);
    w.field(...b(`f${i % 20}`), ...b(`${i}`));
  });

const checkpoints: ConformanceCase[] = [
  {
    name: 'reopen: an engine that was never written to',
    needs: 'reopen',
    async run(trial) {
      await trial.reopen();
      assert.equal(trial.engine.appliedIndex, 0);
      await trial.check(new Map());
    },
  },
  {
    name: 'reopen: every shape and size, three times',
    needs: 'reopen',
    async run(trial) {
      await trial.fill(variedContents);
      for (const i of range(3)) {
        await trial.checkpointAndReopen();
        await trial.run((v) => v.put('round', `${i}`));
        await trial.checkpointAndReopen();
        await trial.check(new Map([...variedContents, ...tableOf({ round: value(`${i}`) })]));
      }
    },
  },
  {
    name: 'reopen: what was dropped and cleared before does not come back',
    needs: 'reopen',
    async run(trial) {
      await trial.fill(variedContents);
      await trial.checkpointAndReopen();
      await trial.run((v, engine) => {
        v.table.clear();
        new Verbs(engine.table(1)).drop('k');
        v.put('k', 'v');
      });
      await trial.checkpointAndReopen();
      const expected = new Map([
        ...tableOf({ k: value('v') }),
        ...tableOf({ l: expiring(array('x'), at) }, 1),
        ...tableOf({ k: map('in', '12') }, 12),
      ]);
      await trial.check(expected);
      await trial.settle();
      await trial.checkpointAndReopen();
      await trial.check(expected);
    },
  },
  {
    name: 'reopen: without a checkpoint, the log brings back what is missing',
    needs: 'reopen',
    async run(trial) {
      await replayed(trial, 100, async () => {});
    },
  },
  {
    name: 'checkpoint: entries after it come from the log',
    needs: 'reopen',
    async run(trial) {
      await replayed(trial, 150, async (i) => {
        if (i === 60) assert.equal(await trial.engine.checkpoint(), 60);
      });
    },
  },
  {
    name: 'checkpoint: writes go on while it is made',
    needs: 'reopen',
    async run(trial) {
      let made: Promise<number> | undefined;
      await replayed(trial, 200, async (i) => {
        if (i === 80) made = trial.engine.checkpoint();
        if (i === 200) {
          const index = await made!;
          assert.ok(index >= 80 && index <= 200, `the checkpoint of entry 80 is at ${index}`);
        }
      });
    },
  },
  {
    name: 'checkpoint: again and again',
    needs: 'reopen',
    async run(trial) {
      await replayed(trial, 120, async (i) => {
        if (i % 20 === 0) assert.equal(await trial.engine.checkpoint(), i);
      });
    },
  },
];

/**
 * Applies entries, closes, opens, and replays the whole log: each entry must take effect exactly
 * once.
 */
async function replayed(
  trial: Trial,
  entries: number,
  after: (index: number) => Promise<void>,
): Promise<void> {
  for (let i = 1; i <= entries; i++) {
    await trial.apply(entry(i));
    await after(i);
  }
  const expected = await trial.contents();
  await trial.reopen();
  assert.ok(trial.engine.appliedIndex <= entries);
  for (let i = 1; i <= entries; i++) await trial.apply(entry(i), i);
  assert.equal(trial.engine.appliedIndex, entries);
  await trial.check(expected);
}

export const snapshotCases: readonly ConformanceCase[] = [
  ...exports,
  ...momentary,
  ...imports,
  ...checkpoints,
];
