// Where the chunks of a snapshot wait until it is whole and the engine takes it: a file for each group that is being
// sent one. A restart begins anew.

import type { Disk, DiskFile } from '../../../universal-row/environment.ts';
import { getU32, putU32 } from '../wal/format.ts';

const prefix = 'snapshot-';
/** Read and applied in one step, in a few milliseconds. */
const stepBytes = 512 * 1024;
/** One that is being installed may be read while the next one comes. */
let count = 0;

export class SnapshotStaging {
  /** The number of the chunk that is waited for. */
  next = 0;
  readonly sender: string;
  readonly #disk: Disk;
  readonly #path: string;
  #file: DiskFile | undefined;
  #size = 0;

  /** `sender` tells a transfer from every other one of the group. */
  constructor(disk: Disk, directory: string, group: number, sender: string) {
    this.#disk = disk;
    this.#path = `${directory}/${prefix}${group}-${++count}`;
    this.sender = sender;
    this.#file = disk.open(this.#path, 'create');
  }

  add(chunk: Uint8Array): void {
    const length = Buffer.alloc(4);
    putU32(length, 0, chunk.length);
    this.#file!.write(length, 0, 4, this.#size);
    this.#file!.write(chunk, 0, chunk.length, this.#size + 4);
    this.#size += 4 + chunk.length;
    this.next++;
  }

  /** The chunks in their order, each valid until the next is asked for. Other work of the thread has its turn after every `stepBytes`. */
  async *chunks(): AsyncGenerator<Uint8Array> {
    const length = Buffer.alloc(4);
    let memory = Buffer.alloc(0);
    let stepEnd = stepBytes;
    for (let at = 0; at < this.#size; ) {
      if (at > stepEnd) {
        stepEnd = at + stepBytes;
        await new Promise(setImmediate);
      }
      this.#file!.read(length, 0, 4, at);
      const bytes = getU32(length, 0);
      if (memory.length < bytes) memory = Buffer.allocUnsafeSlow(bytes + (bytes >>> 3));
      const chunk = memory.subarray(0, bytes);
      this.#file!.read(chunk, 0, bytes, at + 4);
      at += 4 + chunk.length;
      yield chunk;
    }
  }

  remove(): void {
    if (this.#file === undefined) return;
    this.#file.close();
    this.#file = undefined;
    this.#disk.remove(this.#path);
  }
}

/** Removes stagings left by an earlier process. */
export function removeStagings(disk: Disk, directory: string): void {
  for (const name of disk.list(directory)) {
    if (name.startsWith(prefix)) disk.remove(`${directory}/${name}`);
  }
}
