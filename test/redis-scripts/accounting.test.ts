// The work of scripts is counted, shown and charged.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { isBuilt } from '../cli/polyrow-process.ts';
import { Polyrow } from '../support/polyrow.ts';
import type { RespClient } from '../support/resp-client.ts';
import { itemsOf, textOf } from '../support/resp-value.ts';

describe.skipIf(!isBuilt)('a script', () => {
  let server: Polyrow;
  let client: RespClient;

  beforeAll(async () => {
    server = await Polyrow.start();
    client = await server.client();
  });
  afterAll(() => server.remove());

  /** Units of the command before. */
  async function units(): Promise<number> {
    const found = /"ru" "([\d.e+-]+)"/.exec(await client.text('RU', 'LAST'));
    return Number(found?.[1]);
  }

  test('counts the commands that it calls, with those that fail', async () => {
    await client.text('CONFIG', 'RESETSTAT');
    const script = "redis.call('set', 'k', 'x') redis.pcall('incr', 'k') redis.pcall('incr', 'k')";
    await client.text('EVAL', script, '0');
    const stats = await client.text('INFO', 'commandstats');
    expect(stats).toMatch(/cmdstat_set:calls=1,.*?failed_calls=0/);
    expect(stats).toMatch(/cmdstat_incr:calls=2,.*?failed_calls=2/);
  });

  test('shows the commands that it calls to MONITOR', async () => {
    const monitor = await server.client();
    expect(await monitor.text('MONITOR')).toBe('+OK');
    const lines = monitor.replies(2);
    await client.text('EVAL', "return redis.call('set', 'k', 'v')", '0');
    const [outer, inner] = await lines;
    expect((outer as { text: string }).text).toMatch(/ \[0 127\.0\.0\.1:\d+\] "EVAL" /);
    expect((inner as { text: string }).text).toMatch(/ \[0 lua\] "set" "k" "v"$/);
    monitor.close();
  });

  test('sends its messages, also where a transaction has several', async () => {
    const listener = await server.client();
    await listener.text('SUBSCRIBE', 'news');
    const messages = listener.replies(3);
    const script = "return redis.call('publish', 'news', ARGV[1])";
    const undone = `#!lua flags=rollback\n${script.replace('return', '')} error('no')`;
    await client.pipeline([
      ['MULTI'],
      ['EVAL', script, '0', 'one'],
      ['EVAL', undone, '0', 'undone'],
      ['EVAL', script, '0', 'two'],
      ['EXEC'],
      ['EVAL', script, '0', 'three'],
    ]);
    const texts = (await messages).map((one) => textOf(itemsOf(one)[2]!));
    expect(texts).toEqual(['one', 'two', 'three']);
    listener.close();
  });

  test('costs the steps that it takes, also when it fails or goes on for long', async () => {
    const loop = 'local n = 0 for i = 1, ARGV[1] do n = n + i end';
    const costs: number[] = [];
    for (const [tail, steps] of [
      ['', '1000'],
      ['', '100000'],
      [" error('x')", '100000'],
      ['', '10000000'],
    ]) {
      await client.text('EVAL', loop + tail!, '0', steps!);
      costs.push(await units());
    }
    const [little, more, failing, most] = costs as [number, number, number, number];
    expect(more).toBeGreaterThan(20 * little);
    expect(failing).toBeGreaterThan(20 * little);
    expect(most).toBeGreaterThan(50 * more);
  });
});
