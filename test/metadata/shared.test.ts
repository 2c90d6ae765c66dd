// Servers that have one MongoDB database in common are not what it is made for; but tenants and users of one are those
// of the other, and their data is each server's own.

import { afterAll, beforeAll, expect, test } from 'vitest';
import { Polyrow } from '../support/polyrow.ts';
import { availableServers, MongoServer } from './mongo-server.ts';

const { kinds, missing } = await availableServers();
const kind = kinds[0];
test.runIf(kind === undefined)(`not tried: ${missing.join('. ')}`, (context) => context.skip());

let mongo: MongoServer;
const servers: Polyrow[] = [];
const [first, second] = [() => servers[0]!, () => servers[1]!];
/** The store is asked four times a second where there are no change streams. */
const soon = { timeout: 5000 };

beforeAll(async () => {
  if (kind === undefined) return;
  mongo = await MongoServer.start(kind);
  const flags = ['--metadata', mongo.uri('shared')];
  for (let i = 0; i < 2; i++) servers.push(await Polyrow.start({ flags }));
});
afterAll(async () => {
  for (const server of servers) await server.remove();
  await mongo?.remove();
});

async function ask(server: Polyrow, method: string, path: string, body?: object): Promise<unknown> {
  const { status, body: answer } = await server.askAdmin(method, path, body);
  expect(status, JSON.stringify(answer)).toBeLessThan(300);
  return answer;
}

async function login(server: Polyrow, user: string, password: string): Promise<string> {
  const client = await server.client();
  const answer = await client.text('AUTH', user, password);
  client.close();
  return answer;
}

async function set(server: Polyrow, database: string): Promise<string> {
  const client = await server.client();
  await client.text('AUTH', 'shop', 'hush');
  await client.text('SELECT', database);
  const answer = await client.text('SET', 'k', 'v');
  client.close();
  return answer;
}

test.skipIf(kind === undefined)('two servers', async () => {
  await ask(first(), 'POST', '/v1/tenants', { name: 'shop', password: 'hush' });
  await expect.poll(() => login(second(), 'shop', 'hush'), soon).toBe('+OK');
  // Data is each server's own.
  expect(await set(first(), '0')).toBe('+OK');
  const other = await second().client();
  await other.text('AUTH', 'shop', 'hush');
  expect(await other.text('DBSIZE')).toBe(':0');
  // Users hold on both, wherever they were changed.
  await ask(second(), 'PATCH', '/v1/tenants/shop/users/default', { enabled: false });
  await expect.poll(() => login(first(), 'shop', 'hush'), soon).toMatch(/^-WRONGPASS/);
  await expect.poll(() => other.closed, soon).toBe(true);
  await ask(first(), 'PATCH', '/v1/tenants/shop/users/default', { enabled: true });
  await expect.poll(() => login(second(), 'shop', 'hush'), soon).toBe('+OK');
  expect(await set(second(), '0')).toBe('+OK');
});
