// All about one measurement: its fields, tags and series. A series' place in it is its ordinal.

import type { FieldType } from '../../../universal-row/series/field-type.ts';
import type { FieldInfo } from '../parts.ts';
import type { ByteArena } from './byte-arena.ts';
import { GrowingUint32, type MemoryTally } from './growing.ts';
import { KeyShape } from './key-shape.ts';
import { Tag } from './tag.ts';
import { ValueDictionary } from './value-dictionary.ts';

/** What the objects of a measurement and of a field are reckoned to take. */
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
