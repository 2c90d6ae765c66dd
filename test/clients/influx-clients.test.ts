// Typical programs with the official clients of InfluxDB 1.x and 2.x, unchanged.

import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { FieldType, InfluxDB as InfluxV1 } from 'influx';
import { InfluxDB as InfluxV2, Point } from '@influxdata/influxdb-client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Polyrow } from '../support/polyrow.ts';

let server: Polyrow;
beforeAll(async () => {
  server = await Polyrow.start();
});
afterAll(async () => {
  await server.stop();
  await server.remove();
});

const port = () => Number(new URL(server.influx).port);

async function query(q: string, db: string): Promise<unknown> {
  const parameters = new URLSearchParams({ q, db, epoch: 'ms' });
  const response = await fetch(`${server.influx}/query`, { method: 'POST', body: parameters });
  return await response.json();
}

async function run(command: string, args: readonly string[]): Promise<[string, number | null]> {
  const child = spawn(command, args);
  let output = '';
  child.stdout.on('data', (chunk) => (output += String(chunk)));
  child.stderr.on('data', (chunk) => (output += String(chunk)));
  const [code] = (await once(child, 'close')) as [number | null];
  return [output, code];
}

describe('influx for Node.js', () => {
  test('writes and reads', async () => {
    const client = new InfluxV1({
      host: '127.0.0.1',
      port: port(),
      database: 'node',
      schema: [
        {
          measurement: 'times',
          fields: { path: FieldType.STRING, duration: FieldType.INTEGER, ok: FieldType.BOOLEAN },
          tags: ['host'],
        },
      ],
    });
    const [host] = await client.ping(5000);
    expect(host).toMatchObject({ online: true, version: '1.8.10' });
    await client.createDatabase('node');
    expect(await client.getDatabaseNames()).toContain('node');
    await client.writePoints(
      Array.from({ length: 20 }, (_, i) => ({
        measurement: 'times',
        tags: { host: `h ${i % 3}` },
        fields: { path: `/p?"${i}"`, duration: i, ok: i % 2 === 0 },
        timestamp: new Date(1_500_000_000_000 + i * 1000),
      })),
    );
    const rows = await client.query<{ host: string; duration: number; path: string }>(
      'select * from times where host = $host order by time desc limit 2',
      { placeholders: { host: 'h 1' } },
    );
    expect(rows.map((row) => [row.host, row.duration, row.path])).toEqual([
      ['h 1', 19, '/p?"19"'],
      ['h 1', 16, '/p?"16"'],
    ]);
    const groups = await client.query('select sum("duration") from times group by host');
    expect(groups.groups().map(({ tags, rows: [row] }) => [tags, row])).toMatchObject([
      [{ host: 'h 0' }, { sum: 63 }],
      [{ host: 'h 1' }, { sum: 70 }],
      [{ host: 'h 2' }, { sum: 57 }],
    ]);
    expect(await client.getMeasurements()).toEqual(['times']);
    expect(await client.getSeries()).toHaveLength(3);
    await client.createRetentionPolicy('7d', { duration: '7d', replication: 1, isDefault: false });
    expect((await client.showRetentionPolicies()).map(({ name }) => name)).toEqual([
      'autogen',
      '7d',
    ]);
    await client.dropMeasurement('times');
    expect(await client.getMeasurements()).toEqual([]);
    await expect(client.query('select nosuch(x) from y')).rejects.toThrow('undefined function');
    await client.dropDatabase('node');
    expect(await client.getDatabaseNames()).not.toContain('node');
  });
});

describe('@influxdata/influxdb-client', () => {
  test('writes', async () => {
    await query('CREATE DATABASE v2', 'v2');
    const client = new InfluxV2({ url: server.influx, token: 'any' });
    const api = client.getWriteApi('org', 'v2', 'ms', { maxRetries: 0 });
    api.useDefaultTags({ region: 'eu' });
    for (let i = 0; i < 2000; i++) {
      api.writePoint(
        new Point('m')
          .tag('host', `h${i % 10}`)
          .floatField('f', i / 4)
          .intField('i', i)
          .booleanField('b', i % 2 === 0)
          .stringField('s', `t "${i}"`)
          .timestamp(1_500_000_000_000 + i),
      );
    }
    await api.close();
    // Batches that were full are on their way still: `close` does not wait for them.
    await expect
      .poll(() => query('SELECT count(f), sum(i), last(s) FROM m', 'v2'))
      .toMatchObject({ results: [{ series: [{ values: [[0, 2000, 1_999_000, 't "1999"']] }] }] });
  });

  test('is told of what went wrong', async () => {
    const client = new InfluxV2({ url: server.influx, token: 'any' });
    const api = client.getWriteApi('org', 'nosuch', 'ns', { maxRetries: 0 });
    api.writePoint(new Point('m').intField('i', 1));
    await expect(api.close()).rejects.toMatchObject({ statusCode: 404, code: 'not found' });
  });
});

const python = ['python3', '/usr/bin/python3'].find(
  (name) => spawnSync(name, ['-c', 'import influxdb']).status === 0,
);
if (python === undefined) console.warn('skipped: no python3 with influxdb-python');

test.skipIf(python === undefined)('influxdb-python', async () => {
  const script = `${import.meta.dirname}/influx_python.py`;
  const [output, code] = await run(python!, [script, String(port())]);
  expect(output).toMatch(/^passed$/m);
  expect(code).toBe(0);
});

const hasCli = spawnSync('influx', ['-version']).status === 0;
if (!hasCli) console.warn('skipped: no influx command (influxdb-client)');

describe.skipIf(!hasCli)('the influx command', () => {
  const execute = async (...statements: string[]): Promise<string> => {
    const common = ['-host', '127.0.0.1', '-port', String(port())];
    let all = '';
    for (const statement of statements) {
      const [output, code] = await run('influx', [
        ...common,
        '-database',
        'cli',
        '-execute',
        statement,
      ]);
      expect(code, output).toBe(0);
      all += output;
    }
    return all;
  };

  test('inserts and shows', async () => {
    await execute('CREATE DATABASE cli', 'INSERT m,host=cli v=9 1000000000', 'INSERT m v=1i 2');
    const shown = await execute('SELECT * FROM m');
    expect(shown).toMatch(/^name: m\ntime +host v\n-+ +-+ -+\n1000000000 cli +9$/m);
    expect(await execute('SHOW DATABASES')).toContain('\ncli\n');
    expect(await execute('SHOW SERIES')).toContain('m,host=cli');
  });

  test('imports a file', async () => {
    const [output] = await run('sh', [
      '-c',
      `printf '# DDL\\nCREATE DATABASE imported\\n# DML\\n# CONTEXT-DATABASE: imported\\nm v=1 1\\nm v=2 2\\n' > "$0" && influx -host 127.0.0.1 -port ${port()} -import -path "$0"; rm -f "$0"`,
      `${server.dataDir}/import.txt`,
    ]);
    expect(output).toContain('Processed 2 inserts');
    expect(await query('SELECT sum(v) FROM m', 'imported')).toMatchObject({
      results: [{ series: [{ values: [[0, 3]] }] }],
    });
  });
});
