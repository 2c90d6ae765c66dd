// A bad disk under the InfluxDB side: bits that flip and files that end too soon. What is damaged is told,
// by a server that does not start or by a query that fails and names the file; it is never served as data.
//
//   POLYROW_FULL=1    hundreds of damages instead of a few for each kind of file
//   DAMAGE_SEED=n     repeats the places of a run

import {
  cpSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join, relative } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Polyrow, StartError } from '../support/polyrow.ts';
import { Random } from '../support/random.ts';
import { database, post, query, write } from './series-workload.ts';
import { seedFrom } from '../support/seed.ts';

const full = process.env['POLYROW_FULL'] === '1';
const damagesPerKind = full ? 100 : 3;
const seed = seedFrom('DAMAGE_SEED');

const flags = [
  ...['--wal.fsync', 'always', '--wal.segment-bytes', '256kb', '--wal.checkpoint-bytes', '1mb'],
  ...['--tsm.head-bytes', '1mb'],
];
const coldSoon = ['--tsm.cold-after', '1'];

const root = mkdtempSync(join(tmpdir(), 'polyrow-damage-'));
const whole = join(root, 'whole');
let truth: readonly unknown[] = [];
afterAll(() => rmSync(root, { recursive: true, force: true }));

/** Rows, and what summaries alone can answer. */
const statements = [
  'SELECT * FROM load GROUP BY *',
  'SELECT count(n), sum(n), min(f), max(f), first(s), last(s) FROM load GROUP BY part',
  'SELECT last(n) FROM load GROUP BY *',
  'SHOW SERIES',
  'SHOW FIELD KEYS',
  'SHOW TAG VALUES WITH KEY = part',
  'SHOW RETENTION POLICIES',
];

async function answers(server: Polyrow): Promise<unknown[]> {
  const results: unknown[] = [];
  for (const q of statements) results.push(...(await query(server, q)));
  return results;
}

const week = 7 * 86_400;
const pointsPerBody = 500;

function body(n: number): string {
  return Array.from({ length: pointsPerBody }, (_, i) => {
    const k = n * pointsPerBody + i;
    const time = BigInt(1_600_000_000 + (k % 2) * week + k) * 1_000_000_000n;
    const text = `text ${k} ${'x'.repeat(k % 50)}`;
    return `load,part=${k % 5} n=${k}i,f=${k / 4},s="${text}" ${time}`;
  }).join('\n');
}

beforeAll(async () => {
  const first = await Polyrow.start({ flags: [...flags, ...coldSoon], dataDir: whole });
  await post(first.influx, { q: `CREATE DATABASE ${database}` });
  for (let n = 0; n < 40; n++) expect((await write(first, body(n))).status).toBe(204);
  // Shards get cold and become one file each, of all points; then some more goes to the log, and stays there.
  const points = (): string => filesOf(whole, (path) => path.endsWith('.tsm')).join(' ');
  for (let before = ''; points() === '' || points() !== before; await sleep(2500))
    before = points();
  await first.kill();
  const server = await Polyrow.start({ flags, dataDir: whole });
  for (let n = 40; n < 44; n++) expect((await write(server, body(n))).status).toBe(204);
  truth = await answers(server);
  expect(JSON.stringify(truth)).not.toMatch(/"error"/);
  await server.kill();
});

const kinds: { name: string; matches: (path: string) => boolean }[] = [
  { name: 'files of points', matches: (path) => path.endsWith('.tsm') },
  { name: 'manifests', matches: (path) => basename(path) === 'manifest' },
  {
    name: 'indexes',
    matches: (path) =>
      path.includes('/shard-') && !path.endsWith('.tsm') && basename(path) !== 'manifest',
  },
  { name: 'the log', matches: (path) => path.includes('/wal/seg-') },
];

function filesOf(directory: string, matches: (path: string) => boolean): string[] {
  const names = readdirSync(join(directory, 'influx'), { recursive: true }) as string[];
  const paths = names.map((name) => join(directory, 'influx', name));
  return paths.filter((path) => statSync(path).isFile() && matches(path)).sort();
}

/** Where the bytes that were written end: a segment may be longer than that. */
function contentEnd(bytes: Buffer): number {
  let end = bytes.length;
  while (end > 0 && bytes[end - 1] === 0) end--;
  return end;
}

describe.each(kinds)('damage of $name', ({ matches }) => {
  test('is told', { timeout: 3_600_000 }, async () => {
    const random = new Random(seed);
    expect(filesOf(whole, matches).length).toBeGreaterThan(0);
    let told = 0;
    for (let n = 0; n < damagesPerKind; n++) {
      const dataDir = join(root, `damaged-${n}`);
      cpSync(whole, dataDir, { recursive: true });
      const path = random.pick(filesOf(dataDir, matches));
      const what = damage(path, random, n);
      const where = `seed ${seed}, ${relative(dataDir, path)}: ${what}`;
      if (await isTold(dataDir, path, where)) told++;
      rmSync(dataDir, { recursive: true });
    }
    // Damage to unread data may go unreported, but that is not the majority.
    expect(told * 2, `seed ${seed}`).toBeGreaterThan(damagesPerKind);
  });
});

/** Flips a bit, or cuts; says what it did. */
function damage(path: string, random: Random, n: number): string {
  const bytes = readFileSync(path);
  const end = contentEnd(bytes);
  // The log's last entries may have been cut off by a crash: what is damaged there is none.
  const isLog = path.includes('/wal/');
  const at = random.below(isLog ? end >> 1 : end);
  if (n % 5 === 4 && !isLog) {
    writeFileSync(path, bytes.subarray(0, at));
    return `cut at ${at} of ${end}`;
  }
  const bit = 1 << random.below(8);
  bytes[at]! ^= bit;
  writeFileSync(path, bytes);
  return `bit ${bit} of byte ${at} of ${end} flipped`;
}

/** False when all is answered as if nothing had happened. */
async function isTold(dataDir: string, path: string, where: string): Promise<boolean> {
  const name = basename(path);
  let server: Polyrow;
  try {
    server = await Polyrow.start({ flags, dataDir });
  } catch (error) {
    if (!(error instanceof StartError)) throw error;
    expect(error.code, where).toBe(1);
    expect(error.output, where).toContain(name);
    expect(error.output, where).not.toMatch(/TypeError|AssertionError|Cannot read/);
    return true;
  }
  try {
    let told = false;
    for (const [i, answer] of (await answers(server)).entries()) {
      const { error } = answer as { error?: string };
      if (error !== undefined) {
        expect(error, where).toContain(name);
        told = true;
      } else if (JSON.stringify(answer) !== JSON.stringify(truth[i])) {
        expect.fail(`${where}: ${statements[i]} is answered with something else`);
      }
    }
    // Unaffected parts go on working, whatever is damaged.
    await post(server.influx, { q: 'CREATE DATABASE other' });
    expect((await write(server, 'm v=1 1', 'other')).status, where).toBe(204);
    await server.stop();
    return told;
  } finally {
    await server.remove();
  }
}

test('a log torn at its end is cut there', async () => {
  const dataDir = join(root, 'torn');
  cpSync(whole, dataDir, { recursive: true });
  const newest = filesOf(dataDir, (path) => path.includes('/wal/seg-')).at(-1)!;
  const bytes = readFileSync(newest);
  writeFileSync(newest, bytes.subarray(0, contentEnd(bytes) - 100));
  const server = await Polyrow.start({ flags, dataDir });
  try {
    const [result] = await query(server, 'SELECT n FROM load');
    const numbers = (result!.series![0]!.values as [string, number][]).map(([, n]) => n);
    // The last entry held the last request, or its end.
    const left = numbers.sort((a, b) => a - b).length;
    expect(left).toBeGreaterThanOrEqual(43 * pointsPerBody);
    expect(left).toBeLessThan(44 * pointsPerBody);
    expect(numbers).toEqual(numbers.map((_, i) => i));
    expect((await write(server, body(44))).status).toBe(204);
    await server.stop();
  } finally {
    await server.remove();
  }
});

test('a missing file of points is told', async () => {
  const dataDir = join(root, 'missing');
  cpSync(whole, dataDir, { recursive: true });
  const path = filesOf(dataDir, (name) => name.endsWith('.tsm'))[0]!;
  rmSync(path);
  await expect(Polyrow.start({ flags, dataDir })).rejects.toThrow(basename(path));
});
