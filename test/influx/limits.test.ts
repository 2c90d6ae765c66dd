// Limits of requests and answers, over the wire to a real server.
//
//   POLYROW_FULL=1    a query that goes beyond 100 MB instead of 8

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Polyrow } from '../support/polyrow.ts';

const full = process.env['POLYROW_FULL'] === '1';
const limitMegabytes = full ? 100 : 8;
const database = 'edges';

let server: Polyrow;

beforeAll(async () => {
  server = await Polyrow.start({
    flags: ['--influx.query-memory-bytes', `${limitMegabytes}mb`, '--wal.fsync', 'no'],
  });
  await ask(`CREATE DATABASE ${database}`);
});
afterAll(async () => {
  await server.stop();
  await server.remove();
});

interface Result {
  error?: string;
  series?: { name: string; columns: string[]; values: unknown[][] }[];
}

async function ask(q: string, more: Record<string, string> = {}): Promise<Result> {
  const parameters = new URLSearchParams({ db: database, q, ...more });
  const response = await fetch(`${server.influx}/query`, { method: 'POST', body: parameters });
  const { results, error } = (await response.json()) as { results?: Result[]; error?: string };
  return results?.[0] ?? { error: error! };
}

async function write(body: string, precision = 'ns'): Promise<{ status: number; text: string }> {
  const url = `${server.influx}/write?db=${database}&precision=${precision}`;
  const response = await fetch(url, { method: 'POST', body });
  return { status: response.status, text: await response.text() };
}

describe('the ends of time', () => {
  test.each([
    ['the first', '-9223372036854775806', '1677-09-21T00:12:43.145224194Z'],
    ['the last', '9223372036854775806', '2262-04-11T23:47:16.854775806Z'],
    ['one before 1970', '-1', '1969-12-31T23:59:59.999999999Z'],
  ])('%s', async (name, time, text) => {
    const measurement = `t_${name.replaceAll(' ', '_')}`;
    expect(await write(`${measurement} v=1i ${time}`)).toEqual({ status: 204, text: '' });
    const { series } = await ask(
      `SELECT v FROM ${measurement} WHERE time >= ${time} AND time <= ${time}`,
    );
    expect(series![0]!.values).toEqual([[text, 1]]);
  });

  test.each(['-9223372036854775808', '9223372036854775807', '99999999999999999999'])(
    '%s is beyond them',
    async (time) => {
      const { status, text } = await write(`t_beyond v=1i ${time}`);
      expect(status).toBe(400);
      expect(text).toContain('unable to parse');
      expect((await ask('SELECT v FROM t_beyond')).series).toBeUndefined();
    },
  );
});

test('a tag value of 64 kB is refused whole, one that fits comes back whole', async () => {
  const fits = 'x'.repeat(60_000);
  expect((await write(`tags,k=${fits} v=1 1`)).status).toBe(204);
  const { series } = await ask('SHOW TAG VALUES FROM tags WITH KEY = k');
  expect(series![0]!.values).toEqual([['k', fits]]);

  const { status, text } = await write(`tags,k=${'y'.repeat(65_536)} v=1 1\ntags,k=z v=2 2`);
  expect(status).toBe(400);
  expect(text).toMatch(/max key length exceeded/);
  // The line beside it is taken: a partial write.
  expect((await ask("SELECT v FROM tags WHERE k = 'z'")).series![0]!.values).toHaveLength(1);
});

test('a line of 10,000 fields', async () => {
  const fields = Array.from({ length: 10_000 }, (_, i) => `f${i}=${i}i`);
  expect(await write(`wide ${fields.join()} 1`)).toEqual({ status: 204, text: '' });
  const { series } = await ask('SELECT * FROM wide');
  const { columns, values } = series![0]!;
  expect(columns).toHaveLength(10_001);
  expect(values[0]![columns.indexOf('f9999')]).toBe(9999);
});

test.each([
  ['NaN', 'odd v=NaN 1'],
  ['infinity', 'odd v=+Inf 1'],
  ['an integer beyond 64 bits', 'odd v=9223372036854775808i 1'],
  ['a negative one', 'odd v=-9223372036854775809i 1'],
  ['a float beyond doubles', 'odd v=1e999 1'],
])('%s is refused, and the line after it is taken', async (name, line) => {
  const good = `good_${name.replaceAll(' ', '_')}`;
  const { status, text } = await write(`${line}\n${good} v=1 1`);
  expect(status).toBe(400);
  expect(text).toContain('unable to parse');
  expect((await ask('SELECT v FROM odd')).series).toBeUndefined();
  expect((await ask(`SELECT v FROM ${good}`)).series).toHaveLength(1);
});

test('the largest integers are exact', async () => {
  expect((await write('big a=9223372036854775807i,b=-9223372036854775808i 1')).status).toBe(204);
  const url = `${server.influx}/query?${new URLSearchParams({ db: database, q: 'SELECT * FROM big' }).toString()}`;
  const text = await (await fetch(url)).text();
  expect(text).toContain('9223372036854775807,-9223372036854775808');
});

test('bytes that are not UTF-8 come back as they were written', async () => {
  const body = Buffer.concat([
    Buffer.from('raw s="'),
    Buffer.from([0xff, 0xfe, 0x80]),
    Buffer.from('",v=1 1\nraw2 v=2 1'),
  ]);
  const url = `${server.influx}/write?db=${database}`;
  const response = await fetch(url, { method: 'POST', body });
  expect([204, 400]).toContain(response.status);
  expect((await ask('SELECT v FROM raw2')).series).toHaveLength(1);
});

describe('a query beyond its memory', () => {
  const linesPerBody = 10_000;
  /** Eight bytes a value, and as much again to be certain. */
  const points = limitMegabytes * 250_000;

  test('is refused, and writes go on meanwhile', { timeout: 300_000 }, async () => {
    let next = 0;
    const body = (): string => {
      const lines = Array.from({ length: linesPerBody }, (_, i) => {
        const k = next + i;
        return `load,host=h${k % 10} v=${(k * 7919) % 100_003} ${k}`;
      });
      next += linesPerBody;
      return lines.join('\n');
    };
    while (next < points) expect((await write(body(), 'ms')).status).toBe(204);

    let asking = true;
    const statuses: number[] = [];
    const writing = (async () => {
      while (asking) statuses.push((await write(body(), 'ms')).status);
    })();
    for (let n = 0; n < 3; n++) {
      const { error, series } = await ask('SELECT median(v) FROM load');
      expect(series).toBeUndefined();
      expect(error).toMatch(/^query memory limit exceeded: \(\d+\/\d+ bytes\)$/);
    }
    // Queries without memory for each point get a complete answer.
    const counted = await ask('SELECT count(v) FROM load');
    expect(counted.series![0]!.values[0]![1]).toBeGreaterThanOrEqual(points);
    asking = false;
    await writing;
    expect(statuses.length).toBeGreaterThan(0);
    expect(new Set(statuses)).toEqual(new Set([204]));
    expect((await ask('SELECT count(v) FROM load')).series![0]!.values[0]![1]).toBe(next);
  });
});
