// CLIENT PAUSE: who waits, and who is answered what when it ends.

import { afterAll, beforeAll, expect, test } from 'vitest';
import { TenantsServer } from '../redis-tenants/tenants-server.ts';
import { show } from '../support/resp-value.ts';

let server: TenantsServer;
beforeAll(async () => {
  server = await TenantsServer.start();
});
afterAll(() => server.stop());

test.each([
  ['SET k v', '+OK'],
  ['PUBLISH ch m', ':0'],
  ['PFCOUNT h', ':0'],
  ['EVAL return(7) 0', ':7'],
])('%s waits for the end of a pause of writes, and is answered then', async (line, expected) => {
  const admin = await server.client();
  const client = await server.client();
  await admin.command('CLIENT', 'PAUSE', 100_000, 'WRITE');
  const reply = client.text(...line.split(' '));
  await expect.poll(() => admin.text('INFO', 'clients')).toContain('blocked_clients:1');
  expect(await admin.text('GET', 'k')).not.toContain('-');
  expect(await admin.pipeline([['CLIENT', 'UNPAUSE'], ['PING']])).toEqual([
    { type: '+', text: 'OK' },
    { type: '+', text: 'PONG' },
  ]);
  expect(await reply).toBe(expected);
  expect(await client.text('ECHO', 'next')).toBe('"next"');
});

test.each([
  ['EVAL', '#!lua flags=no-writes\nreturn 7', '0'],
  ['EVALSHA', '<sha>', '0'],
  ['EVAL_RO', 'return 7', '0'],
  ['FCALL', 'reads', '0'],
])('%s of what only reads does not wait for it, in MULTI neither', async (...words) => {
  const admin = await server.client();
  const client = await server.client();
  const sha = await client.command('SCRIPT', 'LOAD', '#!lua flags=no-writes\nreturn 7');
  await client.command(
    'FUNCTION',
    'LOAD',
    'REPLACE',
    "#!lua name=l\nredis.register_function{function_name='reads', callback=function() return 7 end, flags={'no-writes'}}",
  );
  const call = words.map((word) => (word === '<sha>' && 'text' in sha ? sha.text : word));
  await admin.command('CLIENT', 'PAUSE', 100_000, 'WRITE');
  expect(await client.text(...call)).toBe(':7');
  await client.command('MULTI');
  await client.command(...call);
  expect(await client.text('EXEC')).toBe('*[:7]');
  await admin.command('CLIENT', 'UNPAUSE');
});

test('a script that only reads publishes nothing', async () => {
  const client = await server.client();
  for (const command of ['publish', 'spublish']) {
    expect(
      await client.text('EVAL_RO', `return redis.call('${command}', 'ch', 'm')`, '0'),
    ).toContain('ERR Write commands are not allowed from read-only scripts');
  }
});

test('expired rows are hidden during a pause, and dropped behind it', async () => {
  const admin = await server.client();
  await admin.command('FLUSHALL');
  const before = server.pod.expiredRows;
  await admin.pipeline([
    ['MULTI'],
    ['SET', 'met', 'v', 'PX', 10],
    ['SET', 'left', 'v', 'PX', 10],
    ['CLIENT', 'PAUSE', 100_000, 'WRITE'],
    ['EXEC'],
  ]);
  await expect.poll(() => admin.text('GET', 'met')).toBe('(nil)');
  server.pod.maintain();
  expect(server.pod.expiredRows).toBe(before);
  expect(await admin.text('DBSIZE')).toBe(':2');
  // What is sent together with the end of the pause is behind it: a write does not meet an expired row that stays.
  expect(
    (
      await admin.pipeline([
        ['GET', 'met'],
        ['CLIENT', 'UNPAUSE'],
        ['SET', 'met', 'new'],
      ])
    ).map(show),
  ).toEqual(['(nil)', '+OK', '+OK']);
  expect(await admin.text('GET', 'met')).toBe('"new"');
  await expect.poll(() => admin.text('DBSIZE')).toBe(':1');
  expect(server.pod.expiredRows).toBe(before + 1);
});
