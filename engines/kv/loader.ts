// Reads records that are not in memory. Single records that miss in one tick are read together, ranges by pages. A
// command that misses waits for a promise and then runs again. If there is a scheduler, all reads pass it, and each
// owner of tables has groups of its own with a few records each.

import { ReadFault } from '../../universal-row/errors.ts';
import { engineClosed, type ReadScheduler } from '../engine.ts';
import type { LevelStore } from './level-store.ts';
import type { RecordSpace } from './record-space.ts';

/** Receives the records read. */
export interface LoadReceiver {
  readonly tick: number;
  receiveRecord(space: RecordSpace, key: string, value: Buffer | undefined): void;
  /** All there is in [from, to) of the disk, in ascending order. */
  receivePage(space: RecordSpace, from: string, to: string, keys: string[], values: Buffer[]): void;
  /** A load is complete: writes it delayed, so that it does not see newer records, may proceed. */
  loadDone(): void;
}

interface Load {
  readonly number: number;
  /**
   * Tick of the request: records that the requesting command has used since then must stay in
   * memory.
   */
  readonly tick: number;
  doneAtTick: number;
}

/** A read that is not made yet. */
interface Pending {
  readonly tick: number;
  /** Rejects the reads that wait for this one, when it is not made. */
  readonly reject: (reason: unknown) => void;
}

interface Group extends Pending {
  /** Undefined for everyone: it is read at once. */
  readonly owner: number | undefined;
  /** Number of records at which the group is full. */
  readonly most: number;
  readonly spaces: RecordSpace[];
  readonly keys: string[];
  readonly promise: Promise<void>;
  readonly resolve: () => void;
}

// A command that waited has this many ticks to run again before the records it used may be evicted.
const graceTicks = 4;
const nearTicks = 32;
// A command that reads one missing record after another runs again for each of them. After so many such records,
// further ones are read synchronously, up to `syncMs` in one tick.
const singlesBeforeSync = 8;
const syncMs = 2;
const minPageRecords = 32;
const maxPageRecords = 65_536;
const minPageBytes = 256 * 1024;
const maxPageBytes = 64 * 1024 * 1024;

export class Loader {
  records = 0;
  groups = 0;
  pages = 0;
  syncReads = 0;
  #syncSpentMs = 0;
  readonly #level: LevelStore;
  readonly #receiver: LoadReceiver;
  readonly #scheduler: ReadScheduler | undefined;
  /** Missed since groups were last sent, by owner. */
  readonly #groups = new Map<number | undefined, Group>();
  /** All misses since the last round count as one round, however many groups they fill. */
  #round = 1;
  #isRoundOpen = false;
  /** At the scheduler, in any order. */
  readonly #waiting = new Set<Pending>();
  /** Being read, oldest first, and those just done. */
  readonly #running = new Set<Load>();
  #done: Load[] = [];
  #nextNumber = 1;
  #isClosed = false;
  /** Called when the last load is over, once closed. */
  #ended: () => void = () => {};

  constructor(level: LevelStore, receiver: LoadReceiver, scheduler: ReadScheduler | undefined) {
    this.#level = level;
    this.#receiver = receiver;
    this.#scheduler = scheduler;
  }

  /** Refuses reads that have not begun and those to come. Resolves when those under way are over. */
  close(): Promise<void> {
    this.#isClosed = true;
    for (const pending of [...this.#groups.values(), ...this.#waiting]) {
      pending.reject(engineClosed);
    }
    this.#groups.clear();
    this.#waiting.clear();
    if (this.#running.size === 0) return Promise.resolve();
    return new Promise((resolve) => (this.#ended = resolve));
  }

  /** Puts a record on the list of those to be read next. */
  want(space: RecordSpace, key: string): Promise<void> {
    if (this.#isClosed) throw engineClosed;
    const loading = space.loading.get(key);
    if (loading !== undefined) return loading;
    const group = this.#groupOf(space.table.table);
    if (space.lastRound === this.#round) {
      space.singles = 0;
    } else {
      const { tick } = this.#receiver;
      if (tick - space.lastMissTick > nearTicks) space.singles = 0;
      space.lastMissTick = tick;
      space.lastRound = this.#round;
      space.singles++;
    }
    group.spaces.push(space);
    group.keys.push(key);
    space.loading.set(key, group.promise);
    if (group.keys.length >= group.most) {
      this.#groups.delete(group.owner);
      this.#send(group);
    }
    return group.promise;
  }

  #groupOf(table: number): Group {
    if (!this.#isRoundOpen) {
      this.#isRoundOpen = true;
      setImmediate(() => this.send());
    }
    const owner = this.#ownerOf(table);
    let group = this.#groups.get(owner);
    if (group === undefined) {
      const most = owner === undefined ? Infinity : this.#scheduler!.mostRecords(owner);
      this.#groups.set(owner, (group = this.#newGroup(owner, most)));
    }
    return group;
  }

  /** Undefined for reads that need not pass the scheduler. */
  #ownerOf(table: number): number | undefined {
    const scheduler = this.#scheduler;
    return scheduler?.isOn === true ? scheduler.ownerOf(table) : undefined;
  }

  /** Reads the record in place, or has it read and throws. */
  fault(space: RecordSpace, key: string): void {
    if (space.singles >= singlesBeforeSync && space.kind === 'sub' && this.#readNow(space, key))
      return;
    throw new ReadFault(this.want(space, key));
  }

  #readNow(space: RecordSpace, key: string): boolean {
    if (this.#isClosed) throw engineClosed;
    if (this.#syncSpentMs > syncMs) return false;
    const startedAt = performance.now();
    const disk = this.#level.getSync(space.diskKey(key));
    this.#syncSpentMs += performance.now() - startedAt;
    if (disk === 'busy') return false;
    this.records++;
    this.syncReads++;
    this.#receiver.receiveRecord(space, key, disk);
    return true;
  }

  /**
   * Reads a page of records from `at` on, or below it if `reverse`, not beyond `bound`. About
   * `want` of them at first, more each time: so a command that runs again for each page does not do
   * work quadratic in the size of its result.
   */
  faultPage(space: RecordSpace, at: string, bound: string, reverse: boolean, want: number): never {
    if (this.#isClosed) throw engineClosed;
    const name = `${reverse ? 'below' : 'from'} ${at}`;
    let promise = space.loading.get(name);
    if (promise === undefined) {
      const { tick } = this.#receiver;
      const repeated = tick - space.lastPageTick < nearTicks;
      const least = repeated ? Math.max(minPageRecords, space.pageRecords * 2) : minPageRecords;
      const records = Math.min(maxPageRecords, Math.max(least, want));
      space.pageRecords = Math.min(records, maxPageRecords);
      space.lastPageTick = tick;
      promise = this.#passPage(space, at, bound, reverse, records).finally(() => {
        space.loading.delete(name);
        space.lastPageTick = this.#receiver.tick;
      });
      // Waiting commands, if there are any, see the rejection all the same.
      promise.catch(() => {});
      space.loading.set(name, promise);
    }
    throw new ReadFault(promise);
  }

  /** Sends the list of records off. */
  send(): void {
    this.#syncSpentMs = 0;
    if (!this.#isRoundOpen) return;
    this.#isRoundOpen = false;
    this.#round++;
    const groups = [...this.#groups.values()];
    this.#groups.clear();
    for (const group of groups) this.#send(group);
  }

  #send(group: Group): void {
    const { owner, keys } = group;
    if (owner === undefined) void this.#readGroup(group);
    else this.#pass(owner, group, keys.length, false, () => this.#readGroup(group));
  }

  /** The scheduler calls `read`; until then the records used by its command stay in memory. */
  #pass(
    owner: number,
    pending: Pending,
    records: number,
    isPage: boolean,
    read: () => Promise<number>,
  ): void {
    this.#waiting.add(pending);
    this.#scheduler!.pass(owner, records, isPage, () => {
      this.#waiting.delete(pending);
      return this.#isClosed ? Promise.resolve(0) : read();
    });
  }

  /** Number of the next load: those below it that still run may see the disk as it was. */
  get nextNumber(): number {
    return this.#nextNumber;
  }

  /** Number of the oldest load that runs. */
  get oldestNumber(): number {
    for (const load of this.#running) return load.number;
    return Infinity;
  }

  /** Oldest tick whose records must stay in memory: those used in it or later are kept. */
  guardTick(): number {
    const { tick } = this.#receiver;
    let guard = tick;
    for (const group of this.#groups.values()) guard = Math.min(guard, group.tick);
    for (const pending of this.#waiting) guard = Math.min(guard, pending.tick);
    for (const load of this.#running) guard = Math.min(guard, load.tick);
    if (this.#done.length > 0) {
      this.#done = this.#done.filter((load) => load.doneAtTick + graceTicks > tick);
      for (const load of this.#done) guard = Math.min(guard, load.tick);
    }
    return guard;
  }

  #newGroup(owner: number | undefined, most: number): Group {
    let resolve = (): void => {};
    let reject: (reason: unknown) => void = () => {};
    const promise = new Promise<void>((yes, no) => {
      resolve = yes;
      reject = no;
    });
    promise.catch(() => {});
    const { tick } = this.#receiver;
    return { owner, most, tick, spaces: [], keys: [], promise, resolve, reject };
  }

  #begin(tick: number): Load {
    const load = { number: this.#nextNumber++, tick, doneAtTick: 0 };
    this.#running.add(load);
    return load;
  }

  #end(load: Load): void {
    load.doneAtTick = this.#receiver.tick;
    this.#running.delete(load);
    this.#done.push(load);
    this.#receiver.loadDone();
    if (this.#running.size === 0) this.#ended();
  }

  /** Resolves to the bytes of values read; the group is notified of failures. */
  async #readGroup(group: Group): Promise<number> {
    const { owner, most, spaces, keys } = group;
    const load = this.#begin(group.tick);
    let bytes = 0;
    try {
      // Spaces that were dropped while they waited are not asked for any more.
      if (owner === undefined || !spaces.every(({ table }) => table.dropped)) {
        this.groups++;
        this.records += keys.length;
        const diskKeys = spaces.map((space, i) => space.diskKey(keys[i]!));
        // A piece is one thread's work.
        const values = await this.#level.getMany(diskKeys, most === Infinity ? undefined : 1);
        for (let i = 0; i < keys.length; i++) {
          const value = values[i];
          bytes += value?.length ?? 0;
          this.#receiver.receiveRecord(spaces[i]!, keys[i]!, value);
        }
      }
      group.resolve();
    } catch (error) {
      group.reject(error);
    } finally {
      for (let i = 0; i < keys.length; i++) spaces[i]!.loading.delete(keys[i]!);
      this.#end(load);
    }
    return bytes;
  }

  /** Resolves when the page has been read, after the scheduler has admitted the read. */
  async #passPage(
    space: RecordSpace,
    at: string,
    bound: string,
    reverse: boolean,
    records: number,
  ): Promise<void> {
    const { tick } = this.#receiver;
    const owner = this.#ownerOf(space.table.table);
    if (owner === undefined) {
      await this.#readPage(tick, space, at, bound, reverse, records);
      return;
    }
    await new Promise<void>((resolve, reject) => {
      this.#pass(owner, { tick, reject }, records, true, async () => {
        let bytes = 0;
        try {
          if (!space.table.dropped) {
            bytes = await this.#readPage(tick, space, at, bound, reverse, records);
          }
          resolve();
        } catch (error) {
          reject(error instanceof Error ? error : new Error(String(error)));
        }
        return bytes;
      });
    });
  }

  /** Resolves to the bytes of values read. */
  async #readPage(
    tick: number,
    space: RecordSpace,
    at: string,
    bound: string,
    reverse: boolean,
    records: number,
  ): Promise<number> {
    const load = this.#begin(tick);
    this.pages++;
    try {
      const from = reverse ? bound : at;
      const to = reverse ? at : bound;
      const bytes = Math.min(maxPageBytes, Math.max(minPageBytes, space.pageRecords * 1024));
      const lower = space.diskKey(from);
      const page = await this.#level.page(lower, space.diskKey(to), reverse, records, bytes);
      const keys = page.keys.map((key) => space.keyOf(key));
      this.records += keys.length;
      const last = keys[keys.length - 1];
      if (reverse) {
        keys.reverse();
        page.values.reverse();
      }
      if (page.ended || last === undefined) {
        this.#receiver.receivePage(space, from, to, keys, page.values);
      } else if (reverse) {
        this.#receiver.receivePage(space, last, to, keys, page.values);
      } else {
        const next = `${last}\0`;
        this.#receiver.receivePage(space, from, next < to ? next : to, keys, page.values);
      }
      return page.values.reduce((sum, value) => sum + value.length, 0);
    } finally {
      this.#end(load);
    }
  }
}
