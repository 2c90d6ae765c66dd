// A file that reserves disk space. When the disk is full it is deleted, and the failed write fits
// after all: a write that was already decided is never lost. From then on no new writes are
// accepted, until there is space to create the file again.

import type { Disk } from '../../../universal-row/environment.ts';
import { isDiskFull } from './log-errors.ts';

const ballastName = 'ballast';
const checkMs = 1000;
const chunkBytes = 1024 * 1024;
/** Below this the file would hardly hold one tick's writes. */
const leastBytes = 64 * 1024;

/** For those that have no `Ballast` yet: removes the file of an earlier life. False when there is none. */
export function giveUpBallast(disk: Disk, directory: string): boolean {
  const path = `${directory}/${ballastName}`;
  if (!disk.exists(path)) return false;
  disk.remove(path);
  return true;
}

export class Ballast {
  /** Why nothing new should be written, for now. */
  failure: Error | undefined;

  readonly #disk: Disk;
  readonly #directory: string;
  readonly #path: string;
  readonly #onError: (error: unknown) => void;
  #bytes = 0;
  #held = false;
  #stopped = false;
  #timer: NodeJS.Timeout | undefined;
  #check: Promise<void> | undefined;

  constructor(disk: Disk, directory: string, onError: (error: unknown) => void) {
    this.#disk = disk;
    this.#directory = directory;
    this.#path = `${directory}/${ballastName}`;
    this.#onError = onError;
    this.#held = disk.exists(this.#path);
  }

  get bytes(): number {
    return this.#held ? this.#bytes : 0;
  }

  /** Lays the file down: `maxBytes`, but no more than a sixteenth of the free room. 0 does without. */
  async prepare(maxBytes: number): Promise<void> {
    const there = this.#held ? this.#size() : 0;
    const free = this.#disk.freeBytes(this.#directory) + there;
    this.#bytes = Math.min(maxBytes, Math.floor(free / 16));
    const tooSmall = this.#bytes < Math.min(maxBytes, leastBytes);
    if (tooSmall) this.#bytes = Math.min(maxBytes, leastBytes);
    if (this.#bytes === 0 || (this.#held && there >= this.#bytes)) return;
    if (tooSmall || !(await this.#fill())) this.#fail();
  }

  /** Gives the room back. False when there was none to give. */
  release(): boolean {
    const held = this.#held;
    if (held) {
      this.#held = false;
      this.#disk.remove(this.#path);
    }
    this.#fail();
    return held;
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
    await this.#check;
  }

  #size(): number {
    const file = this.#disk.open(this.#path, 'read');
    try {
      return file.size();
    } finally {
      file.close();
    }
  }

  #fail(): void {
    const free = this.#disk.freeBytes(this.#directory);
    this.failure = new Error(`disk full: ${free} bytes free in ${this.#directory}`);
    if (this.#stopped) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#check = this.#tryAgain().catch(this.#onError);
    }, checkMs);
    this.#timer.unref();
  }

  async #tryAgain(): Promise<void> {
    // Twice the room, or the next few writes would end up here again.
    const wanted = 2 * Math.max(this.#bytes, leastBytes);
    if (this.#disk.freeBytes(this.#directory) >= wanted && (await this.#fill()))
      this.failure = undefined;
    else this.#fail();
  }

  /** Writes real bytes that do not compress, or the file would take no room. */
  async #fill(): Promise<boolean> {
    if (this.#bytes === 0) return true;
    const chunk = Buffer.allocUnsafe(Math.min(chunkBytes, this.#bytes));
    let noise = 0x9e3779b9;
    for (let i = 0; i < chunk.length; i++) {
      noise ^= noise << 13;
      noise ^= noise >>> 17;
      noise ^= noise << 5;
      chunk[i] = noise;
    }
    this.#held = false;
    try {
      const file = this.#disk.open(this.#path, 'create');
      try {
        for (let done = 0; done < this.#bytes; done += chunk.length) {
          await file.writeAsync(chunk, 0, Math.min(chunk.length, this.#bytes - done), done);
        }
      } finally {
        file.close();
      }
    } catch (error) {
      if (!isDiskFull(error)) throw error;
      if (this.#disk.exists(this.#path)) this.#disk.remove(this.#path);
      return false;
    }
    this.#held = true;
    return true;
  }
}
