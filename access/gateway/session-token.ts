// What a client has read and written: the log index that it has seen of each group of replicas. A
// token carries that to other connections, nodes and protocols.
//
//   token = base64url of: 1 | (group varint | index varint)*

import type { ReadSession } from '../../universal-row/command.ts';
import { WireError, WireReader, WireWriter } from '../../universal-row/protocol/wire.ts';

const tokenVersion = 1;
const maxTokenLength = 64 * 1024;

export class SeenState implements ReadSession {
  /** Commands run by leaders: the log index that the client has seen by them is unknown. */
  #moves = 0;
  readonly #seen = new Map<number, { index: number; moves: number }>();

  /** Undefined for an invalid token. */
  static parse(token: string): SeenState | undefined {
    const state = new SeenState();
    const bytes = Buffer.from(token.length <= maxTokenLength ? token : '', 'base64url');
    try {
      const reader = new WireReader(bytes, 0, bytes.length);
      if (reader.u8() !== tokenVersion) return undefined;
      while (reader.pos < bytes.length) state.saw(reader.varint(), reader.varint());
    } catch (error) {
      if (error instanceof WireError || error instanceof RangeError) return undefined;
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
