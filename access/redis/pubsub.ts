// Channels, patterns and shard channels, and who listens. Names are latin1 strings: any bytes, exactly.

import { Glob } from './commands/glob.ts';
import type { Connection } from './connection.ts';

export type ChannelKind = 'channel' | 'pattern' | 'shard';

export class PubSub {
  readonly channels = new Map<string, Set<Connection>>();
  readonly patterns = new Map<string, Set<Connection>>();
  readonly shardChannels = new Map<string, Set<Connection>>();
  /** Of `patterns`. */
  readonly #globs = new Map<string, Glob>();

  #of(kind: ChannelKind): Map<string, Set<Connection>> {
    if (kind === 'channel') return this.channels;
    return kind === 'pattern' ? this.patterns : this.shardChannels;
  }

  /** Throws `CommandError` for a pattern that is too complex to be searched for. */
  subscribe(connection: Connection, kind: ChannelKind, name: string): void {
    if (kind === 'pattern' && !this.#globs.has(name)) {
      const bytes = Buffer.from(name, 'latin1');
      this.#globs.set(name, new Glob(bytes, 0, bytes.length));
    }
    own(connection, kind).add(name);
    const listeners = this.#of(kind);
    let set = listeners.get(name);
    if (set === undefined) listeners.set(name, (set = new Set()));
    set.add(connection);
  }

  unsubscribe(connection: Connection, kind: ChannelKind, name: string): void {
    own(connection, kind).delete(name);
    const listeners = this.#of(kind);
    const set = listeners.get(name);
    if (set === undefined) return;
    set.delete(connection);
    if (set.size > 0) return;
    listeners.delete(name);
    if (kind === 'pattern') this.#globs.delete(name);
  }

  unsubscribeAll(connection: Connection): void {
    for (const kind of ['channel', 'pattern', 'shard'] as const) {
      for (const name of [...own(connection, kind)]) this.unsubscribe(connection, kind, name);
    }
  }

  /** Sends a message to everyone who listens; returns to how many. */
  publish(channel: Buffer, message: Buffer, sharded: boolean): number {
    const name = channel.toString('latin1');
    let receivers = 0;
    const direct = (sharded ? this.shardChannels : this.channels).get(name);
    if (direct !== undefined) {
      const kind = sharded ? 'smessage' : 'message';
      for (const connection of direct) {
        const out = connection.server.open(connection);
        out.push(3);
        out.text(kind);
        out.bulk(channel, 0, channel.length);
        out.bulk(message, 0, message.length);
        receivers++;
      }
    }
    if (sharded) return receivers;
    for (const [pattern, set] of this.patterns) {
      if (!this.#globs.get(pattern)!.matches(channel, 0, channel.length)) continue;
      const glob = Buffer.from(pattern, 'latin1');
      for (const connection of set) {
        const out = connection.server.open(connection);
        out.push(4);
        out.text('pmessage');
        out.bulk(glob, 0, glob.length);
        out.bulk(channel, 0, channel.length);
        out.bulk(message, 0, message.length);
        receivers++;
      }
    }
    return receivers;
  }
}

export function own(connection: Connection, kind: ChannelKind): Set<string> {
  if (kind === 'channel') return connection.channels;
  return kind === 'pattern' ? connection.patterns : connection.shardChannels;
}
