import { beforeEach, expect, test } from 'vitest';
import { IoLine, type IoRules } from './io-line.ts';

let now: number;
let line: IoLine;
/** What is under way, as `tenant:name`, in the order in which it began, and how each is ended. */
let running: Map<string, (bytes: number) => void>;
/** All that ever began. */
let began: string[];

beforeEach(() => {
  now = 0;
  line = newLine({});
});

/** Table numbers are those of tenants; table 99 is nobody's. */
function newLine(rules: Partial<IoRules>, aloneMs = Infinity): IoLine {
  running = new Map();
  began = [];
  return new IoLine({
    clock: { monotonic: () => now },
    ownerOf: (table) => (table === 99 ? undefined : table),
    rules,
    aloneMs,
  });
}

function read(tenant: number, name: string | number, records = 1, isPage = false): void {
  const full = `${tenant}:${name}`;
  const begin = (): Promise<number> => {
    began.push(full);
    return new Promise((resolve) => running.set(full, resolve));
  };
  const owner = line.ownerOf(tenant);
  if (owner === undefined) void begin();
  else line.pass(owner, records, isPage, begin);
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
  expect(line.length).toBe(2);
  now += 5;
  await end('1:2');
  expect(names()).toEqual(['1:0', '1:1', '1:3', '1:4']);
  await endAll();
  expect(began).toHaveLength(6);
  expect([line.length, line.running, line.waited, line.waitedMs]).toEqual([0, 0, 2, 10]);
});

test('who comes while one tenant has all four has an extra worker, or waits for two reads', async () => {
  for (let i = 0; i < 100; i++) read(1, i);
  read(2, 'a');
  expect(began.at(-1)).toBe('2:a');
  expect(line.extraReads).toBe(1);
  await endAll();
  expect(began).toHaveLength(101);

  line = newLine({ extraWorkers: false });
  for (let i = 0; i < 100; i++) read(1, i);
  read(2, 'a');
  expect(began).toHaveLength(4);
  // One of theirs was in line before it.
  await end('1:0');
  await end('1:1');
  expect(began).toHaveLength(6);
  expect(began.at(-1)).toBe('2:a');
  expect(line.extraReads).toBe(0);
});

test('off, or without a line by tenants, it waits for all that came before', async () => {
  line = newLine({ extraWorkers: false, fair: false });
  for (let i = 0; i < 100; i++) read(1, i);
  read(2, 'a');
  await endAll();
  expect(began.at(-1)).toBe('2:a');

  line = newLine({ enabled: false });
  expect(line.isOn).toBe(false);
  for (let i = 0; i < 100; i++) read(3, i);
  expect(running.size).toBe(100);
});

test('a tenant that is alone is not held up, until another comes', async () => {
  line = newLine({}, 1000);
  for (let i = 0; i < 100; i++) read(1, i);
  expect(running.size).toBe(100);
  expect(line.ownerOf(1)).toBe(undefined);
  read(2, 'a');
  expect(line.ownerOf(2)).toBe(2);
  for (let i = 100; i < 200; i++) read(1, i);
  // Beside one of the other's, those that began before not being counted.
  expect(line.running).toBe(4);
  expect(line.length).toBe(97);
  now += 2000;
  // What waits keeps its order.
  expect(line.ownerOf(1)).toBe(1);
  await endAll();
  expect(began).toHaveLength(201);
  for (let i = 200; i < 300; i++) read(1, i);
  expect(running.size).toBe(100);
});

test('tenants have turns by their weights, by operations or by bytes', async () => {
  /** Records of 1, of those of the first so many reads that waited. */
  const served = async (rules: Partial<IoRules>, bytesOf2: number): Promise<number> => {
    line = newLine({ extraWorkers: false, ...rules });
    line.setWeight(1, 3);
    line.setWeight(2, 1);
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
  expect((await served({ byOperations: true }, 1000)) / 400).toBeCloseTo(3 / 4);
  // A read of 2 costs ten times as much: of 31 turns 30 are for 1.
  expect((await served({ byOperations: false }, 1000)) / 400).toBeCloseTo(30 / 31);
});

test('pages of many blocks, and large records, are few at a time beside small ones', async () => {
  const large = async (rules: Partial<IoRules>): Promise<number> => {
    line = newLine({ extraWorkers: false, ...rules });
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
  while (line.mostRecords(1) !== Infinity) read(1, pieces++);
  expect(pieces).toBeGreaterThan(100);
  expect(pieces).toBeLessThan(10_000);
  // The others' are as before.
  expect(line.mostRecords(2)).toBeLessThan(100);
  await endAll();
  expect(line.mostRecords(1)).toBeLessThan(100);
});

test('rules may change while reads wait, and nobody waits once it is off or closed', async () => {
  for (let i = 0; i < 50; i++) read(1 + (i % 2), i);
  line.setRules({ classes: false });
  line.setRules({ fair: false, byOperations: false });
  line.setRules({ extraWorkers: false });
  expect(line.length).toBe(50 - running.size);
  line.setRules({ fair: true });
  await end(names()[0]!);
  expect(line.running).toBe(4);
  line.setRules({ enabled: false });
  expect(line.length).toBe(0);
  expect(began).toHaveLength(50);
  line.setRules({ enabled: true });
  await endAll();
  expect(line.running).toBe(0);
  for (let i = 50; i < 100; i++) read(1, i);
  expect(line.length).toBe(46);
  line.close();
  expect(line.length).toBe(0);
  read(1, 'late');
  expect(began).toHaveLength(101);
  await endAll();
  expect([line.length, line.running]).toEqual([0, 0]);
});

test('tables that are nobody’s wait behind, and tenants that are gone leave nothing behind', async () => {
  line = newLine({ extraWorkers: false });
  for (let i = 0; i < 30; i++) {
    read(99, i);
    read(1, i);
  }
  line.forget(1);
  await endAll();
  expect(began).toHaveLength(60);
  expect(began.slice(-20).filter((name) => name.startsWith('99'))).toHaveLength(20);
  // It is told of again, as a new one is.
  line.setWeight(1, 1000);
  for (let i = 0; i < 30; i++) {
    read(1, `again${i}`);
    read(2, i);
  }
  await endAll();
  expect(began.slice(-20).every((name) => name.startsWith('2'))).toBe(true);
  expect([line.length, line.running]).toEqual([0, 0]);
});
