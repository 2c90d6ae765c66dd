// The Redis server of a node of a history, and its clients. Their sockets are memory; all else is as in the server: requests
// that are sent ahead of answers, ticks, answers that wait for the log, watched keys.

import type { Socket } from 'node:net';
import { Principals } from '../../access/gateway/principals.ts';
import type { Router } from '../../access/gateway/router.ts';
import { allCommands } from '../../access/redis/commands/all.ts';
import { CommandRegistry } from '../../access/redis/commands/registry.ts';
import { Connection } from '../../access/redis/connection.ts';
import { RedisServer } from '../../access/redis/server.ts';
import type { ServerFacts } from '../../access/redis/server-facts.ts';
import { encodeAll } from '../support/resp-client.ts';
import { RespReader, type RespValue } from '../support/resp-value.ts';
import type { OwnedTimeline } from '../histories/owned-timeline.ts';
import type { Host } from '../histories/wires.ts';

export const registry = new CommandRegistry(allCommands);
const unlimited = { hardBytes: 0, softBytes: 0, softSeconds: 0 };

const facts: ServerFacts = {
  ...{ version: 'test', runId: 'f'.repeat(40), startedAt: 0 },
  ...{ executable: '', configFile: '', dataDirectory: '' },
  memory: () => ({ used: 1, peak: 1, startup: 0, uncounted: 0, held: 1 }),
  persistence: () => ({}),
  tableSize: () => ({ rows: 0, expiring: 0 }),
  lookups: () => ({ hits: 0, misses: 0 }),
  evictedRows: () => 0,
  expiredRows: () => 0,
  checkpoint: async () => {},
  synced: async () => {},
  lastCheckpointAt: () => 0,
  checkpointInProgress: () => false,
  shutdown: () => {},
};

/** The server's end of a client's connection, as far as connections use a socket. */
class MemorySocket {
  /** Such sockets are written to in the usual way. */
  readonly encrypted = true;
  readonly writableLength = 0;
  readonly writableHighWaterMark = 16 * 1024;
  readonly remoteAddress = 'client';
  readonly #out: (bytes: Buffer | undefined) => void;

  /** `out`: the bytes of a write; undefined at the end. */
  constructor(out: (bytes: Buffer | undefined) => void) {
    this.#out = out;
  }

  write(bytes: Buffer | string): void {
    this.#out(Buffer.from(bytes as string));
  }

  end(): void {
    this.#out(undefined);
  }

  destroy(): void {
    this.#out(undefined);
  }

  destroySoon(): void {
    this.#out(undefined);
  }

  pause(): void {}

  resume(): void {}
}

/** A client of one life of a node. */
export class FrontClient {
  /** The connection has ended. */
  isGone = false;
  readonly #reader = new RespReader();
  readonly #send: (bytes: Buffer) => void;
  /** Requests are sent one after the other, each of some commands. */
  #waiting: { count: number; answers: RespValue[]; done: () => void } | undefined;

  constructor(send: (bytes: Buffer) => void) {
    this.#send = send;
  }

  /** Sends commands, and resolves to their answers, or those before the connection has ended. */
  ask(...commands: readonly string[][]): Promise<RespValue[]> {
    if (this.isGone) return Promise.resolve([]);
    const answers: RespValue[] = [];
    return new Promise((resolve) => {
      this.#waiting = { count: commands.length, answers, done: () => resolve(answers) };
      this.#send(encodeAll(commands));
    });
  }

  receive(bytes: Buffer | undefined): void {
    if (bytes === undefined) {
      this.isGone = true;
      this.#waiting?.done();
      return;
    }
    this.#reader.push(bytes);
    for (let answer = this.#reader.next(); answer; answer = this.#reader.next()) {
      const waiting = this.#waiting;
      if (waiting === undefined) throw new Error('an answer to nothing');
      waiting.answers.push(answer);
      if (waiting.answers.length < waiting.count) continue;
      this.#waiting = undefined;
      waiting.done();
    }
  }
}

interface FrontOptions {
  readonly timeline: OwnedTimeline;
  readonly host: Host;
  readonly router: Router;
  readonly report: (level: string, message: string, fields?: object) => void;
  /** A client's end has failed. */
  readonly breach: (error: Error) => void;
}

export class RedisFront {
  readonly #options: FrontOptions;
  readonly server: RedisServer;
  readonly #principals = new Principals({ databases: 16 });
  readonly #clients = new Set<FrontClient>();
  #nextId = 1;

  constructor(options: FrontOptions) {
    this.#options = options;
    const { router, report } = options;
    this.server = new RedisServer({
      ...{ host: '', port: 0, backlog: 1, tcpKeepAliveSeconds: 0 },
      ...{ maxClients: 1000, idleTimeout: 0, loginTimeoutMs: 0 },
      principals: this.#principals,
      ...{ maxBulkBytes: 2 ** 24, maxQueryBytes: 2 ** 26, busyReplyMs: 5000 },
      ...{ slowlogMs: Infinity, slowlogLength: 1 },
      outputLimits: { normal: unlimited, pubsub: unlimited },
      ...{ registry, router, config: [], facts, report },
    });
  }

  connect(): FrontClient {
    const { timeline, host, breach } = this.#options;
    const { server } = this;
    // The client is another process.
    const toClient = (act: () => void): void =>
      timeline.as(undefined, () =>
        timeline.after(0, () => {
          try {
            act();
          } catch (error) {
            breach(error as Error);
          }
        }),
      );
    const client = new FrontClient((bytes) =>
      host.soon(() => {
        if (!connection.closed) server.tick.receive(connection, bytes, bytes.length);
      }),
    );
    const socket = new MemorySocket((bytes) => toClient(() => client.receive(bytes)));
    const connection = new Connection(
      server,
      socket as unknown as Socket,
      this.#nextId++,
      server.now,
      this.#principals.anonymous,
    );
    server.connections.set(connection.id, connection);
    this.#clients.add(client);
    return client;
  }

  /** The process has ended. */
  ended(): void {
    for (const client of this.#clients) client.receive(undefined);
  }
}
