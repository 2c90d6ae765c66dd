// LCS: the longest common subsequence of two strings, by the table of all prefixes' lengths.

import type { Arguments } from '../../arguments.ts';
import { emptyBytes, Slice } from '../../bytes.ts';
import { CommandError, syntaxError } from '../../errors.ts';
import type { Reply } from '../../reply.ts';
import { type Rows, Shape } from '../../rows.ts';
import type { Steps, StepTransform } from '../../steps.ts';

const notStrings = new CommandError('ERR The specified keys must contain string values');
const lengthAndIndexes = new CommandError(
  'ERR If you want both the length and indexes, please just use IDX.',
);
/** Redis's default for proto-max-bulk-len. */
const maxTransientBytes = 512 * 1024 * 1024;

const tooLarge = new CommandError(
  'ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len',
);

/** Redis holds each length in this many bytes, and bounds the table by it. */
const cellBytes = 4;

interface LcsOptions {
  length: boolean;
  indexes: boolean;
  matchLengths: boolean;
  minMatch: number;
}

/** Cells of the table, and steps of the way back through it, between two looks at others. */
const cellsPerStep = 100_000;

export function lcs(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  rows.expect(1, 2, 1);
  const a = stringAt(rows, args, 1);
  const b = stringAt(rows, args, 2);
  const options = parseOptions(args);
  if ((a.n + 1) * (b.n + 1) * cellBytes > maxTransientBytes) throw tooLarge;

  if ((a.n + 1) * (b.n + 1) > cellsPerStep) return lcsInSteps;
  // One step of it is all of it.
  for (const _ of answerLcs(a, b, options, reply));
}

function* lcsInSteps(rows: Rows, args: Arguments, reply: Reply): Steps {
  rows.expect(1, 2, 1);
  // Both outlive the step.
  const a = copied(stringAt(rows, args, 1));
  const b = copied(stringAt(rows, args, 2));
  yield* answerLcs(a, b, parseOptions(args), reply);
}

function* answerLcs(a: Slice, b: Slice, options: LcsOptions, reply: Reply): Steps {
  const table = new PrefixTable(a, b);
  yield* table.fill();
  const total = table.at(a.n, b.n);
  if (options.indexes) {
    reply.map(2);
    reply.text('matches');
    yield* answerMatches(table, reply, options);
    reply.text('len');
    reply.integer(total);
  } else if (options.length) {
    reply.integer(total);
  } else {
    const text = yield* commonBytes(table, total);
    reply.bulk(text, 0, text.length);
  }
}

function copied(value: Slice): Slice {
  const copy = new Slice();
  copy.set(value.copy(), 0, value.n);
  return copy;
}

function stringAt(rows: Rows, args: Arguments, word: number): Slice {
  const value = new Slice();
  const row = rows.find(args.buf, args.starts[word]!, args.lens[word]!);
  if (row === 0) return value;
  if (rows.shape(row) !== Shape.value) throw notStrings;
  rows.value(row, value);
  return value;
}

function parseOptions(args: Arguments): LcsOptions {
  const options = { length: false, indexes: false, matchLengths: false, minMatch: 0 };
  for (let i = 3; i < args.count; i++) {
    if (args.is(i, 'IDX')) options.indexes = true;
    else if (args.is(i, 'LEN')) options.length = true;
    else if (args.is(i, 'WITHMATCHLEN')) options.matchLengths = true;
    else if (args.is(i, 'MINMATCHLEN') && i + 1 < args.count) {
      options.minMatch = Math.max(0, args.integer(++i));
    } else throw syntaxError;
  }
  if (options.length && options.indexes) throw lengthAndIndexes;
  return options;
}

/** `at(i, j)` is the length of the longest common subsequence of a's first i and b's first j bytes. */
class PrefixTable {
  readonly a: Slice;
  readonly b: Slice;
  readonly #width: number;
  readonly #cells: Uint16Array | Uint32Array;

  constructor(a: Slice, b: Slice) {
    this.a = a;
    this.b = b;
    const width = b.n + 1;
    const size = (a.n + 1) * width;
    const cells = Math.min(a.n, b.n) < 65536 ? new Uint16Array(size) : new Uint32Array(size);
    this.#width = width;
    this.#cells = cells;
  }

  *fill(): Steps {
    const { a, b } = this;
    const cells = this.#cells;
    const width = this.#width;
    const across = b.b;
    const before = b.s - 1;
    let left = cellsPerStep;
    for (let i = 1; i <= a.n; i++) {
      const byte = a.b[a.s + i - 1];
      for (let from = 1; from < width; ) {
        const to = Math.min(width, from + left);
        for (let j = from; j < to; j++) {
          const at = i * width + j;
          cells[at] =
            byte === across[before + j]
              ? cells[at - width - 1]! + 1
              : Math.max(cells[at - width]!, cells[at - 1]!);
        }
        left -= to - from;
        from = to;
        if (left > 0) continue;
        left = cellsPerStep;
        yield;
      }
    }
  }

  at(i: number, j: number): number {
    return this.#cells[i * this.#width + j]!;
  }

  /** Whether byte i of a and byte j of b, counted from 1, are the same. */
  same(i: number, j: number): boolean {
    return this.a.b[this.a.s + i - 1] === this.b.b[this.b.s + j - 1];
  }

  /** Whether the way back from a mismatch goes along a. */
  leadsAlongA(i: number, j: number): boolean {
    return this.at(i - 1, j) > this.at(i, j - 1);
  }
}

function* commonBytes(table: PrefixTable, total: number): Generator<undefined, Buffer, undefined> {
  if (total === 0) return emptyBytes;
  const { a, b } = table;
  const text = Buffer.allocUnsafe(total);
  let left = total;
  let work = 0;
  for (let i = a.n, j = b.n; left > 0; ) {
    if (++work % cellsPerStep === 0) yield;
    if (table.same(i, j)) {
      text[--left] = a.b[a.s + i - 1]!;
      i--;
      j--;
    } else if (table.leadsAlongA(i, j)) i--;
    else j--;
  }
  return text;
}

/** The runs of bytes that match, from the last to the first, as ranges of a and of b. */
function* answerMatches(table: PrefixTable, reply: Reply, options: LcsOptions): Steps {
  const mark = reply.open();
  let count = 0;
  const answerRun = (i: number, j: number, n: number): void => {
    if (n < options.minMatch) return;
    count++;
    reply.array(options.matchLengths ? 3 : 2);
    for (const from of [i, j]) {
      reply.array(2);
      reply.integer(from);
      reply.integer(from + n - 1);
    }
    if (options.matchLengths) reply.integer(n);
  };
  // A run is `n` bytes long so far, and begins at i and j.
  let n = 0;
  let i = table.a.n;
  let j = table.b.n;
  let work = 0;
  while (i > 0 && j > 0) {
    if (++work % (cellsPerStep / 16) === 0) yield;
    if (table.same(i, j)) {
      i--;
      j--;
      n++;
      continue;
    }
    if (n > 0) answerRun(i, j, n);
    n = 0;
    if (table.leadsAlongA(i, j)) i--;
    else j--;
  }
  if (n > 0) answerRun(i, j, n);
  reply.close(mark, 'array', count);
}
