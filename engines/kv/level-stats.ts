// LevelDB's statistics by level, from its property `leveldb.stats`, in whole MiB and seconds since
// it was opened:
//
//                                  Compactions
//   Level  Files Size(MB) Time(sec) Read(MB) Write(MB)
//   --------------------------------------------------
//     0        2       17         1        0       134
//     1        7       58         2      241       238

interface LevelStats {
  files: number;
  /** Total size of the files. */
  bytes: number;
  /** Bytes read and written by compactions and flushes into this level. */
  readBytes: number;
  writtenBytes: number;
}

const mebibyte = 1024 * 1024;

/** By level, those without a row left out. */
export function parseLevelStats(text: string): Map<number, LevelStats> {
  const levels = new Map<number, LevelStats>();
  for (const line of text.split('\n')) {
    const words = line.trim().split(/\s+/);
    const numbers = words.map(Number);
    if (words.length !== 6 || !numbers.every(Number.isFinite)) continue;
    const [level, files, size, , read, write] = numbers;
    levels.set(level!, {
      files: files!,
      bytes: size! * mebibyte,
      readBytes: read! * mebibyte,
      writtenBytes: write! * mebibyte,
    });
  }
  return levels;
}

/**
 * Level 0, where flushed files wait for compaction. Each file is a sorted run of its own. All
 * counters are since the store was first opened by this process, and never decrease.
 */
export interface LevelZero {
  files: number;
  bytes: number;
  flushedBytes: number;
  compactedBytes: number;
}

/**
 * Counters of level 0 across reopenings of a database: LevelDB resets its own counters whenever it
 * is opened.
 */
export class LevelZeroCounter {
  #flushedBefore = 0;
  #compactedBefore = 0;
  /** Bytes counted at this opening. */
  #bytesAtOpen: number | undefined;
  #flushed = 0;
  #compacted = 0;

  /** The database is going to be closed, and perhaps opened again. */
  closed(): void {
    this.#flushedBefore += this.#flushed;
    this.#compactedBefore += this.#compacted;
    this.#flushed = 0;
    this.#compacted = 0;
    this.#bytesAtOpen = undefined;
  }

  /** `stats` is the text of the property; undefined while it is not available. */
  read(stats: string | undefined): LevelZero {
    const level = stats === undefined ? undefined : parseLevelStats(stats).get(0);
    const bytes = level?.bytes ?? 0;
    if (stats !== undefined) {
      const flushed = level?.writtenBytes ?? 0;
      this.#bytesAtOpen ??= Math.max(0, bytes - flushed);
      // Only flushes lead into this level, and only compactions out of it. Figures are rounded each by itself.
      this.#flushed = Math.max(this.#flushed, flushed);
      this.#compacted = Math.max(this.#compacted, this.#bytesAtOpen + flushed - bytes);
    }
    return {
      files: level?.files ?? 0,
      bytes,
      flushedBytes: this.#flushedBefore + this.#flushed,
      compactedBytes: this.#compactedBefore + this.#compacted,
    };
  }
}
