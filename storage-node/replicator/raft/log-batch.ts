// Writes of all groups of a pod in one event-loop tick, as one batch.

import type { Wal } from '../wal/wal.ts';

interface LogWriter<Write> {
  /** The frame as `Wal.append` wants it, or undefined for a write that only waits for those before it. */
  encode(write: Write): Buffer | undefined;
  placed(write: Write, segment: number, offset: number): void;
  /** All of the tick is written. */
  written(write: Write): void;
}

export class LogBatch<Write> {
  /** So many were written. */
  writes = 0;
  readonly #wal: Wal;
  #writes: { by: LogWriter<Write>; write: Write }[] = [];

  constructor(wal: Wal) {
    this.#wal = wal;
  }

  add(by: LogWriter<Write>, write: Write): void {
    this.#writes.push({ by, write });
  }

  /** Throws `LogWriteError` when even the ballast is too small: the pod must end. */
  flush(): void {
    if (this.#writes.length === 0) return;
    const writes = this.#writes;
    this.#writes = [];
    this.writes += writes.length;
    this.#wal.appendAll(
      writes.length,
      (i) => writes[i]!.by.encode(writes[i]!.write),
      (i, segment, offset) => writes[i]!.by.placed(writes[i]!.write, segment, offset),
    );
    for (const { by, write } of writes) by.written(write);
  }
}
