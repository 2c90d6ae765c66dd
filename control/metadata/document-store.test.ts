import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type DocumentChange, HistoryGone, type Json, RevisionConflict } from './document-store.ts';
import { EmbeddedDocumentStore } from './embedded-document-store.ts';

let path: string;
let store: EmbeddedDocumentStore;

beforeEach(async () => {
  path = mkdtempSync(join(tmpdir(), 'polyrow-metadata-'));
  store = await EmbeddedDocumentStore.open(path, { historyLength: 5 });
});
afterEach(async () => {
  await store.close();
  rmSync(path, { recursive: true });
});

async function reopen(): Promise<void> {
  await store.close();
  store = await EmbeddedDocumentStore.open(path, { historyLength: 5 });
}

async function put(id: string, body: Json | undefined, expected: number): Promise<number> {
  const [revision] = await store.write([{ collection: 'c', id, body, expected }]);
  return revision!;
}

test('a document comes back as it was written, after a reopen too', async () => {
  const body = { name: 'ü', nested: [1, null, true, 2.5], text: '\n"' };
  const revision = await put('a', body, 0);
  await reopen();
  expect(await store.get('c', 'a')).toEqual({ collection: 'c', id: 'a', revision, body });
  expect(await store.get('c', 'b')).toBeUndefined();
  expect(await store.get('other', 'a')).toBeUndefined();
  expect(store.revision).toBe(revision);
});

test('a collection is listed in the order of its ids, without its neighbours', async () => {
  for (const id of ['b', 'a', 'c']) await put(id, id, 0);
  await store.write([{ collection: 'cc', id: 'z', body: 1, expected: 0 }]);
  expect((await store.list('c')).map((document) => document.id)).toEqual(['a', 'b', 'c']);
  expect(await store.list('none')).toEqual([]);
});

test('a write needs the revision that is there', async () => {
  const first = await put('a', 1, 0);
  await expect(put('a', 2, 0)).rejects.toThrow(RevisionConflict);
  await expect(put('b', 2, first)).rejects.toThrow('c/b is at revision 0, not 1');
  const second = await put('a', 2, first);
  await expect(put('a', undefined, first)).rejects.toThrow(RevisionConflict);
  await put('a', undefined, second);
  expect(await store.get('c', 'a')).toBeUndefined();
});

test('of those who write at once from the same revision one wins', async () => {
  const revision = await put('a', 0, 0);
  const outcomes = await Promise.allSettled([1, 2, 3, 4].map((n) => put('a', n, revision)));
  expect(outcomes.map((outcome) => outcome.status)).toEqual([
    'fulfilled',
    'rejected',
    'rejected',
    'rejected',
  ]);
  expect((await store.get('c', 'a'))?.body).toBe(1);
});

test('several writes are made together or not at all', async () => {
  await put('a', 1, 0);
  const write = (id: string, expected: number) => ({ collection: 'c', id, body: 2, expected });
  await expect(store.write([write('b', 0), write('a', 0)])).rejects.toThrow(RevisionConflict);
  expect(await store.get('c', 'b')).toBeUndefined();
  expect(await store.write([write('b', 0), write('a', 1)])).toEqual([2, 3]);
});

test('the feed has every change in order, and says when it has them no more', async () => {
  const seen: DocumentChange[] = [];
  const stop = store.watch((change) => seen.push(change));
  const revision = await put('a', 1, 0);
  await put('b', 2, 0);
  await put('a', undefined, revision);
  expect(seen.map(({ id, body }) => [id, body])).toEqual([
    ['a', 1],
    ['b', 2],
    ['a', undefined],
  ]);
  expect(await store.changes(0)).toEqual(seen);
  stop();
  await reopen();
  expect(await store.changes(1)).toEqual(seen.slice(1));

  for (let n = 0; n < 4; n++) await put(`d${n}`, n, 0);
  expect(seen).toHaveLength(3);
  await expect(store.changes(1)).rejects.toThrow(HistoryGone);
  expect((await store.changes(2)).map((change) => change.revision)).toEqual([3, 4, 5, 6, 7]);
});

test('a second process, or a second open, is kept out', async () => {
  await expect(EmbeddedDocumentStore.open(path)).rejects.toMatchObject({
    cause: { code: 'LEVEL_LOCKED' },
  });
});
