// Consistency of a client's reads, if it differs from the tables': CONSISTENCY. A session records
// the log index its client has seen of each group of replicas, and a token carries that to other
// connections and nodes.
//
//   token = base64url of: 1 | (group varint | index varint)*

import { CommandError } from '../../universal-row/errors.ts';
import type { ReadBounds, ReadSession } from '../../universal-row/command.ts';
import { WireError, WireReader, WireWriter } from '../../universal-row/protocol/wire.ts';
import type { Client } from './client.ts';

export interface ReadMode {
  /** Name shown to the client. */
  readonly words: string;
  /** Undefined for the latest state. */
  readonly bounds: ReadBounds | undefined;
  readonly session?: SeenState;
}

/** Modes of the clients that have set one. */
export const readModes = new WeakMap<Client, ReadMode>();

const tokenVersion = 1;
const maxTokenLength = 64 * 1024;
export const badToken = 'ERR invalid session token';

export class SeenState implements ReadSession {
  /** Commands run by leaders: the log index that the client has seen by them is unknown. */
  #moves = 0;
  readonly #seen = new Map<number, { index: number; moves: number }>();

  /** Throws `CommandError` for an invalid token. */
  static of(token: string): SeenState {
    const state = new SeenState();
    const bytes = Buffer.from(token.length <= maxTokenLength ? token : '', 'base64url');
    try {
      const reader = new WireReader(bytes, 0, bytes.length);
      if (reader.u8() !== tokenVersion) throw new WireError('another version');
      while (reader.pos < bytes.length) state.saw(reader.varint(), reader.varint());
    } catch (error) {
      if (error instanceof WireError || error instanceof RangeError)
        throw new CommandError(badToken);
      throw error;
    }
    return state;
  }

  get groups(): number[] {
    return [...this.#seen.keys()];
  }

  needs(group: number): number {
    const seen = this.#seen.get(group);
    if ((seen?.moves ?? 0) !== this.#moves) return Infinity;
    return seen?.index ?? 0;
  }

  saw(group: number, index: number): void {
    const before = this.#seen.get(group)?.index ?? 0;
    this.#seen.set(group, { index: Math.max(index, before), moves: this.#moves });
  }

  moved(): void {
    this.#moves++;
  }

  token(): string {
    const writer = new WireWriter(64);
    writer.u8(tokenVersion);
    for (const [group, { index }] of this.#seen) {
      writer.varint(group);
      writer.varint(index);
    }
    return writer.view().toString('base64url');
  }
}
