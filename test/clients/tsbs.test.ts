// TSBS, unmodified: its data loaded by its loader, and every query its runner sends answered as influxd
// answers it. The runner itself never looks at an answer.

import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream, mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { queryTypes, type TsbsTool, tsbsTool } from '../../bench/support/tsbs-tools.ts';
import { InfluxProcess } from '../support/influxd.ts';
import { Polyrow } from '../support/polyrow.ts';

const run = promisify(execFile);

let missing: string | undefined;
const tool = async (name: TsbsTool): Promise<string> => {
  try {
    return await tsbsTool(name);
  } catch (error) {
    missing ??= (error as Error).message;
    return '';
  }
};
// One after the other: the second build finds the packages of the first.
const generateData = await tool('tsbs_generate_data');
const generateQueries = await tool('tsbs_generate_queries');
const loadInflux = await tool('tsbs_load_influx');
const runQueries = await tool('tsbs_run_queries_influx');
if (missing !== undefined) console.warn(`skipped: ${missing}`);
if (!InfluxProcess.isInstalled) console.warn('answers are not compared: no influxd');

const hosts = 40;
const queries = 5;
const start = '2016-01-01T00:00:00Z';
const end = '2016-01-02T02:00:00Z';
// More than a day, as one query type asks for.
const common = ['--format=influx', '--seed=123', `--scale=${hosts}`, `--timestamp-start=${start}`];

describe.skipIf(missing !== undefined)('TSBS', () => {
  let ours: Polyrow;
  let theirs: InfluxProcess | undefined;
  let folder: string;

  const toFile = async (program: string, args: readonly string[]): Promise<string> => {
    const file = join(folder, args.join('').replaceAll(/\W/g, ''));
    const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'ignore'] });
    const out = createWriteStream(file);
    child.stdout.pipe(out);
    await once(out, 'finish');
    return file;
  };

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'polyrow-tsbs-'));
    ours = await Polyrow.start();
    if (InfluxProcess.isInstalled) theirs = await InfluxProcess.start();
    for (const useCase of ['devops', 'cpu-only']) {
      const data = await toFile(generateData, [
        ...common,
        `--use-case=${useCase}`,
        '--log-interval=300s',
        `--timestamp-end=${end}`,
      ]);
      for (const url of [ours.influx, theirs?.url]) {
        if (url === undefined) continue;
        const { stdout } = await run(loadInflux, [
          `--urls=${url}`,
          `--db-name=${useCase.slice(0, 3)}`,
          '--workers=2',
          '--batch-size=5000',
          `--file=${data}`,
        ]);
        expect(stdout).toMatch(/loaded \d+ rows/);
      }
    }
  });
  afterAll(async () => {
    await ours?.stop();
    await ours?.remove();
    await theirs?.remove();
    rmSync(folder, { recursive: true, force: true });
  });

  /**
   * The runner's workers now and then send to a channel that it has yet to make, and wait for ever. Then it is started again,
   * where no query of its is under way.
   */
  const runner = async (url: string, args: readonly string[]): Promise<string> => {
    for (let tries = 3; ; tries--) {
      try {
        const all = [`--urls=${url}`, '--db-name=cpu', ...args];
        return (await run(runQueries, all, { timeout: 60_000 })).stdout;
      } catch (error) {
        if ((error as { killed?: boolean }).killed !== true || tries === 0) throw error;
        const shown = await answer(ours.influx, '/query?q=SHOW%20QUERIES');
        expect(shown.match(/"running"/g)).toHaveLength(1);
      }
    }
  };

  /** The requests that the runner makes for a file of queries. */
  const requestsOf = async (file: string): Promise<string[]> => {
    const urls: string[] = [];
    const server = createServer((request, response) => {
      urls.push(request.url!);
      response.end('{"results":[{"statement_id":0}]}\n');
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    await runner(`http://127.0.0.1:${port}`, [`--file=${file}`]);
    server.close();
    // A run that came to no end has asked before.
    return urls.slice(-queries);
  };

  const answer = async (url: string, query: string): Promise<string> => {
    const response = await fetch(url + query, { method: 'POST' });
    expect(response.status).toBe(200);
    return await response.text();
  };

  test.each(queryTypes)('%s', async (type) => {
    const file = await toFile(generateQueries, [
      ...common,
      '--use-case=cpu-only',
      '--timestamp-end=2016-01-02T02:00:01Z',
      `--queries=${queries}`,
      `--query-type=${type}`,
    ]);
    const stdout = await runner(ours.influx, ['--workers=2', `--file=${file}`]);
    expect(stdout).toContain(`Run complete after ${queries} queries`);
    const requests = await requestsOf(file);
    expect(requests).toHaveLength(queries);
    for (const request of requests) {
      const mine = await answer(ours.influx, request);
      expect(mine).not.toContain('"error"');
      if (theirs !== undefined) expect(mine).toBe(await answer(theirs.url, request));
    }
  });

  test('both use cases have all their points', async () => {
    for (const [db, measurement] of [
      ['dev', 'redis'],
      ['cpu', 'cpu'],
    ] as const) {
      const field = measurement === 'cpu' ? 'usage_user' : 'used_memory';
      const q = new URLSearchParams({ db, q: `SELECT count(${field}) FROM ${measurement}` });
      const body = await answer(ours.influx, `/query?${q.toString()}`);
      expect(JSON.parse(body)).toMatchObject({
        results: [{ series: [{ values: [['1970-01-01T00:00:00Z', hosts * 312]] }] }],
      });
    }
  });
});
