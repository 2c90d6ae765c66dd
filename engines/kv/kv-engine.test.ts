import { spawn, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as nextTick, setTimeout as sleep } from 'node:timers/promises';
import { afterAll, describe, expect, test } from 'vitest';
import { Arguments } from '../../universal-row/arguments.ts';
import { ReadFault } from '../../universal-row/errors.ts';
import { Shape } from '../../universal-row/rows.ts';
import { assertSameContents, decodeSnapshot } from '../conformance/contents.ts';
import { HeldReads } from '../conformance/held-reads.ts';
import { Trial } from '../conformance/trial.ts';
import { Verbs } from '../conformance/verbs.ts';
import { KvEngine, type KvEngineOptions } from './kv-engine.ts';
import { type LevelBatch, LevelStore } from './level-store.ts';

const root = mkdtempSync(join(tmpdir(), 'polyrow-kv-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));
let directories = 0;
const newDirectory = (): string => join(root, String(directories++));

function open(options: Partial<KvEngineOptions> = {}): Promise<Trial> {
  return Trial.open({
    model: 'kv',
    supports: { rollback: true, reopen: true },
    create: (directory) => new KvEngine({ directory, ...options }),
    newDirectory,
  });
}

const names = (count: number): string[] => [...Array(count).keys()].map((i) => `name ${i}`);

async function fillRanked(trial: Trial, count: number): Promise<void> {
  for (let i = 0; i < count; i += 500) {
    await trial.run((v) => {
      const row = v.container('k', Shape.ranked);
      for (let j = i; j < i + 500; j++) v.putScoreOf(row, `m${j}`, j);
    });
  }
}

function extra(trial: Trial, name: string): number {
  return trial.engine.stats().extra[name] ?? NaN;
}

function argumentsOf(texts: readonly string[]): Arguments {
  const words = texts.map((text) => Buffer.from(text));
  const args = new Arguments();
  args.buf = Buffer.concat(words);
  args.count = words.length;
  args.reserve(words.length);
  let at = 0;
  words.forEach((word, i) => {
    args.starts[i] = at;
    args.lens[i] = word.length;
    at += word.length;
  });
  return args;
}

function faultOf(read: () => void): ReadFault {
  try {
    read();
  } catch (error) {
    if (error instanceof ReadFault) return error;
    throw error;
  }
  throw new Error('all of it was in memory');
}

/** Waits until nothing is on its way to disk. */
async function written(trial: Trial): Promise<void> {
  trial.engine.endTick();
  while (extra(trial, 'kv_waiting_bytes') > 0) await sleep(1);
}

describe('cost', () => {
  test('a field of a map of 10,000 is at most 3 records, and one of them if it is overwritten', async () => {
    const trial = await open();
    for (let i = 0; i < 10_000; i += 1000) {
      await trial.run((v) => {
        const row = v.container('k', Shape.map);
        for (const name of names(1000)) v.putFieldOf(row, `${name} of ${i}`, 'v');
      });
    }
    const cost = async (field: string): Promise<number> => {
      await written(trial);
      const before = extra(trial, 'kv_batch_records_total');
      await trial.run((v) => v.putField('k', field, 'w'));
      await written(trial);
      return extra(trial, 'kv_batch_records_total') - before;
    };
    // Each batch has one record more: the applied index.
    expect(await cost('new')).toBeLessThanOrEqual(3);
    expect(await cost('new')).toBeLessThanOrEqual(2);
    await trial.close();
  });

  test('ten members by score out of 20,000 read about one page, and a drop writes one record', async () => {
    const trial = await open();
    await fillRanked(trial, 20_000);
    await trial.checkpointAndReopen();
    const range = { min: 5000, minExclusive: true, max: Infinity, maxExclusive: false };
    const found = await trial.read((v) => v.byScore('k', range, { limit: 10 }));
    expect(found.slice(0, 4)).toEqual(['m5001', 5001, 'm5002', 5002]);
    expect(extra(trial, 'kv_read_records_total')).toBeLessThanOrEqual(40);
    const before = extra(trial, 'kv_batch_records_total');
    await trial.run((v) => v.drop('k'));
    await written(trial);
    // Its meta record, what is to be purged, the table's counts and the applied index.
    expect(extra(trial, 'kv_batch_records_total') - before).toBeLessThanOrEqual(4);
    await trial.settle();
    expect(extra(trial, 'kv_purged_records_total')).toBeGreaterThanOrEqual(40_000);
    await trial.close();
  });

  test('misses of one tick are one read; rows that are not there are remembered', async () => {
    const trial = await open();
    await trial.run((v) => names(50).forEach((name) => v.put(name, name)));
    await trial.checkpointAndReopen();
    const engine = trial.engine as KvEngine;
    const args = argumentsOf([...names(50), 'missing']);
    const fault = faultOf(() => engine.expectRows(0, args, 0, args.count - 1, 1));
    engine.rollback();
    await fault.ready;
    engine.expectRows(0, args, 0, args.count - 1, 1);
    expect(
      await trial.read((v) => [...names(50), 'missing'].filter((name) => v.find(name) !== 0)),
    ).toEqual(names(50));
    expect(extra(trial, 'kv_read_groups_total')).toBe(1);
    await trial.close();
  });

  test('what a command names and has in memory stays while the rest of it is read', async () => {
    const scheduler = new HeldReads(100);
    scheduler.isOn = false;
    const trial = await open({ cacheBytes: 20_000, readScheduler: scheduler });
    await trial.run((v) => names(50).forEach((name) => v.put(name, 'x'.repeat(500))));
    await trial.checkpointAndReopen();
    const engine = trial.engine as KvEngine;
    await trial.read((v) => v.value('name 0'));
    scheduler.isOn = true;
    const args = argumentsOf(['name 0', 'name 1']);
    const fault = faultOf(() => engine.expectRows(0, args, 0, 1, 1));
    engine.rollback();
    engine.endTick();
    const [held] = scheduler.held.splice(0);
    scheduler.isOn = false;
    // More than the cache has room for, meanwhile.
    for (const name of names(50).slice(2)) await trial.read((v) => v.value(name));
    held!.begin();
    await fault.ready;
    engine.expectRows(0, args, 0, 1, 1);
    await trial.close();
  });

  test('the cache stays within its bound, and what is read again is read from it', async () => {
    const cacheBytes = 200_000;
    const trial = await open({ cacheBytes });
    for (let i = 0; i < 20; i++) {
      await trial.run((v) => names(100).forEach((name) => v.put(`${name} ${i}`, 'x'.repeat(500))));
      await written(trial);
      await trial.settle();
    }
    expect(trial.engine.stats().memoryBytes).toBeLessThan(2 * cacheBytes);
    await trial.read((v) => v.value('name 7 3'));
    const before = extra(trial, 'kv_read_records_total');
    await trial.read((v) => v.value('name 7 3'));
    expect(extra(trial, 'kv_read_records_total')).toBe(before);
    await trial.close();
  });
});

describe('tables that bypass the cache', () => {
  test('are read and written beside the others without taking their room', async () => {
    const cacheBytes = 200_000;
    const trial = await open({ cacheBytes });
    trial.engine.setCacheBypass!(new Set([1]));
    const inTable = <T>(table: number, step: (v: Verbs) => T) =>
      trial.run((_, engine) => step(new Verbs(engine.table(table))));
    await inTable(0, (v) => names(200).forEach((name) => v.put(name, 'x'.repeat(300))));
    for (let i = 0; i < 20; i++) {
      await inTable(1, (v) =>
        names(100).forEach((name) => v.put(`${name} ${i}`, 'y'.repeat(2000))),
      );
    }
    await inTable(1, (v) => v.container('map', Shape.map));
    await inTable(1, (v) => names(500).forEach((name) => v.putFieldOf(v.row('map'), name, 'z')));
    await written(trial);
    await trial.settle();
    const items = extra(trial, 'kv_cached_items');
    // Much more than the cache has room for, twice: what is not kept is read again.
    for (let round = 0; round < 2; round++) {
      const before = extra(trial, 'kv_read_records_total');
      for (let i = 0; i < 20; i++) {
        for (const name of names(100)) {
          expect(await inTable(1, (v) => v.value(`${name} ${i}`))).toHaveLength(2000);
        }
      }
      expect(await inTable(1, (v) => v.table.count(v.row('map')))).toBe(500);
      expect(extra(trial, 'kv_read_records_total') - before).toBeGreaterThanOrEqual(2000);
      expect(extra(trial, 'kv_cached_items')).toBe(items);
    }
    const before = extra(trial, 'kv_read_records_total');
    await inTable(0, (v) => names(200).forEach((name) => v.value(name)));
    expect(extra(trial, 'kv_read_records_total')).toBe(before);
    trial.engine.background(1);
    for (let tick = 0; tick < 10; tick++) trial.engine.endTick();
    expect(trial.engine.stats().memoryBytes).toBeLessThan(cacheBytes + 100_000);
    await trial.close();
  });

  test('are kept like all others once they do not any more', async () => {
    const trial = await open();
    trial.engine.setCacheBypass!(new Set([0]));
    await trial.run((v) => v.put('row', 'value'));
    await written(trial);
    for (let tick = 0; tick < 10; tick++) trial.engine.endTick();
    trial.engine.setCacheBypass!(new Set());
    await trial.read((v) => v.value('row'));
    const before = extra(trial, 'kv_read_records_total');
    for (let tick = 0; tick < 10; tick++) trial.engine.endTick();
    await trial.read((v) => v.value('row'));
    expect(extra(trial, 'kv_read_records_total')).toBe(before);
    await trial.close();
  });
});

describe('snapshots', () => {
  test('an export holds the moment of the call while writes and purges go on', async () => {
    const trial = await open({ cacheBytes: 10_000 });
    await fillRanked(trial, 3000);
    await trial.run((v) => names(300).forEach((name) => v.put(name, 'before', 77)));
    const expected = await trial.contents();
    await trial.run((v) => v.put('name 5', 'before', 77));
    const decoded = decodeSnapshot(trial.engine.exportSnapshot());
    for (let i = 0; i < 30; i++) {
      await trial.run((v) => v.put(`name ${i}`, 'after'));
      await trial.run((v) => v.removeField('k', `m${i * 10}`));
    }
    await trial.run((v) => v.drop('k'));
    await trial.run((v) => v.table.clear());
    await trial.settle();
    assertSameContents(await decoded, expected, 'exported');
    await trial.check(new Map());
    await trial.close();
  });

  test('an import that breaks off leaves the rows that were there, also on disk', async () => {
    const trial = await open();
    await trial.run((v) => v.put('old', 'row'));
    const expected = await trial.contents();
    const source = await open();
    await fillRanked(source, 1000);
    const broken = async function* (): AsyncGenerator<Buffer> {
      yield* source.engine.exportSnapshot();
      throw new Error('the connection is lost');
    };
    await expect(trial.engine.importSnapshot(broken(), 99)).rejects.toThrow('connection is lost');
    await trial.check(expected);
    await trial.settle();
    await trial.checkpointAndReopen();
    await trial.check(expected);
    await source.close();
    await trial.close();
  });
});

/** A LevelDB that fails to write when it is told to. */
class FailingStore extends LevelStore {
  failing = false;

  override write(batch: LevelBatch): Promise<void> {
    if (this.failing) return Promise.reject(new Error('No space left on device'));
    return super.write(batch);
  }
}

describe('failures', () => {
  test('a full disk shows, loses nothing, and is over once there is room', async () => {
    const directory = newDirectory();
    const level = new FailingStore(directory);
    const trial = await Trial.open({
      model: 'kv',
      supports: { rollback: true, reopen: true },
      create: (path) =>
        new KvEngine(path === directory ? { directory, levelStore: level } : { directory: path }),
      newDirectory: () => directory,
    });
    await trial.run((v) => v.put('a', '1'));
    await written(trial);
    level.failing = true;
    await trial.run((v) => {
      v.put('b', '2');
      v.drop('a');
      v.pushOf(v.create('list', Shape.array), false, 'x');
    });
    while (trial.engine.failure === undefined) await nextTick();
    expect(trial.engine.failure.message).toContain('No space left on device');
    await expect(trial.engine.checkpoint()).rejects.toThrow('No space left');
    // Reads go on meanwhile, from memory and from disk.
    const table = trial.engine.table(0);
    expect(table.find(Buffer.from('a'), 0, 1)).toBe(0);
    expect(table.find(Buffer.from('b'), 0, 1)).not.toBe(0);
    level.failing = false;
    while (trial.engine.failure !== undefined) await sleep(5);
    await trial.run((v) => v.put('c', '3'));
    await trial.engine.checkpoint();
    await trial.engine.close();
    const again = new KvEngine({ directory });
    await again.open();
    expect(again.appliedIndex).toBe(3);
    const found = await decodeSnapshot(again.exportSnapshot());
    expect([...found.keys()].sort()).toEqual(['0/b', '0/c', '0/list']);
    await again.close();
  });

  test('writers are told when too much waits, and when it no longer does', async () => {
    const directory = newDirectory();
    const level = new FailingStore(directory);
    const engine = new KvEngine({ directory, levelStore: level, waitingLimitBytes: 10_000 });
    await engine.open();
    const value = Buffer.alloc(20_000);
    engine.table(0).putValue(value, 0, 1, value, 0, value.length, 0);
    engine.commit(1);
    expect(engine.congested).toBe(true);
    engine.endTick();
    await engine.drained();
    expect(engine.congested).toBe(false);
    await engine.close();
  });

  test('what is damaged is refused with the name of its directory', async () => {
    const directory = newDirectory();
    mkdirSync(directory, { recursive: true });
    writeFileSync(join(directory, 'CURRENT'), 'MANIFEST-000042\n');
    await expect(new KvEngine({ directory }).open()).rejects.toThrow(directory);

    const foreign = newDirectory();
    const level = new LevelStore(foreign);
    await level.open();
    const batch = { keys: [Buffer.from('key')], values: [Buffer.from('value')], bytes: 8 };
    await level.write(batch as unknown as LevelBatch);
    await level.close();
    await expect(new KvEngine({ directory: foreign }).open()).rejects.toThrow(
      `${foreign} is damaged`,
    );
  });
});

// Writes entries of several rows each and says how far it got, until it is killed.
const writerSource = `
import { KvEngine } from './engines/kv/kv-engine.js';
import { applyWithFaults } from './engines/apply-with-faults.js';
import { RecordBatchWriter } from './universal-row/record-batch.js';
const engine = new KvEngine({ directory: process.argv[2], cacheBytes: 50_000 });
await engine.open();
const bytes = (text) => Buffer.from(String(text));
for (let i = engine.appliedIndex + 1; ; i++) {
  const w = new RecordBatchWriter();
  const key = bytes('counter');
  const value = bytes(i);
  w.value(0, key, 0, key.length, value, 0, value.length, 0);
  const row = (name, shape) => {
    const k = bytes(name);
    w.row(0, k, 0, k.length);
    if (i === 1 || (name === 'dropped' && i % 50 === 1)) w.create(shape);
  };
  row('list', 5);
  w.push(false, value, 0, value.length);
  row('ranked', 4);
  w.score(i, value, 0, value.length);
  row('dropped', 2);
  w.field(value, 0, value.length, value, 0, value.length);
  if (i % 50 === 0) w.drop();
  await applyWithFaults(engine, w.buf, 0, w.pos, i);
  if (i % 5 === 0) {
    engine.endTick();
    engine.background(1);
    await new Promise((resolve) => setImmediate(resolve));
    if (i % 500 === 0) console.log(i);
  }
}
`;

describe('kill', () => {
  test('a killed writer leaves the state after its applied index, whole', async () => {
    const build = join(root, 'build');
    const compiler = join('node_modules', 'typescript', 'bin', 'tsc');
    const args = ['-p', 'tsconfig.json', '--noCheck', '--outDir', build];
    spawnSync(process.execPath, [compiler, ...args]);
    symlinkSync(join(process.cwd(), 'node_modules'), join(build, 'node_modules'));
    writeFileSync(join(build, 'package.json'), '{"type":"module"}');
    const writer = join(build, 'writer.js');
    writeFileSync(writer, writerSource);
    const directory = newDirectory();
    let last = 0;
    for (let round = 0; round < 4; round++) {
      const child = spawn(process.execPath, [writer, directory], {
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      await new Promise((resolve) => child.stdout.once('data', resolve));
      await sleep(50 + round * 37);
      const exited = new Promise((resolve) => child.once('exit', resolve));
      child.kill('SIGKILL');
      await exited;

      const engine = new KvEngine({ directory });
      await engine.open();
      const applied = engine.appliedIndex;
      expect(applied).toBeGreaterThan(last);
      const found = await decodeSnapshot(engine.exportSnapshot());
      const upTo = [...Array(applied).keys()].map((i) => i + 1);
      expect(found.get('0/counter')?.items).toEqual([String(applied)]);
      expect(found.get('0/list')?.items).toEqual(upTo.map(String));
      expect(found.get('0/ranked')?.items).toEqual(upTo.flatMap((i) => [String(i), i]));
      expect(found.get('0/dropped')?.items.length ?? 0).toBe(2 * (applied % 50));
      await engine.close();
      last = applied;
    }
  });
});
