import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { DocumentStore, DocumentWrite } from './document-store.ts';
import { EmbeddedDocumentStore } from './embedded-document-store.ts';
import { fillStore, isBeingFilled } from './move-documents.ts';

let folder: string;
let from: EmbeddedDocumentStore;
let to: EmbeddedDocumentStore;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'polyrow-move-'));
  from = await EmbeddedDocumentStore.open(join(folder, 'from'));
  to = await EmbeddedDocumentStore.open(join(folder, 'to'));
  for (let part = 0; part < 2; part++) {
    const write = (i: number): DocumentWrite => {
      return { collection: 'c', id: `${part}-${i}`, body: { part, i }, expected: 0 };
    };
    await from.write(Array.from({ length: 600 }, (_, i) => write(i)));
  }
  // Larger than a write may be.
  for (const id of ['x', 'y', 'z']) {
    await from.write([{ collection: 'big', id, body: id.repeat(3_000_000), expected: 0 }]);
  }
});
afterEach(async () => {
  await Promise.all([from.close(), to.close()]);
  rmSync(folder, { recursive: true });
});

async function contents(store: DocumentStore): Promise<unknown[]> {
  const { documents } = await store.snapshot();
  return documents.map(({ collection, id, body }) => [collection, id, body]);
}

test('all documents move, and what was there before goes', async () => {
  await to.write([
    { collection: 'c', id: '0-0', body: 'old', expected: 0 },
    { collection: 'c', id: 'not in it', body: 'old', expected: 0 },
  ]);
  await fillStore(to, (await from.snapshot()).documents);
  expect(await contents(to)).toEqual(await contents(from));
  expect(await isBeingFilled(to)).toBe(false);
});

test('a move that was broken off is seen, and can be made again', async () => {
  const { documents } = await from.snapshot();
  const writes = to.write.bind(to);
  for (let survives = 1; ; survives++) {
    let left = survives;
    to.write = async (some) => {
      if (left-- === 0) throw new Error('broken off');
      return await writes(some);
    };
    const isDone = await fillStore(to, documents).then(
      () => true,
      () => false,
    );
    expect(await isBeingFilled(to)).toBe(!isDone);
    if (isDone) break;
  }
  expect(await contents(to)).toEqual(await contents(from));
});
