// A value in the RDB format, as DUMP gives it and RDB files hold it: every encoding that Redis has had.

import { parseFloatBytes } from '../../../arguments.ts';
import { emptyBytes, parseBigInteger, Slice } from '../../../bytes.ts';
import { Shape } from '../../../rows.ts';
import { stepBytes } from '../../../steps.ts';
import { latestFieldTime } from '../../../timed-map.ts';
import { ByteList } from '../support/byte-list.ts';
import { type Pauses, RdbCursor } from './cursor.ts';
import { badData, RdbType } from './format.ts';
import { PackedElements, type PackedKind } from './packed.ts';
import { StreamReader, type StreamVersion } from './stream-reader.ts';

/** Elements that are gathered between two pauses. */
const elementsPerStep = 256;

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
  /** Fields have times. */
  times?: 'plain' | 'listpack';
  /** Which of the forms of a stream it is. */
  stream?: StreamVersion;
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
  [RdbType.stream, { shape: Shape.stream, strings: 2, stream: 1 }],
  [RdbType.stream2, { shape: Shape.stream, strings: 2, stream: 2 }],
  [RdbType.stream3, { shape: Shape.stream, strings: 2, stream: 3 }],
  [RdbType.hashTimes, { shape: Shape.timed, strings: 2, times: 'plain' }],
  [RdbType.hashTimesListpack, { shape: Shape.timed, strings: 2, times: 'listpack' }],
  [RdbType.setListpack, { shape: Shape.set, strings: 1, packed: 'listpack' }],
]);

/**
 * Reads one value. `elements` collects its parts in `list`: the value's bytes; members, with scores
 * where they have one; fields, with a time as score where they can have one, alternating with
 * values; or for a stream keys and values of records. It pauses after some hundred parts, or a
 * step's work: then the caller takes the contents of `list`, and clears it. Throws `badData`;
 * earlier parts may have been taken by then.
 */
export class ValueReader {
  readonly shape: Shape;
  readonly list = new ByteList();
  /** For a stream, its state once it has been read. */
  state: Buffer = emptyBytes;
  readonly #from: RdbCursor;
  readonly #layout: Layout;
  readonly #string = new Slice();

  /** `n` bytes from `s`: the type and its data, which may extend beyond the value. */
  constructor(b: Buffer, s: number, n: number) {
    this.#from = new RdbCursor(b, s, n);
    const layout = layouts.get(this.#from.byte());
    if (layout === undefined) throw badData;
    this.#layout = layout;
    this.shape = layout.shape;
  }

  /** Where the value ends, once it is read. */
  get end(): number {
    return this.#from.at;
  }

  *elements(): Pauses {
    const { shape, packed, nodes, stream, times } = this.#layout;
    if (times === 'plain') yield* this.#readTimed();
    else if (times === 'listpack') yield* this.#readTimedListpack();
    else if (stream !== undefined) {
      const reader = new StreamReader(this.#from, this.list, stream);
      yield* reader.records();
      this.state = reader.state();
    } else if (shape === Shape.value) {
      yield* this.#from.string(this.#string);
      this.#add(this.#string);
    } else if (packed !== undefined) {
      yield* this.#from.string(this.#string);
      yield* this.#unpack(packed);
    } else if (nodes !== undefined) yield* this.#readNodes(nodes);
    else yield* this.#readPlain();
  }

  /** Adds an element; whether it is time for a pause. */
  #add({ b, s, n }: Slice, score = 0): boolean {
    this.list.add(b, s, n, score);
    this.#from.work += n;
    return this.list.count >= elementsPerStep || this.#from.work >= stepBytes;
  }

  *#readPlain(): Pauses {
    const { strings, score } = this.#layout;
    const count = this.#from.length();
    if (count === 0) throw badData;
    const second = new Slice();
    for (let i = 0; i < count; i++) {
      yield* this.#from.string(this.#string);
      // Both are read before either is added, so that the list holds whole pairs at every pause.
      if (strings === 2) yield* this.#from.string(second);
      let isFull = this.#add(this.#string);
      if (strings === 2) isFull = this.#add(second);
      if (score !== undefined) {
        this.list.setScore(
          this.list.count - 1,
          score === 'text' ? this.#textScore() : this.#from.double(),
        );
      }
      if (!isFull) continue;
      this.#from.work = 0;
      yield;
    }
  }

  /** Behind the soonest time, fields with how much later theirs is plus one, or 0 for none. */
  *#readTimed(): Pauses {
    const from = this.#from;
    const first = from.b.readBigInt64LE(from.take(8));
    const count = from.length();
    if (count === 0) throw badData;
    const second = new Slice();
    for (let i = 0; i < count; i++) {
      const later = from.wideLength();
      yield* from.string(this.#string);
      yield* from.string(second);
      const time = later === 0n ? 0n : first + later - 1n;
      if (!this.#addTimed(this.#string, second, time)) continue;
      from.work = 0;
      yield;
    }
  }

  /** Behind the soonest time a listpack of fields, values and times. */
  *#readTimedListpack(): Pauses {
    const from = this.#from;
    from.take(8);
    yield* from.string(this.#string);
    const elements = new PackedElements('listpack', this.#string);
    const out = new Slice();
    const words = new ByteList();
    let isEmpty = true;
    while (elements.next(out)) {
      isEmpty = false;
      words.clear();
      words.add(out.b, out.s, out.n);
      if (!elements.next(out)) throw badData;
      words.add(out.b, out.s, out.n);
      if (!elements.next(out)) throw badData;
      const time = parseBigInteger(out.b, out.s, out.n);
      if (time === undefined) throw badData;
      const field = new Slice();
      field.set(words.buf, 0, words.length(0));
      out.set(words.buf, words.start(1), words.length(1));
      if (!this.#addTimed(field, out, time)) continue;
      from.work = 0;
      yield;
    }
    if (isEmpty) throw badData;
  }

  /** Whether it is time for a pause. */
  #addTimed(field: Slice, value: Slice, time: bigint): boolean {
    if (time < 0n || time > BigInt(latestFieldTime)) throw badData;
    this.#add(field, Number(time));
    return this.#add(value);
  }

  #textScore(): number {
    const n = this.#from.byte();
    if (n === 255) return -Infinity;
    if (n === 254) return Infinity;
    if (n === 253) throw badData;
    return scoreOf(this.#from.b, this.#from.take(n), n);
  }

  *#readNodes(nodes: 'ziplist' | 'quicklist2'): Pauses {
    const count = this.#from.length();
    let isEmpty = true;
    for (let i = 0; i < count; i++) {
      const container = nodes === 'ziplist' ? 2 : this.#from.length();
      if (container !== 1 && container !== 2) throw badData;
      yield* this.#from.string(this.#string);
      const before = this.list.count;
      if (container === 1) {
        if (this.#add(this.#string)) {
          this.#from.work = 0;
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
      this.#from.work = 0;
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
