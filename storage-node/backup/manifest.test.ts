import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { realDisk } from '../disk/real-disk.ts';
import { chainOf, partsOf, shardSources } from './chain.ts';
import {
  type BackupManifest,
  listBackups,
  manifestName,
  manifestVersion,
  newBackupId,
  partialPath,
  type PodPart,
  publish,
  readManifest,
} from './manifest.ts';

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
