// Words of clients that are names of JavaScript's own: they mean nothing here.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { TenantsServer } from '../redis-tenants/tenants-server.ts';
import type { RespClient } from '../support/resp-client.ts';

const names = ['constructor', '__proto__', 'toString', 'hasOwnProperty', 'valueOf'];

let server: TenantsServer;
let client: RespClient;
const failures: string[] = [];

beforeAll(async () => {
  server = await TenantsServer.start({ failed: (message) => failures.push(message) });
  client = await server.client();
});
afterAll(() => server.stop());

describe.each(names)('%s', (name) => {
  test.each([
    ['INFO', name],
    ['CONFIG', 'GET', name],
    ['CONFIG', 'SET', name, '1'],
    ['COMMAND', 'DOCS', name],
    ['COMMAND', 'INFO', name],
    ['COMMAND', 'LIST', 'FILTERBY', 'ACLCAT', name],
    ['ACL', 'CAT', name],
    ['ACL', 'GETUSER', name],
    ['ACL', 'DRYRUN', name, 'GET', 'a'],
    ['CLIENT', name],
    ['CLIENT', 'LIST', 'TYPE', name],
    ['CLIENT', 'KILL', 'USER', name],
    ['OBJECT', name, 'a'],
    ['PUBSUB', 'NUMSUB', name],
    ['RU', name],
    [name, 'a'],
  ])('%s %s', async (...words) => {
    await client.command(...words);
    expect(failures).toEqual([]);
    expect(await client.text('PING')).toBe('+PONG');
  });
});

test('INFO shows a section once, however often it is asked for', async () => {
  const text = await client.text(
    'INFO',
    ...Array.from({ length: 1000 }, () => 'clients'),
    'server',
  );
  expect(text.match(/# Clients/g)).toHaveLength(1);
  expect(text.indexOf('# Server')).toBeLessThan(text.indexOf('# Clients'));
});

describe('a word of a megabyte', () => {
  const long = 'x'.repeat(1024 * 1024);
  test.each([
    ['INFO', long],
    ['CONFIG', 'GET', long],
    ['CONFIG', 'SET', long, '1'],
    ['CLIENT', 'SETNAME', long],
    ['ACL', 'GETUSER', long],
    ['COMMAND', 'DOCS', long],
    ['CLIENT', long],
    [long],
  ])('is not read into a string: %.20s', async (...words) => {
    const answer = await client.text(...words);
    expect(answer).toMatch(/^-ERR (an argument is longer|unknown)/);
    expect(answer.length).toBeLessThan(500);
  });

  test('may be echoed', async () => {
    expect(await client.text('ECHO', long)).toHaveLength(long.length + 2);
  });
});
