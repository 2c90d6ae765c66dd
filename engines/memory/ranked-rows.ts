// Ranked rows: members in the order of their scores.

import type { LexRange, RankedVisitor, Row, ScoreRange } from '../../universal-row/rows.ts';
import type { BigRanked } from './big-ranked.ts';
import { MemoryRows } from './memory-rows.ts';
import {
  findPacked,
  insertPackedRanked,
  lengthBytes,
  movePackedRanked,
  packedPlaces,
  packedRankOfBytes,
  packedRankOfScore,
  readLength,
  readScore,
  skip,
} from './packed.ts';
import { big } from './table-dump.ts';

export class RankedRows extends MemoryRows {
  score(row: Row, b: Buffer, s: number, n: number): number {
    const { map } = this;
    map.locate(row);
    if (map.kind >= big) return (this.located() as BigRanked).score(b, s, n);
    const p = findPacked(map, 8, 0, b, s, n);
    return p < 0 ? NaN : readScore(map.b, p);
  }

  rank(row: Row, b: Buffer, s: number, n: number): number {
    const { map } = this;
    map.locate(row);
    if (map.kind >= big) return (this.located() as BigRanked).rank(b, s, n);
    const found = findPacked(map, 8, 0, b, s, n);
    if (found < 0) return -1;
    let rank = 0;
    for (let p = map.valueAt + 1; p < found; rank++) p = skip(map.b, p + 8);
    return rank;
  }

  putScore(row: Row, b: Buffer, s: number, n: number, score: number): boolean {
    const { map } = this;
    // Minus zero would not compare equal to zero byte for byte.
    score += 0;
    map.locate(row);
    if (map.kind >= big) {
      if (map.watch !== undefined) map.watch.beforeChange(row);
      return (this.collection(row) as BigRanked).put(b, s, n, score);
    }
    const p = findPacked(map, 8, 0, b, s, n);
    if (p >= 0) {
      if (readScore(map.b, p) === score) return false;
      movePackedRanked(map, row, p, score);
      return false;
    }
    if (this.outgrows(8 + n + lengthBytes(n))) {
      (this.enlarge(row) as BigRanked).put(b, s, n, score);
    } else {
      insertPackedRanked(map, row, b, s, n, score);
    }
    return true;
  }

  eachByRank(row: Row, from: number, count: number, reverse: boolean, visit: RankedVisitor): void {
    const size = this.count(row);
    if (from < 0 || from >= size) return;
    this.#walkRanks(row, reverse ? size - 1 - from : from, count, reverse, visit);
  }

  eachByScore(
    row: Row,
    range: ScoreRange,
    reverse: boolean,
    offset: number,
    limit: number,
    visit: RankedVisitor,
  ): void {
    const { map } = this;
    map.locate(row);
    if (map.kind >= big && !reverse) {
      if (offset >= 0) (this.located() as BigRanked).walkScores(range, offset, limit, visit);
      return;
    }
    const low = this.#rankOfMin(row, range);
    const high = this.#rankOfMax(row, range);
    this.#walkRange(row, low, high, reverse, offset, limit, visit);
  }

  countByScore(row: Row, range: ScoreRange): number {
    return Math.max(0, this.#rankOfMax(row, range) - this.#rankOfMin(row, range));
  }

  eachByLex(
    row: Row,
    range: LexRange,
    reverse: boolean,
    offset: number,
    limit: number,
    visit: RankedVisitor,
  ): void {
    const low = this.#rankOfLexMin(row, range);
    const high = this.#rankOfLexMax(row, range);
    this.#walkRange(row, low, high, reverse, offset, limit, visit);
  }

  countByLex(row: Row, range: LexRange): number {
    return Math.max(0, this.#rankOfLexMax(row, range) - this.#rankOfLexMin(row, range));
  }

  #rankOfMin(row: Row, range: ScoreRange): number {
    const { map } = this;
    map.locate(row);
    if (map.kind >= big) return (this.located() as BigRanked).rankOfMin(range);
    return packedRankOfScore(map, range.min, range.minExclusive);
  }

  #rankOfMax(row: Row, range: ScoreRange): number {
    const { map } = this;
    map.locate(row);
    if (map.kind >= big) return (this.located() as BigRanked).rankOfMax(range);
    return packedRankOfScore(map, range.max, !range.maxExclusive);
  }

  #rankOfLexMin(row: Row, range: LexRange): number {
    const { map } = this;
    map.locate(row);
    if (map.kind >= big) return (this.located() as BigRanked).rankOfLexMin(range);
    return range.min === undefined ? 0 : packedRankOfBytes(map, range.min, range.minExclusive);
  }

  #rankOfLexMax(row: Row, range: LexRange): number {
    const { map } = this;
    map.locate(row);
    if (map.kind >= big) return (this.located() as BigRanked).rankOfLexMax(range);
    if (range.max === undefined) return map.b[map.valueAt]!;
    return packedRankOfBytes(map, range.max, !range.maxExclusive);
  }

  /** Walks within the ranks [low, high). A negative `limit` is none. */
  #walkRange(
    row: Row,
    low: number,
    high: number,
    reverse: boolean,
    offset: number,
    limit: number,
    visit: RankedVisitor,
  ): void {
    const available = high - low - offset;
    if (offset < 0 || available <= 0) return;
    const count = limit < 0 ? available : Math.min(limit, available);
    this.#walkRanks(row, reverse ? high - 1 - offset : low + offset, count, reverse, visit);
  }

  /** Walks from an ascending rank. */
  #walkRanks(row: Row, from: number, count: number, reverse: boolean, visit: RankedVisitor): void {
    const { map } = this;
    map.locate(row);
    if (map.kind >= big) {
      (this.located() as BigRanked).walk(from, count, reverse, visit);
      return;
    }
    const { b, valueAt } = map;
    const size = b[valueAt]!;
    const places = packedPlaces(b, valueAt, size, 8);
    const step = reverse ? -1 : 1;
    for (let i = from, left = count; left > 0 && i >= 0 && i < size; i += step, left--) {
      const p = places[i]!;
      const length = readLength(b, p + 8);
      if (visit(b, p + 8 + lengthBytes(length), length, readScore(b, p))) return;
    }
  }
}
