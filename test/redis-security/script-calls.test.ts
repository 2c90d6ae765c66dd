// A script whose calls are few but large is not one step: the bytes of their words count as its instructions do.

import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import { ScriptRun } from '../../universal-row/transforms/redis/scripts/script-run.ts';
import { TenantsServer } from '../redis-tenants/tenants-server.ts';

let server: TenantsServer;

beforeAll(async () => {
  server = await TenantsServer.start();
});
afterAll(() => server.stop());
afterEach(() => vi.restoreAllMocks());

const source = `for i = 1, ARGV[1] do redis.call('set', 'k' .. i, string.rep('x', ARGV[2])) end return 'done'`;

test('50 values of 1 MB are stored in steps', async () => {
  const inSteps = vi.spyOn(ScriptRun.prototype, 'callInSteps');
  const client = await server.client();
  expect((await client.text('EVAL', source, 0, 50, 1_000_000)).trim()).toBe('"done"');
  // The calls that the plain form has made are not made again, but asked for.
  expect(inSteps.mock.calls).toHaveLength(50);
  expect((await client.text('STRLEN', 'k50')).trim()).toBe(':1000000');
});

test('50 small values are not', async () => {
  const inSteps = vi.spyOn(ScriptRun.prototype, 'callInSteps');
  const client = await server.client();
  expect((await client.text('EVAL', source, 0, 50, 1000)).trim()).toBe('"done"');
  expect(inSteps.mock.calls).toHaveLength(0);
});
