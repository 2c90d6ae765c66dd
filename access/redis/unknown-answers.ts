// Errors sent in place of replies that depend on rows which are lost, or may be: each command of a pipeline
// has its own error, so that none takes the answer of another.

import { outcomeUnknown } from '../../universal-row/errors.ts';

const unknown = Buffer.from(`-${outcomeUnknown}\r\n`);
/** The command was not executed, so it can be sent again. */
const lost = Buffer.from(
  '-CLUSTERDOWN The partition has lost its leader, and the command was not done\r\n',
);
const invalidate = Buffer.from('invalidate');

const Sign = {
  push: 0x3e,
  map: 0x25,
  attribute: 0x7c,
  bulk: 0x24,
  verbatim: 0x3d,
  longError: 0x21,
  array: 0x2a,
  set: 0x7e,
} as const;

/** Walks answers by their headers. Every method throws `RangeError` where the bytes are not whole. */
class AnswerWalk {
  readonly #b: Buffer;
  at = 0;

  constructor(bytes: Buffer) {
    this.#b = bytes;
  }

  get isAtEnd(): boolean {
    return this.at >= this.#b.length;
  }

  get sign(): number {
    return this.#b[this.at]!;
  }

  /** The number in a header, whose line is then behind. */
  #count(): number {
    const end = this.#b.indexOf(13, this.at);
    const count = Number(this.#b.toString('latin1', this.at + 1, end));
    if (end < 0 || end + 2 > this.#b.length || !Number.isInteger(count)) throw new RangeError();
    this.at = end + 2;
    return Math.max(0, count);
  }

  /** Goes behind one answer. */
  skip(): void {
    for (let left = 1; left > 0; left--) left += this.#skipHeader();
  }

  /** The number of values that belong to this one and follow it. */
  #skipHeader(): number {
    switch (this.sign) {
      case Sign.array:
      case Sign.set:
      case Sign.push:
        return this.#count();
      case Sign.map:
        return 2 * this.#count();
      case Sign.attribute:
        // The value behind the attribute is counted too.
        return 2 * this.#count() + 1;
      case Sign.bulk:
      case Sign.verbatim:
      case Sign.longError: {
        const isNil = this.#b[this.at + 1] === 0x2d;
        const length = this.#count();
        if (!isNil) this.at += length + 2;
        if (this.at > this.#b.length) throw new RangeError();
        return 0;
      }
      default: {
        const end = this.#b.indexOf(10, this.at);
        if (end < 0) throw new RangeError();
        this.at = end + 1;
        return 0;
      }
    }
  }
}

/**
 * How an item is handled. `lost`: an answer to a command that was not done. `unknown`: an answer to a command that may
 * have been done. Messages, which look like answers in RESP2, are `dropped` or `kept`.
 */
export type Fate = 'lost' | 'unknown' | 'dropped' | 'kept';

/**
 * As many errors as there are answers in the bytes; undefined if these are not whole answers. Of pushed messages only the
 * invalidations of cached keys stay. `fateOf` is asked about the item at a position.
 */
export function asErrors(bytes: Buffer, fateOf: (at: number) => Fate): Buffer | undefined {
  const walk = new AnswerWalk(bytes);
  const parts: Buffer[] = [];
  try {
    while (!walk.isAtEnd) {
      const { at: from, sign } = walk;
      walk.skip();
      const item = bytes.subarray(from, walk.at);
      const fate = fateOf(from);
      if (fate === 'kept') parts.push(item);
      else if (sign === Sign.push) {
        if (item.subarray(0, 32).includes(invalidate)) parts.push(item);
      } else if (fate !== 'dropped') parts.push(fate === 'lost' ? lost : unknown);
    }
  } catch (thrown) {
    if (thrown instanceof RangeError) return undefined;
    throw thrown;
  }
  return Buffer.concat(parts);
}
