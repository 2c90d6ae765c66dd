// Documents are read back as they were written.

import assert from 'node:assert/strict';
import type { Json } from '../document-store.ts';
import { collection, type StoreCase } from './trial.ts';

const bodies: Record<string, Json> = {
  null: null,
  text: 'ü 漢 𐍈 \n" \\ \u0000 \u2028',
  numbers: [0, 1.5, 1e21, 2 ** 53 - 1, -(2 ** 31), 5e-324],
  names: { $set: 1, 'a.b': { 'c.$d': [] }, '': 2, _id: 3, constructor: { x: 1 } },
  nested: [[[[{ a: [{}, [], null, true] }]]]],
};

/** UTF-8 sorts these otherwise than JavaScript does: the last is of two surrogates. */
const ids = [' ', '#', '/', '0', 'A', 'a', 'a/b', 'aa', 'é', '漢', '\uffee', '𐍈'];

export const documentCases: readonly StoreCase[] = [
  {
    name: 'an empty store',
    async run({ store }) {
      assert.equal(store.revision, 0);
      assert.equal(await store.get(collection, 'a'), undefined);
      assert.deepEqual(await store.list(collection), []);
      assert.deepEqual(await store.changes(0), []);
      assert.deepEqual(await store.snapshot(), { revision: 0, documents: [] });
    },
  },
  ...Object.entries(bodies).map(
    ([what, body]): StoreCase => ({
      name: `a body comes back as it was written: ${what}`,
      async run(trial) {
        const revision = await trial.put('a', body);
        const document = { collection, id: 'a', revision, body };
        assert.deepEqual(await trial.store.get(collection, 'a'), document);
        await trial.reopen();
        assert.deepEqual(await trial.store.list(collection), [document]);
        assert.equal((await trial.store.changes(0))[0]!.revision, revision);
        assert.deepEqual((await trial.store.changes(0))[0]!.body, body);
      },
    }),
  ),
  {
    name: 'what was given or got can be changed without harm',
    async run(trial) {
      const body = { list: [1] };
      await trial.put('a', body);
      body.list.push(2);
      const got = (await trial.body('a')) as { list: number[] };
      got.list.push(3);
      assert.deepEqual(await trial.body('a'), { list: [1] });
    },
  },
  {
    name: 'ids in the order of their bytes',
    async run(trial) {
      const shuffled = [...ids].sort((a, b) => b.length - a.length || (a < b ? 1 : -1));
      for (const id of shuffled) await trial.put(id, id);
      assert.deepEqual(
        (await trial.listed()).map(([id]) => id),
        ids,
      );
      for (const id of ids) assert.equal(await trial.body(id), id);
    },
  },
  {
    name: 'a collection is listed without its neighbours',
    async run(trial) {
      const collections = ['a', 'a-b', 'a.b', 'a0', 'aa', 'b'];
      for (const name of collections) {
        await trial.store.write([{ collection: name, id: 'x', body: name, expected: 0 }]);
      }
      for (const name of collections) {
        const found = await trial.store.list(name);
        assert.deepEqual(
          found.map((document) => [document.collection, document.id, document.body]),
          [[name, 'x', name]],
        );
      }
    },
  },
  {
    name: 'documents of some megabytes',
    async run(trial) {
      const text = 'ä\n'.repeat(1_000_000);
      const revision = await trial.put('a', { text });
      await trial.put('b', 1);
      assert.deepEqual(await trial.body('a'), { text });
      assert.deepEqual(
        (await trial.allChanges(0)).map(({ id }) => id),
        ['a', 'b'],
      );
      await trial.put('a', 'small', revision);
      assert.equal(await trial.body('a'), 'small');
    },
  },
  {
    name: 'a thousand documents in one write',
    async run(trial) {
      const writes = Array.from({ length: 1000 }, (_, i) => {
        return { collection, id: String(i).padStart(4, '0'), body: { i }, expected: 0 };
      });
      const revisions = await trial.store.write(writes);
      assert.deepEqual(
        revisions,
        writes.map((_, i) => i + 1),
      );
      assert.deepEqual(
        await trial.listed(),
        writes.map(({ id, body }) => [id, body]),
      );
      assert.equal((await trial.allChanges(0)).length, 1000);
    },
  },
  {
    name: 'names and sizes that are refused',
    async run(trial) {
      const refuses = (name: string, id: string, body: Json = 1) =>
        assert.rejects(
          trial.store.write([{ collection: name, id, body, expected: 0 }]),
          RangeError,
        );
      await refuses(collection, '');
      await refuses(collection, 'a\0b');
      await refuses(collection, '\ud800');
      await refuses(collection, 'ä'.repeat(385));
      await refuses('', 'a');
      await refuses('a/b', 'a');
      await refuses('$cmd', 'a');
      await refuses(collection, 'a', 'x'.repeat(8 * 1024 * 1024));
      const twice = { collection, id: 'a', body: 1, expected: 0 };
      await assert.rejects(trial.store.write([twice, twice]), RangeError);
      assert.equal(trial.store.revision, 0);
      await trial.put('ä'.repeat(384), 1);
      assert.deepEqual(await trial.listed(), [['ä'.repeat(384), 1]]);
    },
  },
];
