// Reads what is not in memory. Single records that were missed in one turn are read together; ranges
// are read by pages. Whoever missed something waits for a promise and then runs again.

import { ReadFault } from '../../universal-row/errors.ts';
import type { LevelStore } from './level-store.ts';
import type { RecordSpace } from './record-space.ts';

/** Who is handed what was read. */
export interface LoadReceiver {
  readonly turn: number;
  receiveRecord(space: RecordSpace, key: string, value: Buffer | undefined): void;
  /** All there is in [from, to) of the disk, in ascending order. */
  receivePage(space: RecordSpace, from: string, to: string, keys: string[], values: Buffer[]): void;
  /** A load is over: what waited for it not to see newer records may go on. */
  loadDone(): void;
}

interface Load {
  readonly number: number;
  /** The turn it was asked for in: what the asking command has used since then must stay. */
  readonly turn: number;
  doneAtTurn: number;
}

interface Group extends Load {
  readonly id: number;
  readonly spaces: RecordSpace[];
  readonly keys: string[];
  readonly promise: Promise<void>;
  readonly resolve: () => void;
  readonly reject: (reason: unknown) => void;
}

// A command that waited has this many turns to run again before what it used may be given up.
const graceTurns = 4;
const nearTurns = 32;
// A command that asks for one missing record after another runs again for each of them. From so many
// on they are read in place, until that has taken so long in one turn.
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
  /** Missed since the last group was sent. */
  #group: Group | undefined = undefined;
  /** Being read, oldest first, and those just done. */
  readonly #running = new Set<Load>();
  #done: Load[] = [];
  #nextNumber = 1;
  #nextGroup = 1;

  constructor(level: LevelStore, receiver: LoadReceiver) {
    this.#level = level;
    this.#receiver = receiver;
  }

  /** Puts a record on the list of those to be read next. */
  want(space: RecordSpace, key: string): Promise<void> {
    const loading = space.loading.get(key);
    if (loading !== undefined) return loading;
    if (this.#group === undefined) {
      this.#group = this.#newGroup();
      setImmediate(() => this.send());
    }
    const group = this.#group;
    if (space.lastGroup === group.id) {
      space.singles = 0;
    } else {
      const { turn } = this.#receiver;
      if (turn - space.lastMissTurn > nearTurns) space.singles = 0;
      space.lastMissTurn = turn;
      space.lastGroup = group.id;
      space.singles++;
    }
    group.spaces.push(space);
    group.keys.push(key);
    space.loading.set(key, group.promise);
    return group.promise;
  }

  /** Reads the record in place, or has it read and throws. */
  fault(space: RecordSpace, key: string): void {
    if (space.singles >= singlesBeforeSync && space.kind === 'sub' && this.#readNow(space, key))
      return;
    throw new ReadFault(this.want(space, key));
  }

  #readNow(space: RecordSpace, key: string): boolean {
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
   * Reads a page of records from `at` on, or below it if `reverse`, not beyond `bound`. About `want`
   * of them at first, more each time: a command that runs again for each page then does not do work
   * that grows with the square of what it reads.
   */
  faultPage(space: RecordSpace, at: string, bound: string, reverse: boolean, want: number): never {
    const name = `${reverse ? 'below' : 'from'} ${at}`;
    let promise = space.loading.get(name);
    if (promise === undefined) {
      const { turn } = this.#receiver;
      const repeated = turn - space.lastPageTurn < nearTurns;
      const least = repeated ? Math.max(minPageRecords, space.pageRecords * 2) : minPageRecords;
      const records = Math.min(maxPageRecords, Math.max(least, want));
      space.pageRecords = Math.min(records, maxPageRecords);
      space.lastPageTurn = turn;
      promise = this.#readPage(space, at, bound, reverse, records).finally(() => {
        space.loading.delete(name);
        space.lastPageTurn = this.#receiver.turn;
      });
      // Nobody need be waiting; who is sees the rejection all the same.
      promise.catch(() => {});
      space.loading.set(name, promise);
    }
    throw new ReadFault(promise);
  }

  /** Sends the list of records off. */
  send(): void {
    const group = this.#group;
    this.#syncSpentMs = 0;
    if (group === undefined) return;
    this.#group = undefined;
    void this.#readGroup(group);
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

  /** What was used in this turn or later must stay in memory. */
  guardTurn(): number {
    const { turn } = this.#receiver;
    let guard = this.#group?.turn ?? turn;
    for (const load of this.#running) guard = Math.min(guard, load.turn);
    if (this.#done.length > 0) {
      this.#done = this.#done.filter((load) => load.doneAtTurn + graceTurns > turn);
      for (const load of this.#done) guard = Math.min(guard, load.turn);
    }
    return guard;
  }

  #newGroup(): Group {
    let resolve = (): void => {};
    let reject: (reason: unknown) => void = () => {};
    const promise = new Promise<void>((yes, no) => {
      resolve = yes;
      reject = no;
    });
    promise.catch(() => {});
    const { turn } = this.#receiver;
    const id = this.#nextGroup++;
    return { id, number: 0, turn, doneAtTurn: 0, spaces: [], keys: [], promise, resolve, reject };
  }

  #begin(turn: number): Load {
    const load = { number: this.#nextNumber++, turn, doneAtTurn: 0 };
    this.#running.add(load);
    return load;
  }

  #end(load: Load): void {
    load.doneAtTurn = this.#receiver.turn;
    this.#running.delete(load);
    this.#done.push(load);
    this.#receiver.loadDone();
  }

  async #readGroup(group: Group): Promise<void> {
    const { spaces, keys } = group;
    const load = this.#begin(group.turn);
    this.groups++;
    this.records += keys.length;
    try {
      const values = await this.#level.getMany(spaces.map((space, i) => space.diskKey(keys[i]!)));
      for (let i = 0; i < keys.length; i++) {
        this.#receiver.receiveRecord(spaces[i]!, keys[i]!, values[i]);
      }
      group.resolve();
    } catch (error) {
      group.reject(error);
    } finally {
      for (let i = 0; i < keys.length; i++) spaces[i]!.loading.delete(keys[i]!);
      this.#end(load);
    }
  }

  async #readPage(
    space: RecordSpace,
    at: string,
    bound: string,
    reverse: boolean,
    records: number,
  ): Promise<void> {
    const load = this.#begin(this.#receiver.turn);
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
    } finally {
      this.#end(load);
    }
  }
}
