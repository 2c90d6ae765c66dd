// Walks of the long forms of commands, a step at a time. When a step is repeated, its visitor is
// called again for the same elements: `undo` reverts its results first.

import type { Arguments } from '../../../arguments.ts';
import type { Reply } from '../../../reply.ts';
import type { BytesVisitor, FieldVisitor, RankedVisitor, Row, Rows, Shape } from '../../../rows.ts';
import { step, stepBytes, stepElements, StepSize, type Steps } from '../../../steps.ts';
import { typedRow } from './typed-row.ts';

/** Something that grows, and can be cut back. */
export interface Undo {
  mark(): number;
  rollback(mark: number): void;
}

const nothing: Undo = { mark: () => 0, rollback() {} };

/** A number that a visitor adds to. */
export class Tally implements Undo {
  value = 0;
  mark(): number {
    return this.value;
  }
  rollback(mark: number): void {
    this.value = mark;
  }
}

/** Finds the row anew: handles do not outlive a step. */
export type Find = () => Row;

export function finder(rows: Rows, args: Arguments, word: number, shape: Shape): Find {
  return () => typedRow(rows, args, word, shape);
}

/** Words from `from` to before `to`, about as many in a step as are short. Stops when `each` is true. */
export function* eachWord(
  args: Arguments,
  from: number,
  to: number,
  stride: number,
  undo: Undo | undefined,
  begin: () => void,
  each: (word: number) => boolean | void,
  /** Strides that one step handles. */
  most = stepElements >>> 1,
): Steps {
  const state = undo ?? nothing;
  for (let at = from; at < to; ) {
    const mark = state.mark();
    const start = at;
    const reached = yield* step(() => {
      state.rollback(mark);
      begin();
      let bytes = 0;
      let word = start;
      const end = Math.min(to, start + most * stride);
      for (; word < end && bytes < stepBytes; word += stride) {
        for (let i = 0; i < stride && word + i < to; i++) bytes += args.lens[word + i]!;
        if (each(word) === true) return to;
      }
      return word;
    });
    at = reached;
  }
}

/** Answers an array with an element for each argument behind the key, which names a row of the shape. */
export function* answerEachWord(
  rows: Rows,
  args: Arguments,
  reply: Reply,
  shape: Shape,
  answer: (row: Row, word: number) => void,
): Steps {
  let row: Row = 0;
  reply.array(args.count - 2);
  yield* eachWord(
    args,
    2,
    args.count,
    1,
    undefined,
    () => {
      row = typedRow(rows, args, 1, shape);
    },
    (word) => answer(row, word),
  );
}

/** All fields of a map or set, or members of a ranked row, in the order of `scanFields`. */
export function* eachFieldInSteps(
  rows: Rows,
  find: Find,
  visit: FieldVisitor,
  undo: Undo = nothing,
  /** How many rows are looked at for each field. */
  weight = 1,
): Steps {
  const size = new StepSize(weight);
  let cursor = 0;
  let isOver = false;
  do {
    const mark = undo.mark();
    const from = cursor;
    cursor = yield* step(() => {
      undo.rollback(mark);
      size.begin();
      const row = find();
      if (row === 0) return 0;
      size.fit(rows, row);
      return rows.scanFields(row, from, size.elements, (fb, fs, fn, vb, vs, vn) => {
        size.add(fn + vn);
        isOver = visit(fb, fs, fn, vb, vs, vn) === true;
        return isOver;
      });
    });
    size.end();
  } while (cursor !== 0 && !isOver);
}

/**
 * `total` elements by their position: `walk` is given where to begin and how many to see, and calls
 * `size.add` for each; a walk that is over early calls `size.stop`.
 */
export function* eachPosition(
  total: number,
  walk: (at: number, count: number, size: StepSize) => void,
  undo: Undo = nothing,
  weight = 1,
): Steps {
  const size = new StepSize(weight);
  for (let at = 0; at < total; at += size.seen) {
    const mark = undo.mark();
    yield* step(() => {
      undo.rollback(mark);
      size.begin();
      walk(at, Math.min(size.elements, total - at), size);
    });
    if (size.isStopped || size.seen === 0) return;
    size.end();
  }
}

/** `count` elements of an array, from the one at `from` towards the tail, or the head if `reverse`. */
export function* eachElementInSteps(
  rows: Rows,
  find: Find,
  from: number,
  count: number,
  reverse: boolean,
  visit: BytesVisitor,
  undo: Undo = nothing,
): Steps {
  yield* eachPosition(
    count,
    (at, want, size) => {
      rows.eachElement(find(), reverse ? from - at : from + at, want, reverse, (b, s, n) => {
        const isFull = size.add(n);
        if (visit(b, s, n) === true) size.stop();
        return isFull || size.isStopped;
      });
    },
    undo,
  );
}

/** The first `count` members of a ranked row, from the lowest. */
export function* eachRankInSteps(
  rows: Rows,
  find: Find,
  count: number,
  visit: RankedVisitor,
  undo: Undo = nothing,
  weight = 1,
): Steps {
  yield* eachPosition(
    count,
    (at, want, size) => {
      rows.eachByRank(find(), at, want, false, (b, s, n, score) => {
        const isFull = size.add(n);
        if (visit(b, s, n, score) === true) size.stop();
        return isFull || size.isStopped;
      });
    },
    undo,
    weight,
  );
}

/** Records of a stream with from <= key < to, in their order. */
export function* eachRecordInSteps(
  rows: Rows,
  find: Find,
  from: Buffer,
  to: Buffer,
  visit: FieldVisitor,
  undo: Undo = nothing,
): Steps {
  const size = new StepSize();
  let next: Buffer | undefined = from;
  while (next !== undefined) {
    const mark = undo.mark();
    const start: Buffer = next;
    next = yield* step(() => {
      undo.rollback(mark);
      size.begin();
      const row = find();
      let stopped: Buffer | undefined;
      if (row === 0) return stopped;
      rows.eachStreamRecord(row, start, to, false, size.elements, (kb, ks, kn, vb, vs, vn) => {
        const isFull = size.add(kn + vn);
        if (visit(kb, ks, kn, vb, vs, vn) === true) return true;
        if (isFull) stopped = Buffer.concat([kb.subarray(ks, ks + kn), Buffer.alloc(1)]);
        return isFull;
      });
      return stopped;
    });
    size.end();
  }
}

/** `n` items that are in memory, some hundreds a step. */
export function* eachOf(n: number, handle: (i: number) => void): Steps {
  for (let at = 0; at < n; ) {
    const from = at;
    at = yield* step(() => {
      const end = Math.min(n, from + (stepElements >>> 1));
      for (let i = from; i < end; i++) handle(i);
      return end;
    });
  }
}

/** As `eachOf`, of items that may be large. */
export function* eachSized(
  n: number,
  bytesOf: (i: number) => number,
  handle: (i: number) => void,
): Steps {
  yield* eachPosition(n, (at, want, size) => {
    for (let i = at; i < at + want; i++) {
      handle(i);
      if (size.add(bytesOf(i))) return;
    }
  });
}

const runLength = 256;
const comparesPerStep = 2048;

/** The numbers below `n` in order, by a merge sort. `compare` must not read rows. */
export function* sorted(
  n: number,
  compare: (x: number, y: number) => number,
): Generator<undefined, Uint32Array, undefined> {
  let places = new Uint32Array(n);
  for (let from = 0; from < n; from += runLength) {
    const run = places.subarray(from, Math.min(n, from + runLength));
    for (let i = 0; i < run.length; i++) run[i] = from + i;
    run.sort(compare);
    yield;
  }
  let spare = new Uint32Array(n);
  let work = 0;
  for (let length = runLength; length < n; length *= 2) {
    for (let from = 0; from < n; from += 2 * length) {
      const middle = Math.min(n, from + length);
      const end = Math.min(n, from + 2 * length);
      let left = from;
      let right = middle;
      for (let at = from; at < end; at++) {
        const isLeft =
          right >= end || (left < middle && compare(places[left]!, places[right]!) <= 0);
        spare[at] = places[isLeft ? left++ : right++]!;
        if (++work === comparesPerStep) {
          work = 0;
          yield;
        }
      }
    }
    [places, spare] = [spare, places];
  }
  return places;
}

/** Counts the replies written, and closes an array or set with the count. */
export function* countedAnswer(
  reply: Reply,
  kind: 'array' | 'set',
  walk: (tally: Tally) => Steps,
): Steps {
  const mark = reply.open();
  const tally = new Tally();
  yield* walk(tally);
  yield;
  reply.close(mark, kind, tally.value);
}

const shards = 256;

/** Names seen so far. Many small tables, none of which takes long to grow. */
export class Names implements Undo {
  readonly #shards: (Set<string> | undefined)[] = [];
  /** Elements added in the last step. */
  #added: string[] = [];

  has(name: string): boolean {
    return this.#shards[shardOf(name)]?.has(name) === true;
  }

  /** False when it was there already. */
  add(name: string): boolean {
    const set = (this.#shards[shardOf(name)] ??= new Set());
    if (set.has(name)) return false;
    set.add(name);
    this.#added.push(name);
    return true;
  }

  mark(): number {
    this.#added = [];
    return 0;
  }

  rollback(): void {
    for (const name of this.#added) this.#shards[shardOf(name)]!.delete(name);
    this.#added = [];
  }
}

function shardOf(name: string): number {
  let h = 0x811c9dc5;
  for (let i = 0; i < name.length; i++) h = Math.imul(h ^ name.charCodeAt(i), 0x01000193);
  return (h ^ (h >>> 15)) & (shards - 1);
}

/** Several of these as one. */
export function together(first: Undo, second: Undo): Undo {
  let other = 0;
  return {
    mark() {
      other = second.mark();
      return first.mark();
    },
    rollback(mark) {
      first.rollback(mark);
      second.rollback(other);
    },
  };
}
