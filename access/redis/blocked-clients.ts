// Commands that wait for a key (BLPOP and the like). A change of a key retries its waiting commands in order of
// arrival, and only as many as can be served: the first command without a result shows that the key has nothing for
// later commands. So the cost of a push depends on the number of clients that it serves, not on the number that wait.

import type { RowObserver } from '../../universal-row/executor.ts';
import type { MaybePromise } from '../../universal-row/maybe-promise.ts';
import { sharedSlices } from './shared-slices.ts';

/** Commands tried before others have the thread. */
const triesInARow = 64;

/**
 * Result of an attempt. `served`: the command was answered and is already removed. `empty`: its keys have nothing for
 * it. `failed`: it could not run, because one of its keys has another type. Commands behind it are not affected.
 */
export type Tried = 'served' | 'empty' | 'failed';

export interface WaitingCommand {
  /** Commands of one kind need the same content of a key: if one command finds nothing, no other command will. */
  readonly kind: string;
  /** Each command of the kind needs other content, or removes nothing: all of them are tried at each change. */
  readonly isShared: boolean;
  /** Queues of its keys, filled by `BlockedClients`. */
  readonly queues: Set<KeyQueue>;
  /** An attempt has yet to end; kept by `BlockedClients`. */
  isTrying: boolean;
  /** Tries it again. Must not throw. */
  attempt(): MaybePromise<Tried>;
  /** An attempt that took its time has ended without an answer. */
  missed(): void;
}

/** The keys as a pod tells of them. */
interface KeyChanges {
  observe(table: number, key: Buffer, observer: RowObserver): void;
  unobserve(table: number, key: Buffer, observer: RowObserver): void;
}

interface BlockedClientsOptions {
  /** Where to learn of changes of a table. */
  readonly changesOf: (table: number) => KeyChanges;
  /** A key that is waited for has changed: `serve` is to be called soon. */
  readonly changed: () => void;
  /** Called before commands are tried in a round of the event loop of their own. */
  readonly begin: () => void;
  /** True when enough was answered for one round of the event loop. */
  readonly isFull: () => boolean;
}

/** Commands of one kind that wait for one key. */
class KeyQueue {
  readonly key: WatchedKey;
  readonly kind: string;
  readonly commands = new Set<WaitingCommand>();
  /** The key has changed since a command was tried. */
  hasChanged = false;
  /** True while the key is in the list of keys to be served. */
  isReady = false;
  /** Commands to be tried by themselves: some were passed over, as an attempt of them had yet to end. */
  readonly again = new Set<WaitingCommand>();
  /** Iterator over `commands` after the first. It follows additions and removals. */
  #order = this.commands.values();
  #first: WaitingCommand | undefined;
  /** Iterator over the commands yet to be tried in this round, and their number. */
  #round = this.commands.values();
  #left = 0;

  constructor(key: WatchedKey, kind: string) {
    this.key = key;
    this.kind = kind;
  }

  /** The command that has waited longest. */
  get first(): WaitingCommand | undefined {
    while (this.#first === undefined || !this.commands.has(this.#first)) {
      if (this.commands.size === 0) return undefined;
      const next = this.#order.next();
      if (next.done === true) this.#order = this.commands.values();
      else this.#first = next.value;
    }
    return this.#first;
  }

  /** Begins a round of all that wait now. */
  beginRound(): void {
    this.#left = this.commands.size;
    this.#round = this.commands.values();
  }

  /** The first could not run: begins a round of those behind it. */
  passFirst(): void {
    this.beginRound();
    this.next();
  }

  get isInRound(): boolean {
    return this.#left > 0;
  }

  endRound(): void {
    this.#left = 0;
  }

  /** The next one of the round. */
  next(): WaitingCommand | undefined {
    if (this.#left === 0) return undefined;
    this.#left--;
    const next = this.#round.next();
    return next.done === true ? undefined : next.value;
  }
}

export type { KeyQueue };

class WatchedKey implements RowObserver {
  readonly id: string;
  readonly table: number;
  readonly key: Buffer;
  /** By kind. */
  readonly queues = new Map<string, KeyQueue>();
  readonly #changed: (queue: KeyQueue) => void;

  constructor(id: string, table: number, key: Buffer, changed: (queue: KeyQueue) => void) {
    this.id = id;
    this.table = table;
    this.key = key;
    this.#changed = changed;
  }

  rowChanged(): void {
    for (const queue of this.queues.values()) this.#changed(queue);
  }
}

export class BlockedClients {
  /** Commands that wait. */
  size = 0;
  /** Commands tried so far. */
  tries = 0;
  readonly #options: BlockedClientsOptions;
  readonly #keys = new Map<string, WatchedKey>();
  /** In the order in which their keys changed. */
  #ready: KeyQueue[] = [];
  #isScheduled = false;

  constructor(options: BlockedClientsOptions) {
    this.#options = options;
  }

  /** Keys that commands wait for. */
  get keys(): number {
    return this.#keys.size;
  }

  /** Some key that is waited for has changed. */
  get isReady(): boolean {
    return this.#ready.length !== 0;
  }

  add(command: WaitingCommand, table: number, keys: readonly Buffer[]): void {
    this.size++;
    for (const key of keys) {
      const watched = this.#watch(table, key);
      let queue = watched.queues.get(command.kind);
      if (queue === undefined) {
        queue = new KeyQueue(watched, command.kind);
        watched.queues.set(command.kind, queue);
      }
      queue.commands.add(command);
      command.queues.add(queue);
    }
  }

  #watch(table: number, key: Buffer): WatchedKey {
    const id = `${table}:${key.toString('latin1')}`;
    let watched = this.#keys.get(id);
    if (watched === undefined) {
      watched = new WatchedKey(id, table, key, (queue) => {
        this.#changed(queue);
        this.#options.changed();
      });
      this.#keys.set(id, watched);
      this.#options.changesOf(table).observe(table, key, watched);
    }
    return watched;
  }

  remove(command: WaitingCommand): void {
    this.size--;
    for (const queue of command.queues) {
      queue.commands.delete(command);
      queue.again.delete(command);
      if (queue.commands.size > 0) continue;
      const { key } = queue;
      key.queues.delete(queue.kind);
      if (key.queues.size > 0) continue;
      this.#keys.delete(key.id);
      this.#options.changesOf(key.table).unobserve(key.table, key.key, key);
    }
  }

  /** For a command that was added some time after it had found nothing. No observer has heard of changes in between. */
  lookAgain(command: WaitingCommand): void {
    for (const queue of command.queues) {
      if (!command.isShared) this.#changed(queue);
      else {
        queue.again.add(command);
        this.#enqueue(queue);
      }
    }
    this.#options.changed();
  }

  readonly #changed = (queue: KeyQueue): void => {
    queue.hasChanged = true;
    this.#enqueue(queue);
  };

  #enqueue(queue: KeyQueue): void {
    if (queue.isReady) return;
    queue.isReady = true;
    this.#ready.push(queue);
  }

  /**
   * Tries the commands whose keys have changed, some now and the others in later rounds of the event loop. Serving a
   * command may make another ready (a list moved into the next), so this continues until no command is ready.
   */
  serve(): void {
    if (!this.#isScheduled) this.#serveSome();
  }

  #serveSome(): void {
    const end = this.tries + triesInARow;
    let at = 0;
    for (; at < this.#ready.length; at++) {
      const queue = this.#ready[at]!;
      if (!this.#serveQueue(queue, end)) break;
      queue.isReady = false;
      // A shared command changed its own key: another round.
      if (queue.hasChanged && queue.first?.isTrying === false) this.#changed(queue);
    }
    this.#ready = at === this.#ready.length ? [] : this.#ready.slice(at);
    if (this.#ready.length === 0) return;
    this.#isScheduled = true;
    sharedSlices.add(() => {
      this.#isScheduled = false;
      this.#options.begin();
      this.#serveSome();
    });
  }

  /** Returns false when time runs out before all commands were tried. */
  #serveQueue(queue: KeyQueue, end: number): boolean {
    for (const command of queue.again) {
      if (command.isTrying) continue;
      if (this.#isTimeUp(end)) return false;
      this.#try(command, queue, true);
    }
    while (!queue.isInRound) {
      const { first } = queue;
      if (first === undefined) return true;
      if (first.isShared) {
        if (!queue.hasChanged) return true;
        queue.hasChanged = false;
        queue.beginRound();
        break;
      }
      // When that attempt has ended the queue is ready again.
      if (first.isTrying) return true;
      if (this.#isTimeUp(end)) return false;
      queue.hasChanged = false;
      const tried = this.#try(first, queue, false);
      if (tried === 'failed') {
        queue.passFirst();
        break;
      }
      if (tried !== 'served' && !queue.hasChanged) return true;
    }
    return this.#serveRound(queue, end);
  }

  /** Tries all commands of the round. Ends the round when a command that is not shared finds nothing. */
  #serveRound(queue: KeyQueue, end: number): boolean {
    while (queue.isInRound) {
      if (this.#isTimeUp(end)) return false;
      const command = queue.next();
      if (command === undefined) queue.endRound();
      else if (command.isTrying) queue.again.add(command);
      else if (this.#try(command, queue, true) === 'empty' && !command.isShared) queue.endRound();
    }
    return true;
  }

  #isTimeUp(end: number): boolean {
    return this.tries >= end || this.#options.isFull();
  }

  /** Undefined while it is not known yet. */
  #try(command: WaitingCommand, queue: KeyQueue, isInRound: boolean): Tried | undefined {
    this.tries++;
    for (const one of command.queues) one.again.delete(command);
    const done = command.attempt();
    if (!(done instanceof Promise)) return done;
    command.isTrying = true;
    void done.then((tried) => {
      command.isTrying = false;
      // Those behind it may find something as well.
      if (tried === 'served') queue.hasChanged = true;
      else if (tried === 'failed' && !isInRound) {
        queue.passFirst();
        if (queue.isInRound) this.#enqueue(queue);
      }
      if (tried !== 'served') command.missed();
      for (const one of command.queues) {
        if (one.hasChanged) this.#changed(one);
        else if (one.again.has(command)) this.#enqueue(one);
      }
      if (!this.isReady || this.#isScheduled) return;
      this.#options.begin();
      this.#serveSome();
    });
    return undefined;
  }
}
