// The suite on the stores that need no server, and what is the embedded one's own.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { StoreSubject } from './conformance/trial.ts';
import type { DocumentStore } from './document-store.ts';
import { casesFor, runCase, storeCases } from './document-store-conformance.ts';
import { EmbeddedDocumentStore } from './embedded-document-store.ts';
import { ResilientStore } from './resilient/resilient-store.ts';

async function inFolder<T>(use: (folder: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'polyrow-metadata-'));
  try {
    return await use(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

type Open = (folder: string, historyLength: number) => Promise<DocumentStore>;

function subjectOf(open: Open): StoreSubject {
  return {
    shared: false,
    async place() {
      const folder = mkdtempSync(join(tmpdir(), 'polyrow-metadata-'));
      return {
        open: (historyLength) => open(folder, historyLength),
        remove: async () => rmSync(folder, { recursive: true }),
      };
    },
  };
}

const embedded: Open = (folder, historyLength) =>
  EmbeddedDocumentStore.open(join(folder, 'store'), { historyLength });

describe.each([
  { name: 'an embedded store', subject: subjectOf(embedded) },
  {
    name: 'a resilient store',
    subject: subjectOf(async (folder, historyLength) =>
      ResilientStore.open({
        store: await embedded(folder, historyLength),
        copy: join(folder, 'copy'),
      }),
    ),
  },
])('$name', ({ subject: one }) => {
  for (const each of casesFor(one)) test(each.name, () => runCase(each, one));
});

test('each case has a name of its own', () => {
  const names = storeCases.map(({ name }) => name);
  expect(new Set(names).size).toBe(names.length);
});

test('a second process, or a second open, is kept out', async () => {
  await inFolder(async (folder) => {
    const store = await embedded(folder, 5);
    await expect(embedded(folder, 5)).rejects.toMatchObject({ cause: { code: 'LEVEL_LOCKED' } });
    await store.close();
  });
});
