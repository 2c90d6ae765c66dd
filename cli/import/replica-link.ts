// The source's side of a move: a connection to a Redis that takes us for a replica.

import type { ByteSource } from './byte-source.ts';
import { readLine } from './command-stream.ts';
import { type Endpoint, RedisError, RespLink } from './resp-link.ts';

/** Where in a master's stream of commands a replica is. */
export interface StreamPlace {
  replication: string;
  offset: number;
}

interface Snapshot {
  /** NaN when the master does not say. */
  bytes: number;
  /** Marker after the snapshot. */
  mark: string;
}

/** The source does not let us be a replica. */
export class ReplicationRefused extends Error {
  override readonly name = 'ReplicationRefused';
}

export class ReplicaLink {
  readonly source: ByteSource;
  /** Position before the next command. */
  readonly place: StreamPlace;
  /** Whether a snapshot comes first. */
  readonly isFull: boolean;
  readonly #link: RespLink;

  private constructor(link: RespLink, source: ByteSource, place: StreamPlace, isFull: boolean) {
    this.#link = link;
    this.source = source;
    this.place = place;
    this.isFull = isFull;
  }

  /** Asks for the stream from a place on, or from the beginning. Throws `ReplicationRefused`. */
  static async open(endpoint: Endpoint, from: StreamPlace | undefined): Promise<ReplicaLink> {
    const link = await RespLink.open(endpoint);
    try {
      await link.call('REPLCONF', 'capa', 'eof', 'capa', 'psync2');
      const words = from === undefined ? ['?', '-1'] : [from.replication, String(from.offset + 1)];
      const answer = String(await link.call('PSYNC', ...words));
      const source = link.takeOver();
      const [kind, replication, offset] = answer.split(' ');
      if (kind === 'FULLRESYNC' && replication !== undefined) {
        return new ReplicaLink(link, source, { replication, offset: Number(offset) }, true);
      }
      if (kind === 'CONTINUE' && from !== undefined) {
        const place = { replication: replication ?? from.replication, offset: from.offset };
        return new ReplicaLink(link, source, place, false);
      }
      throw new ReplicationRefused(answer);
    } catch (error) {
      link.close();
      if (error instanceof RedisError) throw new ReplicationRefused(error.message);
      throw error;
    }
  }

  /** Waits for the snapshot to begin. */
  async snapshot(): Promise<Snapshot> {
    for (;;) {
      const line = await readLine(this.source);
      if (line.startsWith('$EOF:')) return { bytes: NaN, mark: line.slice(5) };
      if (line.startsWith('$')) return { bytes: Number(line.slice(1)), mark: '' };
      if (line.startsWith('-')) throw new ReplicationRefused(line.slice(1));
    }
  }

  /** Tells the master that we are there while we load the snapshot. */
  stayAlive(): void {
    this.#link.socket.write('\n');
  }

  /** Tells the master how far we are. */
  acknowledge(offset: number): void {
    const text = String(offset);
    const words = `*3\r\n$8\r\nREPLCONF\r\n$3\r\nACK\r\n$${text.length}\r\n${text}\r\n`;
    this.#link.socket.write(words);
  }

  close(): void {
    this.#link.close();
  }
}
