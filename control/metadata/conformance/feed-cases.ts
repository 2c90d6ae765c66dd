// The feed: every change, once, in order; from a revision on, or from a snapshot.

import assert from 'node:assert/strict';
import { type DocumentChange, HistoryGone, type Json } from '../document-store.ts';
import { collection, eventually, Follower, type StoreCase, type Trial } from './trial.ts';

const brief = (changes: readonly DocumentChange[]): [number, string, Json | undefined][] =>
  changes.map(({ revision, id, body }) => [revision, id, body]);

/** So many changes that those before are gone, for a store that is opened then. */
async function fill(trial: Trial, count: number): Promise<void> {
  for (let i = 0; i < count; i++) await trial.put(`fill${i}`, i);
  await trial.reopen();
}

export const feedCases: readonly StoreCase[] = [
  {
    name: 'the feed has every change in order',
    async run(trial) {
      const first = await trial.put('a', 1);
      await trial.put('b', 2);
      await trial.put('a', undefined, first);
      const all: [number, string, Json | undefined][] = [
        [1, 'a', 1],
        [2, 'b', 2],
        [3, 'a', undefined],
      ];
      assert.deepEqual(brief(await trial.allChanges(0)), all);
      assert.deepEqual(brief(await trial.allChanges(2)), all.slice(2));
      assert.deepEqual(await trial.allChanges(3), []);
      await trial.reopen();
      assert.deepEqual(brief(await trial.allChanges(1)), all.slice(1));
    },
  },
  {
    name: 'changes from the middle of a write',
    async run(trial) {
      const write = (id: string) => ({ collection, id, body: id, expected: 0 });
      await trial.store.write(['a', 'b', 'c'].map(write));
      assert.deepEqual(brief(await trial.allChanges(1)), [
        [2, 'b', 'b'],
        [3, 'c', 'c'],
      ]);
    },
  },
  {
    name: 'the feed says when it has the changes no more',
    historyLength: 5,
    async run(trial) {
      await fill(trial, 40);
      await assert.rejects(trial.store.changes(0), HistoryGone);
      await assert.rejects(trial.store.changes(3), HistoryGone);
      assert.deepEqual(
        (await trial.allChanges(36)).map(({ revision }) => revision),
        [37, 38, 39, 40],
      );
      assert.equal((await trial.listed()).length, 40);
    },
  },
  {
    name: 'whoever watches sees what comes, and no more once he stops',
    async run(trial) {
      await trial.put('before', 0);
      const seen: DocumentChange[] = [];
      const stop = trial.store.watch((change) => seen.push(change));
      await trial.put('a', 1);
      await trial.put('b', 2);
      await eventually(() => seen.length >= 2, 'a change');
      assert.deepEqual(brief(seen), [
        [2, 'a', 1],
        [3, 'b', 2],
      ]);
      stop();
      await trial.put('c', 3);
      await trial.store.get(collection, 'c');
      assert.equal(seen.length, 2);
    },
  },
  {
    name: 'a follower starts with what is there and goes on from it',
    async run(trial) {
      await trial.put('a', 1);
      const follower = new Follower(trial.store);
      await follower.reaches(1);
      assert.deepEqual([follower.snapshots, follower.told], [1, []]);
      const last = await trial.put('b', 2);
      await follower.reaches(last);
      assert.deepEqual(brief(follower.told), [[2, 'b', 2]]);
      await follower.close();
      await trial.put('c', 3);
      assert.equal(follower.told.length, 1);
    },
  },
  {
    name: 'a follower goes on from where it was',
    async run(trial) {
      await trial.put('a', 1);
      await trial.put('b', 2);
      await trial.reopen();
      const follower = new Follower(trial.store, 1);
      await follower.reaches(2);
      assert.deepEqual([follower.snapshots, brief(follower.told)], [0, [[2, 'b', 2]]]);
      await follower.close();
    },
  },
  {
    name: 'a follower that is too far behind takes a snapshot, and goes on from it',
    historyLength: 5,
    async run(trial) {
      const first = await trial.put('gone', 1);
      await trial.put('gone', undefined, first);
      await fill(trial, 40);
      const follower = new Follower(trial.store, 1);
      await follower.reaches(42);
      assert.deepEqual([follower.snapshots, follower.told], [1, []]);
      const last = await trial.put('new', 1);
      await follower.reaches(last);
      assert.deepEqual(brief(follower.told), [[last, 'new', 1]]);
      assert.equal(follower.documents.size, 41);
      assert.equal(follower.documents.has('gone'), false);
      await follower.close();
    },
  },
  {
    name: 'changes reach a follower of another store within a second',
    needs: 'shared',
    async run(trial) {
      const follower = new Follower(await trial.another());
      await follower.reaches(0);
      const tookMs: number[] = [];
      for (let i = 0; i < 10; i++) {
        const began = performance.now();
        await trial.put(`a${i}`, i);
        await eventually(() => follower.told.length > i, 'a change');
        tookMs.push(performance.now() - began);
      }
      await follower.close();
      assert(Math.max(...tookMs) < 1000, `took ${tookMs.map(Math.round).join()} ms`);
    },
  },
  {
    name: 'followers of all stores are told the same, whoever writes',
    needs: 'shared',
    async run(trial) {
      const stores = [trial.store, await trial.another(), await trial.another()];
      const followers = stores.map((store) => new Follower(store));
      await Promise.all(followers.map((follower) => follower.reaches(0)));
      await Promise.all(
        stores.map(async (store, who) => {
          let expected = 0;
          for (let body = 0; body < 20; body++) {
            const mine = { collection, id: `${who}`, body, expected };
            const more = { collection, id: `${who}-${body}`, body, expected: 0 };
            [expected] = (await store.write([mine, more])) as [number, number];
          }
        }),
      );
      const last = 3 * 20 * 2;
      for (const follower of followers) {
        await follower.reaches(last);
        await follower.close();
        assert.deepEqual(
          follower.told.map(({ revision }) => revision),
          Array.from({ length: last }, (_, i) => i + 1),
        );
        assert.deepEqual(follower.told, followers[0]!.told);
        assert.equal(follower.documents.size, 63);
      }
      for (const { collection: name, id, body } of (await trial.store.snapshot()).documents) {
        assert.deepEqual([name, followers[0]!.documents.get(id)], [collection, body]);
      }
    },
  },
  {
    name: 'a follower may close while it waits',
    async run(trial) {
      const follower = new Follower(trial.store);
      await follower.close();
      await trial.put('a', 1);
      assert.deepEqual(follower.told, []);
    },
  },
];
