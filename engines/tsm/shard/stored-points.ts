// Files and sealed or active heads with reference counts and the age of their points. A file that
// the shard no longer needs is released with its last reader.

import type { Disk } from '../../../universal-row/environment.ts';
import type { TsmFile } from '../parts.ts';
import type { HeadMark, ShardHead } from './shard-types.ts';
import type { Aged } from './tombstones.ts';

/**
 * Rows returned by a part stay valid until its next call: this is the reader that had them last.
 */
export interface Lender {
  borrower: object | undefined;
}

abstract class Held implements Lender, Aged {
  borrower: object | undefined = undefined;
  abstract readonly age: number;
  abstract readonly clearedTo: number;
  #readers = 0;
  #ended = false;

  hold(): void {
    this.#readers++;
  }

  release(): void {
    this.#readers--;
    if (this.#ended && this.#readers === 0) this.leave();
  }

  /** The shard needs it no more. */
  end(): void {
    if (this.#ended) return;
    this.#ended = true;
    if (this.#readers === 0) this.leave();
  }

  protected abstract leave(): void;
}

export interface StoredPlace {
  readonly number: number;
  readonly level: number;
  readonly age: number;
  readonly clearedTo: number;
}

export class StoredFile extends Held {
  readonly number: number;
  readonly level: number;
  readonly age: number;
  readonly clearedTo: number;
  readonly file: TsmFile;
  readonly #disk: Disk;
  /** The file has been replaced, so its bytes are deleted too. */
  #replaced = false;

  constructor(disk: Disk, file: TsmFile, place: StoredPlace) {
    super();
    this.#disk = disk;
    this.file = file;
    this.number = place.number;
    this.level = place.level;
    this.age = place.age;
    this.clearedTo = place.clearedTo;
  }

  replace(): void {
    this.#replaced = true;
    this.end();
  }

  protected override leave(): void {
    this.file.close();
    if (!this.#replaced) return;
    // If it cannot be removed: the manifest names it no more, and the next opening removes it.
    this.#disk.removeAsync(this.file.path).catch(() => {});
  }
}

export class StoredHead extends Held {
  readonly age: number;
  readonly clearedTo = 0;
  readonly head: ShardHead;
  /** Set once it is sealed, when nothing is appended to it any more. */
  sealedAt: HeadMark | undefined = undefined;

  constructor(head: ShardHead, number: number) {
    super();
    this.head = head;
    this.age = number;
  }

  protected override leave(): void {
    this.head.release();
  }
}
