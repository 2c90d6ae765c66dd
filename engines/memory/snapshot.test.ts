import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Shape } from '../../universal-row/rows.ts';
import { MemoryEngine } from './memory-engine.ts';
import { MemoryDisk } from './testing/memory-disk.ts';
import { Random, contents, create, find, push, put, putField, putScore } from './testing/oracle.ts';
import type { Oracle } from './testing/oracle.ts';
import { writeOnce } from './testing/random-writes.ts';

const seeds = fc.integer({ min: 0, max: 0xffffffff });

function everything(engine: MemoryEngine): Map<number, Oracle> {
  return new Map(engine.tables().map((id) => [id, contents(engine.table(id))]));
}

function drain(engine: MemoryEngine): void {
  while (engine.background(1000));
}

async function collect(batches: AsyncIterable<Buffer>): Promise<Buffer[]> {
  const all: Buffer[] = [];
  for await (const batch of batches) all.push(Buffer.from(batch));
  return all;
}

async function* given(batches: Buffer[]): AsyncIterable<Buffer> {
  yield* batches;
}

/** Tables with rows of every shape and size. */
function filled(random: Random, keys: number, fields: number, writes: number) {
  const engine = new MemoryEngine();
  const oracles: Oracle[] = [new Map(), new Map()];
  for (let i = 0; i < writes; i++) {
    const table = random.below(2);
    writeOnce(random, { keys, fields }, engine.table(table), oracles[table]!);
  }
  return { engine, oracles };
}

describe('an export', () => {
  test('has every row as it was at the call, whatever is written while it is read', async () => {
    await fc.assert(
      fc.asyncProperty(
        seeds,
        fc.constantFrom([3, 400, 6000] as const, [500, 30, 6000] as const),
        async (seed, [keys, fields, writes]) => {
          const random = new Random(seed);
          const { engine, oracles } = filled(random, keys, fields, writes);
          const before = everything(engine);
          const batches: Buffer[] = [];
          const reading = engine.exportSnapshot();
          const perBatch = 1 + random.below(2000);
          for (;;) {
            for (let i = 0; i < perBatch; i++) {
              const table = random.below(2);
              writeOnce(random, { keys, fields }, engine.table(table), oracles[table]!);
            }
            if (random.below(4) === 0) {
              engine.swapTables(0, 1);
              oracles.reverse();
            }
            if (random.below(4) === 0) {
              const table = random.below(2);
              engine.table(table).clear();
              oracles[table]!.clear();
            }
            engine.background(0);
            const { done, value } = await reading.next();
            if (done === true) break;
            batches.push(Buffer.from(value));
          }
          expect(contents(engine.table(0))).toEqual(oracles[0]);
          expect(contents(engine.table(1))).toEqual(oracles[1]);

          const copy = new MemoryEngine();
          put(copy.table(0), 'from before', 'x');
          await copy.importSnapshot(given(batches), 7);
          expect(everything(copy)).toEqual(before);
          expect(copy.appliedIndex).toBe(7);

          engine.table(0).clear();
          engine.table(1).clear();
          drain(engine);
          expect(engine.stats().extra['memory_arena_used_bytes']).toBe(0);
        },
      ),
      { numRuns: 10 },
    );
  });

  test('comes in batches of a bounded size, however large a row', async () => {
    const engine = new MemoryEngine();
    const row = create(engine.table(0), 'large', Shape.ranked);
    for (let i = 0; i < 50_000; i++) putScore(engine.table(0), row, `member ${i}`, i);
    const batches = await collect(engine.exportSnapshot());
    expect(batches.length).toBeGreaterThan(5);
    for (const batch of batches) expect(batch.length).toBeLessThan(512 * 1024);
  });

  test('that is given up costs later writes nothing and keeps nothing', async () => {
    const engine = new MemoryEngine();
    const table = engine.table(0);
    for (const shape of [Shape.map, Shape.array] as const) {
      const row = create(table, `large ${shape}`, shape);
      for (let i = 0; i < 20_000; i++) {
        if (shape === Shape.map) putField(table, row, `field ${i}`, 'value');
        else push(table, row, false, `element ${i}`);
      }
    }
    const reading = engine.exportSnapshot();
    await reading.next();
    expect(() => engine.exportSnapshot()).toThrow('already');
    table.drop(find(table, `large ${Shape.map}`));
    table.clear();
    await reading.return();
    drain(engine);
    expect(engine.stats().extra['memory_arena_used_bytes']).toBe(0);
    expect(await collect(engine.exportSnapshot())).toEqual([]);
  });
});

describe('a checkpoint', () => {
  const open = (disk: MemoryDisk) => new MemoryEngine({ directory: '/data', disk });

  test('is what the next life starts from', async () => {
    const disk = new MemoryDisk();
    const engine = open(disk);
    await engine.open();
    expect(engine.appliedIndex).toBe(0);
    put(engine.table(0), 'a', '1', 5000);
    put(engine.table(9), 'b', 'x'.repeat(600_000));
    engine.commit(41);
    const expected = everything(engine);
    const checkpoint = engine.checkpoint();
    put(engine.table(0), 'a', '2');
    engine.commit(42);
    expect(await checkpoint).toBe(41);
    await engine.close();

    const next = open(disk);
    await next.open();
    expect(next.appliedIndex).toBe(41);
    expect(everything(next)).toEqual(expected);
    next.commit(50);
    expect(await next.checkpoint()).toBe(50);
    expect(disk.list('/data')).toEqual(['snapshot-50']);
    expect(next.stats().diskBytes).toBeGreaterThan(600_000);
  });

  test('waits for an export that is being read', async () => {
    const disk = new MemoryDisk();
    const engine = open(disk);
    put(engine.table(0), 'a', '1');
    engine.commit(3);
    const reading = engine.exportSnapshot();
    const checkpoint = engine.checkpoint();
    engine.commit(4);
    await collect(reading);
    expect(await checkpoint).toBe(4);
  });

  test('that fails leaves the one before, and can be tried again', async () => {
    const disk = new MemoryDisk();
    const engine = open(disk);
    put(engine.table(0), 'a', '1');
    engine.commit(1);
    await engine.checkpoint();
    engine.commit(2);
    disk.nextFailure = new Error('ENOSPC: the disk is full');
    await expect(engine.checkpoint()).rejects.toThrow('the disk is full');
    expect(disk.list('/data')).toContain('snapshot-1');
    expect(await engine.checkpoint()).toBe(2);
    expect(disk.list('/data')).toEqual(['snapshot-2']);
  });

  test('that was damaged is reported, wherever the damage is', async () => {
    const disk = new MemoryDisk();
    const engine = open(disk);
    put(engine.table(0), 'key', 'a value of some length');
    engine.commit(1);
    await engine.checkpoint();
    const whole = disk.files.get('/data/snapshot-1')!;
    for (let at = 0; at < whole.length; at++) {
      const damaged = Buffer.from(whole);
      damaged[at]! ^= 0x10;
      disk.files.set('/data/snapshot-1', damaged);
      await expect(open(disk).open()).rejects.toThrow(/snapshot-1 is damaged at byte \d+: /);
      disk.files.set('/data/snapshot-1', whole.subarray(0, at));
      await expect(open(disk).open()).rejects.toThrow(/snapshot-1 is damaged at byte \d+: /);
    }
    disk.files.set('/data/snapshot-1', whole);
    await open(disk).open();
  });
});
