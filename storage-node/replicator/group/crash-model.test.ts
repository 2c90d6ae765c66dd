// Random histories on a disk that loses, tears and reorders what was not synced. Whatever happens, the
// log that comes back is a prefix of what was written, holds all that was promised, and is never taken
// for damaged. POLYROW_FULL=1 runs ten times as many; a failed seed is in the test's message.

import { expect, test } from 'vitest';
import type { Rng } from '../../../universal-row/environment.ts';
import type { FsyncPolicy } from '../partition-log.ts';
import { LogCorruptionError, LogWriteError } from '../wal/log-errors.ts';
import type { FaultyDisk } from '../../disk/faulty-disk.ts';
import { LogFixture, logDirectory, seededRng } from './log-fixture.ts';

const seeds = process.env['POLYROW_FULL'] ? 2500 : 250;
const policies: readonly FsyncPolicy[] = ['always', 'everysec', 'no'];

class History {
  readonly #rng: Rng;
  readonly #f: LogFixture;
  /** From this size on frames are written off the event loop. */
  readonly #largeFrameBytes: number;
  /** Payloads written, by index. */
  readonly #written = new Map<number, string>();
  #last = 0;
  /** Up to here nothing may be lost in a power cut. */
  #promised = 0;
  /** Up to here ticks were told that they are settled: the end of the process takes nothing of that. */
  #settled = 0;
  /** The last entry before a tick that ended the process, and is in the log in part. */
  #beforeHalf = Infinity;
  /** Disk of a life in which a sync has failed; the log may not know yet. */
  #failedDisk: FaultyDisk | undefined;
  /** Up to here the engine has all on disk. */
  #engineIndex = 0;
  #payloads = 0;
  lives = 0;
  crashes = 0;
  cuts = 0;
  refusals = 0;
  failures = 0;

  constructor(seed: number) {
    this.#rng = seededRng(seed);
    this.#largeFrameBytes = this.#pick(2) === 0 ? Infinity : 64 << this.#pick(5);
    this.#f = new LogFixture({
      largeFrameBytes: this.#largeFrameBytes,
      seed: seed + 1_000_000,
      segmentBytes: 512 << this.#pick(6),
      ballastBytes: this.#pick(2) * 1024,
    });
  }

  async run(): Promise<void> {
    const lives = 2 + this.#pick(5);
    for (; this.lives < lives; this.lives++) {
      await this.#open();
      for (let steps = this.#pick(40); steps > 0; steps--) await this.#step();
      await this.#end();
    }
    await this.#open();
    await this.#f.log.close();
  }

  async #open(): Promise<void> {
    const f = this.#f;
    await f.open({ appliedIndex: this.#engineIndex, fsync: policies[this.#pick(3)]! });
    const { lastIndex } = f.log;
    this.#beforeHalf = Infinity;
    expect(lastIndex).toBeGreaterThanOrEqual(this.#promised);
    expect(lastIndex).toBeLessThanOrEqual(this.#last);
    // Nothing is missing, nothing is twice (the fixture checks), nothing is another entry.
    expect([...f.replayed.keys()]).toEqual(range(this.#engineIndex + 1, lastIndex));
    for (const [index, payload] of f.replayed) {
      if (payload !== this.#written.get(index)) throw new Error(`entry ${index} is another`);
    }
    this.cuts += f.log.status().cutBytes > 0 ? 1 : 0;
    this.#last = lastIndex;
    // The entries read had been synced first.
    this.#promised = lastIndex;
    this.#settled = lastIndex;
  }

  async #step(): Promise<void> {
    const f = this.#f;
    const what = this.#pick(21);
    // A large frame found the disk full, or a sync failed: the process is about to end.
    if (f.fatal !== undefined) return;
    if (what < 12) {
      this.#tick();
    } else if (what < 15) {
      await new Promise(setImmediate);
    } else if (what === 15) {
      f.log.fsyncPolicy = policies[this.#pick(3)]!;
    } else if (what === 16) {
      if (this.#pick(2) === 0) f.disk.stallSyncs();
      else f.disk.resumeSyncs();
    } else if (what === 17) {
      // The engine makes a state durable, and later says so, or not.
      this.#engineIndex += this.#pick(this.#last - this.#engineIndex + 1);
      if (this.#pick(3) > 0) f.log.truncate(this.#engineIndex);
    } else if (what === 18) {
      // The disk fills up, or is emptied.
      const room = this.#pick(3) === 0 ? Infinity : this.#pick(3000);
      f.disk.capacityBytes = f.disk.usedBytes() + room;
    } else if (what === 19) {
      if (this.#pick(3) === 0) this.#failNextSync();
    } else {
      for (let ticks = this.#pick(6); ticks > 0; ticks--) await new Promise(setImmediate);
    }
  }

  #failNextSync(): void {
    const { disk } = this.#f;
    disk.fault = (operation) => {
      if (operation !== 'sync') return undefined;
      disk.fault = () => undefined;
      this.#failedDisk = disk;
      return 'EIO';
    };
  }

  #tick(): void {
    const { log } = this.#f;
    const before = this.#last;
    const count = this.#pick(4);
    for (let i = 0; i < count; i++) {
      const payload = `${++this.#payloads}:`.padEnd(1 + this.#pick(1 << this.#pick(12)), 'p');
      if (this.#pick(8) === 0) {
        log.begin();
        log.writer.clear(0);
        log.abandon();
      }
      const index = this.#f.entry(payload);
      expect(index).toBe(this.#last + 1);
      this.#last = index;
      this.#written.set(index, payload);
    }
    let position: number;
    try {
      // Reads are served as well: what they saw must not go either.
      position = log.endTick(0);
    } catch (error) {
      if (!(error instanceof LogWriteError)) {
        if (this.#f.fatal === undefined) throw error;
        this.#beforeHalf = before;
        return;
      }
      expect(log.lastIndex).toBe(before);
      this.#last = before;
      this.refusals++;
      return;
    }
    const last = this.#last;
    const isAlways = log.fsyncPolicy === 'always';
    const { disk } = this.#f;
    log.whenSettled(position, () => {
      if (disk === this.#f.disk) this.#settled = Math.max(this.#settled, last);
      // A policy relaxed meanwhile releases without a promise; so does a position of -1.
      const promised =
        (position >= 0 && log.fsyncPolicy === 'always') || (position < 0 && isAlways);
      if (promised && disk === this.#f.disk) this.#promised = Math.max(this.#promised, last);
    });
  }

  async #end(): Promise<void> {
    const f = this.#f;
    const { durableLsn, appendedLsn } = f.log.status();
    expect(durableLsn).toBeLessThanOrEqual(appendedLsn);
    const whole = Math.min(this.#last, this.#beforeHalf);
    if (durableLsn === appendedLsn) this.#promised = whole;
    const synced = this.#promised;
    const { disk } = f;
    if (this.#pick(2) === 0) f.disk.capacityBytes = Infinity;
    const hasFailed = f.fatal !== undefined;
    this.failures += hasFailed ? 1 : 0;
    const way = hasFailed ? 1 + this.#pick(3) : this.#pick(4);
    let isKilled = way === 1;
    switch (way) {
      case 0:
        f.disk.resumeSyncs();
        await f.log.close().catch((error: unknown) => {
          if (f.fatal === undefined) throw error;
        });
        if (f.fatal !== undefined) {
          // A large frame has found the disk full, or a sync failed: this was no orderly end.
          f.kill();
          isKilled = true;
          break;
        }
        this.#promised = this.#last;
        // After an orderly end, a power cut takes nothing.
        if (this.#pick(2) === 0) f.crash();
        break;
      case 1:
        // The end of the process takes nothing that was handed to the operating system, but for what a failed sync gave up.
        f.kill();
        if (hasFailed || this.#failedDisk === disk) break;
        this.#promised = this.#largeFrameBytes === Infinity ? whole : this.#settled;
        break;
      default:
        f.crash();
        this.crashes++;
    }
    // Now and then recovery itself is cut short.
    if (this.#pick(4) > 0) return;
    if (await this.#failsSyncWhileOpening(isKilled)) this.#promised = synced;
  }

  async #failsSyncWhileOpening(keepUnsynced: boolean): Promise<boolean> {
    const f = this.#f;
    let calls = this.#pick(40);
    let failsSync = false;
    f.disk.fault = (operation) => {
      if (calls-- > 0) return undefined;
      failsSync ||= operation === 'sync';
      return 'EIO';
    };
    try {
      await f.open({ appliedIndex: this.#engineIndex });
    } catch (error) {
      if (error instanceof LogCorruptionError) throw error;
    }
    if (keepUnsynced) f.kill();
    else f.crash();
    return failsSync;
  }

  #pick(count: number): number {
    return Math.floor(this.#rng.next() * count);
  }
}

function range(from: number, to: number): number[] {
  return Array.from({ length: Math.max(0, to - from + 1) }, (_, i) => from + i);
}

test(`${seeds} histories lose nothing that was promised`, { timeout: 600_000 }, async () => {
  let crashes = 0;
  let cuts = 0;
  let refusals = 0;
  let failures = 0;
  for (let seed = 1; seed <= seeds; seed++) {
    const history = new History(seed);
    try {
      await history.run();
    } catch (error) {
      throw new Error(`seed ${seed}, life ${history.lives}`, { cause: error });
    }
    crashes += history.crashes;
    cuts += history.cuts;
    refusals += history.refusals;
    failures += history.failures;
  }
  // The model is of use only if it does tear logs.
  expect(crashes).toBeGreaterThan(seeds);
  expect(cuts).toBeGreaterThan(seeds / 4);
  expect(refusals).toBeGreaterThan(seeds / 4);
  expect(failures).toBeGreaterThan(0);
});

test(`${seeds} damaged logs are reported, or have lost nothing that was synced`, async () => {
  let reported = 0;
  for (let seed = 1; seed <= seeds; seed++) {
    const rng = seededRng(seed);
    const pick = (count: number) => Math.floor(rng.next() * count);
    const f = new LogFixture({ seed, segmentBytes: 1024 << pick(4) });
    await f.open();
    const ticks = 5 + pick(30);
    for (let i = 1; i <= ticks; i++) await f.write(`${i}:`.padEnd(pick(400), 'd'));
    await new Promise(setImmediate);
    f.kill();
    const names = f.segments();
    const name = names[pick(names.length)]!;
    f.disk.corrupt(`${logDirectory}/${name}`, (bytes) => {
      bytes[pick(bytes.length)]! ^= 1 << pick(8);
    });
    try {
      await f.open();
      // Without a later word on what was synced, the last frame alone may be taken for torn.
      if (f.log.lastIndex < ticks - 1) {
        throw new Error(`seed ${seed}: ${f.log.lastIndex} of ${ticks} entries, and no report`);
      }
      for (const [index, payload] of f.replayed)
        expect(payload).toMatch(new RegExp(`^${index}:|^d`));
    } catch (error) {
      if (!(error instanceof LogCorruptionError)) throw error;
      reported++;
      expect(error.segment).toContain('/log/seg-');
      await f.open({ acceptLoss: true });
      expect([...f.replayed.keys()]).toEqual(range(1, f.log.lastIndex));
    }
    await f.log.close();
  }
  expect(reported).toBeGreaterThan(seeds / 2);
});
