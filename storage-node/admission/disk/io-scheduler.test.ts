import { beforeEach, expect, test } from 'vitest';
import { IoScheduler, type IoSchedulerOptions } from './io-scheduler.ts';

type Options = Partial<IoSchedulerOptions>;

let now: number;
let scheduler: IoScheduler;
/**
 * Reads in progress, as `tenant:name`, in their order of start, with the function that ends each.
 */
let running: Map<string, (bytes: number) => void>;
/** All that ever began. */
let began: string[];

beforeEach(() => {
  now = 0;
  scheduler = newScheduler({});
});

/** Table numbers are tenants' numbers; table 99 has no tenant. */
function newScheduler(options: Options, aloneMs = Infinity): IoScheduler {
  running = new Map();
  began = [];
  return new IoScheduler({
    clock: { monotonic: () => now },
    ownerOf: (table) => (table === 99 ? undefined : table),
    aloneMs,
    ...options,
  });
}

function read(tenant: number, name: string | number, records = 1, isPage = false): void {
  const full = `${tenant}:${name}`;
  const begin = (): Promise<number> => {
    began.push(full);
    return new Promise((resolve) => running.set(full, resolve));
  };
  const owner = scheduler.ownerOf(tenant);
  if (owner === undefined) void begin();
  else scheduler.pass(owner, records, isPage, begin);
}

async function end(name: string, bytes = 100): Promise<void> {
  const done = running.get(name)!;
  running.delete(name);
  done(bytes);
  await Promise.resolve();
}

/** Ends the oldest, time and again, until nothing is under way. */
async function endAll(bytes = 100): Promise<void> {
  for (const name of running.keys()) await end(name, bytes);
}

const names = (): string[] => [...running.keys()];

test('four reads are under way at a time, and each that ends makes room for the next', async () => {
  for (let i = 0; i < 6; i++) read(1, i);
  expect(names()).toEqual(['1:0', '1:1', '1:2', '1:3']);
  expect(scheduler.length).toBe(2);
  now += 5;
  await end('1:2');
  expect(names()).toEqual(['1:0', '1:1', '1:3', '1:4']);
  await endAll();
  expect(began).toHaveLength(6);
  expect([scheduler.length, scheduler.running, scheduler.waited, scheduler.waitedMs]).toEqual([
    0, 0, 2, 10,
  ]);
});

test('who comes while one tenant has all four has an extra worker, or waits for two reads', async () => {
  for (let i = 0; i < 100; i++) read(1, i);
  read(2, 'a');
  expect(began.at(-1)).toBe('2:a');
  expect(scheduler.extraReads).toBe(1);
  await endAll();
  expect(began).toHaveLength(101);

  scheduler = newScheduler({ extraWorkers: 0 });
  for (let i = 0; i < 100; i++) read(1, i);
  read(2, 'a');
  expect(began).toHaveLength(4);
  // One of theirs was in line before it.
  await end('1:0');
  await end('1:1');
  expect(began).toHaveLength(6);
  expect(began.at(-1)).toBe('2:a');
  expect(scheduler.extraReads).toBe(0);
});

test('disabled, all reads begin at once', () => {
  scheduler.enabled = false;
  expect(scheduler.isOn).toBe(false);
  for (let i = 0; i < 100; i++) read(3, i);
  expect(running.size).toBe(100);
});

test('a tenant that is alone is not held up, until another comes', async () => {
  scheduler = newScheduler({}, 1000);
  for (let i = 0; i < 100; i++) read(1, i);
  expect(running.size).toBe(100);
  expect(scheduler.ownerOf(1)).toBe(undefined);
  read(2, 'a');
  expect(scheduler.ownerOf(2)).toBe(2);
  for (let i = 100; i < 200; i++) read(1, i);
  // Beside one of the other's, those that began before not being counted.
  expect(scheduler.running).toBe(4);
  expect(scheduler.length).toBe(97);
  now += 2000;
  // Waiting reads keep their order.
  expect(scheduler.ownerOf(1)).toBe(1);
  await endAll();
  expect(began).toHaveLength(201);
  for (let i = 200; i < 300; i++) read(1, i);
  expect(running.size).toBe(100);
});

test('tenants have turns by their weights, by operations or by bytes', async () => {
  /** Records of 1, of those of the first so many reads that waited. */
  const served = async (options: Options, bytesOf2: number): Promise<number> => {
    scheduler = newScheduler({ extraWorkers: 0, ...options });
    scheduler.setWeight(1, 3);
    scheduler.setWeight(2, 1);
    // So that it is known how large records are.
    for (let i = 0; i < 50; i++) {
      read(1, 'before');
      await end('1:before', 100);
      read(2, 'before');
      await end('2:before', bytesOf2);
    }
    began = [];
    for (let i = 0; i < 400; i++) {
      read(1, i);
      read(2, i);
    }
    while (began.length < 400) {
      const name = names()[0]!;
      await end(name, name.startsWith('1') ? 100 : bytesOf2);
    }
    return began.slice(0, 400).filter((name) => name.startsWith('1')).length;
  };
  expect((await served({ costIn: 'operations' }, 1000)) / 400).toBeCloseTo(3 / 4);
  // A read of 2 costs ten times as much: of 31 turns 30 are for 1.
  expect((await served({ costIn: 'kilobytes' }, 1000)) / 400).toBeCloseTo(30 / 31);
});

test('pages of many blocks, and large records, are few at a time beside small ones', async () => {
  const large = async (options: Options): Promise<number> => {
    scheduler = newScheduler({ extraWorkers: 0, ...options });
    for (let i = 0; i < 20; i++) {
      read(1, 'before', 1);
      await end('1:before', 1000);
      read(2, 'before', 1);
      await end('2:before', 100_000);
    }
    for (let i = 0; i < 10; i++) {
      read(1, `page${i}`, 1000, true);
      read(2, `large${i}`);
      read(3, i);
    }
    const count = names().filter((name) => !name.startsWith('3')).length;
    await endAll();
    return count;
  };
  expect(await large({})).toBe(1);
  expect(await large({ classes: false })).toBe(3);
});

test('a tenant with very much in line reads the rest in large pieces', async () => {
  let pieces = 0;
  while (scheduler.mostRecords(1) !== Infinity) read(1, pieces++);
  expect(pieces).toBeGreaterThan(100);
  expect(pieces).toBeLessThan(10_000);
  // The others' are as before.
  expect(scheduler.mostRecords(2)).toBeLessThan(100);
  await endAll();
  expect(scheduler.mostRecords(1)).toBeLessThan(100);
});

test('no read waits once the scheduler is disabled or closed', async () => {
  for (let i = 0; i < 50; i++) read(1 + (i % 2), i);
  expect(scheduler.length).toBe(50 - running.size);
  await end(names()[0]!);
  expect(scheduler.running).toBe(4);
  scheduler.enabled = false;
  expect(scheduler.length).toBe(0);
  expect(began).toHaveLength(50);
  scheduler.enabled = true;
  await endAll();
  expect(scheduler.running).toBe(0);
  for (let i = 50; i < 100; i++) read(1, i);
  expect(scheduler.length).toBe(46);
  scheduler.close();
  expect(scheduler.length).toBe(0);
  read(1, 'late');
  expect(began).toHaveLength(101);
  await endAll();
  expect([scheduler.length, scheduler.running]).toEqual([0, 0]);
});

test('tables that are nobody’s wait behind, and tenants that are gone leave nothing behind', async () => {
  scheduler = newScheduler({ extraWorkers: 0 });
  for (let i = 0; i < 30; i++) {
    read(99, i);
    read(1, i);
  }
  scheduler.forget(1);
  await endAll();
  expect(began).toHaveLength(60);
  expect(began.slice(-20).filter((name) => name.startsWith('99'))).toHaveLength(20);
  // The tenant is reported again, like a new one.
  scheduler.setWeight(1, 1000);
  for (let i = 0; i < 30; i++) {
    read(1, `again${i}`);
    read(2, i);
  }
  await endAll();
  expect(began.slice(-20).every((name) => name.startsWith('2'))).toBe(true);
  expect([scheduler.length, scheduler.running]).toEqual([0, 0]);
});
