// Time series in several partitions answer as those in one: the statements of the comparison with influxd, and random
// bodies, deletions and queries.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { TenantServer } from '../influx-tenants/tenant-server.ts';
import { Random } from '../support/random.ts';
import { seedFrom } from '../support/seed.ts';
import { points } from './points.ts';
import { bodies, changes, queries } from './queries.ts';

const full = process.env['POLYROW_FULL'] === '1';

let one: TenantServer;
let four: TenantServer;

beforeAll(async () => {
  [one, four] = await Promise.all([TenantServer.start({}, 1), TenantServer.start({}, 4)]);
}, 60_000);

afterAll(async () => {
  await Promise.all([one?.close(), four?.close()]);
});

async function asked(
  server: TenantServer,
  q: string,
  parameters: Record<string, string>,
): Promise<[status: number, text: string]> {
  const { status, text } = await server.query('', q, parameters);
  return [status, text];
}

/** Both are asked; the answers must be the same, byte by byte. */
async function compare(q: string, db: string, parameters = {}): Promise<string> {
  const given = { db, ...parameters };
  const [mine, expected] = [await asked(four, q, given), await asked(one, q, given)];
  expect(mine, q).toEqual(expected);
  return mine[1];
}

async function write(body: string, db: string): Promise<void> {
  const answers = [await four.write('', body, db), await one.write('', body, db)];
  const [mine, expected] = answers.map(({ status, text }) => ({ status, text }));
  expect(mine, body).toEqual(expected);
}

describe('as with one partition', () => {
  beforeAll(async () => {
    await compare('CREATE DATABASE cmp', 'cmp');
    await write(points.join('\n'), 'cmp');
  });

  test('series lie in all partitions', () => {
    const held = four.series.pods.map((pod) => pod.engineStats().series);
    expect(held.every((count) => count > 0)).toBe(true);
    const [all] = one.series.pods.map((pod) => pod.engineStats().series);
    expect(held.reduce((sum, count) => sum + count, 0)).toBe(all);
  });

  test.each(queries)('%s', async (q) => {
    await compare(q, 'cmp');
  });

  test('answers in pieces, and as CSV', async () => {
    await compare('SELECT * FROM /.*/', 'cmp', { chunked: 'true', chunk_size: '7' });
    await compare('SELECT user FROM cpu GROUP BY *', 'cmp', { epoch: 'ms' });
  });

  test.each(bodies.map((body, i) => [JSON.stringify(body), body, i] as const))(
    'write of %s',
    async (_, body, i) => {
      const db = `w${i}`;
      await compare(`CREATE DATABASE ${db}`, db);
      await write(body, db);
      for (const q of ['SHOW SERIES', 'SHOW FIELD KEYS', 'SELECT count(*) FROM /.*/']) {
        await compare(q, db);
      }
    },
  );

  // Last, as they change what is there.
  test.each(changes.map((q, i) => [i, q] as const))('change %i: %s', async (_, q) => {
    await compare(q, 'cmp');
  });
});

const measurements = ['m', 'cpu', 'sp\\ ace'];
const hosts = Array.from({ length: 30 }, (_, n) => `h${n}`);

/** Fields have one type each: that partitions may know a field by different types is told below. */
function randomBody(random: Random): string {
  const lines: string[] = [];
  for (let left = 1 + random.below(60); left > 0; left--) {
    const tags = [`host=${random.pick(hosts)}`];
    if (random.chance(0.3)) tags.push(`region=${random.pick(['eu', 'us'])}`);
    const fields: string[] = [];
    if (random.chance(0.7)) fields.push(`f=${random.below(1000) / 8}`);
    if (random.chance(0.5)) fields.push(`i=${random.below(1000) - 500}i`);
    if (random.chance(0.1)) fields.push(`i2=${2n ** 62n + BigInt(random.below(100))}i`);
    if (random.chance(0.3)) fields.push(`b=${random.pick(['true', 'false'])}`);
    if (random.chance(0.3) || fields.length === 0) fields.push(`s="t ${random.below(50)}"`);
    // Some weeks, so several shards.
    const time = 1_600_000_000 + random.below(30 * 86_400);
    const name = random.pick(measurements);
    lines.push(`${name},${tags.join(',')} ${fields.join(',')} ${time}000000000`);
  }
  return lines.join('\n');
}

function randomDeletion(random: Random): string {
  const host = random.pick(hosts);
  const from = 1_600_000_000 + random.below(30 * 86_400);
  return random.pick([
    `DELETE FROM m WHERE host = '${host}' AND time > ${from}s`,
    `DELETE WHERE time > ${from}s AND time < ${from + 3600}s`,
    `DROP SERIES FROM cpu WHERE host = '${host}'`,
    'DROP MEASUREMENT "sp ace"',
  ]);
}

function randomQuery(random: Random): string {
  const from = 1_600_000_000 + random.below(20 * 86_400);
  const where = random.pick([
    '',
    ` WHERE host = '${random.pick(hosts)}'`,
    ` WHERE host =~ /h[12]/ AND time >= ${from}s`,
    ` WHERE time >= ${from}s AND time < ${from + 5 * 86_400}s AND i > 0`,
  ]);
  const group = random.pick(['', ' GROUP BY host', ' GROUP BY *', ' GROUP BY region']);
  const order = random.chance(0.3) ? ' ORDER BY time DESC' : '';
  const limit = random.chance(0.3) ? ` LIMIT ${1 + random.below(20)}` : '';
  const name = random.pick(['m', 'cpu', '"sp ace"', '/.*/', 'nosuch']);
  const call = random.pick(['count', 'first', 'last', 'max', 'min', 'mean', 'sum', 'spread']);
  const field = random.pick(['f', 'i', 'i2', 'b']);
  return random.pick([
    `SELECT * FROM ${name}${where}${group}${order}${limit}`,
    `SELECT ${field}, s, host FROM ${name}${where}${order}${limit}`,
    `SELECT ${call}(${field}) FROM ${name}${where}${group}`,
    `SELECT ${call}(i), count(s) FROM ${name} WHERE time >= ${from}s AND time < ${from + 864_000}s GROUP BY time(1d), region fill(0)`,
    `SELECT top(i, 3), host FROM ${name}${where}`,
    'SHOW SERIES',
    'SHOW SERIES CARDINALITY; SHOW SERIES EXACT CARDINALITY FROM m',
    'SHOW MEASUREMENTS; SHOW MEASUREMENT EXACT CARDINALITY',
    'SHOW TAG KEYS; SHOW FIELD KEYS',
    'SHOW TAG VALUES WITH KEY = host LIMIT 7 OFFSET 3',
    `SHOW TAG VALUES FROM m WITH KEY IN (host, region)${where.replace(/ AND (time|i) .*/, '')}`,
  ]);
}

describe('random work', () => {
  const firstSeed = seedFrom('PARTITION_SEED');
  const steps = full ? 1000 : 120;

  test.each(Array.from({ length: full ? 20 : 2 }, (_, n) => firstSeed + n))(
    'seed %i',
    { timeout: 600_000 },
    async (seed) => {
      const random = new Random(seed);
      const db = `r${seed}`;
      await compare(`CREATE DATABASE ${db}`, db);
      for (let step = 0; step < steps; step++) {
        if (random.chance(0.4)) await write(randomBody(random), db);
        else if (random.chance(0.1)) await compare(randomDeletion(random), db);
        else await compare(randomQuery(random), db);
        // Heads become files at different times in each.
        if (random.chance(0.1)) {
          for (const { parts } of [...one.series.pods, ...four.series.pods]) {
            parts.engine.background(random.below(5));
          }
        }
      }
      await compare('SELECT * FROM /.*/', db);
      await compare('SELECT sum(i), count(f) FROM /.*/ GROUP BY *', db);
    },
  );
});

describe('a field that partitions know by different types', () => {
  test('is read as the type that InfluxDB prefers, where its values can be', async () => {
    await compare('CREATE DATABASE types', 'types');
    const types = ['v=1.5', 'v=2i', 'v="text"', 'v=true'];
    const stored: string[] = [];
    for (const [n, host] of hosts.entries()) {
      const value = types[n % types.length]!;
      const { status } = await four.write('', `m,host=${host} ${value} ${n}`, 'types');
      if (status === 204) stored.push(value);
    }
    const keys = await four.result('', 'SHOW FIELD KEYS', { db: 'types' });
    const [{ values: found }] = keys as [{ values: [string, string][] }];
    expect(new Set(found.map(([, type]) => type)).size).toBeGreaterThan(1);
    expect(found.map(([, type]) => type)).toContain('float');
    const rows = await four.result('', 'SELECT v, host FROM m', { db: 'types' });
    const [{ values }] = rows as [{ values: [string, unknown, string][] }];
    // As with shards of different types: numbers become floats, other values cannot.
    const floats: Record<string, number> = { 'v=1.5': 1.5, 'v=2i': 2 };
    expect(values.map(([, value]) => value)).toEqual(stored.map((value) => floats[value] ?? null));
  });
});
