// Channels, patterns and shard channels, and their subscribers. Names are latin1 strings: any
// bytes, exactly.

import { CommandError } from '../../universal-row/errors.ts';
import { Glob } from '../../universal-row/transforms/redis/glob.ts';
import type { HeldMemory } from './held-memory.ts';
import type { RespWriter } from './resp-writer.ts';
import { sharedSlices } from './shared-slices.ts';

const channelKinds = ['channel', 'pattern', 'shard'] as const;
export type ChannelKind = (typeof channelKinds)[number];

/** A connection as channels need it. */
export interface Subscriber {
  readonly channels: Set<string>;
  readonly patterns: Set<string>;
  readonly shardChannels: Set<string>;
  readonly held: HeldMemory;
  readonly closed: boolean;
  /** The writer for its output. */
  answer(): RespWriter;
  /**
   * Output written from `mark` on is a message, not an answer. If writes of this tick may be lost, the message is not
   * sent, unless `isKept` is set.
   */
  pushed(mark: number, isKept?: boolean): void;
}

/** Subscribers of a channel, or by a pattern that the channel matches. */
export interface Audience {
  readonly listeners: ReadonlySet<Subscriber>;
  /** Undefined for the channel itself. */
  readonly pattern: Buffer | undefined;
}

export function receiversOf(audiences: readonly Audience[]): number {
  let receivers = 0;
  for (const { listeners } of audiences) receivers += listeners.size;
  return receivers;
}

export class PubSub {
  readonly channels = new Map<string, Set<Subscriber>>();
  readonly patterns = new Map<string, Set<Subscriber>>();
  readonly shardChannels = new Map<string, Set<Subscriber>>();
  /** Compiled patterns of `patterns`. */
  readonly #globs = new Map<string, { glob: Glob; bytes: Buffer }>();

  #of(kind: ChannelKind): Map<string, Set<Subscriber>> {
    if (kind === 'channel') return this.channels;
    return kind === 'pattern' ? this.patterns : this.shardChannels;
  }

  /**
   * Returns false when there is no memory for the subscription. Throws `CommandError` for a pattern that is too
   * complex to match, and for a subscription beyond the limit.
   */
  subscribe(subscriber: Subscriber, kind: ChannelKind, name: string): boolean {
    const names = own(subscriber, kind);
    if (names.has(name)) return true;
    if (subscriptionsOf(subscriber) >= maxSubscriptions) throw tooManySubscriptions;
    if (kind === 'pattern' && !this.#globs.has(name)) {
      if (this.patterns.size >= maxPatterns) throw tooManyPatterns;
      const bytes = Buffer.from(name, 'latin1');
      const glob = new Glob(bytes, 0, bytes.length);
      if (!subscriber.held.reserve('subscription', bytesOf(name))) return false;
      this.#globs.set(name, { glob, bytes });
    } else if (!subscriber.held.reserve('subscription', bytesOf(name))) return false;
    names.add(name);
    const listeners = this.#of(kind);
    let set = listeners.get(name);
    if (set === undefined) listeners.set(name, (set = new Set()));
    set.add(subscriber);
    return true;
  }

  unsubscribe(subscriber: Subscriber, kind: ChannelKind, name: string): void {
    if (!own(subscriber, kind).delete(name)) return;
    subscriber.held.release('subscription', bytesOf(name));
    const listeners = this.#of(kind);
    const set = listeners.get(name)!;
    set.delete(subscriber);
    if (set.size > 0) return;
    listeners.delete(name);
    if (kind === 'pattern') this.#globs.delete(name);
  }

  unsubscribeAll(subscriber: Subscriber): void {
    for (const [kind, name] of namesOf(subscriber)) this.unsubscribe(subscriber, kind, name);
  }

  /** The subscriber is gone. Where it has very many names they are forgotten some at a time. */
  forget(subscriber: Subscriber): void {
    if (subscriptionsOf(subscriber) <= forgottenAtOnce) {
      this.unsubscribeAll(subscriber);
      return;
    }
    const names = namesOf(subscriber);
    const next = (): void => {
      for (let n = 0; n < forgottenAtOnce; n++) {
        const found = names.next();
        if (found.done === true) return;
        this.unsubscribe(subscriber, ...found.value);
      }
      sharedSlices.add(next);
    };
    next();
  }

  /**
   * All that listen to the channel. Throws `CommandError` where it would take too long to match its name with all
   * patterns.
   */
  audiences(channel: Buffer, isSharded: boolean): Audience[] {
    const found = this.audiencesIfQuick(channel, isSharded);
    if (found === undefined) throw channelTooLong;
    return found;
  }

  /** As `audiences`; undefined where it would take too long. */
  audiencesIfQuick(channel: Buffer, isSharded: boolean): Audience[] | undefined {
    const name = channel.toString('latin1');
    const found: Audience[] = [];
    const direct = (isSharded ? this.shardChannels : this.channels).get(name);
    if (direct !== undefined) found.push({ listeners: direct, pattern: undefined });
    if (isSharded || this.patterns.size === 0) return found;
    if (channel.length > mostMatchedBytes) return undefined;
    let left = mostMatchedPositions;
    for (const [pattern, listeners] of this.patterns) {
      const { glob, bytes } = this.#globs.get(pattern)!;
      const before = glob.work;
      if (glob.matches(channel, 0, channel.length)) found.push({ listeners, pattern: bytes });
      left -= glob.work - before;
      if (left < 0) return undefined;
    }
    return found;
  }
}

const forgottenAtOnce = 1024;
// A connection that changes its tenant leaves all of its channels at once.
const maxSubscriptions = 65_536;
// Every message is held against all patterns of the tenant.
const maxPatterns = 10_000;
// A message finds its subscribers in one step, which may take some 15 ms. Of 10,000 patterns each may look at 400
// positions of the name.
const mostMatchedBytes = 64 * 1024;
const mostMatchedPositions = 4 * 1024 * 1024;

const tooManySubscriptions = new CommandError(
  `ERR too many subscriptions: at most ${maxSubscriptions} of a connection`,
);
const channelTooLong = new CommandError(
  'ERR channel name is too long to be matched with all patterns that clients have subscribed to',
);
const tooManyPatterns = new CommandError(`ERR too many patterns: at most ${maxPatterns}`);

/** Memory of a subscription. Its name may be stored twice. */
function bytesOf(name: string): number {
  return 256 + 2 * name.length;
}

function subscriptionsOf({ channels, patterns, shardChannels }: Subscriber): number {
  return channels.size + patterns.size + shardChannels.size;
}

function* namesOf(subscriber: Subscriber): Generator<[ChannelKind, string], void> {
  for (const kind of channelKinds) for (const name of own(subscriber, kind)) yield [kind, name];
}

export function own(subscriber: Subscriber, kind: ChannelKind): Set<string> {
  if (kind === 'channel') return subscriber.channels;
  return kind === 'pattern' ? subscriber.patterns : subscriber.shardChannels;
}
