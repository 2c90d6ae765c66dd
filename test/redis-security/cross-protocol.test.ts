// A browser can be made to send a POST to any port of the machine it runs on. Nothing in it may run.

import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { TenantsServer } from '../redis-tenants/tenants-server.ts';
import { encode, type RespClient } from '../support/resp-client.ts';

let server: TenantsServer;
const logged: string[] = [];

beforeEach(async () => {
  logged.length = 0;
  server = await TenantsServer.start({ logged: (message) => logged.push(message) });
});
afterEach(() => server.stop());

async function unchanged(client: RespClient): Promise<void> {
  await client.ended;
  const other = await server.client();
  expect(await other.text('GET', 'stolen')).toBe('(nil)');
}

describe('an HTTP request', () => {
  const requests = {
    'a form': 'POST / HTTP/1.1\r\nHost: 127.0.0.1:6379\r\n\r\nSET stolen yes\r\n',
    'in lower case': 'post / http/1.1\r\n\r\nSET stolen yes\r\n',
    'of another method': 'PUT / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\nSET stolen yes\r\n',
    'as an array': Buffer.concat([encode(['Post', '/']), encode(['SET', 'stolen', 'yes'])]),
    'after commands': '\r\nPING\r\nhost: a\r\nSET stolen yes\r\n',
  };
  test.each(Object.entries(requests))('%s closes the connection', async (_, bytes) => {
    const client = await server.client();
    client.send(bytes);
    await unchanged(client);
  });

  test('is logged once a minute', async () => {
    for (let i = 0; i < 3; i++) {
      const client = await server.client();
      client.send(requests['a form']);
      await client.ended;
    }
    expect(logged.filter((line) => line.startsWith('Possible SECURITY ATTACK'))).toHaveLength(1);
  });

  test('is no word of other commands', async () => {
    const client = await server.client();
    expect(await client.text('SET', 'post', 'host:')).toBe('+OK');
    expect(await client.text('GET', 'post')).toBe('"host:"');
  });
});
