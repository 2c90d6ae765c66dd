// Commands of very many words, which come in many pieces.

import { afterAll, beforeAll, expect, test } from 'vitest';
import { encode, type RespClient } from '../support/resp-client.ts';
import { itemsOf, show, textOf } from '../support/resp-value.ts';
import { TenantsServer } from '../redis-tenants/tenants-server.ts';

let server: TenantsServer;
let client: RespClient;

beforeAll(async () => {
  server = await TenantsServer.start();
  client = await server.client();
});
afterAll(() => server.stop());

const elements = (count: number): string[] =>
  Array.from({ length: count }, (_, i) => String(i).padEnd(64));

test.each([4000, 4094, 5000, 20_000, 100_000])('%i words keep their places', async (count) => {
  await client.command('DEL', 'list');
  const words = elements(count);
  const [pushed] = await client.pipeline([['RPUSH', 'list', ...words]]);
  expect(show(pushed!)).toBe(`:${count}`);
  const back = itemsOf(await client.command('LRANGE', 'list', '0', '-1')).map(textOf);
  expect(back).toEqual(words);
});

test('a command goes on where it was cut, between words too', async () => {
  await client.command('DEL', 'list');
  const bytes = encode(['RPUSH', 'list', ...elements(6000)]);
  const answer = client.replies(1);
  // Each piece ends where a word does.
  const wordBytes = encode(['x'.repeat(64)]).length - encode([]).length;
  for (let from = 0; from < bytes.length; from += 500 * wordBytes) {
    client.send(bytes.subarray(from, from + 500 * wordBytes));
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  expect(show((await answer)[0]!)).toBe(':6000');
  expect(await client.text('LINDEX', 'list', '5999')).toContain('5999');
});

test('what was read ahead of a client that waits may end within a word', async () => {
  const waiting = await server.client();
  const bytes = encode(['SET', 'large', 'x'.repeat(2 * 1024 * 1024)]);
  const answers = waiting.replies(2);
  waiting.send(Buffer.concat([encode(['BLPOP', 'queue', '0']), bytes.subarray(0, 1024 * 1024)]));
  // By now it is not read from any more.
  await new Promise((resolve) => setTimeout(resolve, 100));
  waiting.send(bytes.subarray(1024 * 1024));
  await client.command('LPUSH', 'queue', 'one');
  expect((await answers).map(show)).toEqual([expect.stringContaining('one'), '+OK']);
  waiting.close();
});
