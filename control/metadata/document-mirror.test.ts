import { beforeEach, expect, test } from 'vitest';
import type { DocumentChange, Json } from './document-store.ts';
import { DocumentMirror, type MirrorChange } from './document-mirror.ts';
import { MemoryStore } from './memory-store-fixture.ts';

/** A store whose feed is as late as the test wants it to be. */
class LateStore extends MemoryStore {
  readonly waiting: DocumentChange[] = [];
  #listener: ((change: DocumentChange) => void) | undefined;
  #missed: (() => void) | undefined;

  override watch(listener: (change: DocumentChange) => void, missed?: () => void): () => void {
    this.#listener = listener;
    this.#missed = missed;
    return super.watch((change) => void this.waiting.push(change));
  }

  feed(changes = this.waiting.length): void {
    for (const change of this.waiting.splice(0, changes)) this.#listener!(change);
  }

  /** The wait never ends. */
  skip(): void {
    this.waiting.length = 0;
    this.#missed!();
  }
}

let store: LateStore;
let mirror: DocumentMirror;
let seen: [string, Json | undefined][];

beforeEach(async () => {
  store = new LateStore();
  await store.write([{ collection: 'c', id: 'old', body: 1, expected: 0 }]);
  await open();
});

async function open(): Promise<void> {
  seen = [];
  mirror = await DocumentMirror.open(store, ['c', 'd'], ({ id, body }: MirrorChange) => {
    seen.push([id, body]);
  });
}

const write = (id: string, body: Json | undefined) => mirror.write([{ collection: 'c', id, body }]);

async function byOthers(id: string, body: Json | undefined): Promise<void> {
  const expected = (await store.get('c', id))?.revision ?? 0;
  await store.write([{ collection: 'c', id, body, expected }]);
}

test('has what there is, and an own change at once', async () => {
  expect(seen).toEqual([['old', 1]]);
  await write('a', 2);
  expect(mirror.get('c', 'a')).toBe(2);
  store.feed();
  expect(seen).toEqual([
    ['old', 1],
    ['a', 2],
  ]);
  await write('a', undefined);
  expect(mirror.has('c', 'a')).toBe(false);
});

test('has what others write as soon as it is fed, of its collections only', async () => {
  await byOthers('b', 3);
  await store.write([{ collection: 'other', id: 'x', body: 1, expected: 0 }]);
  expect(mirror.has('c', 'b')).toBe(false);
  store.feed();
  expect(mirror.get('c', 'b')).toBe(3);
  expect(seen).toHaveLength(2);
});

test('what was removed does not come back by news of earlier times', async () => {
  await byOthers('a', 1);
  store.feed();
  await byOthers('a', 2);
  await expect(write('a', 4)).rejects.toThrow('c/a is at revision');
  await write('a', undefined);
  store.feed();
  expect(mirror.has('c', 'a')).toBe(false);
  expect(seen.slice(1)).toEqual([
    ['a', 1],
    ['a', 2],
    ['a', undefined],
  ]);
  await write('a', 5);
  store.feed();
  expect(mirror.get('c', 'a')).toBe(5);
});

test('who was not first sees what the first one wrote, and may try again', async () => {
  await byOthers('a', 1);
  await expect(write('a', 2)).rejects.toThrow('is at revision');
  expect(mirror.get('c', 'a')).toBe(1);
  await write('a', 2);
  await byOthers('old', undefined);
  await expect(write('old', 2)).rejects.toThrow('is at revision');
  expect(mirror.has('c', 'old')).toBe(false);
  await write('old', 2);
  store.feed();
  expect([mirror.get('c', 'a'), mirror.get('c', 'old')]).toEqual([2, 2]);
});

test('after a gap in the feed it has what there is', async () => {
  await byOthers('a', 1);
  store.feed();
  await byOthers('a', undefined);
  await byOthers('b', 2);
  await byOthers('old', 9);
  store.skip();
  await expect.poll(() => mirror.get('c', 'b')).toBe(2);
  expect([mirror.has('c', 'a'), mirror.get('c', 'old')]).toEqual([false, 9]);
  expect(seen.slice(2)).toEqual(
    expect.arrayContaining([
      ['a', undefined],
      ['b', 2],
      ['old', 9],
    ]),
  );
});
