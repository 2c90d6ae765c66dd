// Time series in several partitions answer as those in one: the statements of the comparison with influxd, and random
// bodies, deletions and queries.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { TenantServer } from '../influx-tenants/tenant-server.ts';
import { Random } from '../support/random.ts';
import { seedFrom } from '../support/seed.ts';
import { points } from './points.ts';
import { bodies, changes, queries } from './queries.ts';
import { hosts, randomBody, randomDeletion, randomQuery } from './random-work.ts';

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
