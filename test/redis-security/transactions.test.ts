// What a client may pile up before EXEC.

import { afterEach, beforeEach, expect, test } from 'vitest';
import { TenantsServer } from '../redis-tenants/tenants-server.ts';

let server: TenantsServer;
beforeEach(async () => {
  server = await TenantsServer.start();
});
afterEach(() => server.stop());

test('a key is watched once, however often WATCH names it', async () => {
  const client = await server.client();
  const many = Array.from({ length: 1000 }, () => 'k');
  for (let i = 0; i < 10; i++) expect(await client.text('WATCH', ...many)).toBe('+OK');
  expect(await client.text('CLIENT', 'LIST')).toContain(' watch=1');
  const other = await server.client();
  await other.command('SET', 'k', '1');
  expect(await client.text('MULTI')).toBe('+OK');
  expect(await client.text('EXEC')).toBe('(nil array)');
  await client.command('WATCH', 'k');
  await client.command('UNWATCH');
  await other.command('SET', 'k', '2');
  await client.command('MULTI');
  expect(await client.text('EXEC')).toBe('*[]');
});
