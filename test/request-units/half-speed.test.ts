// The same requests, on a server that gets all of the processor and on one that gets half: charges are counted and
// not timed, so they do not change.

import { afterAll, beforeAll, expect, test } from 'vitest';
import { HalfSpeed } from '../../cli/calibration/half-speed.ts';
import { Polyrow } from '../support/polyrow.ts';
import type { RespClient, Word } from '../support/resp-client.ts';
import { itemsOf, textOf } from '../support/resp-value.ts';

const most = 0.05;

let server: Polyrow;
let client: RespClient;

beforeAll(async () => {
  server = await Polyrow.start();
  client = await server.client();
});
afterAll(() => server?.remove());

async function ruOf(...words: Word[]): Promise<number[]> {
  await client.command(...words);
  const items = itemsOf(await client.command('RU', 'LAST'));
  return items.slice(2).flatMap((item, i) => (i % 2 === 1 ? [Number(textOf(item))] : []));
}

async function commands(): Promise<number[]> {
  const value = 'v'.repeat(5000);
  const elements = Array.from({ length: 200 }, (_, i) => `element ${i}`);
  const found: number[] = [];
  for (const words of [
    ['DEL', 's', 'h', 'l', 'z', 'members'],
    ['SET', 's', value],
    ['GET', 's'],
    ['MSET', 'a', value, 'b', value],
    ['MGET', 'a', 'b'],
    ['HSET', 'h', ...elements],
    ['HGETALL', 'h'],
    ['RPUSH', 'l', ...elements],
    ['LRANGE', 'l', '0', '-1'],
    ['ZADD', 'z', ...elements.flatMap((element, i) => [String(i), element])],
    ['ZRANGE', 'z', '0', '-1'],
    ['SADD', 'members', ...elements],
    ['SMEMBERS', 'members'],
  ]) {
    found.push(...(await ruOf(...words)));
  }
  return found;
}

async function http(path: string, body?: string): Promise<number> {
  const answer = await fetch(`${server.influx}${path}`, {
    method: 'POST',
    ...(body !== undefined && { body }),
  });
  await answer.text();
  expect(answer.ok).toBe(true);
  return Number(answer.headers.get('x-polyrow-ru'));
}

async function requests(second: number): Promise<number[]> {
  const lines = Array.from(
    { length: 2000 },
    (_, i) => `m,host=h${i % 20} v=${i}.5 ${1_600_000_000 + second + i}000000000`,
  );
  const query = async (text: string): Promise<number> =>
    await http(`/query?${new URLSearchParams({ db: 'd', q: text }).toString()}`);
  return [
    await http('/write?db=d', lines.join('\n')),
    await query('SELECT mean(v) FROM old GROUP BY host'),
    // It keeps the values it reads, and is charged for the time.
    await query('SELECT median(v) FROM old'),
    await query('SHOW TAG VALUES FROM old WITH KEY = host'),
  ];
}

function expectSame(full: readonly number[], half: readonly number[]): void {
  expect(half.length).toBe(full.length);
  full.forEach((units, i) => {
    expect(Math.abs(half[i]! - units)).toBeLessThanOrEqual(most * units);
  });
}

async function atHalfSpeed<T>(run: () => Promise<T>): Promise<T> {
  const half = new HalfSpeed(server.pid);
  try {
    return await run();
  } finally {
    half.end();
  }
}

test('commands cost the same', async () => {
  await commands();
  const full = await commands();
  expectSame(full, await atHalfSpeed(commands));
});

test('writes and queries cost the same', async () => {
  await http('/query?q=CREATE+DATABASE+d');
  const old = Array.from({ length: 20_000 }, (_, i) => `old,host=h${i % 20} v=${i} ${i}000000`);
  await http('/write?db=d', old.join('\n'));
  const full = await requests(10_000);
  expectSame(full, await atHalfSpeed(async () => await requests(20_000)));
});
