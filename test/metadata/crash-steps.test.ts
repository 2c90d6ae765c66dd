// A writer dies between two steps of a write: after any message that it sends or receives, and as a
// process by kill -9. The next reader finds each family of documents whole, in its old or its new
// state.
//
//   POLYROW_FULL=1    1,000 deaths instead of a few
//   CRASHES=n         that many; CRASH_SEED=n repeats the choices of a run

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { MongoDocumentStore } from '../../control/metadata/mongo/mongo-document-store.ts';
import { Random } from '../support/random.ts';
import { FamilyWriter } from './families.ts';
import { availableServers, MongoServer } from './mongo-server.ts';
import { TcpProxy } from './tcp-proxy.ts';
import { seedFrom } from '../support/seed.ts';

const full = process.env['POLYROW_FULL'] === '1';
const crashes = Number(process.env['CRASHES'] ?? (full ? 1000 : 20));
const kills = full ? 100 : 3;
const seed = seedFrom('CRASH_SEED');
const dist = process.env['DIST_DIR'] ?? fileURLToPath(new URL('../../dist', import.meta.url));

const { kinds, missing } = await availableServers();
test.runIf(kinds.length === 0)(`not tried: ${missing.join('. ')}`, (context) => context.skip());

// All of them in the long form; the first is one that keeps what it has acknowledged.
describe.each(full ? kinds : kinds.slice(0, 1))('$name', (kind) => {
  let server: MongoServer;
  beforeAll(async () => {
    server = await MongoServer.start(kind);
  });
  afterAll(() => server?.remove());

  test(`${crashes} deaths between the steps of a write`, { timeout: 3_600_000 }, async () => {
    const random = new Random(seed);
    const writer = new FamilyWriter('f', random);
    const survivor = new MongoDocumentStore({ uri: server.uri('steps') });
    const closing: Promise<void>[] = [];
    let made = 0;
    for (let crash = 0; crash < crashes; crash++) {
      const proxy = await TcpProxy.start(server.port);
      const uri = server.uri('steps', proxy.port);
      const store = new MongoDocumentStore({ uri, timeoutMs: 2000 });
      const write = await writer.prepare(store);
      writer.begun(write);
      // Two or three reads, the head, the documents, the history: a message to die at.
      let left = 1 + random.below(8);
      const died = new Promise<false>((resolve) => {
        const count = (): 'cut' | undefined => {
          if (--left !== 0) return undefined;
          resolve(false);
          return 'cut';
        };
        if (random.chance(0.5)) proxy.onRequest = count;
        else proxy.onReply = count;
      });
      const writing = store.write(write.writes).then(
        () => true,
        () => false,
      );
      if (await Promise.race([writing, died])) {
        writer.made(write);
        made++;
      }
      await proxy.close();
      // It stops retrying a little later, without any effect.
      closing.push(store.close());
      const { documents } = await survivor.snapshot();
      writer.check(documents, `seed ${seed}, crash ${crash}`);
    }
    await Promise.all(closing);
    writer.check((await survivor.snapshot()).documents, `seed ${seed}, at the end`);
    await survivor.close();
    // Otherwise too little was tried.
    if (crashes >= 20) {
      expect(made).toBeGreaterThan(0);
      expect(made).toBeLessThan(crashes);
    }
  });

  test(`${kills} processes killed while they write`, { timeout: 3_600_000 }, async () => {
    if (!existsSync(dist)) throw new Error(`${dist} is missing: run \`npm run build\` first`);
    const random = new Random(seed);
    const reader = new MongoDocumentStore({ uri: server.uri('kills') });
    for (let kill = 0; kill < kills; kill++) {
      const child = startWriter(server.uri('kills'));
      let output = '';
      child.stdout!.on('data', (chunk: Buffer) => (output += chunk.toString()));
      await once(child.stdout!, 'data');
      await sleep(random.below(100));
      child.kill('SIGKILL');
      await once(child, 'close');
      const acknowledged = Number(output.trim().split('\n').at(-1));
      const where = `seed ${seed}, kill ${kill}`;
      const { documents } = await reader.snapshot();
      const versions = documents.map(({ body }) => body as number);
      expect(versions, where).toHaveLength(3);
      expect(new Set(versions).size, `${where}: torn ${versions.join()}`).toBe(1);
      expect(versions[0], `${where}: lost`).toBeGreaterThanOrEqual(acknowledged);
    }
    await reader.close();
  });
});

/** Counts three documents up in one write after the other, and says up to where it is acknowledged. */
function startWriter(uri: string): ChildProcess {
  const program = `
    import { MongoDocumentStore } from ${JSON.stringify(`${dist}/control/metadata/mongo/mongo-document-store.js`)};
    const store = new MongoDocumentStore({ uri: ${JSON.stringify(uri)} });
    const there = await Promise.all(['a', 'b', 'c'].map((id) => store.get('kills', id)));
    let revisions = there.map((one) => one?.revision ?? 0);
    for (let body = (there[0]?.body ?? 0) + 1; ; body++) {
      revisions = await store.write(['a', 'b', 'c'].map((id, i) => {
        return { collection: 'kills', id, body, expected: revisions[i] };
      }));
      process.stdout.write(body + '\\n');
    }`;
  return spawn(process.execPath, ['--input-type=module', '-e', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
}
