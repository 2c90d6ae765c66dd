// Parts that record a shard's calls.

import type { Block, Rows, SharedRows, TsmFile } from '../../parts.ts';
import type { ShardParts } from '../shard-types.ts';

export interface Counts {
  /** Blocks read. */
  reads: number;
  /** Heads whose memory was given back. */
  releases: number;
}

export function counted(parts: ShardParts): { parts: ShardParts; counts: Counts } {
  const counts = { reads: 0, releases: 0 };
  return {
    counts,
    parts: {
      ...parts,
      openFile: (disk, path) => new CountedFile(parts.openFile(disk, path), counts),
      createHead() {
        const head = parts.createHead();
        const release = head.release.bind(head);
        head.release = () => {
          counts.releases++;
          release();
        };
        return head;
      },
    },
  };
}

class CountedFile implements TsmFile {
  readonly path: string;
  readonly bytes: number;
  readonly minTime: number;
  readonly maxTime: number;
  readonly series: Uint32Array;
  readonly #file: TsmFile;
  readonly #counts: Counts;

  constructor(file: TsmFile, counts: Counts) {
    this.path = file.path;
    this.bytes = file.bytes;
    this.minTime = file.minTime;
    this.maxTime = file.maxTime;
    this.series = file.series;
    this.#file = file;
    this.#counts = counts;
  }

  touches(series: number, from: number, to: number): boolean {
    return this.#file.touches(series, from, to);
  }

  countTouched(from: number, to: number, counts: Uint16Array): void {
    this.#file.countTouched(from, to, counts);
  }

  sharedBlocks(from: number, to: number): number[] {
    return this.#file.sharedBlocks(from, to);
  }

  readShared(block: number, fields: readonly number[]): SharedRows {
    this.#counts.reads++;
    return this.#file.readShared(block, fields);
  }

  blocks(series: number, from: number, to: number): Block[] {
    return this.#file.blocks(series, from, to);
  }

  summary(block: Block, series: number, fields: readonly number[]): ReturnType<TsmFile['summary']> {
    return this.#file.summary(block, series, fields);
  }

  read(block: Block, series: number, fields: readonly number[]): Rows {
    this.#counts.reads++;
    return this.#file.read(block, series, fields);
  }

  close(): void {
    this.#file.close();
  }
}
