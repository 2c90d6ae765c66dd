// A value in the RDB format, as DUMP gives it and RDB files hold it: every encoding that Redis has had.

import { parseFloatBytes } from '../../../arguments.ts';
import { Slice } from '../../../bytes.ts';
import { Shape } from '../../../rows.ts';
import { stepBytes } from '../../../steps.ts';
import { ByteList } from '../support/byte-list.ts';
import { stringLimit } from '../support/string-limit.ts';
import { badData, RdbType, StringEncoding } from './format.ts';
import { decompress } from './lzf.ts';
import { PackedElements, type PackedKind } from './packed.ts';

/** Elements that are gathered between two pauses. */
const elementsPerStep = 256;

/** All strings of one value, unpacked. */
const unpackableBytes = 512 * 1024 * 1024;

interface Layout {
  shape: Shape;
  /** Strings that make up an element. */
  strings: 1 | 2;
  /** All in one string of that encoding. */
  packed?: PackedKind;
  /** So many such strings. */
  nodes?: 'ziplist' | 'quicklist2';
  /** How scores are kept where they are no strings. */
  score?: 'text' | 'binary';
}

const layouts = new Map<number, Layout>([
  [RdbType.string, { shape: Shape.value, strings: 1 }],
  [RdbType.list, { shape: Shape.array, strings: 1 }],
  [RdbType.set, { shape: Shape.set, strings: 1 }],
  [RdbType.rankedText, { shape: Shape.ranked, strings: 1, score: 'text' }],
  [RdbType.hash, { shape: Shape.map, strings: 2 }],
  [RdbType.ranked, { shape: Shape.ranked, strings: 1, score: 'binary' }],
  [RdbType.hashZipmap, { shape: Shape.map, strings: 2, packed: 'zipmap' }],
  [RdbType.listZiplist, { shape: Shape.array, strings: 1, packed: 'ziplist' }],
  [RdbType.setIntset, { shape: Shape.set, strings: 1, packed: 'intset' }],
  [RdbType.rankedZiplist, { shape: Shape.ranked, strings: 2, packed: 'ziplist' }],
  [RdbType.hashZiplist, { shape: Shape.map, strings: 2, packed: 'ziplist' }],
  [RdbType.listQuicklist, { shape: Shape.array, strings: 1, nodes: 'ziplist' }],
  [RdbType.hashListpack, { shape: Shape.map, strings: 2, packed: 'listpack' }],
  [RdbType.rankedListpack, { shape: Shape.ranked, strings: 2, packed: 'listpack' }],
  [RdbType.listQuicklist2, { shape: Shape.array, strings: 1, nodes: 'quicklist2' }],
  [RdbType.setListpack, { shape: Shape.set, strings: 1, packed: 'listpack' }],
]);

type Pauses = Generator<undefined, void, undefined>;

/**
 * Reads one value. `elements` gathers what it is made of in `list`: the value's bytes; members, with scores
 * where they have one; fields and values in turns. It pauses whenever there are some hundred, or it has done a
 * step's work: then the caller takes what is in `list`, and clears it. Throws `badData`; what it has gathered
 * before may have been taken by then.
 */
export class ValueReader {
  readonly shape: Shape;
  readonly list = new ByteList();
  readonly #b: Buffer;
  readonly #end: number;
  readonly #layout: Layout;
  readonly #string = new Slice();
  #at: number;
  /** Bytes of work since the last pause. */
  #work = 0;
  /** Bytes that strings may still be unpacked to. */
  #unpackable = unpackableBytes;

  /** `n` bytes from `s`: the type and what follows it, which may be more than the value. */
  constructor(b: Buffer, s: number, n: number) {
    this.#b = b;
    this.#at = s;
    this.#end = s + n;
    const layout = layouts.get(b[this.#take(1)]!);
    if (layout === undefined) throw badData;
    this.#layout = layout;
    this.shape = layout.shape;
  }

  /** Where the value ends, once it is read. */
  get end(): number {
    return this.#at;
  }

  *elements(): Pauses {
    const { shape, packed, nodes } = this.#layout;
    if (shape === Shape.value) {
      yield* this.#readString();
      this.#add(this.#string);
    } else if (packed !== undefined) {
      yield* this.#readString();
      yield* this.#unpack(packed);
    } else if (nodes !== undefined) yield* this.#readNodes(nodes);
    else yield* this.#readPlain();
  }

  #take(n: number): number {
    const at = this.#at;
    if (n > this.#end - at) throw badData;
    this.#at = at + n;
    return at;
  }

  #length(): number {
    const head = this.#b[this.#take(1)]!;
    if (head < 0x40) return head;
    if (head < 0x80) return ((head & 63) << 8) | this.#b[this.#take(1)]!;
    if (head === 0x80) return this.#b.readUInt32BE(this.#take(4));
    if (head !== 0x81) throw badData;
    const length = this.#b.readBigUInt64BE(this.#take(8));
    // No value here has as many bytes or elements.
    if (length > 0xffffffffn) throw badData;
    return Number(length);
  }

  /** Sets `#string`. */
  *#readString(): Pauses {
    const head = this.#at < this.#end ? this.#b[this.#at]! : 0;
    if (head < 0xc0) {
      const n = this.#length();
      this.#string.set(this.#b, this.#take(n), n);
      this.#work += n;
      return;
    }
    this.#at++;
    const encoding = head & 63;
    if (encoding === StringEncoding.compressed) {
      const packed = this.#length();
      const n = this.#length();
      if (n === 0 || n > stringLimit.bytes || n > this.#unpackable) throw badData;
      this.#unpackable -= n;
      const from = this.#take(packed);
      // A byte stands for 88 at the most: what claims more is refused before memory is taken for it.
      if (n > packed * 100) throw badData;
      const unpacked = Buffer.allocUnsafe(n);
      yield* decompress(this.#b, from, packed, unpacked);
      this.#string.set(unpacked, 0, n);
      this.#work += n;
      return;
    }
    if (encoding > StringEncoding.int32) throw badData;
    const bytes = 2 ** encoding;
    const digits = String(this.#b.readIntLE(this.#take(bytes), bytes));
    const buffer = Buffer.from(digits, 'latin1');
    this.#string.set(buffer, 0, buffer.length);
  }

  /** Adds an element; whether it is time for a pause. */
  #add({ b, s, n }: Slice, score = 0): boolean {
    this.list.add(b, s, n, score);
    this.#work += n;
    return this.list.count >= elementsPerStep || this.#work >= stepBytes;
  }

  *#readPlain(): Pauses {
    const { strings, score } = this.#layout;
    const count = this.#length();
    if (count === 0) throw badData;
    for (let i = 0; i < count; i++) {
      yield* this.#readString();
      const element = this.#string;
      let isFull = this.#add(element, score === undefined ? 0 : NaN);
      if (score !== undefined) {
        this.list.setScore(
          this.list.count - 1,
          score === 'text' ? this.#textScore() : this.#score(),
        );
      }
      if (strings === 2) {
        yield* this.#readString();
        isFull = this.#add(this.#string);
      }
      if (!isFull) continue;
      this.#work = 0;
      yield;
    }
  }

  #score(): number {
    const score = this.#b.readDoubleLE(this.#take(8));
    if (Number.isNaN(score)) throw badData;
    return score;
  }

  #textScore(): number {
    const n = this.#b[this.#take(1)]!;
    if (n === 255) return -Infinity;
    if (n === 254) return Infinity;
    if (n === 253) throw badData;
    return scoreOf(this.#b, this.#take(n), n);
  }

  *#readNodes(nodes: 'ziplist' | 'quicklist2'): Pauses {
    const count = this.#length();
    let isEmpty = true;
    for (let i = 0; i < count; i++) {
      const container = nodes === 'ziplist' ? 2 : this.#length();
      if (container !== 1 && container !== 2) throw badData;
      yield* this.#readString();
      const before = this.list.count;
      if (container === 1) {
        if (this.#add(this.#string)) {
          this.#work = 0;
          isEmpty = false;
          yield;
        }
      } else if (yield* this.#unpackNode(nodes === 'ziplist' ? 'ziplist' : 'listpack'))
        isEmpty = false;
      if (this.list.count > before) isEmpty = false;
    }
    if (isEmpty) throw badData;
  }

  *#unpack(kind: PackedKind): Pauses {
    if (!(yield* this.#unpackNode(kind))) throw badData;
  }

  /** Adds the elements in `#string`; whether there were any. */
  *#unpackNode(kind: PackedKind): Generator<undefined, boolean, undefined> {
    const { shape, strings } = this.#layout;
    const { b, s, n } = this.#string;
    const packed = new Slice();
    packed.set(b, s, n);
    const elements = new PackedElements(kind, packed);
    const out = new Slice();
    let isEmpty = true;
    while (elements.next(out)) {
      isEmpty = false;
      let isFull = this.#add(out);
      if (strings === 2) {
        if (!elements.next(out)) throw badData;
        if (shape === Shape.ranked) {
          this.list.setScore(this.list.count - 1, scoreOf(out.b, out.s, out.n));
        } else isFull = this.#add(out);
      }
      if (!isFull) continue;
      this.#work = 0;
      yield;
    }
    return !isEmpty;
  }
}

function scoreOf(b: Buffer, s: number, n: number): number {
  const score = parseFloatBytes(b, s, n);
  if (Number.isNaN(score)) throw badData;
  return score;
}
