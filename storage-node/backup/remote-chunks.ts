// Chunk files of a backup that is in a directory of another node: parts of it are written there as they are made, and read
// from there as they are restored, piece by piece.

import type { ChunkDisk, ChunkHandle } from './chunk-format.ts';

/** Request for a file in the directory of a backup being made or restored. */
export type ChunkRequest = { readonly path: string } & (
  | { readonly action: 'size' }
  | { readonly action: 'read'; readonly position: number; readonly length: number }
  | { readonly action: 'write'; readonly position: number; readonly bytes: Uint8Array }
  | { readonly action: 'sync' }
);

export interface ChunkAnswer {
  /** Answer to `size`: -1 for no file. */
  readonly size?: number;
  /** Answer to `read`: less than requested only at the end of the file. */
  readonly bytes?: Uint8Array;
}

/** Largest chunk of a request or an answer. */
export const mostChunkBytes = 256 * 1024;

export class RemoteChunks implements ChunkDisk {
  readonly #ask: (request: ChunkRequest) => Promise<ChunkAnswer>;

  constructor(ask: (request: ChunkRequest) => Promise<ChunkAnswer>) {
    this.#ask = ask;
  }

  async exists(path: string): Promise<boolean> {
    return (await this.#ask({ path, action: 'size' })).size !== -1;
  }

  open(path: string): ChunkHandle {
    return new RemoteFile(path, this.#ask);
  }
}

class RemoteFile implements ChunkHandle {
  readonly path: string;
  readonly #ask: (request: ChunkRequest) => Promise<ChunkAnswer>;
  /** Read ahead: files are read from their beginning to their end. */
  #ahead: Uint8Array = new Uint8Array(0);
  #aheadAt = 0;

  constructor(path: string, ask: (request: ChunkRequest) => Promise<ChunkAnswer>) {
    this.path = path;
    this.#ask = ask;
  }

  async size(): Promise<number> {
    return (await this.#ask({ path: this.path, action: 'size' })).size ?? 0;
  }

  async read(into: Uint8Array, offset: number, length: number, position: number): Promise<number> {
    let done = 0;
    while (done < length) {
      const at = position + done - this.#aheadAt;
      if (at < 0 || at >= this.#ahead.length) {
        this.#aheadAt = position + done;
        const range = { position: this.#aheadAt, length: mostChunkBytes };
        const { bytes } = await this.#ask({ path: this.path, action: 'read', ...range });
        this.#ahead = bytes ?? new Uint8Array(0);
        if (this.#ahead.length === 0) break;
        continue;
      }
      const part = this.#ahead.subarray(at, at + length - done);
      into.set(part, offset + done);
      done += part.length;
    }
    return done;
  }

  async writeAsync(
    from: Uint8Array,
    offset: number,
    length: number,
    position: number,
  ): Promise<void> {
    for (let done = 0; done < length; done += mostChunkBytes) {
      const end = Math.min(length, done + mostChunkBytes);
      // A copy: of a view all that is around it would be sent.
      const bytes = from.slice(offset + done, offset + end);
      await this.#ask({ path: this.path, action: 'write', position: position + done, bytes });
    }
  }

  async sync(): Promise<void> {
    await this.#ask({ path: this.path, action: 'sync' });
  }

  close(): void {}
}
