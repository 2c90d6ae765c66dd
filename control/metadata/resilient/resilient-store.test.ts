import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from 'vitest';
import {
  type DocumentChange,
  type DocumentStore,
  type Json,
  MetadataUnavailable,
} from '../document-store.ts';
import { EmbeddedDocumentStore } from '../embedded-document-store.ts';
import { type MetadataEvent, ResilientStore } from './resilient-store.ts';

let folder: string;
let real: EmbeddedDocumentStore;
let elsewhere: Elsewhere;
let events: MetadataEvent[];
const stores: ResilientStore[] = [];

/** A store that others change too, and that can be out of reach or never answer. */
class Elsewhere implements DocumentStore {
  state: 'there' | 'away' | 'silent' = 'there';
  readonly pollMs = 20;
  /** Reads and writes that were passed on to it. */
  calls = 0;

  get revision(): number {
    return real.revision;
  }

  async #reach(): Promise<void> {
    if (this.state === 'away') throw new MetadataUnavailable('connection refused');
    if (this.state === 'silent') {
      await sleep(300);
      throw new MetadataUnavailable('no answer');
    }
  }

  get = async (collection: string, id: string) => {
    this.calls++;
    await this.#reach();
    return await real.get(collection, id);
  };
  list = async (collection: string) => {
    this.calls++;
    await this.#reach();
    return await real.list(collection);
  };
  snapshot = async () => {
    await this.#reach();
    return await real.snapshot();
  };
  write: DocumentStore['write'] = async (writes) => {
    this.calls++;
    await this.#reach();
    return await real.write(writes);
  };
  changes = async (after: number) => {
    await this.#reach();
    return await real.changes(after);
  };
  watch = () => () => {};
  onHint = () => () => {};
  close = async () => {};
}

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'polyrow-resilient-'));
  real = await EmbeddedDocumentStore.open(join(folder, 'real'), { historyLength: 10 });
  elsewhere = new Elsewhere();
  events = [];
});
afterEach(async () => {
  for (const store of stores.splice(0)) await store.close();
  await real.close();
  rmSync(folder, { recursive: true });
});

async function open(): Promise<ResilientStore> {
  const store = await ResilientStore.open({
    store: elsewhere,
    copy: join(folder, 'copy'),
    startTimeoutMs: 200,
    onEvent: (event) => events.push(event),
  });
  stores.push(store);
  return store;
}

const put = (store: DocumentStore, id: string, body: Json | undefined, expected = 0) =>
  store.write([{ collection: 'c', id, body, expected }]);

async function bodies(store: DocumentStore): Promise<Record<string, Json>> {
  const documents = await store.list('c');
  return Object.fromEntries(documents.map(({ id, body }) => [id, body]));
}

test('a write can be read at once, and others see theirs', async () => {
  const store = await open();
  const seen: DocumentChange[] = [];
  store.watch((change) => seen.push(change));
  await put(store, 'a', 1);
  expect(await bodies(store)).toEqual({ a: 1 });
  await put(real, 'b', 2);
  await expect.poll(() => bodies(store)).toEqual({ a: 1, b: 2 });
  expect(seen.map(({ id, revision }) => [id, revision])).toEqual([
    ['a', 1],
    ['b', 2],
  ]);
});

test.each(['away', 'silent'] as const)(
  'a store that is %s does not keep readers',
  async (state) => {
    const store = await open();
    await put(store, 'a', 1);
    elsewhere.state = state;
    await expect.poll(() => store.status.up).toBe(false);
    const { calls } = elsewhere;
    expect(await bodies(store)).toEqual({ a: 1 });
    expect(await store.get('c', 'a')).toMatchObject({ revision: 1, body: 1 });
    await expect(put(store, 'b', 2)).rejects.toMatchObject({ outcome: 'none', statusCode: 503 });
    expect(elsewhere.calls).toBe(calls);
    expect(store.status.ageMs).toBeGreaterThan(0);

    elsewhere.state = 'there';
    await expect.poll(() => store.status.up).toBe(true);
    await put(store, 'b', 2);
    expect(await bodies(store)).toEqual({ a: 1, b: 2 });
    expect(events.map(({ kind }) => kind)).toEqual(['lost', 'back']);
  },
);

test.each(['away', 'silent'] as const)(
  'a start with a store that is %s goes on with what was last known',
  async (state) => {
    const before = await open();
    await put(before, 'a', 1);
    await before.close();
    stores.pop();
    await put(real, 'b', 2);
    elsewhere.state = state;
    const store = await open();
    expect([await bodies(store), store.revision]).toEqual([{ a: 1 }, 1]);
    expect(events.map(({ kind }) => kind)).toEqual(['lost']);
    const seen: (string | number)[] = [];
    store.watch(({ id, revision }) => seen.push(id, revision));

    elsewhere.state = 'there';
    await expect.poll(() => bodies(store)).toEqual({ a: 1, b: 2 });
    expect(seen).toEqual(['b', 2]);
  },
);

test('a start with nothing to go on with says why', async () => {
  elsewhere.state = 'away';
  await expect(open()).rejects.toThrow(
    'connection refused; and there is no copy of the last known state',
  );
  writeFileSync(join(folder, 'copy'), 'rubbish\n');
  await expect(open()).rejects.toThrow(/copy is damaged in line 1/);
});

test('a damaged copy is written anew when the store is there', async () => {
  await put(real, 'a', 1);
  writeFileSync(join(folder, 'copy'), 'rubbish\n');
  await open();
  await expect.poll(() => events.map(({ kind }) => kind)).toEqual(['copy-failed', 'copy-back']);
  elsewhere.state = 'away';
  expect(await bodies(await open())).toEqual({ a: 1 });
});

test('after an outage longer than the history the difference is told', async () => {
  const store = await open();
  await put(store, 'stays', 1);
  await put(store, 'goes', 1);
  const [changed] = await put(store, 'changes', 1);
  const seen: [string, Json | undefined, number][] = [];
  store.watch(({ id, body, revision }) => seen.push([id, body, revision]));
  elsewhere.state = 'away';
  await expect.poll(() => store.status.up).toBe(false);
  await put(real, 'goes', undefined, 2);
  await put(real, 'changes', 2, changed);
  for (let i = 0; i < 20; i++) await put(real, `short${i}`, 1);
  for (let i = 0; i < 20; i++) await put(real, `short${i}`, undefined, 6 + i);
  await put(real, 'comes', 1);
  elsewhere.state = 'there';
  await expect.poll(() => bodies(store)).toEqual({ changes: 2, comes: 1, stays: 1 });
  expect(seen).toEqual([
    ['goes', undefined, 4],
    ['changes', 2, 5],
    ['comes', 1, 46],
  ]);
});
