// LIMIT and OFFSET of one group.

import { type Chunk, pending, slice, type Stream } from '../vector.ts';

export function limited(input: Stream, limit: number, offset: number): Stream {
  return limit > 0 || offset > 0 ? new Limit(input, limit, offset) : input;
}

class Limit implements Stream {
  readonly #input: Stream;
  #skip: number;
  #left: number;

  constructor(input: Stream, limit: number, offset: number) {
    this.#input = input;
    this.#skip = offset;
    this.#left = limit > 0 ? limit : Infinity;
  }

  next(): Chunk | typeof pending | undefined {
    if (this.#left === 0) return undefined;
    const chunk = this.#input.next();
    if (chunk === undefined || chunk === pending) return chunk;
    const from = Math.min(this.#skip, chunk.count);
    this.#skip -= from;
    const to = Math.min(chunk.count, from + this.#left);
    if (from === to) return pending;
    this.#left -= to - from;
    return slice(chunk, from, to);
  }
}
