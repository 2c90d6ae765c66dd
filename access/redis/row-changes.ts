// Notifications of committed changes to rows: keyspace notifications, and messages for clients that
// cache keys (CLIENT TRACKING). Pods report changes only while a client wants them. Messages are
// written at the end of the tick, so that they leave when the answers to its commands do: not
// before the log is safe.

import type { Arguments } from '../../universal-row/arguments.ts';
import type { TickMember } from '../../universal-row/executor.ts';
import {
  Change,
  type ChangedBy,
  type ChangeListener,
  type RowChange,
} from '../../universal-row/row-change.ts';
import { keyWords } from './commands/key-words.ts';
import type { CommandEntry } from './commands/registry.ts';
import { describeCommand, type EventClass, eventsOf, listMoves } from './keyspace-events.ts';
import { isWrite, type TableSpan } from '../../universal-row/command.ts';
import { receiversOf } from './pubsub.ts';
import type { Tenant } from './tenant.ts';
import type { TrackingClient } from './tracking.ts';

/** Changes exchanged between the nodes of a cluster. */
export interface ChangesElsewhere {
  /** Other nodes want to know of changes here, and of rows that were not found. */
  readonly isWanted: boolean;
  readonly wantsMisses: boolean;
  /** Tells them, once these are committed. */
  rowsChanged(changes: readonly RowChange[]): void;
  tablesChanged(tables: readonly number[]): void;
  /**
   * Subscribes this node to their changes, or unsubscribes. Resolves once they know; earlier
   * changes are not reported.
   */
  follow(isWanted: boolean, wantsMisses: boolean): Promise<unknown>;
}

interface RowChangesOptions<C extends TrackingClient> {
  executors: () => readonly TickMember[];
  tenants: ReadonlyMap<number, Tenant<C>>;
  /** The table of a partition. */
  tableOf: (number: number) => number;
  /** Has a tick end soon. */
  schedule: () => void;
}

// Changes that one tick tells of. More wait for the next ones.
const changesATick = 1000;
/** Tracked keys that are evicted in one go once a lower limit was set. */
const evictionsATime = 1000;
/** Events of a tenant that wait to be sent to its many subscribers; more are dropped. */
const maxBacklog = 10_000;

/** Tables that were emptied or changed places, in the order of other changes. */
interface TablesChange {
  readonly tables: readonly number[];
}

export class RowChanges<C extends TrackingClient = TrackingClient> implements ChangeListener {
  /** Letters of `notify-keyspace-events`; empty for no notifications. */
  #classes = '';
  /** Keys that all tenants together may have tracked; 0 for no limit. */
  maxTrackedKeys = 1_000_000;
  /** Events that were dropped: their subscribers could not keep up, or their keys are too long for the patterns. */
  droppedEvents = 0;
  /** Tenants of clients that cache keys. */
  readonly trackers = new Set<Tenant<C>>();
  readonly #options: RowChangesOptions<C>;
  /** Clients with a running script that has read keys. */
  readonly #readingScripts = new Set<C>();
  #followed: readonly TickMember[] = [];
  #queue: (RowChange | TablesChange)[] = [];
  #next = 0;
  #lastTenant: Tenant<C> | undefined;
  /** On a node of a cluster. */
  elsewhere: ChangesElsewhere | undefined;
  /** Resolves when other nodes report their changes, if this node asked for that. */
  following: Promise<unknown> | undefined;
  #followedMisses = false;

  constructor(options: RowChangesOptions<C>) {
    this.#options = options;
  }

  get classes(): string {
    return this.#classes;
  }

  set classes(letters: string) {
    this.#classes = letters;
    this.sync();
  }

  get wantsMisses(): boolean {
    return this.#wantsMisses || this.elsewhere?.wantsMisses === true;
  }

  get #wantsMisses(): boolean {
    return this.#classes.includes('m');
  }

  get #isWanted(): boolean {
    if (/[KE]/.test(this.#classes)) return true;
    return this.trackers.size > 0;
  }

  /** The client's state of tracking is another one now. */
  setTracking(client: C, tenant: Tenant<C>, set: () => void): void {
    tenant.tracking.delete(client);
    set();
    if (client.tracking !== undefined) tenant.tracking.add(client);
    if (tenant.tracking.clients.size > 0) this.trackers.add(tenant);
    else this.trackers.delete(tenant);
    this.sync();
  }

  /** Asks the pods to tell of changes, or to do so no more; also called from time to time, as there may be new pods. */
  sync(): void {
    this.#followElsewhere();
    const isWanted = this.#isWanted || this.elsewhere?.isWanted === true;
    const wanted = isWanted ? this.#options.executors() : [];
    if (wanted === this.#followed || (wanted.length === 0 && this.#followed.length === 0)) return;
    for (const executor of this.#followed)
      if (!wanted.includes(executor)) executor.follow(undefined);
    for (const executor of wanted) executor.follow(this);
    this.#followed = wanted;
  }

  #followElsewhere(): void {
    const { elsewhere } = this;
    if (elsewhere === undefined) return;
    const isWanted = this.#isWanted;
    const misses = this.#wantsMisses;
    if (isWanted === (this.following !== undefined) && misses === this.#followedMisses) return;
    this.#followedMisses = misses;
    const told = elsewhere.follow(isWanted, misses);
    this.following = isWanted ? told : undefined;
  }

  // ---- from other nodes

  /** Changes of rows that another node leads. */
  heard(changes: readonly RowChange[]): void {
    if (this.#isWanted) this.#rowsChanged(changes);
  }

  heardOfTables(tables: readonly number[]): void {
    if (this.#isWanted) this.#tablesChanged(tables);
  }

  /**
   * Changes of the tenant with this number, or of all, may have been missed: its clients must
   * invalidate their caches.
   */
  missed(tenant?: number): void {
    const tables = [...this.trackers]
      .filter(({ number }) => tenant === undefined || number === tenant)
      .map(({ span }) => span.first);
    if (tables.length > 0) this.#tablesChanged(tables);
  }

  // ---- from the pods

  describe(args: Arguments, client: number): ChangedBy {
    return describeCommand(args, client);
  }

  rowsChanged(changes: readonly RowChange[]): void {
    if (changes.length === 0) return;
    if (this.elsewhere?.isWanted === true) {
      this.elsewhere.rowsChanged(changes);
      this.#options.schedule();
    }
    if (this.#isWanted) this.#rowsChanged(changes);
  }

  #rowsChanged(changes: readonly RowChange[]): void {
    for (const change of changes) {
      const table = this.#options.tableOf(change.table);
      this.#queue.push(table === change.table ? change : { ...change, table });
    }
    this.#options.schedule();
  }

  tablesChanged(tables: readonly number[]): void {
    if (this.elsewhere?.isWanted === true) {
      this.elsewhere.tablesChanged(tables);
      this.#options.schedule();
    }
    if (this.#isWanted) this.#tablesChanged(tables);
  }

  #tablesChanged(tables: readonly number[]): void {
    this.#queue.push({ tables: tables.map((table) => this.#options.tableOf(table)) });
    this.#options.schedule();
  }

  // ---- from clients

  /** The client's command is about to read keys, later or, if `isElsewhere`, in another process perhaps. */
  readsElsewhere(
    client: C,
    { tracking }: Tenant<C>,
    entry: CommandEntry,
    args: Arguments,
    isElsewhere: boolean,
  ): void {
    const isScript = entry.bind !== undefined;
    if (!entry.hasKeys || entry.run === undefined || (isWrite(entry.action) && !isScript)) return;
    for (const word of keyWords(entry.spec, args)) tracking.reads(args.latin1(word), client);
    // Reads of a script on another pod are not visible here.
    if (isScript && isElsewhere) this.#readingScripts.add(client);
  }

  /** The client's command has read keys, perhaps. */
  hasRun(client: C, entry: CommandEntry, args: Arguments): void {
    const state = client.tracking;
    if (state === undefined || entry.fullName.startsWith('client|')) return;
    this.#remember(client, entry, args);
    this.#tellSince(client);
    // Within MULTI it holds until EXEC.
    if (entry.spec.name !== 'multi') state.caching = false;
  }

  /** Changes made while the client read are reported again, after the reply. */
  #tellSince(client: C): void {
    for (const { tracking, span } of this.trackers) {
      const table = span.first;
      for (const key of tracking.changedSince(client)) {
        const change = { table, key: Buffer.from(key, 'latin1'), change: Change.written };
        this.#rowsChanged([{ ...change, by: undefined }]);
      }
    }
  }

  /** A script of the client has called a command: if it reads, all keys that the script declares count as read. */
  scriptCalled(client: C, entry: CommandEntry): void {
    if (entry.hasKeys && !isWrite(entry.action)) this.#readingScripts.add(client);
  }

  #remember(client: C, entry: CommandEntry, args: Arguments): void {
    const { tracking: state } = client;
    const isScript = entry.bind !== undefined;
    const reads = isScript
      ? this.#readingScripts.delete(client)
      : entry.run !== undefined && !isWrite(entry.action);
    if (state === undefined || state.isBroadcast || !reads || !entry.hasKeys) return;
    if (state.optIn ? !state.caching : state.optOut && state.caching) return;
    for (const tenant of this.trackers) {
      if (!tenant.tracking.clients.has(client)) continue;
      for (const word of keyWords(entry.spec, args)) {
        tenant.tracking.remember(args.latin1(word), client);
        this.#limit();
      }
    }
  }

  /**
   * Evicts keys beyond a lowered limit, some at a time. It writes to clients, so it must not run while a client is
   * being answered.
   */
  evictExcess(): void {
    if (this.trackers.size === 0) return;
    for (let left = evictionsATime; left > 0 && this.#limit(); left--);
  }

  /** Evicts one key if there are too many. Returns whether there were. */
  #limit(): boolean {
    if (this.maxTrackedKeys === 0) return false;
    let total = 0;
    let largest: Tenant<C> | undefined;
    for (const tenant of this.trackers) {
      const { keys } = tenant.tracking;
      total += keys;
      if (largest === undefined || keys > largest.tracking.keys) largest = tenant;
    }
    if (total <= this.maxTrackedKeys) return false;
    largest!.tracking.evict();
    return true;
  }

  // ---- at the end of a tick

  /** Changes are left for the next tick. */
  get isWaiting(): boolean {
    return this.#queue.length !== 0;
  }

  /** Writes the pending notifications. */
  readonly flush = (): void => {
    if (this.#queue.length === 0) return;
    const broadcasting = new Set<Tenant<C>>();
    const end = this.#next + changesATick;
    while (this.#next < Math.min(end, this.#queue.length)) {
      const one = this.#queue[this.#next]!;
      if ('tables' in one) {
        this.#next++;
        this.#tellTables(one.tables);
        continue;
      }
      const changes = this.#ofOneKey(one);
      const other = this.#queue[this.#next];
      if (isMove(one) && this.#isOfCommand(one, other)) {
        // As redis-server does it, the target comes first.
        this.#tell(this.#ofOneKey(other), broadcasting);
      }
      this.#tell(changes, broadcasting);
    }
    for (const tenant of broadcasting) tenant.tracking.broadcast();
    if (this.#next === this.#queue.length) {
      this.#queue = [];
      this.#next = 0;
    }
  };

  /** The changes of one command to one key, which are told in one go. */
  #ofOneKey(first: RowChange): RowChange[] {
    const changes = [first];
    for (;;) {
      const other = this.#queue[++this.#next];
      if (!this.#isOfCommand(first, other) || !first.key.equals(other.key)) return changes;
      changes.push(other);
    }
  }

  #isOfCommand(first: RowChange, other: RowChange | TablesChange | undefined): other is RowChange {
    if (other === undefined || 'tables' in other || first.by === undefined) return false;
    return other.by === first.by && other.table === first.table;
  }

  #tell(changes: readonly RowChange[], broadcasting: Set<Tenant<C>>): void {
    const tenant = this.#tenantOf(changes[0]!.table);
    if (tenant === undefined) return;
    if (this.#track(tenant, changes)) broadcasting.add(tenant);
    if (this.#classes !== '') this.#notify(tenant, changes);
  }

  #tenantOf(table: number): Tenant<C> | undefined {
    const last = this.#lastTenant;
    if (last !== undefined && holds(last, table)) return last;
    for (const tenant of this.#options.tenants.values()) {
      if (holds(tenant, table)) return (this.#lastTenant = tenant);
    }
    return undefined;
  }

  #track({ tracking }: Tenant<C>, changes: readonly RowChange[]): boolean {
    if (tracking.clients.size === 0) return false;
    const { key, by } = changes[0]!;
    if (changes.every(({ change }) => change === 0 || change === Change.missed)) return false;
    tracking.changed(key.toString('latin1'), by?.client ?? 0);
    return tracking.prefixes > 0;
  }

  #tellTables(tables: readonly number[]): void {
    const flushed = new Set<Tenant<C>>();
    for (const table of tables) {
      const tenant = this.#tenantOf(table);
      if (tenant === undefined || flushed.has(tenant)) continue;
      flushed.add(tenant);
      tenant.tracking.flushed();
    }
  }

  #notify(tenant: Tenant<C>, changes: readonly RowChange[]): void {
    const { channels, patterns } = tenant.pubsub;
    if (channels.size + patterns.size === 0) return;
    const { key, table } = changes[0]!;
    const db = table - tenant.span.first;
    eventsOf(changes, (letter: EventClass, event: string) => {
      const classes = this.#classes;
      if (!classes.includes(letter)) return;
      const name = Buffer.from(event);
      if (classes.includes('K')) {
        this.#publish(tenant, Buffer.concat([Buffer.from(`__keyspace@${db}__:`), key]), name);
      }
      if (classes.includes('E')) {
        this.#publish(tenant, Buffer.from(`__keyevent@${db}__:${event}`), key);
      }
    });
  }

  #publish({ pubsub, fanOut }: Tenant<C>, channel: Buffer, payload: Buffer): void {
    const audiences = pubsub.audiencesIfQuick(channel, false);
    if (audiences === undefined) {
      this.droppedEvents++;
      return;
    }
    const receivers = receiversOf(audiences);
    if (receivers === 0) return;
    if (fanOut.backlog >= maxBacklog) this.droppedEvents++;
    else void fanOut.send({ channel, payload, isSharded: false }, audiences, receivers);
  }
}

function isMove({ by }: RowChange): boolean {
  return by !== undefined && listMoves.has(by.name);
}

function holds({ span }: { span: TableSpan }, table: number): boolean {
  return table >= span.first && table < span.first + span.count;
}
