// The operating system's file system behind the `Disk` door.

import {
  closeSync,
  constants,
  existsSync,
  fdatasync,
  fdatasyncSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readdirSync,
  readSync,
  renameSync,
  rmSync,
  statfsSync,
  unlinkSync,
  write,
  writeSync,
} from 'node:fs';
import { unlink } from 'node:fs/promises';
import type { Disk, DiskFile } from '../../universal-row/environment.ts';

// Node refuses more than 2^31 - 1 bytes in one call.
const maxCallBytes = 1 << 30;

const flags = {
  // A pipe where a file should be does not hold up the thread.
  read: constants.O_RDONLY | constants.O_NONBLOCK,
  create: constants.O_RDWR | constants.O_CREAT | constants.O_TRUNC,
  // Not O_APPEND: Linux would then ignore the position of a write.
  append: constants.O_RDWR | constants.O_CREAT,
} as const;

export const realDisk: Disk = {
  makeDirectory(path) {
    mkdirSync(path, { recursive: true, mode: 0o700 });
  },

  list(path) {
    try {
      return readdirSync(path).sort();
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
      throw error;
    }
  },

  exists: (path) => existsSync(path),
  open: (path, mode) => new RealFile(path, openSync(path, flags[mode], 0o600)),
  rename: (from, to) => renameSync(from, to),
  remove: (path) => unlinkSync(path),
  removeTree: (path) => rmSync(path, { recursive: true, force: true }),
  removeAsync: (path) => unlink(path),

  syncDirectory(path) {
    const fd = openSync(path, constants.O_RDONLY | constants.O_DIRECTORY);
    try {
      fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
  },

  freeBytes(path) {
    try {
      const s = statfsSync(path);
      return s.bavail * s.bsize;
    } catch {
      return Infinity;
    }
  },
};

class RealFile implements DiskFile {
  readonly path: string;
  readonly #fd: number;
  /** Off the event loop. */
  #calls = 0;
  #closes = false;

  constructor(path: string, fd: number) {
    this.path = path;
    this.#fd = fd;
  }

  size(): number {
    return fstatSync(this.#fd).size;
  }

  read(into: Uint8Array, offset: number, length: number, position: number): number {
    let done = 0;
    while (done < length) {
      const n = Math.min(length - done, maxCallBytes);
      const got = readSync(this.#fd, into, offset + done, n, position + done);
      if (got === 0) break;
      done += got;
    }
    return done;
  }

  write(from: Uint8Array, offset: number, length: number, position: number): void {
    let done = 0;
    while (done < length) {
      const n = Math.min(length - done, maxCallBytes);
      done += writeSync(this.#fd, from, offset + done, n, position + done);
    }
  }

  async writeAsync(
    from: Uint8Array,
    offset: number,
    length: number,
    position: number,
  ): Promise<void> {
    let done = 0;
    while (done < length) {
      const n = Math.min(length - done, maxCallBytes);
      done += await this.#call<number>((answer) =>
        write(this.#fd, from, offset + done, n, position + done, answer),
      );
    }
  }

  truncate(length: number): void {
    ftruncateSync(this.#fd, length);
  }

  syncNow(): void {
    fdatasyncSync(this.#fd);
  }

  sync(): Promise<void> {
    return this.#call<void>((answer) => fdatasync(this.#fd, answer));
  }

  #call<T>(begin: (answer: (error: Error | null, value: T) => void) => void): Promise<T> {
    return new Promise((resolve, reject) => {
      if (this.#closes) throw new Error(`${this.path} is closed`);
      this.#calls++;
      begin((error, value) => {
        this.#calls--;
        if (this.#closes && this.#calls === 0) closeSync(this.#fd);
        if (error) reject(error);
        else resolve(value);
      });
    });
  }

  /** At once, or after the calls under way, which would act on the next file with the descriptor's number. */
  close(): void {
    this.#closes = true;
    if (this.#calls === 0) closeSync(this.#fd);
  }
}
