// TSBS, the time series benchmark suite, built on first use from the Go module proxy at the version that
// bench/tsbs-tools names.

import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { output } from './output.ts';
import { findProgram, MissingToolError } from './processes.ts';

// Beside the sources, whether this runs from them or compiled.
const source = [join('..', 'tsbs-tools'), join('..', '..', '..', 'bench', 'tsbs-tools')]
  .map((path) => join(import.meta.dirname, path))
  .find((path) => existsSync(path))!;

export type TsbsTool =
  | 'tsbs_generate_data'
  | 'tsbs_generate_queries'
  | 'tsbs_load_influx'
  | 'tsbs_load_victoriametrics'
  | 'tsbs_run_queries_influx';

const directory = join(tmpdir(), `polyrow-tsbs-${moduleVersion().slice(-12)}`);

function moduleVersion(): string {
  const found = /timescale\/tsbs (v\S+)/.exec(readFileSync(join(source, 'go.mod'), 'utf8'));
  if (found === null) throw new Error('bench/tsbs-tools/go.mod names no version of TSBS');
  return found[1]!;
}

/** Full path of a tool. Building the first takes minutes. Throws `MissingToolError` without Go. */
export async function tsbsTool(tool: TsbsTool): Promise<string> {
  const path = join(directory, tool);
  if (existsSync(path)) return path;
  if (findProgram('go') === undefined) {
    throw new MissingToolError('TSBS is built by Go (1.14 or later), which is not installed');
  }
  mkdirSync(directory, { recursive: true });
  process.stderr.write(`building ${tool} ...\n`);
  const module = `github.com/timescale/tsbs/cmd/${tool}`;
  await output('go', ['build', '-buildvcs=false', '-tags', 'tools', '-o', path, module], {
    directory: source,
  });
  return path;
}

export type UseCase = 'devops' | 'cpu-only';

/** Data of `hosts` hosts, a line a host and measurement every minute from 2016 on. */
export interface TsbsData {
  useCase: UseCase;
  hosts: number;
  minutes: number;
}

const startsAt = Date.UTC(2016, 0, 1);

export function dataArguments({ useCase, hosts, minutes }: TsbsData): string[] {
  return [
    `--use-case=${useCase}`,
    '--format=influx',
    '--seed=123',
    `--scale=${hosts}`,
    '--log-interval=60s',
    `--timestamp-start=${time(startsAt)}`,
    `--timestamp-end=${time(startsAt + minutes * 60_000)}`,
  ];
}

export function queryArguments(data: TsbsData, type: string, queries: number): string[] {
  return [
    `--use-case=${data.useCase}`,
    '--format=influx',
    '--seed=123',
    `--scale=${data.hosts}`,
    `--timestamp-start=${time(startsAt)}`,
    // The window of a query must be shorter than the data.
    `--timestamp-end=${time(startsAt + data.minutes * 60_000 + 1000)}`,
    `--queries=${queries}`,
    `--query-type=${type}`,
  ];
}

function time(ms: number): string {
  return new Date(ms).toISOString().replace('.000Z', 'Z');
}

/** Every query type of the use cases devops and cpu-only. */
export const queryTypes = [
  'single-groupby-1-1-1',
  'single-groupby-1-1-12',
  'single-groupby-1-8-1',
  'single-groupby-5-1-1',
  'single-groupby-5-1-12',
  'single-groupby-5-8-1',
  'cpu-max-all-1',
  'cpu-max-all-8',
  'cpu-max-all-32-24',
  'double-groupby-1',
  'double-groupby-5',
  'double-groupby-all',
  'high-cpu-1',
  'high-cpu-all',
  'lastpoint',
  'groupby-orderby-limit',
] as const;
export type QueryType = (typeof queryTypes)[number];

/** `loaded 7272000 metrics in 12.3sec ...` of a loader: metrics and seconds. */
export function parseLoaded(text: string): { metrics: number; seconds: number } {
  const found = /loaded (\d+) metrics in ([\d.]+)sec/.exec(text);
  if (found === null) throw new Error(`the loader did not say what it loaded:\n${text}`);
  return { metrics: Number(found[1]), seconds: Number(found[2]) };
}

/** The overall mean and median of a query run, in ms. */
export function parseLatency(text: string): { mean: number; median: number } {
  // The last lines: `all queries  :` and then `min: 1.2ms, med: 3.4ms, mean: ...`.
  const lines = text.split('\n').filter((line) => /med:.*mean:/.test(line));
  const line = lines.at(-1) ?? '';
  const number = (name: string): number =>
    Number(new RegExp(`${name}:\\s*([\\d.]+)ms`).exec(line)?.[1]);
  const result = { mean: number('mean'), median: number('med') };
  if (Number.isNaN(result.mean) || Number.isNaN(result.median)) {
    throw new Error(`the runner did not say how long queries took:\n${text}`);
  }
  return result;
}
