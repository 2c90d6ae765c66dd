// WAITAOF on a server alone, by each fsync policy.

import { afterEach, expect, test } from 'vitest';
import { Polyrow } from '../support/polyrow.ts';

let server: Polyrow | undefined;
afterEach(async () => {
  await server?.remove();
  server = undefined;
});

/** Syncs of the logs since the start. */
async function syncs(of: Polyrow): Promise<number> {
  const metrics = await (await fetch(`${of.admin}/metrics`)).text();
  let sum = 0;
  for (const [, count] of metrics.matchAll(/^polyrow_wal_fsyncs\S* (\d+)$/gm)) sum += Number(count);
  return sum;
}

test.each(['no', 'everysec', 'always'])('fsync %s', async (policy) => {
  server = await Polyrow.start({ flags: ['--wal.fsync', policy] });
  const client = await server.client();
  await client.text('SET', 'a', '1');
  const before = await syncs(server);
  expect(await client.text('WAITAOF', 1, 0, 0)).toBe('*[:1 :0]');
  if (policy === 'no') expect(await syncs(server)).toBeGreaterThan(before);
  // There are no replicas to wait for.
  expect(await client.text('WAITAOF', 1, 2, 0)).toBe('*[:1 :0]');
  expect(await client.text('WAITAOF', 0, 0, 0)).toBe('*[:0 :0]');
  await client.text('MULTI');
  await client.text('WAITAOF', 1, 0, 0);
  expect(await client.text('EXEC')).toBe('*[*[:0 :0]]');
  client.close();
});

test.each([
  [['2', '0', '0'], '-ERR value is out of range, value must between 0 and 1'],
  [['x', '0', '0'], '-ERR value is not an integer or out of range'],
  [['1', '-1', '0'], '-ERR value is out of range, must be positive'],
  [['1', '0', '-1'], '-ERR timeout is negative'],
  [['1', '0', 'x'], '-ERR timeout is not an integer or out of range'],
  [['1', '0'], "-ERR wrong number of arguments for 'waitaof' command"],
])('%j is refused', async (words, answer) => {
  server = await Polyrow.start();
  const client = await server.client();
  expect(await client.text('WAITAOF', ...words)).toBe(answer);
  client.close();
});
