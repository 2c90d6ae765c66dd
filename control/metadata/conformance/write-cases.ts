// Compare-and-set, and writes of several documents that are made whole or not at all.

import assert from 'node:assert/strict';
import { type DocumentStore, RevisionConflict } from '../document-store.ts';
import { collection, type StoreCase } from './trial.ts';

/** Increments a counter and writes the sum to another document; retried after a conflict. */
async function count(store: DocumentStore, times: number): Promise<number> {
  let conflicts = 0;
  for (let done = 0; done < times; ) {
    const [counter, mirror] = [
      await store.get(collection, 'counter'),
      await store.get(collection, 'mirror'),
    ];
    const body = Number(counter?.body ?? 0) + 1;
    try {
      await store.write([
        { collection, id: 'counter', body, expected: counter?.revision ?? 0 },
        { collection, id: 'mirror', body, expected: mirror?.revision ?? 0 },
      ]);
      done++;
    } catch (error) {
      if (!(error instanceof RevisionConflict)) throw error;
      conflicts++;
    }
  }
  return conflicts;
}

export const writeCases: readonly StoreCase[] = [
  {
    name: 'a write needs the revision that is there',
    async run(trial) {
      const first = await trial.put('a', 1);
      await assert.rejects(trial.put('a', 2, 0), RevisionConflict);
      await assert.rejects(trial.put('b', 2, first), /things\/b is at revision 0, not 1/);
      const second = await trial.put('a', 2, first);
      assert(second > first);
      await assert.rejects(trial.put('a', undefined, first), RevisionConflict);
      await trial.put('a', undefined, second);
      assert.equal(await trial.body('a'), undefined);
      assert.deepEqual(await trial.listed(), []);
    },
  },
  {
    name: 'a document that was removed can be made again',
    async run(trial) {
      const first = await trial.put('a', 1);
      const removed = await trial.put('a', undefined, first);
      await assert.rejects(trial.put('a', 2, removed), RevisionConflict);
      await assert.rejects(trial.put('a', 2, first), RevisionConflict);
      const again = await trial.put('a', 2, 0);
      assert(again > removed);
      await trial.reopen();
      assert.deepEqual(await trial.listed(), [['a', 2]]);
      await trial.put('a', 3, again);
    },
  },
  {
    name: 'what is not there is removed by saying so',
    async run(trial) {
      await trial.put('a', undefined, 0);
      assert.deepEqual(await trial.listed(), []);
      await trial.put('a', 1, 0);
      assert.deepEqual(await trial.listed(), [['a', 1]]);
    },
  },
  {
    name: 'several writes are made together or not at all',
    async run(trial) {
      await trial.put('a', 1);
      const write = (id: string, expected: number) => ({ collection, id, body: 2, expected });
      await assert.rejects(trial.store.write([write('b', 0), write('a', 0)]), RevisionConflict);
      await assert.rejects(trial.store.write([write('a', 1), write('c', 9)]), RevisionConflict);
      assert.deepEqual(await trial.listed(), [['a', 1]]);
      assert.equal((await trial.allChanges(0)).length, 1);
      assert.deepEqual(await trial.store.write([write('b', 0), write('a', 1)]), [2, 3]);
      assert.deepEqual(await trial.listed(), [
        ['a', 2],
        ['b', 2],
      ]);
    },
  },
  {
    name: 'an empty write',
    async run({ store }) {
      assert.deepEqual(await store.write([]), []);
      assert.equal(store.revision, 0);
    },
  },
  {
    name: 'of those who write at once from the same revision one wins',
    async run(trial) {
      const revision = await trial.put('a', 0);
      const tries = await Promise.allSettled([1, 2, 3, 4].map((n) => trial.put('a', n, revision)));
      assert.equal(tries.filter(({ status }) => status === 'fulfilled').length, 1);
      const [won] = tries.flatMap(({ status }, i) => (status === 'fulfilled' ? [i + 1] : []));
      assert.equal(await trial.body('a'), won);
    },
  },
  {
    name: 'several stores count together',
    needs: 'shared',
    async run(trial) {
      const stores = [trial.store, await trial.another(), await trial.another()];
      const conflicts = await Promise.all(stores.map((store) => count(store, 20)));
      assert.equal(await trial.body('counter'), 60);
      assert.equal(await trial.body('mirror'), 60);
      assert.equal(trial.store.revision, 120);
      // Otherwise nothing was tried here.
      assert(conflicts.some((some) => some > 0));
    },
  },
  {
    name: 'stores that write different documents all get to it',
    needs: 'shared',
    async run(trial) {
      const stores = [trial.store, await trial.another(), await trial.another()];
      await Promise.all(
        stores.map(async (store, who) => {
          for (let i = 0; i < 20; i++) {
            const id = `${who}-${String(i).padStart(2, '0')}`;
            await store.write([{ collection, id, body: i, expected: 0 }]);
          }
        }),
      );
      const changes = await trial.allChanges(0);
      assert.deepEqual(
        changes.map(({ revision }) => revision),
        Array.from({ length: 60 }, (_, i) => i + 1),
      );
      assert.equal((await trial.listed()).length, 60);
    },
  },
  {
    name: 'what one store has written every other can read at once',
    needs: 'shared',
    async run(trial) {
      const other = await trial.another();
      for (let i = 0; i < 10; i++) {
        await trial.put(`a${i}`, i);
        assert.equal((await other.get(collection, `a${i}`))?.body, i);
        assert.equal((await other.list(collection)).length, i + 1);
        assert.equal(other.revision, i + 1);
      }
    },
  },
  {
    name: 'nobody ever sees half of a write',
    needs: 'shared',
    async run(trial) {
      const [writer, reader] = [await trial.another(), await trial.another()];
      let isDone = false;
      const writing = (async () => {
        let expected = [0, 0, 0];
        for (let body = 1; body <= 40; body++) {
          const write = (i: number) => ({ collection, id: `${i}`, body, expected: expected[i]! });
          expected = await writer.write([write(0), write(1), write(2)]);
        }
        isDone = true;
      })();
      let looks = 0;
      while (!isDone) {
        const found = (await reader.list(collection)).map(({ body }) => Number(body));
        assert([0, 3].includes(found.length) && new Set(found).size <= 1, `saw ${found.join()}`);
        const last = Number((await reader.get(collection, '2'))?.body ?? 0);
        const first = Number((await reader.get(collection, '0'))?.body ?? 0);
        assert(first >= last, `saw ${last}, then ${first}`);
        const { revision, documents } = await reader.snapshot();
        const bodies = documents.map(({ body }) => Number(body));
        assert(
          bodies.every((body) => body === revision / 3),
          `${bodies.join()} at ${revision}`,
        );
        looks++;
      }
      await writing;
      assert(looks > 0);
    },
  },
];
