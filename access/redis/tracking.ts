// Client-side caching (CLIENT TRACKING): the keys that clients of a tenant may have in their
// caches, and the invalidation messages when a key has changed. As in Redis keys are tracked by
// name, regardless of the database.

import type { Subscriber } from './pubsub.ts';

/** Tracking options of a client. */
export interface TrackingState {
  readonly isBroadcast: boolean;
  readonly optIn: boolean;
  readonly optOut: boolean;
  readonly noLoop: boolean;
  /** Id of the client that gets the messages; 0 for itself. */
  readonly redirect: number;
  /** Prefixes of keys to broadcast; latin1. */
  readonly prefixes: ReadonlySet<string>;
  /** CLIENT CACHING was given for the next command. */
  caching: boolean;
  /** The client that was to get the messages is gone. */
  isBroken: boolean;
}

export interface TrackingClient extends Subscriber {
  readonly id: number;
  readonly version: number;
  readonly tracking: TrackingState | undefined;
  /** The client is being closed. */
  readonly closing: boolean;
}

interface Prefix<C> {
  readonly clients: Set<C>;
  /** Keys that have changed and are yet to be told, with the client that changed each last. */
  readonly changed: Map<string, number>;
}

interface ReadsUnderWay {
  readonly keys: Set<string>;
  /** Those keys that were changed meanwhile. */
  readonly changed: Set<string>;
}

const channel = '__redis__:invalidate';
const maxPrefixes = 10_000;

/** The tracked keys of one tenant. */
export class TrackingTable<C extends TrackingClient = TrackingClient> {
  readonly clients = new Set<C>();
  /** Keys, in the order in which they were read first, and the ids of their clients. */
  readonly #keys = new Map<string, Set<number>>();
  readonly #prefixes = new Map<string, Prefix<C>>();
  readonly #find: (id: number) => C | undefined;
  /** Clients whose reads are under way on another node. */
  readonly #reads = new Map<C, ReadsUnderWay>();
  /** Number of (key, client) pairs. */
  items = 0;

  constructor(find: (id: number) => C | undefined) {
    this.#find = find;
  }

  get keys(): number {
    return this.#keys.size;
  }

  get prefixes(): number {
    return this.#prefixes.size;
  }

  get isFullOfPrefixes(): boolean {
    return this.#prefixes.size >= maxPrefixes;
  }

  /** Registers the client with its current tracking options. */
  add(client: C): void {
    this.clients.add(client);
    const { tracking } = client;
    if (tracking?.isBroadcast !== true) return;
    for (const name of tracking.prefixes) {
      let prefix = this.#prefixes.get(name);
      if (prefix === undefined) {
        this.#prefixes.set(name, (prefix = { clients: new Set(), changed: new Map() }));
      }
      prefix.clients.add(client);
    }
  }

  /** Keys that it alone has read are forgotten when they change. */
  delete(client: C): void {
    if (!this.clients.delete(client)) return;
    this.#reads.delete(client);
    for (const name of client.tracking?.prefixes ?? []) {
      const prefix = this.#prefixes.get(name);
      prefix?.clients.delete(client);
      if (prefix?.clients.size === 0) this.#prefixes.delete(name);
    }
    if (this.clients.size === 0) this.#forgetAll();
  }

  #forgetAll(): void {
    this.#keys.clear();
    this.items = 0;
  }

  /** The client has read the key. */
  remember(key: string, client: C): void {
    let ids = this.#keys.get(key);
    if (ids === undefined) this.#keys.set(key, (ids = new Set()));
    if (ids.has(client.id)) return;
    ids.add(client.id);
    this.items++;
  }

  /** A client is about to read a key on another node: a change may be told before the answer comes. */
  reads(key: string, client: C): void {
    let reads = this.#reads.get(client);
    if (reads === undefined)
      this.#reads.set(client, (reads = { keys: new Set(), changed: new Set() }));
    reads.keys.add(key);
  }

  /** Keys that were changed since the client began to read them. */
  changedSince(client: C): Iterable<string> {
    const reads = this.#reads.get(client);
    this.#reads.delete(client);
    return reads?.changed ?? [];
  }

  /** Makes room for another key: clients of the one read first are told that it has changed. */
  evict(): void {
    for (const key of this.#keys.keys()) {
      this.#invalidate(key, 0);
      return;
    }
  }

  /** A key was changed by a client, 0 for none. Those that broadcast are told by `broadcast`. */
  changed(key: string, by: number): void {
    for (const [name, { changed }] of this.#prefixes) {
      if (key.startsWith(name)) changed.set(key, by);
    }
    this.#invalidate(key, by);
    for (const [client, { keys, changed }] of this.#reads) {
      if (keys.has(key) && !(client.tracking!.noLoop && by === client.id)) changed.add(key);
    }
  }

  #invalidate(key: string, by: number): void {
    const ids = this.#keys.get(key);
    if (ids === undefined) return;
    this.#keys.delete(key);
    this.items -= ids.size;
    for (const id of ids) {
      const client = this.#find(id);
      const tracking = client?.tracking;
      if (client === undefined || tracking === undefined || tracking.isBroadcast) continue;
      if (!this.clients.has(client) || (tracking.noLoop && by === id)) continue;
      this.#send(client, [key]);
    }
  }

  /** Sends the changes since the last call. */
  broadcast(): void {
    for (const { clients, changed } of this.#prefixes.values()) {
      if (changed.size === 0) continue;
      const all = [...changed.keys()];
      for (const client of clients) {
        const { id, tracking } = client;
        const own = tracking!.noLoop ? all.filter((key) => changed.get(key) !== id) : all;
        if (own.length > 0) this.#send(client, own);
      }
      changed.clear();
    }
  }

  /** A whole database has changed. */
  flushed(): void {
    for (const client of this.clients) this.#send(client, undefined);
    this.#forgetAll();
    for (const { keys, changed } of this.#reads.values()) for (const key of keys) changed.add(key);
  }

  /** `keys` undefined for all. */
  #send(client: C, keys: readonly string[] | undefined): void {
    const tracking = client.tracking!;
    let target: C = client;
    if (tracking.redirect !== 0) {
      const other = this.#find(tracking.redirect);
      if (other === undefined || other.closed || other.closing) {
        tracking.isBroken = true;
        if (client.version < 3) return;
        const out = client.answer();
        out.push(2);
        out.text('tracking-redir-broken');
        out.integer(tracking.redirect);
        return;
      }
      target = other;
    }
    const isListening =
      target.channels.size + target.patterns.size + target.shardChannels.size > 0 &&
      target !== client;
    if (target.closed || target.closing || (target.version < 3 && !isListening)) return;
    const out = target.answer();
    const mark = out.pos;
    if (target.version >= 3) {
      out.push(2);
      out.text('invalidate');
    } else {
      out.push(3);
      out.text('message');
      out.text(channel);
    }
    if (keys === undefined) out.nil();
    else {
      out.array(keys.length);
      for (const key of keys) {
        const bytes = Buffer.from(key, 'latin1');
        out.bulk(bytes, 0, bytes.length);
      }
    }
    // In RESP3 the bytes tell it.
    if (target.version < 3) target.pushed(mark, true);
  }
}
