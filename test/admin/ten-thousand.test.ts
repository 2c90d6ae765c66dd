// A server with ten thousand tenants: it starts, lets any of them in, and a change of one stays a small thing.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hashPassword } from '../../access/gateway/secrets.ts';
import type { DocumentWrite } from '../../control/metadata/document-store.ts';
import { EmbeddedDocumentStore } from '../../control/metadata/embedded-document-store.ts';
import { MemoryStore } from '../../control/metadata/memory-store-fixture.ts';
import { TenantCatalog } from '../../control/tenants/tenant-catalog.ts';
import { WorkflowEngine } from '../../control/workflows/workflow-engine.ts';
import { isBuilt } from '../cli/polyrow-process.ts';
import { Polyrow } from '../support/polyrow.ts';
import { RespClient } from '../support/resp-client.ts';

const count = 10_000;

let dataDir: string;
let server: Polyrow;

/** Made in memory, and written in a few large writes: what is tested is the server, not the disk. */
async function fillMetadata(path: string): Promise<void> {
  const secret = await hashPassword(Buffer.from('hush'), '');
  const memory = new MemoryStore();
  const workflows = await WorkflowEngine.open(memory, { report: () => {} });
  const catalog = await TenantCatalog.open(memory, {
    workflows,
    databases: 16,
    hashPassword: async () => secret,
  });
  for (let n = 0; n < count; n++) await catalog.createTenant({ name: `t${n}`, password: 'hush' });
  await catalog.close();
  const store = await EmbeddedDocumentStore.open(path);
  const { documents } = await memory.snapshot();
  for (let i = 0; i < documents.length; i += 5000) {
    const writes: DocumentWrite[] = documents
      .slice(i, i + 5000)
      .map(({ collection, id, body }) => ({ collection, id, body, expected: 0 }));
    await store.write(writes);
  }
  await store.close();
}

beforeAll(async () => {
  if (!isBuilt) return;
  dataDir = mkdtempSync(join(tmpdir(), 'polyrow-many-'));
  await fillMetadata(join(dataDir, 'metadata'));
  server = await Polyrow.start({ dataDir });
});
afterAll(async () => {
  if (!isBuilt) return;
  await server.remove();
  rmSync(dataDir, { recursive: true });
});

async function loginAs(name: string): Promise<string> {
  const client = await RespClient.connect(server.redisPort);
  const answer = await client.text('AUTH', name, 'hush');
  const written = answer === '+OK' ? await client.text('SET', 'k', name) : answer;
  client.close();
  return written;
}

async function millisecondsOf(what: () => Promise<{ status: number }>): Promise<number> {
  const begun = performance.now();
  expect((await what()).status).toBeLessThan(300);
  return performance.now() - begun;
}

describe.skipIf(!isBuilt)('with ten thousand tenants', () => {
  test('any of them is let in, to its own', async () => {
    for (const name of ['t0', 't5000', 't9999']) expect(await loginAs(name)).toBe('+OK');
    const { body } = await server.askAdmin('GET', '/v1/tenants/t5000/databases');
    expect(body).toEqual({ databases: [{ kind: 'redis', name: 0, rows: 1 }] });
    expect(await loginAs('t10000')).toMatch(/^-WRONGPASS/);
  });

  test('one more is made, changed and dropped in the time of one', async () => {
    const took = {
      make: await millisecondsOf(() =>
        server.askAdmin('POST', '/v1/tenants', { name: 'one-more' }),
      ),
      suspend: await millisecondsOf(() =>
        server.askAdmin('PATCH', '/v1/tenants/t7', { state: 'suspended' }),
      ),
      drop: await millisecondsOf(() => server.askAdmin('DELETE', '/v1/tenants/t8')),
      list: await millisecondsOf(() => server.askAdmin('GET', '/v1/tenants')),
    };
    if (process.env['SHOW_TIMES'] !== undefined) console.log(took);
    expect(await loginAs('t7')).toMatch(/^-/);
    expect(await loginAs('t8')).toMatch(/^-/);
  });

  test('they are all there after a restart', async () => {
    const begun = performance.now();
    await server.restart();
    if (process.env['SHOW_TIMES'] !== undefined) {
      console.log({ restart: performance.now() - begun, resident: server.residentBytes() });
    }
    const { body } = await server.askAdmin('GET', '/v1/tenants?after=9990');
    const { tenants } = body as { tenants: { name: string }[] };
    expect(tenants.map(({ name }) => name)).toContain('one-more');
    expect(tenants).toHaveLength(11);
  });
});
