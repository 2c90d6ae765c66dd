// Writes the frames of one part of a backup to chunk files, each synced before the next one is begun.

import { createHash, type Hash } from 'node:crypto';
import { promisify } from 'node:util';
import { deflateRaw } from 'node:zlib';
import {
  type ChunkDisk,
  type ChunkFile,
  chunkFooter,
  type ChunkHandle,
  chunkHeader,
  frameHeader,
} from './chunk-format.ts';

// Packing happens on threads of its own; the fastest level is already smaller by half for most data.
const pack = promisify(deflateRaw);
const packingLevel = 1;
/** A file is ended at this size, which bounds the damage and the repeated copies. */
const defaultFileBytes = 64 * 1024 * 1024;

export class ChunkWriter {
  /** Bytes written, as they are on disk. */
  bytes = 0;
  /** Bytes handed in. */
  rawBytes = 0;
  readonly #disk: ChunkDisk;
  readonly #directory: string;
  readonly #prefix: string;
  readonly #fileBytes: number;
  readonly #done: ChunkFile[] = [];
  #file: ChunkHandle | undefined;
  #hash: Hash = createHash('sha256');
  #size = 0;
  #raw = 0;
  #frames = 0;

  /** Files are called `<prefix>-000001.chunk` and so on. */
  constructor(disk: ChunkDisk, directory: string, prefix: string, fileBytes = defaultFileBytes) {
    this.#fileBytes = fileBytes;
    this.#disk = disk;
    this.#directory = directory;
    this.#prefix = prefix;
  }

  /** Resolves when the bytes are written, and the caller's again: a caller that waits is no faster than the disk. */
  async add(raw: Buffer): Promise<void> {
    if (raw.length === 0) return;
    const packed = await pack(raw, { level: packingLevel });
    this.#file ??= await this.#begin();
    await this.#write(frameHeader(packed, raw.length));
    await this.#write(packed);
    this.#frames++;
    this.#raw += raw.length;
    this.rawBytes += raw.length;
    if (this.#size >= this.#fileBytes) await this.#end();
  }

  /** Everything is on disk then. */
  async finish(): Promise<ChunkFile[]> {
    if (this.#file !== undefined) await this.#end();
    return this.#done;
  }

  /** Gives up; written files stay until the directory is removed. */
  abandon(): void {
    this.#file?.close();
    this.#file = undefined;
  }

  get #name(): string {
    return `${this.#prefix}-${String(this.#done.length + 1).padStart(6, '0')}.chunk`;
  }

  async #begin(): Promise<ChunkHandle> {
    this.#file = this.#disk.open(`${this.#directory}/${this.#name}`, 'create');
    this.#hash = createHash('sha256');
    this.#size = 0;
    this.#raw = 0;
    this.#frames = 0;
    await this.#write(chunkHeader());
    return this.#file;
  }

  async #write(bytes: Buffer): Promise<void> {
    await this.#file!.writeAsync(bytes, 0, bytes.length, this.#size);
    this.#hash.update(bytes);
    this.#size += bytes.length;
    this.bytes += bytes.length;
  }

  async #end(): Promise<void> {
    await this.#write(chunkFooter(this.#frames, this.#raw));
    const file = this.#file!;
    await file.sync();
    this.#file = undefined;
    file.close();
    this.#done.push({
      name: this.#name,
      bytes: this.#size,
      rawBytes: this.#raw,
      frames: this.#frames,
      sha256: this.#hash.digest('hex'),
    });
  }
}
