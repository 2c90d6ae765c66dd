// The list of rows that are due to expire.

import assert from 'node:assert/strict';
import { range, tableOf, type ConformanceCase } from './case.ts';
import { array, expiring, map, ranked, set, value } from './contents.ts';
import { contentsOf, on } from './table-cases.ts';
import { due } from './trial.ts';
import type { Verbs } from './verbs.ts';

export const expiryCases: readonly ConformanceCase[] = [
  {
    name: 'expired: nothing before its time, and then what is due',
    async run(trial) {
      await trial.fill(
        tableOf({
          never: value('v'),
          a: expiring(value('v'), 100),
          b: expiring(set('m'), 200),
          c: expiring(ranked('m', 1), 300),
        }),
      );
      const listed = await trial.read((v) =>
        [99, 100, 250, 300].map((now) => due(v, now, 10).sort()),
      );
      assert.deepEqual(listed, [[], ['a'], ['a', 'b'], ['a', 'b', 'c']]);
    },
  },
  {
    name: 'expired: at most as many as asked for, and all by and by',
    async run(trial) {
      for (let i = 0; i < 500; i += 100) {
        await trial.run((v) =>
          range(100).forEach((n) => v.put(`k${i + n}`, 'v', 1000 + (((i + n) * 37) % 500))),
        );
      }
      const now = 1249;
      let listed = 0;
      for (let round = 0; round < 500; round++) {
        const dropped = await trial.run((v) => {
          const keys = due(v, now, 10);
          for (const key of keys) {
            assert.ok(v.table.expireAt(v.row(key)) <= now);
            v.drop(key);
          }
          return keys.length;
        });
        assert.ok(dropped <= 10, `${dropped} listed`);
        if (dropped === 0) break;
        listed += dropped;
      }
      assert.equal(listed, 250);
      const left = await trial.read((v) => [v.table.rowCount(), v.table.expiringRows]);
      assert.deepEqual(left, [250, 250]);
    },
  },
  {
    name: 'expired: follows each change of an expiry',
    async run(trial) {
      const all = (v: Verbs) => due(v, 1000, 100).sort();
      await trial.run((v) => range(6).forEach((i) => v.put(`k${i}`, 'v', 500)));
      await trial.run((v) => {
        v.expire('k0', 0);
        v.expire('k1', 2000);
        v.put('k2', 'v');
        v.rename('k3', 'renamed');
        v.drop('k4');
      });
      assert.deepEqual(await trial.read(all), ['k5', 'renamed']);
      await trial.run((v) => {
        v.expire('k1', 900);
        v.rename('k0', 'renamed');
        v.put('k5', 'w', 100);
      });
      assert.deepEqual(await trial.read(all), ['k1', 'k5']);
      assert.deepEqual(await trial.read((v) => due(v, 100, 100)), ['k5']);
    },
  },
  {
    name: 'expired: a container that goes with its last element is not due any more',
    async run(trial) {
      await trial.fill(tableOf({ a: expiring(array('x'), 5), b: expiring(map('f', '1'), 5) }));
      await trial.run((v) => {
        v.pop('a', true);
        v.removeField('b', 'f');
      });
      assert.deepEqual(await trial.read((v) => [due(v, 9, 9), v.table.expiringRows]), [[], 0]);
    },
  },
  {
    name: 'expired: by table, and with its table',
    async run(trial) {
      await trial.fill(
        contentsOf({ 0: { a: expiring(value('v'), 5) }, 1: { b: expiring(value('v'), 5) } }),
      );
      await trial.run((_, engine) => engine.swapTables(1, 2));
      const listed = await trial.read((_, engine) =>
        [0, 1, 2].map((table) => due(on(engine, table), 10, 10)),
      );
      assert.deepEqual(listed, [['a'], [], ['b']]);
    },
  },
];
