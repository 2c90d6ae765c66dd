// Telegraf, built with a handful of its plugins, writing by both of its InfluxDB outputs.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { goTool } from '../support/go-tools.ts';
import { Polyrow } from '../support/polyrow.ts';

const tool = await goTool({
  module: join(import.meta.dirname, 'telegraf'),
  program: 'github.com/influxdata/telegraf/cmd/telegraf',
  tags: 'custom,inputs.cpu,inputs.mem,inputs.disk,outputs.influxdb,outputs.influxdb_v2',
});
if ('missing' in tool) console.warn(`skipped: ${tool.missing}`);

const atLeast = (least: number): unknown =>
  expect.toSatisfy((value: unknown) => typeof value === 'number' && value >= least);

describe.skipIf('missing' in tool)('telegraf', () => {
  let server: Polyrow;
  let folder: string;
  let telegraf: ChildProcess;
  let output = '';

  const query = async (q: string, db: string): Promise<unknown> => {
    const response = await fetch(
      `${server.influx}/query?${new URLSearchParams({ q, db }).toString()}`,
    );
    return await response.json();
  };

  beforeAll(async () => {
    server = await Polyrow.start();
    folder = mkdtempSync(join(tmpdir(), 'polyrow-telegraf-'));
    await fetch(`${server.influx}/query`, {
      method: 'POST',
      body: new URLSearchParams({ q: 'CREATE DATABASE v2' }),
    });
    const config = join(folder, 'telegraf.conf');
    writeFileSync(
      config,
      `[agent]
  interval = "500ms"
  flush_interval = "1s"
  hostname = "telegraf host"
[[inputs.cpu]]
  percpu = true
[[inputs.mem]]
[[inputs.disk]]
[[outputs.influxdb]]
  urls = ["${server.influx}"]
  database = "telegraf v1"
[[outputs.influxdb_v2]]
  urls = ["${server.influx}"]
  bucket = "v2"
  organization = "any"
  token = ""
`,
    );
    telegraf = spawn((tool as { path: string }).path, ['--config', config]);
    for (const stream of [telegraf.stdout!, telegraf.stderr!]) {
      stream.on('data', (chunk) => (output += String(chunk)));
    }
    // Gathered four times at least, and written by both outputs.
    for (const db of ['telegraf v1', 'v2']) {
      const counted = (): Promise<unknown> =>
        query("SELECT count(usage_idle) FROM cpu WHERE cpu = 'cpu-total'", db);
      const enough = { series: [{ values: [[expect.anything(), atLeast(4)]] }] };
      await vi.waitFor(async () => expect(await counted()).toMatchObject({ results: [enough] }), {
        timeout: 60_000,
        interval: 200,
      });
    }
    telegraf.kill('SIGTERM');
    await once(telegraf, 'close');
  });
  afterAll(async () => {
    await server.stop();
    await server.remove();
    rmSync(folder, { recursive: true, force: true });
  });

  test('reports no error', () => {
    expect(output).toContain('Starting Telegraf');
    expect(
      output.split('\n').filter((line) => / [EW]! /.test(line) && /influx/.test(line)),
    ).toEqual([]);
  });

  test.each(['telegraf v1', 'v2'])('wrote what it gathered to %s', async (db) => {
    expect(await query('SHOW MEASUREMENTS', db)).toEqual({
      results: [
        {
          statement_id: 0,
          series: [
            { name: 'measurements', columns: ['name'], values: [['cpu'], ['disk'], ['mem']] },
          ],
        },
      ],
    });
    const counted = (await query(
      "SELECT count(usage_idle) FROM cpu WHERE cpu = 'cpu-total' AND host = 'telegraf host'",
      db,
    )) as { results: { series: { values: [string, number][] }[] }[] };
    expect(counted.results[0]!.series[0]!.values[0]![1]).toBeGreaterThan(2);
  });
});
