// The tag keys of a series in the order of its key. The shapes of a measurement are a tree: each adds one
// tag to its parent, the root has none. A series is its shape and one value number for each of its tags,
// which is some ten times less than the text of its key.

import { matchBytes } from './match-bytes.ts';
import type { MeasurementIndex } from './measurement-index.ts';
import type { Tag } from './tag.ts';

export class KeyShape {
  /** In the whole index, from 0, in the order they were made: parents first. */
  readonly number: number;
  readonly measurement: MeasurementIndex;
  readonly parent: KeyShape | undefined;
  /** The last of its tags; none in the root. */
  readonly tag: Tag | undefined;
  /** It has or had series. */
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

  /** Made when asked for: of most shapes on the way to a long key nobody asks. */
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
