// The suite of document stores over MongoDB's protocol, on each server that can be had here.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { StoreSubject } from '../../control/metadata/conformance/trial.ts';
import { casesFor, runCase } from '../../control/metadata/document-store-conformance.ts';
import { MongoDocumentStore } from '../../control/metadata/mongo/mongo-document-store.ts';
import { ResilientStore } from '../../control/metadata/resilient/resilient-store.ts';
import { availableServers, MongoServer } from './mongo-server.ts';

const { kinds, missing } = await availableServers();

test.runIf(kinds.length === 0)(`not tried: ${missing.join('. ')}`, (context) => context.skip());

describe.each(kinds)('$name', (kind) => {
  let server: MongoServer;
  let databases = 0;
  beforeAll(async () => {
    server = await MongoServer.start(kind);
  });
  afterAll(() => server?.remove());

  const open = (database: string, historyLength: number) =>
    new MongoDocumentStore({ uri: server.uri(database), historyLength });

  const direct: StoreSubject = {
    shared: true,
    async place() {
      const database = `conformance${databases++}`;
      return {
        open: async (historyLength) => open(database, historyLength),
        remove: () => server.drop(database),
      };
    },
  };
  const resilient: StoreSubject = {
    // Each has a copy of its own, which follows the others a little later.
    shared: false,
    async place() {
      const database = `conformance${databases++}`;
      const folder = mkdtempSync(join(tmpdir(), 'polyrow-copy-'));
      return {
        open: (historyLength) =>
          ResilientStore.open({ store: open(database, historyLength), copy: join(folder, 'copy') }),
        remove: async () => {
          rmSync(folder, { recursive: true });
          await server.drop(database);
        },
      };
    },
  };

  describe('a store', () => {
    for (const one of casesFor(direct)) test(one.name, () => runCase(one, direct));
  });
  describe('a resilient store', () => {
    for (const one of casesFor(resilient)) test(one.name, () => runCase(one, resilient));
  });

  test.runIf(kind.streams)('changes come by change stream', async () => {
    const uri = server.uri(`streams${databases++}`);
    // Asking alone would take far longer.
    const slow = { uri, pollMs: 5000 };
    const [writer, follower] = [new MongoDocumentStore(slow), new MongoDocumentStore(slow)];
    await follower.get('c', 'a');
    const seen: string[] = [];
    follower.watch(({ id }) => seen.push(id));
    await expect.poll(() => follower.streams).toBe(true);
    await writer.write([{ collection: 'c', id: 'a', body: 1, expected: 0 }]);
    await expect.poll(() => seen).toEqual(['a']);
    await Promise.all([writer.close(), follower.close()]);
  });
});
