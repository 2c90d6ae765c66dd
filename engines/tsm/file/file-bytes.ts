// Reads of a file that report the position of damage.

import type { DiskFile } from '../../../universal-row/environment.ts';
import { CorruptFileError } from '../parts.ts';
import { checksum, crcBytes } from './format.ts';

// Larger buffers are not kept.
const keptBytes = 256 * 1024;
const scratch: Buffer = Buffer.allocUnsafeSlow(keptBytes);

/** Damage whose place is known already. */
class DamagedFileError extends CorruptFileError {
  readonly path: string;
  readonly offset: number;

  constructor(path: string, offset: number, what: string) {
    super(`${path} is damaged at byte ${offset}: ${what}`);
    this.path = path;
    this.offset = offset;
  }
}

export class FileBytes {
  readonly file: DiskFile;
  readonly size: number;

  constructor(file: DiskFile) {
    this.file = file;
    this.size = file.size();
  }

  damaged(offset: number, what: string): never {
    throw new DamagedFileError(this.file.path, offset, what);
  }

  /** Error for the bytes at `offset`; damage is reported with its place. */
  failed(offset: number, error: unknown): never {
    const unplaced = error instanceof CorruptFileError && !(error instanceof DamagedFileError);
    if (unplaced) this.damaged(offset, error.message);
    throw error;
  }

  /** Runs a decoder of the bytes there; damage it finds is reported with the place. */
  at<T>(offset: number, decode: () => T): T {
    try {
      return decode();
    } catch (error) {
      return this.failed(offset, error);
    }
  }

  /** A buffer of its own. */
  read(offset: number, length: number): Buffer {
    this.#within(offset, length);
    const bytes = Buffer.allocUnsafeSlow(length);
    this.#fill(bytes, offset, length);
    return bytes;
  }

  /** As `read`, but everyone's buffer, which is longer, and valid until the next call. */
  peek(offset: number, length: number): Buffer {
    this.#within(offset, length);
    const bytes = length <= keptBytes ? scratch : Buffer.allocUnsafeSlow(length);
    this.#fill(bytes, offset, length);
    return bytes;
  }

  /** Checks `length` bytes and the checksum after them, at `at` in the buffer and `offset` in the file. */
  verify(bytes: Buffer, at: number, length: number, offset: number, seed: number): void {
    if (bytes.readUInt32LE(at + length) !== checksum(bytes, at, at + length, seed)) {
      this.damaged(offset, 'wrong checksum');
    }
  }

  #within(offset: number, length: number): void {
    if (offset + length > this.size) this.damaged(offset, 'it would go beyond the end of the file');
  }

  #fill(bytes: Buffer, offset: number, length: number): void {
    const read = this.file.read(bytes, 0, length, offset);
    if (read < length) this.damaged(offset + read, 'the file ends here');
  }
}

/** Bytes with the checksum behind them. */
export function sealed(length: number): number {
  return length + crcBytes;
}
