// All about one tag key of one measurement: its values, and which series has which.

import { viewed } from '../../../universal-row/bytes.ts';
import type { ByteArena } from './byte-arena.ts';
import type { MemoryTally } from './growing.ts';
import { Postings } from './postings.ts';
import { ValueColumn } from './value-column.ts';
import { ValueDictionary } from './value-dictionary.ts';

/** Assumed size of the objects of a tag besides their arrays. */
const objectBytes = 600;

export class Tag {
  /** Within its measurement, from 0. */
  readonly number: number;
  readonly name: string;
  /** `,key=`, as it stands in series keys. */
  readonly prefix: Buffer;
  readonly values: ValueDictionary;
  readonly column: ValueColumn;
  readonly #tally: MemoryTally;
  #postings: Postings | undefined = undefined;
  /** A series that has the tag was removed, so perhaps not all values are still in use. */
  #hasRemoved = false;
  /** By value number, 1 where a live series has it; undefined when it was not counted since. */
  #live: Uint8Array | undefined = undefined;
  #liveCount = 0;

  constructor(number: number, name: string, key: Buffer, arena: ByteArena, tally: MemoryTally) {
    this.number = number;
    this.name = name;
    this.prefix = viewed(Buffer.concat([Buffer.from(','), key, Buffer.from('=')]));
    this.values = new ValueDictionary(arena, tally);
    this.column = new ValueColumn(tally);
    this.#tally = tally;
    tally.bytes += objectBytes + 2 * key.length;
  }

  /** Ready for the first `ordinals` series of the measurement. */
  postings(ordinals: number): Postings {
    this.#postings ??= new Postings(this.#tally);
    this.#postings.catchUp(this.column, ordinals, this.values.count);
    return this.#postings;
  }

  append(ordinal: number, value: number): void {
    this.column.append(ordinal, value);
    if (this.#live === undefined) return;
    if (value >= this.#live.length) this.#setLive(undefined);
    else if (this.#live[value] === 0) {
      this.#live[value] = 1;
      this.#liveCount++;
    }
  }

  noteRemoved(): void {
    this.#hasRemoved = true;
    this.#setLive(undefined);
  }

  /** Values that live series have: by value number, 1 where one has it. Undefined: all of them. */
  liveValues(ordinals: number, isLive: (ordinal: number) => boolean): Uint8Array | undefined {
    if (!this.#hasRemoved) return undefined;
    if (this.#live !== undefined) return this.#live;
    // With room for values to come, so that it need not be counted again for each.
    const live = new Uint8Array(this.values.count * 2 + 16);
    let count = 0;
    for (let o = 0; o < ordinals; o++) {
      const value = this.column.get(o);
      if (value === 0 || live[value] === 1 || !isLive(o)) continue;
      live[value] = 1;
      count++;
    }
    this.#setLive(live);
    this.#liveCount = count;
    return live;
  }

  liveCount(ordinals: number, isLive: (ordinal: number) => boolean): number {
    return this.liveValues(ordinals, isLive) === undefined ? this.values.count : this.#liveCount;
  }

  #setLive(live: Uint8Array | undefined): void {
    this.#tally.bytes += (live?.length ?? 0) - (this.#live?.length ?? 0);
    this.#live = live;
  }
}
