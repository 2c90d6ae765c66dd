// Unmodified clients over the quota of their tenant, against the whole server: none loses a point, and none gives up.

import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { InfluxDB as InfluxV1 } from 'influx';
import { InfluxDB as InfluxV2, Point } from '@influxdata/influxdb-client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type TsbsTool, tsbsTool } from '../../bench/support/tsbs-tools.ts';
import { goTool } from '../support/go-tools.ts';
import { Polyrow } from '../support/polyrow.ts';

const run = promisify(execFile);

let server: Polyrow;
let folder: string;
const port = () => Number(new URL(server.influx).port);

async function tenant(name: string, ruPerSecond: number): Promise<void> {
  await ask('POST', '/v1/tenants', { name, password: name, limits: { ruPerSecond } });
  await query(name, 'CREATE DATABASE d');
}

async function quota(name: string, ruPerSecond: number): Promise<void> {
  await ask('PATCH', `/v1/tenants/${name}`, { limits: { ruPerSecond } });
}

async function ask(method: string, path: string, body: object): Promise<unknown> {
  const answer = await server.askAdmin(method, path, body);
  if (answer.status >= 300) throw new Error(`${path}: ${JSON.stringify(answer)}`);
  return answer.body;
}

async function query(name: string, q: string, db = 'd'): Promise<unknown> {
  const login: Record<string, string> = name === 'default' ? {} : { u: name, p: name };
  const parameters = new URLSearchParams({ db, q, ...login });
  const response = await fetch(`${server.influx}/query?${parameters.toString()}`);
  const { results } = (await response.json()) as {
    results: { error?: string; series?: { values: unknown[][] }[] }[];
  };
  const [result] = results;
  if (result?.error !== undefined) throw new Error(result.error);
  return result?.series?.[0]?.values;
}

/** Sum of a metric of the InfluxDB plane for a tenant. */
async function metric(name: string, tenantName: string): Promise<number> {
  const response = await fetch(`${server.admin}/metrics`, {
    headers: { authorization: `Bearer ${server.adminToken}` },
  });
  let sum = 0;
  for (const line of (await response.text()).split('\n')) {
    const isIt = line.startsWith(`polyrow_${name}{`) && line.includes(`tenant="${tenantName}"`);
    if (isIt && line.includes('plane="influx"')) sum += Number(line.slice(line.lastIndexOf(' ')));
  }
  return sum;
}

async function ballast(name: string, count: number): Promise<void> {
  const lines = Array.from({ length: count }, (_, n) => `ballast v=${n} ${n}`).join('\n');
  const response = await fetch(`${server.influx}/write?db=d&u=${name}&p=${name}`, {
    method: 'POST',
    body: lines,
  });
  expect(response.status).toBe(204);
}

/** The tenant has spent so many seconds of its quota that are still to come, about. */
async function indebt(name: string, ruPerSecond: number, seconds: number): Promise<void> {
  await quota(name, 0);
  const before = await metric('tenant_ru_total', name);
  const count = 20_000;
  await ballast(name, count);
  // Until what it has to pay for merging is charged.
  await sleep(1200);
  const cost = (await metric('tenant_ru_total', name)) - before;
  await quota(name, ruPerSecond);
  await ballast(name, Math.ceil((count * ruPerSecond * (seconds + 2)) / cost));
  await sleep(1200);
}

beforeAll(async () => {
  server = await Polyrow.start();
  folder = mkdtempSync(join(tmpdir(), 'polyrow-limits-'));
});
afterAll(async () => {
  await server?.stop();
  await server?.remove();
  rmSync(folder, { recursive: true, force: true });
});

const telegrafTool = await goTool({
  module: join(import.meta.dirname, '../clients/telegraf'),
  program: 'github.com/influxdata/telegraf/cmd/telegraf',
  tags: 'custom,inputs.cpu,inputs.mem,inputs.disk,outputs.influxdb,outputs.influxdb_v2',
});
if ('missing' in telegrafTool) console.warn(`skipped: ${telegrafTool.missing}`);

describe.skipIf('missing' in telegrafTool)('telegraf', () => {
  let telegraf: ChildProcess;
  let output = '';

  const begin = (outputs: string): void => {
    const config = join(folder, 'telegraf.conf');
    writeFileSync(
      config,
      `[agent]
  interval = "250ms"
  flush_interval = "250ms"
  precision = "1ms"
[[inputs.cpu]]
  percpu = true
[[inputs.mem]]
${outputs}`,
    );
    telegraf = spawn((telegrafTool as { path: string }).path, ['--config', config]);
    for (const stream of [telegraf.stdout!, telegraf.stderr!]) {
      stream.on('data', (chunk) => (output += String(chunk)));
    }
  };

  const v1 = (name: string): string => `[[outputs.influxdb]]
  urls = ["${server.influx}"]
  database = "d"
  skip_database_creation = true
  username = "${name}"
  password = "${name}"
`;
  const v2 = (token: string): string => `[[outputs.influxdb_v2]]
  urls = ["${server.influx}"]
  bucket = "d"
  organization = "any"
  token = "${token}"
`;
  const counts = async (name: string, until: number): Promise<unknown[]> => [
    await query(name, `SELECT count(usage_idle) FROM cpu WHERE time < ${until}ms`),
    await query(name, `SELECT count(used) FROM mem WHERE time < ${until}ms`),
  ];

  test('loses no point, by either output', async () => {
    await tenant('free', 0);
    for (const name of ['tele1', 'tele2']) await tenant(name, 0);
    const { secret } = (await ask('POST', '/v1/tenants/tele2/tokens', { user: 'default' })) as {
      secret: string;
    };
    // Its writes cost several times as much, and it starts in debt.
    for (const name of ['tele1', 'tele2']) await indebt(name, 1, 10);
    begin(v1('free') + v1('tele1') + v2(secret));
    await sleep(14_000);
    for (const name of ['tele1', 'tele2']) {
      expect(await metric('tenant_refused_total', name)).toBeGreaterThan(0);
      expect(await metric('tenant_waited_total', name)).toBeGreaterThan(0);
      await quota(name, 1000);
    }
    const until = Date.now();
    // Earlier collected points have been sent by then.
    await sleep(2000);
    const all = await counts('free', until);
    expect(all[1]).toMatchObject([[expect.anything(), expect.any(Number)]]);
    for (const name of ['tele1', 'tele2']) {
      await expect.poll(() => counts(name, until)).toEqual(all);
    }
    telegraf.kill('SIGTERM');
    await once(telegraf, 'close');
    expect(output).not.toMatch(/dropped|overflow/i);
    // Each waits before it tries again.
    expect(output).toMatch(/\[outputs\.influxdb_v2\] .* will retry in \d+s\. \(429 /);
    expect(output).toMatch(/\[outputs\.influxdb\] .*: timeout: RU limit, tenant=tele1 retry after/);
    const [[, written]] = all[1] as [[unknown, number]];
    expect(written).toBeGreaterThan(40);
  });
});

let missingTsbs: string | undefined;
const tool = async (name: TsbsTool): Promise<string> => {
  try {
    return await tsbsTool(name);
  } catch (error) {
    missingTsbs ??= (error as Error).message;
    return '';
  }
};
const generateData = await tool('tsbs_generate_data');
const generateQueries = await tool('tsbs_generate_queries');
const loadInflux = await tool('tsbs_load_influx');
const runQueries = await tool('tsbs_run_queries_influx');
if (missingTsbs !== undefined) console.warn(`skipped: ${missingTsbs}`);

describe.skipIf(missingTsbs !== undefined)('TSBS', () => {
  const hosts = 20;
  const start = '2016-01-01T00:00:00Z';
  const common = ['--format=influx', '--seed=1', `--scale=${hosts}`, `--timestamp-start=${start}`];

  const toFile = async (program: string, args: readonly string[]): Promise<string> => {
    const file = join(folder, args.join('').replaceAll(/\W/g, ''));
    const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'ignore'] });
    const out = createWriteStream(file);
    child.stdout.pipe(out);
    await once(out, 'finish');
    return file;
  };

  test('loads everything, and its queries all run', async () => {
    const data = await toFile(generateData, [
      ...common,
      '--use-case=cpu-only',
      '--log-interval=300s',
      '--timestamp-end=2016-01-02T00:00:00Z',
    ]);
    // It has no credentials: it acts as tenant `default`.
    await quota('default', 5);
    const { stdout } = await run(loadInflux, [
      `--urls=${server.influx}`,
      '--db-name=tsbs',
      '--workers=24',
      '--batch-size=100',
      '--backoff=200ms',
      `--file=${data}`,
    ]);
    expect(stdout).toMatch(/loaded 5760 rows/);
    expect(await metric('tenant_waited_total', 'default')).toBeGreaterThan(20);
    expect(await metric('tenant_refused_total', 'default')).toBeGreaterThan(0);
    expect(await query('default', 'SELECT count(usage_user) FROM cpu', 'tsbs')).toEqual([
      ['1970-01-01T00:00:00Z', hosts * 288],
    ]);
    const queries = await toFile(generateQueries, [
      ...common,
      '--use-case=cpu-only',
      '--timestamp-end=2016-01-02T00:00:01Z',
      '--queries=40',
      '--query-type=double-groupby-5',
    ]);
    const ran = await run(runQueries, [
      `--urls=${server.influx}`,
      '--db-name=tsbs',
      '--workers=8',
      `--file=${queries}`,
    ]);
    expect(ran.stdout).toContain('Run complete after 40 queries');
    expect(await metric('tenant_queries_waited_total', 'default')).toBeGreaterThan(5);
    expect(await metric('tenant_queries_refused_total', 'default')).toBe(0);
    await quota('default', 0);
  });
});

describe('a client over its quota', () => {
  beforeAll(async () => {
    await tenant('acme', 0);
  });

  test('@influxdata/influxdb-client tries again by itself', async () => {
    const { secret } = (await ask('POST', '/v1/tenants/acme/tokens', { user: 'default' })) as {
      secret: string;
    };
    await indebt('acme', 2, 7);
    let refused = 0;
    await new Promise<void>((resolve) => {
      const options = {
        flushInterval: 100,
        writeSuccess: () => resolve(),
        writeFailed: () => void refused++,
      };
      const client = new InfluxV2({ url: server.influx, token: secret });
      const api = client.getWriteApi('o', 'd', 'ms', options);
      for (let i = 0; i < 100; i++) api.writePoint(new Point('v2js').intField('i', i).timestamp(i));
    });
    expect(refused).toBeGreaterThan(0);
    await quota('acme', 1000);
    expect(await query('acme', 'SELECT count(i) FROM v2js')).toEqual([
      ['1970-01-01T00:00:00Z', 100],
    ]);
  });

  test('influx for Node.js waits', async () => {
    const client = new InfluxV1({
      host: '127.0.0.1',
      port: port(),
      database: 'd',
      username: 'acme',
      password: 'acme',
    });
    await indebt('acme', 5, 2);
    await client.writePoints([{ measurement: 'v1js', fields: { v: 1 } }]);
    expect(await client.query('SELECT v FROM v1js')).toHaveLength(1);
    // It retries twice at once, and does not report the reason of the failure.
    await indebt('acme', 1, 14);
    const refused = client.writePoints([{ measurement: 'v1js', fields: { v: 2 } }]);
    await expect(refused).rejects.toThrow('Internal Server Error');
  });

  const hasCli = spawnSync('influx', ['-version']).status === 0;
  test.skipIf(!hasCli)(
    'the influx command waits',
    async () => {
      const execute = async (statement: string): Promise<string> => {
        const login = ['-username', 'acme', '-password', 'acme'];
        const where = ['-host', '127.0.0.1', '-port', String(port()), '-database', 'd'];
        const { stdout } = await run('influx', [...where, ...login, '-execute', statement]);
        return stdout;
      };
      await quota('acme', 0);
      await indebt('acme', 5, 2);
      const began = performance.now();
      expect(await execute('INSERT cli v=1 1')).toBe('');
      expect(performance.now() - began).toBeGreaterThan(500);
      expect(await execute('SELECT v FROM cli')).toMatch(/^1 +1$/m);
    },
    30_000,
  );

  const python = ['python3', '/usr/bin/python3'].find(
    (name) => spawnSync(name, ['-c', 'import influxdb']).status === 0,
  );
  test.skipIf(python === undefined)(
    'influxdb-python waits, and can try again',
    async () => {
      const script = `${import.meta.dirname}/influx_python.py`;
      await quota('acme', 0);
      await indebt('acme', 2, 9);
      const { stdout } = await run(python!, [script, String(port()), 'acme', 'acme']);
      expect(stdout).toMatch(/^passed$/m);
    },
    60_000,
  );
});
