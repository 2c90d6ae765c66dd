// Walks of a ranked row along its order index: from the place a range begins at, so that ten members out
// of a million cost ten records.

import {
  Part,
  partEnd,
  orderHeaderBytes,
  orderKey,
  orderScoreKey,
  scoreOfOrderKey,
} from './key-layout.ts';
import type { LexRange, RankedVisitor, ScoreRange } from '../../universal-row/rows.ts';
import { KeyBytes } from './key-bytes.ts';
import type { RecordSpace } from './record-space.ts';
import type { RecordStore } from './record-store.ts';

const first = Part.order;
const end = partEnd.o;

interface KeyRange {
  from: string;
  to: string;
}

function scoreKeys(range: ScoreRange): KeyRange {
  return {
    from: orderScoreKey(range.min, range.minExclusive),
    to: orderScoreKey(range.max, !range.maxExclusive),
  };
}

/** Visits `limit` members (all if negative) of a key range after passing over `offset` of them. */
function walk(
  store: RecordStore,
  sub: RecordSpace,
  { from, to }: KeyRange,
  reverse: boolean,
  offset: number,
  limit: number,
  visit: RankedVisitor,
): void {
  if (limit === 0 || from >= to) return;
  const bytes = new KeyBytes();
  const want = limit < 0 ? Infinity : offset + limit;
  let left = limit < 0 ? Infinity : limit;
  const see = ({ key }: { key: string }): boolean => {
    const b = bytes.of(key);
    const n = key.length - orderHeaderBytes;
    return visit(b, orderHeaderBytes, n, scoreOfOrderKey(key)) === true || --left === 0;
  };
  if (reverse) store.backward(sub, from, to, offset, want, see);
  else store.forward(sub, from, to, offset, want, see);
}

export function eachByScore(
  store: RecordStore,
  sub: RecordSpace,
  range: ScoreRange,
  reverse: boolean,
  offset: number,
  limit: number,
  visit: RankedVisitor,
): void {
  walk(store, sub, scoreKeys(range), reverse, offset, limit, visit);
}

function countKeys(store: RecordStore, sub: RecordSpace, { from, to }: KeyRange): number {
  return from < to ? store.count(sub, from, to) : 0;
}

export function countByScore(store: RecordStore, sub: RecordSpace, range: ScoreRange): number {
  return countKeys(store, sub, scoreKeys(range));
}

/** Members before this one. */
export function rankOf(
  store: RecordStore,
  sub: RecordSpace,
  b: Buffer,
  s: number,
  n: number,
  score: number,
): number {
  return countKeys(store, sub, { from: first, to: orderKey(score, b, s, n) });
}

export function eachByRank(
  store: RecordStore,
  sub: RecordSpace,
  total: number,
  from: number,
  count: number,
  reverse: boolean,
  visit: RankedVisitor,
): void {
  const wanted = Math.min(count, total - from);
  if (wanted <= 0 || from < 0) return;
  const all = { from: first, to: end };
  const beyond = total - from - wanted;
  if (from <= beyond) {
    walk(store, sub, all, reverse, from, wanted, visit);
    return;
  }
  // The other end is nearer: collect from there, then visit the other way round.
  const members: { b: Buffer; score: number }[] = [];
  walk(store, sub, all, !reverse, beyond, wanted, (b, s, n, score) => {
    members.push({ b: Buffer.from(b.subarray(s, s + n)), score });
  });
  for (let i = members.length - 1; i >= 0; i--) {
    const { b, score } = members[i]!;
    if (visit(b, 0, b.length, score)) return;
  }
}

/**
 * Where all scores are equal, the first one tells where in the index the members' order begins. Of others Redis defines no
 * order; in a short row they are compared one by one, as Redis does it there.
 */
function lexKeys(store: RecordStore, sub: RecordSpace, range: LexRange): KeyRange {
  let score = 0;
  let last = 0;
  store.forward(sub, first, end, 0, 1, ({ key }) => {
    score = scoreOfOrderKey(key);
    return true;
  });
  store.backward(sub, first, end, 0, 1, ({ key }) => {
    last = scoreOfOrderKey(key);
    return true;
  });
  if (last !== score) return walkedKeys(store, sub, range);
  const bound = (member: Uint8Array, after: boolean): string => {
    const b = Buffer.from(member.buffer, member.byteOffset, member.length);
    return orderKey(score, b, 0, b.length) + (after ? '\0' : '');
  };
  return {
    from: range.min === undefined ? first : bound(range.min, range.minExclusive),
    to: range.max === undefined ? end : bound(range.max, !range.maxExclusive),
  };
}

const shortRow = 128;

/** The keys from the first member within the range to the first one beyond it, among the first ones of the row. */
function walkedKeys(store: RecordStore, sub: RecordSpace, { min, ...range }: LexRange): KeyRange {
  const bytes = new KeyBytes();
  let from: string | undefined;
  let to: string = end;
  store.forward(sub, first, end, 0, shortRow, ({ key }) => {
    const member = bytes.of(key).subarray(orderHeaderBytes, key.length);
    if (from === undefined && min !== undefined) {
      const order = Buffer.compare(member, min);
      if (order < 0 || (order === 0 && range.minExclusive)) return false;
    }
    from ??= key;
    if (range.max === undefined) return true;
    const order = Buffer.compare(member, range.max);
    if (order < 0 || (order === 0 && !range.maxExclusive)) return false;
    to = key;
    return true;
  });
  return { from: from ?? end, to };
}

export function eachByLex(
  store: RecordStore,
  sub: RecordSpace,
  range: LexRange,
  reverse: boolean,
  offset: number,
  limit: number,
  visit: RankedVisitor,
): void {
  walk(store, sub, lexKeys(store, sub, range), reverse, offset, limit, visit);
}

export function countByLex(store: RecordStore, sub: RecordSpace, range: LexRange): number {
  return countKeys(store, sub, lexKeys(store, sub, range));
}
