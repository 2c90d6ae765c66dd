// Commands that were sent to another process, in order, kept until they are answered. Their words are needed to
// charge them, and to send them again if they were not run. All words share one buffer, which the next pipeline
// reuses: an allocation for each command would be the most expensive part of sending it.

import { Arguments } from '../../universal-row/arguments.ts';
import { copyBytes, viewed } from '../../universal-row/bytes.ts';
import type { CommandEntry } from './commands/registry.ts';

/** A larger buffer, or more numbers, are given back when all commands are answered. */
const keptBytes = 64 * 1024;
const keptInts = 16 * 1024;
const initialBytes = 1024;
const initialInts = 128;
/** Of a command: where its words begin, their number, and where their starts and lengths are among the numbers of words. */
const headInts = 3;

/** A range of `kept`: consecutive answered commands of one kind, all without an error. */
export interface AnsweredRun {
  readonly entry: CommandEntry;
  readonly kept: KeptCommands;
  readonly from: number;
  /** Behind the last one. */
  readonly to: number;
  /** Where their answers begin. */
  readonly mark: number;
  /** Bytes of their answers. */
  readonly sent: number;
}

export class KeptCommands {
  count = 0;
  /** Bytes of all their words. */
  bytes = 0;
  readonly #entries: CommandEntry[] = [];
  /** By which they can be sent again; 0 for none. */
  readonly #numbers: number[] = [];
  #heads: Int32Array = new Int32Array(initialInts);
  #words: Int32Array = new Int32Array(initialInts);
  #wordsEnd = 0;
  #buf = viewed(Buffer.allocUnsafeSlow(initialBytes));
  readonly #args = new Arguments();

  entry(index: number): CommandEntry {
    return this.#entries[index]!;
  }

  number(index: number): number {
    return this.#numbers[index]!;
  }

  push(entry: CommandEntry, args: Arguments, number: number): void {
    const { count: index, bytes } = this;
    const { count, starts, lens, buf } = args;
    this.#entries[index] = entry;
    this.#numbers[index] = number;
    const head = index * headInts;
    if (head + headInts > this.#heads.length) this.#heads = larger(this.#heads, head + headInts);
    const wordsEnd = this.#wordsEnd + count * 2;
    if (wordsEnd > this.#words.length) this.#words = larger(this.#words, wordsEnd);
    const heads = this.#heads;
    heads[head] = bytes;
    heads[head + 1] = count;
    heads[head + 2] = this.#wordsEnd;
    const words = this.#words;
    const s = starts[0]!;
    for (let i = 0, at = this.#wordsEnd; i < count; i++) {
      words[at++] = starts[i]! - s;
      words[at++] = lens[i]!;
    }
    this.#wordsEnd = wordsEnd;
    const n = starts[count - 1]! + lens[count - 1]! - s;
    if (bytes + n > this.#buf.length) this.#grow(bytes + n);
    copyBytes(this.#buf, bytes, buf, s, n);
    this.bytes = bytes + n;
    this.count = index + 1;
  }

  #grow(bytes: number): void {
    const grown = viewed(Buffer.allocUnsafeSlow(Math.max(bytes, this.#buf.length * 2)));
    this.#buf.copy(grown, 0, 0, this.bytes);
    this.#buf = grown;
  }

  /** Bytes of the words of the commands [from, to). */
  bytesOf(from: number, to: number): number {
    const end = to === this.count ? this.bytes : this.#heads[to * headInts]!;
    return end - this.#heads[from * headInts]!;
  }

  /** Words of a command, valid until the words of another command are requested. */
  words(index: number): Arguments {
    const args = this.#args;
    const heads = this.#heads;
    const head = index * headInts;
    const from = heads[head]!;
    const count = heads[head + 1]!;
    args.reserve(count);
    const { starts, lens } = args;
    const words = this.#words;
    for (let i = 0, at = heads[head + 2]!; i < count; i++) {
      starts[i] = words[at++]! + from;
      lens[i] = words[at++]!;
    }
    args.count = count;
    args.buf = this.#buf;
    return args;
  }

  clear(): void {
    this.count = 0;
    this.bytes = 0;
    this.#wordsEnd = 0;
    if (this.#buf.length > keptBytes) this.#buf = viewed(Buffer.allocUnsafeSlow(initialBytes));
    if (this.#words.length > keptInts) this.#words = new Int32Array(initialInts);
  }
}

function larger(ints: Int32Array, least: number): Int32Array {
  const grown = new Int32Array(Math.max(least, ints.length * 2));
  grown.set(ints);
  return grown;
}
