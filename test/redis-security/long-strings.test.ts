// The longest string that there may be bounds all commands by which it would become longer.

import { afterAll, beforeAll, expect, test } from 'vitest';
import { spareBuffers } from '../../universal-row/spare-buffers.ts';
import { stringLimit } from '../../universal-row/transforms/redis/support/string-limit.ts';
import { TenantsServer } from '../redis-tenants/tenants-server.ts';
import type { RespClient } from '../support/resp-client.ts';

const { bytes } = stringLimit;
const { keptMs } = spareBuffers;
const longest = 1024 * 1024;
let server: TenantsServer;
let client: RespClient;

beforeAll(async () => {
  stringLimit.bytes = longest;
  server = await TenantsServer.start();
  client = await server.client();
  await client.command('SETRANGE', 'full', longest - 1, 'x');
});
afterAll(async () => {
  stringLimit.bytes = bytes;
  spareBuffers.keptMs = keptMs;
  await server.stop();
});

const tooLong = '-ERR string exceeds maximum allowed size (proto-max-bulk-len)';
const notThere = '-ERR bit offset is not an integer or out of range';

test.each([
  [tooLong, ['SETRANGE', 'k', longest, 'x']],
  [tooLong, ['APPEND', 'full', 'x']],
  [notThere, ['SETBIT', 'k', 8 * longest, 1]],
  [notThere, ['GETBIT', 'k', 8 * longest]],
  [notThere, ['BITFIELD', 'k', 'SET', 'u8', 8 * longest, 1]],
  [`:${longest}`, ['SETRANGE', 'k1', longest - 1, 'x']],
  [':0', ['SETBIT', 'k2', 8 * longest - 1, 1]],
  [`:${longest}`, ['STRLEN', 'full']],
])('%s: %j', async (answer, words) => {
  expect((await client.text(...words)).trim()).toBe(answer);
  expect((await client.text('EXISTS', 'k')).trim()).toBe(':0');
});

test('strings that are sent again and again are received, logged and stored in the same memory', async () => {
  const value = Buffer.alloc(longest, 'v');
  const round = async (): Promise<void> => {
    expect((await client.text('SET', 'again', value)).trim()).toBe('+OK');
    expect((await client.text('DEL', 'again')).trim()).toBe(':1');
  };
  // However slow the machine.
  spareBuffers.keptMs = 3_600_000;
  for (let n = 0; n < 3; n++) await round();
  const { made } = spareBuffers;
  for (let n = 0; n < 10; n++) await round();
  expect(spareBuffers.made).toBe(made);
});
