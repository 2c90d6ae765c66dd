import { beforeEach, expect, test } from 'vitest';
import { WriteBrake } from './write-brake.ts';

const mib = 1024 * 1024;
let now: number;
let level: { files: number; flushedBytes: number; compactedBytes: number };
let brake: WriteBrake;

beforeEach(() => {
  now = 0;
  level = { files: 0, flushedBytes: 0, compactedBytes: 0 };
  brake = new WriteBrake({ clock: { monotonic: () => now }, levelZero: () => level });
});

/** Five seconds in which so much is written, flushed and compacted. */
function period(megabytes: number, files: number, compacted = megabytes): void {
  for (let i = 0; i < 20; i++) {
    now += 250;
    if (!brake.holds()) brake.wrote((megabytes * mib) / 20);
    level.flushedBytes += (megabytes * mib) / 20;
    level.compactedBytes += (compacted * mib) / 20;
    level.files = files;
    brake.look();
  }
}

test('nobody waits while level 0 is in order, and as long as nothing is known', () => {
  period(100, 11, 0);
  expect(brake.holds()).toBe(false);
  period(100, 3);
  period(100, 3);
  expect(brake.score).toBeLessThan(0.5);
  expect(brake.holds()).toBe(false);
});

test('beyond that writes are held to what is compacted, and reads the most files of the time', async () => {
  period(100, 3);
  // More is written than compacted.
  period(200, 12, 100);
  period(200, 3, 100);
  expect(brake.score).toBeGreaterThan(1);
  let written = 0;
  const until = now + 4900;
  for (; now < until; now += 1) {
    while (!brake.holds()) {
      brake.wrote(64 * 1024);
      written += 64 * 1024;
    }
  }
  // No more than 1.5 - 12 / 14 of it, as far as is known how much of level 0 a written byte comes to.
  expect(written / mib).toBeGreaterThan(25);
  expect(written / mib).toBeLessThan(110);
});

test('those that wait go in order, one by one, and all when it is switched off', async () => {
  period(100, 3);
  period(200, 12, 100);
  period(200, 12, 100);
  while (!brake.holds()) brake.wrote(10 * mib);
  const ran: number[] = [];
  const one = async (n: number): Promise<void> => {
    await brake.released();
    ran.push(n);
    brake.wrote(20 * mib);
  };
  const all = [1, 2, 3].map(one);
  expect(brake.waiting).toBe(3);
  expect(brake.holds()).toBe(true);
  // Until there are tokens again.
  for (let i = 0; i < 200 && ran.length === 0; i++) {
    now += 25;
    brake.look();
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  expect(ran).toEqual([1]);
  brake.enabled = false;
  await Promise.all(all);
  expect(ran).toEqual([1, 2, 3]);
  expect(brake.holds()).toBe(false);
  expect(brake.waited).toBe(3);
});

test('without short ticks tokens come a quarter of a second’s at a time', () => {
  /** Milliseconds in which somebody is let go, of a second. */
  const letGo = (shortTicks: boolean): number => {
    brake = new WriteBrake({ clock: { monotonic: () => now }, levelZero: () => level });
    brake.shortTicks = shortTicks;
    for (let i = 0; i < 4; i++) period(100, 14);
    while (!brake.holds()) brake.wrote(mib);
    // What is owed.
    now += 1500;
    let times = 0;
    for (const until = now + 1000; now < until; now++) {
      if (!brake.holds()) times++;
      while (!brake.holds()) brake.wrote(4096);
    }
    return times;
  };
  expect(letGo(false)).toBeLessThanOrEqual(5);
  expect(letGo(true)).toBeGreaterThan(50);
});

test('each look at level 0 is told, four times a second', () => {
  const seen: number[] = [];
  brake = new WriteBrake({
    clock: { monotonic: () => now },
    levelZero: () => level,
    looked: ({ files }) => seen.push(files),
  });
  for (let i = 0; i < 100; i++) {
    now += 50;
    level.files = i;
    brake.look();
  }
  expect(seen.length).toBe(20);
  expect(seen.at(-1)).toBeGreaterThan(90);
});

test('closed, it lets everybody go', async () => {
  period(100, 3);
  period(200, 12, 100);
  period(200, 12, 100);
  while (!brake.holds()) brake.wrote(10 * mib);
  const waits = brake.released();
  brake.close();
  await waits;
  expect(brake.waiting).toBe(0);
});
