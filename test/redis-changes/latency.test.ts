// LATENCY: what each command took, and what took long.

import { afterAll, beforeAll, expect, test } from 'vitest';
import { TenantsServer } from '../redis-tenants/tenants-server.ts';
import type { RespClient } from '../support/resp-client.ts';
import { show } from '../support/resp-value.ts';
import { LatencyHistogram } from '../../access/redis/latency.ts';

let server: TenantsServer;
let client: RespClient;
beforeAll(async () => {
  server = await TenantsServer.start();
  client = await server.client();
});
afterAll(() => server.stop());

test.each([
  [0, 1],
  [0.001, 1],
  [0.0011, 2],
  [0.002, 2],
  [0.0021, 4],
  [1, 1024],
  [1.5, 2048],
  [1000, 1_048_576],
  [10_000_000, 2 ** 30],
])('%d ms are counted up to %d µs', (ms, bound) => {
  const histogram = new LatencyHistogram();
  histogram.add(ms);
  expect(histogram.cumulative()).toEqual([[bound, 1]]);
});

test('percentiles follow from the counts', () => {
  const histogram = new LatencyHistogram();
  for (let i = 0; i < 99; i++) histogram.add(0.001);
  histogram.add(1);
  expect([0.5, 0.99, 0.999].map((part) => histogram.percentile(part))).toEqual([1, 1, 1024]);
});

test('HISTOGRAM counts calls of commands and of subcommands', async () => {
  await client.command('CONFIG', 'RESETSTAT');
  await client.pipeline([
    ['SET', 'a', 1],
    ['SET', 'b', 1],
    ['CLIENT', 'ID'],
    ['CLIENT', 'GETNAME'],
  ]);
  const all = await client.text('LATENCY', 'HISTOGRAM', 'set', 'client', 'nosuch');
  expect(all).toMatch(/"set" .*"calls" :2 "histogram_usec".*"client\|id".*:1.*"client\|getname"/);
  expect(all).not.toContain('nosuch');
  expect(await client.text('INFO', 'latencystats')).toContain('latency_percentiles_usec_set:p50=');
});

test('events are those above the threshold, until they are reset', async () => {
  expect(await client.text('LATENCY', 'DOCTOR')).toContain('disabled');
  expect(await client.text('LATENCY', 'GRAPH', 'command')).toContain('No samples available');
  server.redis.latency.thresholdMs = 10;
  await client.command('DEBUG', 'SLEEP', '0.05');
  await client.command('GET', 'a');
  expect(await client.text('LATENCY', 'LATEST')).toMatch(/^\*\[\*\["command" :\d+ :\d+ :\d+\]\]$/);
  expect(await client.text('LATENCY', 'HISTORY', 'command')).toMatch(/^\*\[\*\[:\d+ :\d+\]\]$/);
  expect(await client.text('LATENCY', 'HISTORY', 'nosuch')).toBe('*[]');
  expect(await client.text('LATENCY', 'GRAPH', 'command')).toContain('command - high');
  expect(await client.text('LATENCY', 'DOCTOR')).toContain('1. command: 1 latency spikes');
  expect(await client.text('LATENCY', 'RESET', 'nosuch')).toBe(':0');
  expect(await client.text('LATENCY', 'RESET')).toBe(':1');
  expect(await client.text('LATENCY', 'LATEST')).toBe('*[]');
});

test('the slow log has a command that waited for a key, behind the one that served it', async () => {
  const waiting = await server.client();
  server.redis.slowlogMs = 0;
  const popped = waiting.text('BLPOP', 'queue', 0);
  await expect.poll(() => client.text('INFO', 'clients')).toContain('blocked_clients:1');
  await client.pipeline([['MULTI'], ['LPUSH', 'queue', 'element'], ['SLOWLOG', 'RESET'], ['EXEC']]);
  expect(await popped).toBe('*["queue" "element"]');
  const words = async () => {
    const entries = await client.command('SLOWLOG', 'GET');
    return 'items' in entries ? entries.items.map((entry) => show(entry)) : [];
  };
  await expect.poll(async () => (await words()).join('\n')).toContain('"BLPOP" "queue" "0"');
  const commands = await words();
  const at = (name: string) => commands.findIndex((entry) => entry.includes(`*["${name}"`));
  expect(at('EXEC')).toBe(at('BLPOP') + 1);
  server.redis.slowlogMs = Infinity;
});
