import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { realDisk } from '../disk/real-disk.ts';
import { DamagedBackupError } from './damage.ts';
import { chainOf, partsOf, shardSources } from './chain.ts';
import {
  filesOf,
  listBackups,
  manifestName,
  manifestVersion,
  newBackupId,
  partialPath,
  publish,
  readManifest,
} from './manifest.ts';
import type { BackupManifest, PodPart } from './manifest-content.ts';

let set: string;
beforeEach(() => {
  set = mkdtempSync(join(tmpdir(), 'polyrow-set-'));
});
afterEach(() => rmSync(set, { recursive: true }));

const ids = [1, 2, 3].map((n) => newBackupId(Date.UTC(2026, 0, n), `0000000${n}`));

function manifest(id: string, change: Partial<BackupManifest> = {}): BackupManifest {
  return {
    version: manifestVersion,
    id,
    chain: ids[0]!,
    scope: {},
    program: '1',
    startedAt: '',
    finishedAt: '',
    metadata: { revision: 1, files: [] },
    parts: [],
    ...change,
  };
}

async function made(one: BackupManifest): Promise<void> {
  rmSync(join(set, one.id), { recursive: true, force: true });
  mkdirSync(partialPath(set, one.id));
  await publish(realDisk, set, one);
}

test('a backup is there when its manifest is', async () => {
  mkdirSync(partialPath(set, ids[0]!));
  expect(listBackups(realDisk, set)).toEqual({ ids: [], partial: [ids[0]] });
  await publish(realDisk, set, manifest(ids[0]!));
  expect(listBackups(realDisk, set)).toEqual({ ids: [ids[0]], partial: [] });
  expect(readManifest(realDisk, set, ids[0]!)).toEqual(manifest(ids[0]!));
});

test('every flip and truncation of a manifest is found', async () => {
  await made(manifest(ids[0]!));
  const path = join(set, ids[0]!, manifestName);
  const whole = readFileSync(path);
  for (let place = 0; place < whole.length; place++) {
    const damaged = Buffer.from(whole);
    damaged[place]! ^= 1 << (place % 8);
    writeFileSync(path, damaged);
    expect(() => readManifest(realDisk, set, ids[0]!), `byte ${place}`).toThrow(path);
    writeFileSync(path, whole.subarray(0, place));
    expect(() => readManifest(realDisk, set, ids[0]!), `cut at ${place}`).toThrow(path);
  }
  writeFileSync(path, whole);
  readManifest(realDisk, set, ids[0]!);
});

test('a manifest of another backup, or of a later version, is refused', async () => {
  mkdirSync(join(set, ids[1]!));
  await made(manifest(ids[0]!, { version: 2 }));
  expect(() => readManifest(realDisk, set, ids[0]!)).toThrow('version 2 is not known');
  const text = readFileSync(join(set, ids[0]!, manifestName));
  writeFileSync(join(set, ids[1]!, manifestName), text);
  expect(() => readManifest(realDisk, set, ids[1]!)).toThrow(/version 2|is the manifest of/);
});

describe('a manifest that somebody made up', () => {
  const file = { name: 'a.chunk', bytes: 1, rawBytes: 1, frames: 1, sha256: 'a'.repeat(64) };
  const memory = { model: 'memory', kind: 'all', point: { volume: 1, index: 1 }, at: 0, files: [] };

  async function read(change: object): Promise<BackupManifest> {
    await made({ ...manifest(ids[0]!), ...change });
    return readManifest(realDisk, set, ids[0]!);
  }
  const withFile = (change: object) => ({
    parts: [{ ...memory, files: [{ ...file, ...change }] }],
  });

  test.each<[string, object]>([
    ['files[0].name', withFile({ name: '../../etc/passwd' })],
    ['files[0].name', withFile({ name: '/etc/passwd' })],
    ['files[0].name', withFile({ name: 'a/b.chunk' })],
    ['files[0].name', withFile({ name: '..' })],
    ['files[0].name', withFile({ name: 7 })],
    ['files[0].bytes', withFile({ bytes: -1 })],
    ['files[0].bytes', withFile({ bytes: '1' })],
    ['files[0].rawBytes', withFile({ rawBytes: 1e300 })],
    ['files[0].frames', withFile({ frames: 0.5 })],
    ['files[0].sha256', withFile({ sha256: 'x' })],
    ['file a.chunk is there twice', { parts: [{ ...memory, files: [file, file] }] }],
    ['engine memory is there twice', { parts: [memory, memory] }],
    ['manifest.parent', { parent: '../elsewhere' }],
    ['manifest.chain', { chain: null }],
    ['manifest.parts', { parts: {} }],
    ['manifest.parts[0]', { parts: [null] }],
    ['parts[0].kind', { parts: [{ ...memory, kind: 'most' }] }],
    ['parts[0].point', { parts: [{ ...memory, point: [] }] }],
    ['manifest.metadata', { metadata: 'none' }],
    ['manifest.scope.tenant', { scope: { tenant: 'shop' } }],
  ])('is refused: %s', async (place, change) => {
    await expect(read(change)).rejects.toThrow(place);
    await expect(read(change)).rejects.toBeInstanceOf(DamagedBackupError);
  });

  test('is refused whatever it is, and what is not refused stays in its directory', async () => {
    mkdirSync(join(set, ids[0]!));
    const path = join(set, ids[0]!, manifestName);
    // Parts of a right one replaced by anything, at any depth.
    const right = { ...manifest(ids[0]!), parts: [{ ...memory, files: [file] }] };
    const anything = fc.oneof(
      fc.jsonValue({ maxDepth: 3 }),
      fc.constantFrom('..', '../x.chunk', '__proto__', -1, 2 ** 53, null),
    );
    const mutated = fc
      .tuple(fc.array(fc.nat(30), { maxLength: 6 }), anything)
      .map(([where, value]) => replaced(right, where, value));
    fc.assert(
      fc.property(fc.oneof(mutated, anything), (value) => {
        const text = `${JSON.stringify(value)}\n`;
        const sum = createHash('sha256').update(text).digest('hex');
        writeFileSync(path, `${text}${sum}\n`);
        let found: BackupManifest;
        try {
          found = readManifest(realDisk, set, ids[0]!);
        } catch (error) {
          expect(error).toBeInstanceOf(DamagedBackupError);
          return;
        }
        for (const { name } of filesOf(found)) expect(name).toBe(basename(name));
        expect(found.parent ?? ids[0]).toMatch(/^[0-9TZa-f.-]+$/);
      }),
      { numRuns: process.env['POLYROW_FULL'] === undefined ? 1000 : 100_000 },
    );
  });

  /** A copy with another value at the place that the numbers lead to. */
  function replaced(value: unknown, [at, ...rest]: readonly number[], by: unknown): unknown {
    if (at === undefined || typeof value !== 'object' || value === null) return by;
    const names = Object.keys(value);
    const name = names[at % (names.length + 1)] ?? 'other';
    const inner = replaced((value as Record<string, unknown>)[name], rest, by);
    return Array.isArray(value)
      ? value.map((item: unknown, i) => (String(i) === name ? inner : item))
      : { ...value, [name]: inner };
  }
});

describe('chains', () => {
  const part = (index: number, after?: number, change: Partial<PodPart> = {}): PodPart => ({
    model: 'memory',
    kind: after === undefined ? 'all' : 'entries',
    point: { volume: 1, index },
    ...(after === undefined ? {} : { after }),
    at: 0,
    files: [],
    tables: [],
    ...change,
  });
  const chain = (...parts: PodPart[]): Map<string, BackupManifest> =>
    new Map(
      parts.map((one, i) => {
        const parent = i === 0 ? {} : { parent: ids[i - 1]! };
        return [ids[i]!, manifest(ids[i]!, { parts: [one], ...parent })];
      }),
    );
  const resolve = (all: Map<string, BackupManifest>, id: string): BackupManifest[] =>
    chainOf(id, (one) => {
      const found = all.get(one);
      if (found === undefined) throw new Error(`no ${one}`);
      return found;
    });

  test('go back to the last part that has everything', () => {
    const all = chain(part(10), part(20, 10), part(30, 20));
    const found = resolve(all, ids[2]!);
    expect(found.map(({ id }) => id)).toEqual(ids);
    const indexes = partsOf(found, 'memory', '/set').map(({ point, directory }) => [
      point.index,
      directory,
    ]);
    expect(indexes).toEqual([
      [10, `/set/${ids[0]}`],
      [20, `/set/${ids[1]}`],
      [30, `/set/${ids[2]}`],
    ]);
    const again = chain(part(10), part(20), part(30, 20));
    expect(partsOf(resolve(again, ids[2]!), 'memory', '').length).toBe(2);
  });

  test('that lack something are refused', () => {
    const check = (all: Map<string, BackupManifest>, what: string) =>
      expect(() => resolve(all, ids[2]!)).toThrow(what);
    const gap = chain(part(10), part(20, 10), part(30, 21));
    check(gap, 'begins after entry 21');
    const otherLog = part(20, 10, { point: { volume: 2, index: 20 } });
    check(chain(part(10), otherLog, part(30, 20)), 'begins after entry 20');
    check(
      chain(part(10, 5), part(20, 10), part(30, 20)),
      'no backup of the chain has all of memory',
    );
    const missing = chain(part(10), part(20, 10), part(30, 20));
    missing.delete(ids[1]!);
    check(missing, `no ${ids[1]}`);
    const circle = chain(part(10), part(20, 10), part(30, 20));
    circle.set(ids[0]!, manifest(ids[0]!, { parent: ids[2]! }));
    check(circle, 'its own forerunner');
    const stranger = chain(part(10), part(20, 10), part(30, 20));
    stranger.set(ids[1]!, manifest(ids[1]!, { chain: ids[1]!, parts: [part(20)] }));
    check(stranger, 'does not go on from');
  });

  test('say where each shard is', () => {
    const shards = (included: number[]) =>
      [1, 2].map((shard) => ({
        shard,
        database: 'd',
        policy: 'p',
        startSeconds: 0,
        seconds: 1,
        included: included.includes(shard),
      }));
    const series = (index: number, after: number | undefined, included: number[]): PodPart => ({
      ...part(index, after),
      kind: after === undefined ? 'all' : 'shards',
      shards: shards(included),
    });
    const parts = partsOf(
      resolve(chain(series(1, undefined, [1, 2]), series(2, 1, [2]), series(3, 2, [])), ids[2]!),
      'memory',
      '',
    );
    const sources = [...shardSources(parts)].map(([shard, { point }]) => [shard, point.index]);
    expect(sources).toEqual([
      [1, 1],
      [2, 2],
    ]);
  });
});
