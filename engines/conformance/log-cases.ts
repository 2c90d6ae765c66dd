// Log entries: their index, their being whole or not at all, and batches applied from a log.

import assert from 'node:assert/strict';
import { RecordBatchWriter } from '../../universal-row/record-batch.ts';
import { Shape } from '../../universal-row/rows.ts';
import { applyBatch } from '../apply.ts';
import { range, tableOf, type ConformanceCase } from './case.ts';
import {
  array,
  assertSameContents,
  expiring,
  map,
  ranked,
  set,
  stream,
  value,
} from './contents.ts';
import { due, type Step } from './trial.ts';
import { largeSamples, samples } from './value-cases.ts';
import { Verbs } from './verbs.ts';

const at = 1_900_000_000_000;

/** A batch written with latin1 strings. */
export function batchOf(write: (w: RecordBatchWriter, b: (text: string) => Bytes) => void): Buffer {
  const w = new RecordBatchWriter();
  write(w, (text) => [Buffer.from(text, 'latin1'), 0, text.length]);
  return Buffer.from(w.buf.subarray(0, w.pos));
}

type Bytes = [b: Buffer, s: number, n: number];

const push = batchOf((w, b) => {
  w.row(0, ...b('list'));
  w.push(false, ...b('element'));
});
const createAndPush = batchOf((w, b) => {
  w.row(0, ...b('list'));
  w.create(Shape.array);
  w.push(false, ...b('element'));
});

/** One of every op there is. */
const everyOp = batchOf((w, b) => {
  w.value(0, ...b('value'), ...b('bytes'), 0);
  w.patch(2, ...b('TES and more'));
  w.value(0, ...b('expiring'), ...b(''), at);
  w.row(0, ...b('map'));
  w.create(Shape.map);
  w.field(...b('f'), ...b('1'));
  w.field(...b('g'), ...b('2'));
  w.field(...b('empty'), ...b(''));
  w.unfield(...b('f'));
  w.expire(at + 1);
  w.row(0, ...b('ranked'));
  w.create(Shape.ranked);
  w.score(2.5, ...b('a'));
  w.score(-Infinity, ...b('b'));
  w.score(1, ...b('a'));
  w.row(1, ...b('list'));
  w.create(Shape.array);
  for (const element of ['c', 'd', 'e', 'f', 'g']) w.push(false, ...b(element));
  w.push(true, ...b('b'));
  w.push(true, ...b('a'));
  w.pop(true);
  w.pop(false);
  w.element(0, ...b('B'));
  w.insert(1, ...b('new'));
  w.remove(2, 2);
  w.rename(...b('renamed'));
  w.push(false, ...b('after'));
  w.row(0, ...b('gone'));
  w.create(Shape.set);
  w.field(...b('m'), ...b(''));
  w.drop();
  w.row(0, ...b('stream'));
  w.create(Shape.stream);
  w.streamState(...b('state'));
  for (const key of ['a', 'b', 'c', 'd', 'e']) w.streamRecord(true, ...b(key), ...b('of '));
  w.streamRecord(false, ...b('b'), ...b('other'));
  w.streamRemove(...b('a'));
  w.streamCut(Buffer.from('c'), Buffer.from('e'));
  w.value(2, ...b('k'), ...b('cleared'), 0);
  w.clear(2);
  w.swap(1, 3);
});

const afterEveryOp = new Map([
  ...tableOf({
    value: value('byTES and more'),
    expiring: expiring(value(''), at),
    map: expiring(map('g', '2', 'empty', ''), at + 1),
    ranked: ranked('b', -Infinity, 'a', 1),
    stream: stream('state', 'b', 'other', 'e', 'of '),
  }),
  ...tableOf({ renamed: array('B', 'new', 'e', 'f', 'after') }, 3),
]);

const indexes: ConformanceCase[] = [
  {
    name: 'index: 0 at the beginning, then that of the last commit',
    async run(trial) {
      const { engine } = trial;
      assert.equal(engine.appliedIndex, 0);
      await trial.run((v) => v.put('k', 'v'));
      assert.equal(engine.appliedIndex, 1);
      await trial.read((v) => v.value('k'));
      assert.equal(engine.appliedIndex, 1);
      await trial.run((v) => v.drop('k'));
      assert.equal(engine.appliedIndex, 2);
    },
  },
  {
    name: 'index: each group has its own',
    async run(trial) {
      await trial.run((v) => v.put('k', 'v'));
      trial.engine.commit(70, 7);
      trial.engine.commit(4_000_000_000_000, 4_000_000_000);
      trial.engine.commit(71, 7);
      const check = (): void => {
        const groups = [1, 7, 4_000_000_000, 2].map((group) => trial.engine.appliedIndexOf(group));
        assert.deepEqual(groups, [1, 71, 4_000_000_000_000, 0]);
        assert.equal(trial.engine.appliedIndex, 1);
      };
      check();
      if (!trial.subject.supports.reopen) return;
      assert.equal(await trial.engine.checkpoint(7), 71);
      await trial.reopen();
      check();
      await trial.run((v) => v.put('k', 'w'));
      trial.engine.commit(72, 7);
      assert.equal(await trial.engine.checkpoint(), 2);
      await trial.reopen();
      assert.equal(trial.engine.appliedIndexOf(7), 72);
      await trial.check(tableOf({ k: value('w') }));
    },
  },
  {
    name: 'index: may leave gaps',
    async run(trial) {
      await trial.apply(createAndPush, 10);
      await trial.apply(push, 4_000_000_000_000);
      assert.equal(trial.engine.appliedIndex, 4_000_000_000_000);
      await trial.check(tableOf({ list: array('element', 'element') }));
      if (!trial.subject.supports.reopen) return;
      await trial.checkpointAndReopen();
      assert.equal(trial.engine.appliedIndex, 4_000_000_000_000);
    },
  },
  {
    name: 'index: an entry without ops is an entry',
    async run(trial) {
      await trial.apply(Buffer.alloc(0), 3);
      assert.equal(trial.engine.appliedIndex, 3);
      await trial.check(new Map());
    },
  },
  {
    name: 'apply: an entry applied already does nothing',
    async run(trial) {
      await trial.apply(createAndPush, 5);
      await trial.apply(push, 6);
      for (const index of [6, 5, 1]) await trial.apply(push, index);
      assert.equal(trial.engine.appliedIndex, 6);
      await trial.check(tableOf({ list: array('element', 'element') }));
    },
  },
  {
    name: 'apply: an entry applied already does nothing after a reopen either',
    needs: 'reopen',
    async run(trial) {
      await trial.apply(createAndPush, 5);
      await trial.checkpointAndReopen();
      for (const index of [5, 1]) await trial.apply(push, index);
      await trial.check(tableOf({ list: array('element') }));
      await trial.apply(push, 6);
      await trial.check(tableOf({ list: array('element', 'element') }));
    },
  },
  {
    name: 'apply: one of every op',
    async run(trial) {
      await trial.apply(everyOp);
      await trial.check(afterEveryOp);
      if (!trial.subject.supports.reopen) return;
      await trial.checkpointAndReopen();
      await trial.check(afterEveryOp);
    },
  },
  {
    name: 'apply: hundreds of entries, pushes at both ends',
    async run(trial) {
      for (let i = 1; i <= 300; i++) {
        await trial.apply(
          batchOf((w, b) => {
            w.row(0, ...b(`k${i % 10}`));
            if (i <= 10) w.create(Shape.array);
            w.push(i % 2 === 0, ...b(`${i}`));
          }),
        );
      }
      const counts = await trial.read((v) => range(10).map((i) => v.table.count(v.row(`k${i}`))));
      assert.deepEqual(
        counts,
        range(10).map(() => 30),
      );
    },
  },
];

/** Steps that touch much, to be undone. Row cases undo each write by itself as well. */
const undone: readonly (readonly [name: string, step: Step<unknown>])[] = [
  ['nothing', () => {}],
  ['a new row', (v) => v.put('new', 'v')],
  [
    'many new rows',
    (v) => range(500).forEach((i) => v.fill(`new ${i}`, samples[i % samples.length]![1])),
  ],
  ['drops of everything', (v) => samples.forEach(([name]) => v.drop(name))],
  [
    'drops, and other rows under the same keys',
    (v) =>
      samples.forEach(([name], i) => {
        v.drop(name);
        v.fill(name, samples[(i + 1) % samples.length]![1]);
      }),
  ],
  [
    'containers emptied and filled again',
    (v) => {
      for (const member of ['a', 'b', '7']) v.removeField('set', member);
      v.addMember('set', 'other');
      v.table.removeElements(v.row('array'), 0, 4);
      v.push('array', true, 'other');
    },
  ],
  [
    'a clear, and rows after it',
    (v) => {
      v.put('before', 'v');
      v.table.clear();
      v.put('map', 'v', at);
      v.put('new', 'v');
    },
  ],
  [
    'a swap, a clear and a swap',
    (v, engine) => {
      engine.swapTables(0, 1);
      engine.table(1).clear();
      new Verbs(engine.table(0)).put('k', 'v');
      engine.swapTables(0, 2);
    },
  ],
  [
    'renames in a circle',
    (v) => {
      v.rename('map', 'aside');
      v.rename('set', 'map');
      v.rename('aside', 'set');
      v.rename('value', 'array');
    },
  ],
  [
    'expiries given, changed and taken',
    (v) => {
      for (const [name] of samples) v.expire(name, at + 7);
      v.expire('due', 0);
      v.put('due', 'v', at - 1);
      v.drop('due');
    },
  ],
  [
    'hundreds of changes in large containers',
    (v) => {
      for (const i of range(300)) {
        v.putField('large map', `f${i}`, 'changed');
        v.putField('large map', `new ${i}`, '');
        v.removeField('large set', `member ${i}`);
        v.putScore('large ranked', `m${i}`, -i);
        v.push('large array', i % 2 === 0, `${i}`);
        v.pop('large array', true);
        v.insertElement('large array', 100, 'inserted');
        v.patch('large value', i * 300, 'patched');
      }
    },
  ],
  [
    'small containers made large',
    (v) =>
      range(300).forEach((i) => {
        v.putField('map', `f${i}`, 'v');
        v.addMember('set', `m${i}`);
        v.putScore('ranked', `m${i}`, i);
        v.push('array', true, `${i}`);
      }),
  ],
];

const rollbackGiven = new Map([
  ...tableOf({
    ...Object.fromEntries(samples),
    ...Object.fromEntries(largeSamples.map(([name, content]) => [`large ${name}`, content])),
    due: expiring(value('v'), at),
  }),
  ...tableOf({ k: map('f', '1') }, 1),
]);

const rollbacks: ConformanceCase[] = [
  ...undone.map(([name, step]) => ({
    name: `rollback: of ${name}`,
    needs: 'rollback' as const,
    async run(trial: Parameters<ConformanceCase['run']>[0]) {
      await trial.fill(rollbackGiven);
      const { index } = trial;
      await trial.undone(step);
      await trial.undone(step);
      assert.equal(trial.engine.appliedIndex, index);
      await trial.check(rollbackGiven);
      // An undone change can be applied again, with the same result as on an engine that never
      // undid it.
      const other = await trial.another();
      await other.fill(rollbackGiven);
      await other.run(step);
      await trial.run(step);
      await trial.check(await other.contents());
    },
  })),
  {
    name: 'rollback: leaves what was committed before',
    needs: 'rollback',
    async run(trial) {
      await trial.run((v) => v.fill('k', map('f', '1')));
      await trial.undone((v) => v.putField('k', 'g', '2'));
      await trial.run((v) => v.putField('k', 'h', '3'));
      await trial.undone((v) => v.removeField('k', 'f'));
      trial.engine.rollback();
      trial.engine.rollback();
      await trial.check(tableOf({ k: map('f', '1', 'h', '3') }));
    },
  },
  {
    name: 'rollback: the list of what is due comes back as well',
    needs: 'rollback',
    async run(trial) {
      await trial.fill(tableOf({ a: expiring(value('v'), 10), b: expiring(set('m'), 20) }));
      await trial.undone((v) => {
        v.expire('a', 5000);
        v.drop('b');
        v.put('c', 'v', 1);
      });
      assert.deepEqual(await trial.read((v) => due(v, 15, 9)), ['a']);
      assert.deepEqual(await trial.read((v) => due(v, 25, 9).sort()), ['a', 'b']);
    },
  },
  {
    name: 'rollback: a damaged batch leaves nothing behind',
    needs: 'rollback',
    async run(trial) {
      await trial.fill(tableOf({ k: value('v') }));
      const whole = batchOf((w, b) => {
        w.value(0, ...b('k'), ...b('changed'), 0);
        w.value(0, ...b('new'), ...b('bytes'), 0);
      });
      const { index } = trial;
      for (const damaged of [whole.subarray(0, -2), Buffer.concat([whole, Buffer.from([200])])]) {
        await assert.rejects(
          trial.run((_, engine) => applyBatch(engine, damaged, 0, damaged.length, index + 5)),
          RangeError,
        );
        trial.engine.rollback();
      }
      assert.equal(trial.engine.appliedIndex, index);
      assertSameContents(await trial.contents(), tableOf({ k: value('v') }), 'rows');
    },
  },
];

export const logCases: readonly ConformanceCase[] = [...indexes, ...rollbacks];
