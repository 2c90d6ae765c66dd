// A ranked row beyond the packed size: members in an index, their scores in a column by id, and the
// ids in order in a tree. Ids stay with their members, for the tree holds them.

import { compareBytes, emptyBytes } from '../../universal-row/bytes.ts';
import { Shape } from '../../universal-row/rows.ts';
import type {
  FieldVisitor,
  LexRange,
  RankedVisitor,
  ScoreRange,
} from '../../universal-row/rows.ts';
import type { Arena } from './arena.ts';
import { ByteMap } from './byte-map.ts';
import type { Collection } from './collection.ts';
import { FloatColumn } from './long-column.ts';
import { RankTree } from './rank-tree.ts';
import type { RankOrder } from './rank-tree.ts';

/** Empty ids a scan may pass for each member it owes. */
const gapsPerMember = 32;

export class BigRanked implements Collection, RankOrder {
  readonly shape: Shape = Shape.ranked;
  held = false;
  dropped = false;
  readonly map: ByteMap;
  private readonly scores = new FloatColumn();
  private readonly tree: RankTree;
  private countedBytes = 0;

  // The place the tree looks for: by score if `byScore`, then by bytes if `byBytes`, then `tie`.
  private byScore = true;
  private byBytes = true;
  private tie = 0;
  private placeScore = 0;
  private pb: Uint8Array = emptyBytes;
  private ps = 0;
  private pn = 0;

  constructor(arena: Arena) {
    this.map = new ByteMap(arena, false);
    this.tree = new RankTree(this);
    this.#countBytes();
  }

  get count(): number {
    return this.map.size;
  }

  compare(id: number, score: number): number {
    if (this.byScore && score !== this.placeScore) return score < this.placeScore ? -1 : 1;
    if (this.byBytes) {
      const { map } = this;
      map.locate(id);
      const d = compareBytes(map.b, map.keyAt, map.keyLength, this.pb, this.ps, this.pn);
      if (d !== 0) return d;
    }
    return this.tie;
  }

  scoreOf(id: number): number {
    return this.scores.at(id);
  }

  /** The score, or NaN. */
  score(b: Buffer, s: number, n: number): number {
    const id = this.map.find(b, s, n, this.map.hash(b, s, n));
    return id === 0 ? NaN : this.scores.at(id);
  }

  put(b: Buffer, s: number, n: number, score: number): boolean {
    const { map, tree } = this;
    const hash = map.hash(b, s, n);
    let id = map.find(b, s, n, hash);
    const isNew = id === 0;
    if (isNew) {
      id = map.insert(hash, 0, b, s, n, emptyBytes, 0, 0);
      this.scores.reserve(id + 1);
    } else {
      if (this.scores.at(id) === score) return false;
      if (map.watch !== undefined) map.watch.beforeChange(id);
      this.#placeAt(this.scores.at(id), b, s, n);
      tree.remove();
    }
    this.scores.set(id, score);
    this.#placeAt(score, b, s, n);
    tree.insert(id);
    if (isNew) this.#countBytes();
    return isNew;
  }

  remove(b: Buffer, s: number, n: number): boolean {
    const { map } = this;
    const id = map.find(b, s, n, map.hash(b, s, n));
    if (id === 0) return false;
    this.#placeAt(this.scores.at(id), b, s, n);
    this.tree.remove();
    map.remove(id);
    return true;
  }

  /** The rank in ascending order, or -1. */
  rank(b: Buffer, s: number, n: number): number {
    const score = this.score(b, s, n);
    if (Number.isNaN(score)) return -1;
    this.#placeAt(score, b, s, n);
    return this.tree.rank();
  }

  /** The id at a rank in ascending order. */
  idAtRank(rank: number): number {
    this.tree.seek(rank);
    return this.tree.idAt(this.tree.leaf, this.tree.index);
  }

  /** `count` members from ascending rank `from`, towards lower ranks if `reverse`. */
  walk(from: number, count: number, reverse: boolean, visit: RankedVisitor): void {
    if (count <= 0 || from < 0 || from >= this.tree.size) return;
    const { tree, map } = this;
    tree.seek(from);
    let leaf = tree.leaf;
    let index = tree.index;
    for (let left = count; left > 0; left--) {
      const id = tree.idAt(leaf, index);
      map.locate(id);
      if (visit(map.b, map.keyAt, map.keyLength, this.scores.at(id))) return;
      if (reverse) {
        if (--index < 0) {
          leaf = tree.previous(leaf);
          if (leaf === 0) return;
          index = tree.countIn(leaf) - 1;
        }
      } else if (++index === tree.countIn(leaf)) {
        leaf = tree.next(leaf);
        if (leaf === 0) return;
        index = 0;
      }
    }
  }

  /** Up to `limit` members within a range of scores, upwards from the one at `offset` in it. A negative `limit` is none. */
  walkScores(range: ScoreRange, offset: number, limit: number, visit: RankedVisitor): void {
    const { tree, map, scores } = this;
    const { max, maxExclusive } = range;
    const first = this.rankOfMin(range);
    if (first + offset >= tree.size) return;
    if (offset > 0) tree.seek(first + offset);
    let { leaf, index } = tree;
    for (let left = limit < 0 ? tree.size : limit; left > 0; left--) {
      if (index === tree.countIn(leaf)) {
        leaf = tree.next(leaf);
        if (leaf === 0) return;
        index = 0;
      }
      const id = tree.idAt(leaf, index++);
      const score = scores.at(id);
      if (score > max || (score === max && maxExclusive)) return;
      map.locate(id);
      if (visit(map.b, map.keyAt, map.keyLength, score)) return;
    }
  }

  /** Members before the range, and before its end: the range is [first, second) in rank. */
  rankOfMin(range: ScoreRange): number {
    return this.#rankOfScore(range.min, range.minExclusive ? -1 : 1);
  }

  rankOfMax(range: ScoreRange): number {
    return this.#rankOfScore(range.max, range.maxExclusive ? 1 : -1);
  }

  rankOfLexMin(range: LexRange): number {
    return range.min === undefined ? 0 : this.#rankOfBytes(range.min, range.minExclusive ? -1 : 1);
  }

  rankOfLexMax(range: LexRange): number {
    if (range.max === undefined) return this.tree.size;
    return this.#rankOfBytes(range.max, range.maxExclusive ? 1 : -1);
  }

  /** Walks ids downwards; they stay with their members, so none is missed or seen twice. */
  scan(cursor: number, budget: number, visit: FieldVisitor): number {
    const { map } = this;
    let id = cursor === 0 || cursor >= map.nextId ? map.nextId - 1 : cursor;
    let members = Math.max(1, budget);
    for (let steps = members * gapsPerMember; id > 0 && steps > 0 && members > 0; steps--) {
      const at = id--;
      if (map.address.get(at) === 0) continue;
      members--;
      map.locate(at);
      const b = map.b;
      if (visit(b, map.keyAt, map.keyLength, b, map.valueAt, 0)) break;
    }
    return id;
  }

  bytes(): number {
    return this.map.blockBytes;
  }

  compact(from: number, limit: number): void {
    this.map.compact(from, limit);
  }

  get extent(): number {
    return this.map.nextId;
  }

  indexBytes(): number {
    return this.map.ownBytes() + this.countedBytes;
  }

  dismantle(limit: number): boolean {
    if (!this.map.dismantle(limit)) return false;
    this.map.arena.indexBytes -= this.countedBytes;
    this.countedBytes = 0;
    return true;
  }

  #placeAt(score: number, b: Uint8Array, s: number, n: number): void {
    this.byScore = true;
    this.byBytes = true;
    this.tie = 0;
    this.placeScore = score;
    this.pb = b;
    this.ps = s;
    this.pn = n;
  }

  #rankOfScore(score: number, tie: number): number {
    this.byScore = true;
    this.byBytes = false;
    this.tie = tie;
    this.placeScore = score;
    return this.tree.rank();
  }

  #rankOfBytes(bytes: Uint8Array, tie: number): number {
    this.byScore = false;
    this.byBytes = true;
    this.tie = tie;
    this.pb = bytes;
    this.ps = 0;
    this.pn = bytes.length;
    return this.tree.rank();
  }

  #countBytes(): void {
    const bytes = this.scores.byteLength + this.tree.bytes();
    this.map.arena.indexBytes += bytes - this.countedBytes;
    this.countedBytes = bytes;
  }
}
