// Limits of a client's queued commands before EXEC.

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

test('a transaction of many commands is made ready in slices and stops for others, as one', async () => {
  const client = await server.client();
  const other = await server.client();
  await client.command('RPUSH', 'l', ...Array.from({ length: 1000 }, (_, n) => n));
  const queue = async (words: readonly (string | number)[]): Promise<void> => {
    await client.command('WATCH', 'w');
    await client.command('MULTI');
    await client.pipeline(Array.from({ length: 3000 }, () => words));
  };
  // None of them is long: each looks at 1,000 elements.
  await queue(['LPOS', 'l', 'none']);
  const answers = client.command('EXEC');
  expect(await other.text('RPUSH', 'l', 'last')).toBe(':1001');
  expect(await answers).toMatchObject({ type: '*', items: { length: 3000 } });
  expect(server.pod.stats.longCommands).toBeGreaterThan(0);
  // A watched key may change until the first command runs.
  await queue(['INCR', 'counter']);
  const [answer] = await Promise.all([client.command('EXEC'), other.command('SET', 'w', '1')]);
  const counter = await other.command('GET', 'counter');
  expect(counter).toEqual(answer.type === '*' ? { type: '$', text: '3000' } : { type: 'nil' });
});
