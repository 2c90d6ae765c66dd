// A quota or the tenant itself is removed while its clients wait for request units: each of them
// gets an answer or an error, and none waits any more.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Polyrow } from '../support/polyrow.ts';
import type { RespClient } from '../support/resp-client.ts';

const clients = 20;
/** In which all of them have their answers. */
const soonMs = 3000;

let server: Polyrow;
let tenants = 0;
beforeAll(async () => {
  const patience = ['--admission.command-wait-ms', '60000', '--admission.write-wait-ms', '60000'];
  server = await Polyrow.start({ flags: [...patience, '--influx.query-timeout', '60'] });
});
afterAll(() => server.remove());

async function ask(method: string, path: string, body?: object): Promise<void> {
  const { status, body: answer } = await server.askAdmin(method, path, body);
  expect(status, JSON.stringify(answer)).toBeLessThan(300);
}

/** Clients of the plane that wait, by its metrics: of the tenant, or of all. */
async function waiting(plane: string, tenant = '[^"]*'): Promise<number> {
  const headers = { authorization: `Bearer ${server.adminToken}` };
  const page = await (await fetch(`${server.admin}/metrics`, { headers })).text();
  const names = '(?:waiting|queries_waiting)';
  const ours = new RegExp(
    `^polyrow_tenant_${names}\\{tenant="${tenant}",plane="${plane}"\\} (\\S+)$`,
    'gm',
  );
  return [...page.matchAll(ours)].reduce((sum, [, value]) => sum + Number(value), 0);
}

interface Way {
  readonly name: string;
  readonly plane: 'redis' | 'influx';
  /** Answer to the client; throws for a closed connection. */
  send(tenant: string): Promise<() => Promise<string>>;
  /** An answer that says that it was done. */
  readonly served: RegExp;
  /** One that says why it was not, of a tenant that is no more. */
  readonly refused: RegExp;
}

async function post(tenant: string, path: string, body = ''): Promise<string> {
  const answer = await fetch(`${server.influx}${path}&u=${tenant}&p=hush`, {
    method: 'POST',
    body,
  });
  return `${answer.status} ${await answer.text()}`;
}

const ways: readonly Way[] = [
  {
    name: 'commands',
    plane: 'redis',
    send: async (tenant) => {
      const client: RespClient = await server.client();
      expect(await client.text('AUTH', tenant, 'hush')).toBe('+OK');
      return async () => {
        try {
          return await client.text('SET', 'k', 'v');
        } finally {
          client.close();
        }
      };
    },
    served: /^\+OK$/,
    refused: /^-|^lost: .*clos/,
  },
  {
    name: 'writes',
    plane: 'influx',
    send: (tenant) => Promise.resolve(() => post(tenant, '/write?db=d', 'm v=1')),
    served: /^204/,
    refused: /^(401|403|404) \{"error":/,
  },
  {
    name: 'queries',
    plane: 'influx',
    send: (tenant) =>
      Promise.resolve(() => post(tenant, `/query?db=d&q=${encodeURIComponent('SELECT * FROM m')}`)),
    served: /^200 \{"results":\[\{"statement_id":0/,
    refused: /^(401|403|404) \{"error":|^200 .*"error":"(database not found|authorization)/,
  },
];

/** Starts so many clients of a new tenant, most of which wait; returns their answers. */
async function scene(way: Way): Promise<{ tenant: string; answers: Promise<string>[] }> {
  const tenant = `t${++tenants}`;
  await ask('POST', '/v1/tenants', { name: tenant, password: 'hush' });
  await post(tenant, '/query?q=CREATE+DATABASE+d');
  await post(tenant, '/write?db=d', 'm v=1 1');
  await ask('PATCH', `/v1/tenants/${tenant}/limits`, { ruPerSecond: 1 });
  const sends = await Promise.all(Array.from({ length: clients }, () => way.send(tenant)));
  const answers = sends.map((send) =>
    send().catch((error: unknown) => `lost: ${String((error as Error).message)}`),
  );
  await expect.poll(() => waiting(way.plane, tenant)).toBeGreaterThan(clients / 2);
  return { tenant, answers };
}

async function all(answers: readonly Promise<string>[]): Promise<string[]> {
  const late = new Promise<string[]>((_resolve, reject) => {
    setTimeout(() => reject(new Error('some have no answer')), soonMs).unref();
  });
  return Promise.race([Promise.all(answers), late]);
}

describe.each(ways)('$name', (way) => {
  test('are all served when the quota is taken away', async () => {
    const { tenant, answers } = await scene(way);
    await ask('PATCH', `/v1/tenants/${tenant}/limits`, { ruPerSecond: 0 });
    for (const answer of await all(answers)) expect(answer).toMatch(way.served);
    expect(await waiting(way.plane)).toBe(0);
    await ask('DELETE', `/v1/tenants/${tenant}`);
  });

  test('end when the tenant is dropped', async () => {
    const { tenant, answers } = await scene(way);
    await ask('DELETE', `/v1/tenants/${tenant}`);
    for (const answer of await all(answers)) {
      expect(answer).toMatch(new RegExp(`${way.served.source}|${way.refused.source}`));
    }
    expect(await waiting(way.plane)).toBe(0);
    const { body } = await server.askAdmin('GET', '/v1/tenants');
    expect((body as { tenants: object[] }).tenants).toMatchObject([{ name: 'default' }]);
  });

  test('end when the tenant is suspended, and nobody waits when it comes again', async () => {
    const { tenant, answers } = await scene(way);
    await ask('PATCH', `/v1/tenants/${tenant}`, { state: 'suspended' });
    await expect.poll(() => waiting(way.plane)).toBe(0);
    for (const answer of await all(answers)) {
      expect(answer).toMatch(new RegExp(`${way.served.source}|${way.refused.source}`));
    }
    await ask('PATCH', `/v1/tenants/${tenant}`, { state: 'active' });
    await ask('DELETE', `/v1/tenants/${tenant}`);
  });
});

test('nothing is left of all of them', async () => {
  expect(await waiting('redis')).toBe(0);
  expect(await waiting('influx')).toBe(0);
  const headers = { authorization: `Bearer ${server.adminToken}` };
  const page = await (await fetch(`${server.admin}/metrics`, { headers })).text();
  expect(page).toMatch(/^polyrow_engine_rows\{.*\} 0$/m);
  expect(page).toMatch(/^polyrow_series_databases(\{.*\})? 0$/m);
});
