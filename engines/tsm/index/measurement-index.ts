// All about one measurement: its fields, tags and series. A series' place in it is its ordinal.

import type { FieldType } from '../../../universal-row/series/field-type.ts';
import type { FieldInfo } from '../parts.ts';
import type { ByteArena } from './byte-arena.ts';
import { GrowingUint32, type MemoryTally } from './growing.ts';
import { Tag } from './tag.ts';
import { ValueDictionary } from './value-dictionary.ts';
import { matchBytes } from './match-bytes.ts';

export class KeyShape {
  /** In the whole index, from 0, in the order they were made: parents first. */
  readonly number: number;
  readonly measurement: MeasurementIndex;
  readonly parent: KeyShape | undefined;
  /** The last of its tags; none in the root. */
  readonly tag: Tag | undefined;
  /** True if the measurement has or had series. */
  isUsed = false;
  #tags: readonly Tag[] | undefined = undefined;
  #children: Map<Tag, KeyShape> | undefined = undefined;
  /** The child taken last, likely to be the next. */
  #lately: KeyShape | undefined = undefined;

  constructor(
    number: number,
    measurement: MeasurementIndex,
    parent: KeyShape | undefined,
    tag: Tag | undefined,
  ) {
    this.number = number;
    this.measurement = measurement;
    this.parent = parent;
    this.tag = tag;
    parent?.adopt(this);
  }

  /** Made when asked for: most shapes on the way to a long key are not asked for. */
  get tags(): readonly Tag[] {
    return this.#tags ?? this.#collectTags();
  }

  /** The child whose `,key=` stands at `at`, if it is the one of last time. */
  likelyChild(keys: Buffer, at: number, end: number): KeyShape | undefined {
    const child = this.#lately;
    if (child === undefined) return undefined;
    return matchBytes(child.tag!.prefix, keys, at, end) < 0 ? undefined : child;
  }

  child(tag: Tag): KeyShape | undefined {
    const child = this.#children?.get(tag);
    if (child !== undefined) this.#lately = child;
    return child;
  }

  adopt(child: KeyShape): void {
    this.#children ??= new Map();
    this.#children.set(child.tag!, child);
    this.#lately = child;
  }

  #collectTags(): readonly Tag[] {
    const tags: Tag[] = this.tag === undefined ? [] : [this.tag];
    for (let shape = this.parent; shape?.tag !== undefined; shape = shape.parent) {
      tags.push(shape.tag);
    }
    this.#tags = tags.reverse();
    return this.#tags;
  }
}

/** Assumed size of the objects of a measurement and of a field. */
const objectBytes = 1200;
const fieldBytes = 150;

export class MeasurementIndex {
  readonly number: number;
  readonly name: string;
  /** Its name, as it stands in series keys. */
  readonly key: Buffer;
  /** The shape of its series without tags. */
  readonly root: KeyShape;
  /** By number. Forgotten ones have an empty name. */
  readonly fields: FieldInfo[] = [];
  readonly tags: Tag[] = [];
  /** Shapes that have or had series. */
  readonly shapes: KeyShape[] = [];
  /** Number of the series by ordinal. */
  readonly series: GrowingUint32;
  /** Series that were removed. */
  removed = 0;
  readonly #fieldsByName = new Map<string, FieldInfo>();
  readonly #tagsByName = new Map<string, Tag>();
  /** Number - 1 of a tag by its escaped key. */
  readonly #tagKeys: ValueDictionary;
  readonly #arena: ByteArena;
  readonly #tally: MemoryTally;

  constructor(number: number, key: Buffer, shape: number, arena: ByteArena, tally: MemoryTally) {
    this.number = number;
    this.key = key;
    this.name = key.toString().replace(/\\([, ])/g, '$1');
    this.root = new KeyShape(shape, this, undefined, undefined);
    this.series = new GrowingUint32(tally);
    this.#tagKeys = new ValueDictionary(arena, tally);
    this.#arena = arena;
    this.#tally = tally;
    tally.bytes += objectBytes + 2 * key.length;
  }

  field(name: string): FieldInfo | undefined {
    return this.#fieldsByName.get(name);
  }

  addField(name: string, type: FieldType): FieldInfo {
    const field = { number: this.fields.length, name, type };
    this.fields.push(field);
    if (name !== '') this.#fieldsByName.set(name, field);
    this.#tally.bytes += fieldBytes + 2 * name.length;
    return field;
  }

  /** A series of it was removed. With the last one its fields are forgotten: they may come back as other types. */
  noteRemoved(): void {
    this.removed++;
    if (this.removed < this.series.length) return;
    this.#fieldsByName.clear();
    // Their numbers stay taken, by fields without a name.
    for (const [i, { number, type }] of this.fields.entries()) {
      this.fields[i] = { number, name: '', type };
    }
  }

  useShape(shape: KeyShape): void {
    shape.isUsed = true;
    this.shapes.push(shape);
  }

  tag(name: string): Tag | undefined {
    return this.#tagsByName.get(name);
  }

  /** The tag whose escaped key is these bytes. */
  findTag(buf: Buffer, start: number, end: number): Tag | undefined {
    const number = this.#tagKeys.find(buf, start, end);
    return number === 0 ? undefined : this.tags[number - 1];
  }

  addTag(buf: Buffer, start: number, end: number): Tag {
    const number = this.#tagKeys.intern(buf, start, end);
    const key = Buffer.from(buf.subarray(start, end));
    const name = this.#tagKeys.text(number);
    const tag = new Tag(number - 1, name, key, this.#arena, this.#tally);
    this.tags.push(tag);
    this.#tagsByName.set(name, tag);
    return tag;
  }
}
