// Resource limits of a tenant.

import { once } from 'node:events';
import { Agent, type IncomingMessage, request } from 'node:http';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { longQuery, longWrite } from './long-requests.ts';
import { TenantServer } from './tenant-server.ts';

let server: TenantServer;
beforeEach(async () => {
  server = await TenantServer.start();
  server.control.addTenant('acme');
  server.control.addTenant('rival');
  for (const login of ['acme:acme', 'rival:rival']) await server.result(login, 'CREATE DATABASE d');
});
afterEach(async () => {
  await server.close();
});

const status = async (who: string, q = 'SHOW DATABASES') => (await server.query(who, q)).status;

/** Sends it over a connection of its own, or of the agent's. */
async function onItsOwn(
  who: string,
  path: string,
  agent: Agent | false = false,
): Promise<unknown[]> {
  const headers = { Authorization: `Basic ${Buffer.from(who).toString('base64')}` };
  const sent = request(server.url + path, { headers, agent }).end();
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  const pieces: Buffer[] = [];
  for await (const piece of response) pieces.push(piece as Buffer);
  const body: unknown = JSON.parse(String(Buffer.concat(pieces)));
  return [response.statusCode, response.headers['retry-after'], body];
}

describe('limits', () => {
  const limit = (name: string, limits: object) =>
    server.control.setTenant(name, {
      limits: { ...server.principals.tenant(name)!.limits, ...limits },
    });

  test('of series are for all databases together', async () => {
    limit('acme', { series: 10 });
    await server.result('acme:acme', 'CREATE DATABASE e');
    const lines = (from: number, to: number) =>
      Array.from({ length: to - from }, (_, i) => `m,k=${from + i} v=1 1`).join('\n');
    expect((await server.write('acme:acme', lines(0, 6), 'd')).status).toBe(204);
    const { status: code, text } = await server.write('acme:acme', lines(0, 6), 'e');
    expect([code, JSON.parse(text)]).toEqual([
      400,
      {
        error: 'partial write: limit exceeded: tenant=acme limit=series value=10 dropped=2',
      },
    ]);
    const [{ values }] = (await server.result('acme:acme', 'SHOW SERIES ON e')) as [
      { values: string[][] },
    ];
    // The first of the body; where it is divided into partitions, the first of each.
    if (server.series.pods.length === 1) {
      expect(values).toEqual([['m,k=0'], ['m,k=1'], ['m,k=2'], ['m,k=3']]);
    } else expect(values).toHaveLength(4);
    // Existing series accept points, and other tenants have limits of their own.
    expect((await server.write('acme:acme', lines(0, 6), 'd')).status).toBe(204);
    expect((await server.write('rival:rival', lines(0, 60), 'd')).status).toBe(204);
    await server.result('acme:acme', "DROP SERIES FROM m WHERE k = '0'");
    expect((await server.write('acme:acme', lines(10, 11), 'd')).status).toBe(204);
    limit('acme', { series: 0 });
    expect((await server.write('acme:acme', lines(0, 60), 'e')).status).toBe(204);
  });

  test('of time end a query', async () => {
    await server.write('acme:acme', 'm v=1 0');
    limit('acme', { queryTimeMs: 150 });
    const query = longQuery(server, 'acme:acme');
    expect(await query).toContain('limit exceeded: tenant=acme limit=queryTimeMs value=150');
    expect(await status('acme:acme', 'SELECT v FROM m')).toBe(200);
  });

  test('of memory are for all queries together', async () => {
    const lines = Array.from({ length: 20_000 }, (_, i) => `m v=${i} ${i}`);
    await server.write('acme:acme', lines.join('\n'));
    const q = 'SELECT median(v) FROM m';
    const error = async () => (await server.query('acme:acme', q)).text;
    expect(await error()).not.toContain('error');
    limit('acme', { queryMemoryBytes: 10_000 });
    expect(await error()).toContain(
      'limit exceeded: tenant=acme limit=queryMemoryBytes value=10000',
    );
    // Nothing is held by those that ended.
    limit('acme', { queryMemoryBytes: 4_000_000 });
    for (let i = 0; i < 20; i++) expect(await error()).not.toContain('error');
  });

  test('of connections count those whose last request was the tenant’s', async () => {
    server.control.addTenant('small', { connections: 2 });
    const list = '/query?q=SHOW+DATABASES';
    const statusOf = async (...asked: Parameters<typeof onItsOwn>) => (await onItsOwn(...asked))[0];
    expect(await statusOf('small:small', '/query?q=CREATE+DATABASE+d')).toBe(200);
    const open = [longWrite(server, 'small:small'), longWrite(server, 'small:small')];
    // Both must have been seen before the query.
    await new Promise((resolve) => setTimeout(resolve, 200));
    await expect.poll(() => statusOf('small:small', list)).toBe(503);
    const error = 'limit exceeded: tenant=small limit=connections value=2';
    expect(await onItsOwn('small:small', list)).toEqual([503, '1', { error }]);
    expect(await onItsOwn('small:small', '/api/v2/buckets')).toEqual([
      429,
      '1',
      { code: 'too many requests', message: error },
    ]);
    // A connection of another tenant would count as its own.
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    expect(await statusOf('rival:rival', list, agent)).toBe(200);
    expect(await statusOf('small:small', list, agent)).toBe(503);
    for (const write of open) write.stop();
    expect(await Promise.all(open.map(({ ended }) => ended))).toEqual(['204', '204']);
    await expect.poll(() => statusOf('small:small', list, agent)).toBe(200);
    expect(await statusOf('rival:rival', list, agent)).toBe(200);
    agent.destroy();
  });
});
