import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import type { ExitError } from '../../server/lifecycle/exit-error.ts';
import { AdminClient } from './admin-client.ts';

let server: Server | undefined;
afterEach(() => server?.close());

interface Heard {
  method: string | undefined;
  url: string | undefined;
  authorization: string | undefined;
  body: string;
}

/** A client of a server that gives this answer to everything, and what the server has heard. */
async function speaking(
  status: number,
  answer: string,
  token = '',
): Promise<{ client: AdminClient; heard: Heard[] }> {
  const heard: Heard[] = [];
  server = createServer((request: IncomingMessage, response) => {
    let body = '';
    request.on('data', (chunk) => (body += String(chunk)));
    request.on('end', () => {
      const { method, url, headers } = request;
      heard.push({ method, url, authorization: headers.authorization, body });
      response.writeHead(status).end(answer);
    });
  });
  await new Promise<void>((resolve) => server!.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return { client: new AdminClient({ url: `http://127.0.0.1:${port}/`, token }), heard };
}

async function failure(done: Promise<unknown>): Promise<[number, string]> {
  const error = (await done.then(
    () => expect.unreachable(),
    (thrown: unknown) => thrown,
  )) as ExitError;
  return [error.exitCode, error.message];
}

test('sends what it is given', async () => {
  const { client, heard } = await speaking(200, '{"ok":true}', 'secret');
  expect(await client.request('PATCH', '/v1/tenants/shop', { state: 'active' })).toEqual({
    ok: true,
  });
  await client.get('/v1/top', { by: 'ru', tenant: undefined, limit: 5 });
  const authorization = 'Bearer secret';
  expect(heard).toEqual([
    { method: 'PATCH', url: '/v1/tenants/shop', authorization, body: '{"state":"active"}' },
    { method: 'GET', url: '/v1/top?by=ru&limit=5', authorization, body: '' },
  ]);
});

test('an answer without a body is one', async () => {
  const { client } = await speaking(204, '');
  expect(await client.request('DELETE', '/v1/tenants/shop')).toEqual({});
});

test('refusals have the words of the server and an exit code of their own', async () => {
  const check = async (status: number, expected: number) => {
    const { client } = await speaking(status, '{"error":"so it is"}');
    const [code, message] = await failure(client.get('/'));
    expect([code, message], String(status)).toEqual([
      expected,
      expect.stringContaining('so it is'),
    ]);
    server!.close();
  };
  await check(400, 2);
  await check(401, 5);
  await check(403, 5);
  await check(404, 3);
  await check(409, 4);
  await check(429, 1);
  await check(500, 1);
});

test('who has no token is told how to give one', async () => {
  const { client } = await speaking(401, '{"error":"who are you"}');
  expect((await failure(client.get('/')))[1]).toBe(
    'who are you (--token, --token-file or POLYROW_ADMIN_TOKEN)',
  );
});

test('what is no admin API, or nothing at all, is not reachable', async () => {
  const { client } = await speaking(200, '<html>');
  expect(await failure(client.get('/'))).toEqual([6, expect.stringContaining('is not a Polyrow')]);
  const nobody = new AdminClient({ url: 'http://127.0.0.1:1', token: '' });
  expect(await failure(nobody.get('/'))).toEqual([6, expect.stringMatching(/^no answer .*ECONN/)]);
});
