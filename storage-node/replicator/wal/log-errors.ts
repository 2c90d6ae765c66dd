// Errors of a log: it is damaged, it belongs to another owner, or a write failed.

/**
 * Bytes that were once surely on disk cannot be read back. Nothing after them can be trusted, and to
 * drop them is a loss that only an operator may accept: the log stays closed.
 */
export class LogCorruptionError extends Error {
  override readonly name = 'LogCorruptionError';
  /** Path of the segment. */
  readonly segment: string;
  readonly offset: number;
  readonly lsn: number;
  /** The last entry before the damage. */
  readonly lastIndex: number;

  constructor(segment: string, offset: number, lsn: number, lastIndex: number, reason: string) {
    super(
      `log damaged in ${segment} at offset ${offset} (LSN ${lsn}): ${reason}. ` +
        `Entries up to index ${lastIndex} are intact; what follows cannot be trusted. ` +
        'Restore the directory from a backup, or accept the loss of all entries after that one ' +
        'by starting once with wal.accept-loss=yes',
    );
    this.segment = segment;
    this.offset = offset;
    this.lsn = lsn;
    this.lastIndex = lastIndex;
  }
}

/** The log is intact but not the one that is wanted here: another disk, another pod, a gap to the engine. */
export class LogMismatchError extends Error {
  override readonly name = 'LogMismatchError';
}

/**
 * A tick could not be written and none of it is in the log; `lastIndex` is as before the tick. An
 * engine that has already applied its entries is ahead of the log: its owner answers the tick with
 * errors and rebuilds the engine from disk before continuing. Also thrown by an opening that has no room.
 */
export class LogWriteError extends Error {
  override readonly name = 'LogWriteError';
}

/**
 * A sync of the log has failed: the operating system may have given up writes that it had accepted. Ends the log; see
 * universal-row/written-again.ts.
 */
export class LogSyncError extends Error {
  override readonly name = 'LogSyncError';

  constructor(cause: unknown) {
    super(`the log cannot be synced: ${(cause as Error).message}`, { cause });
  }
}

/** Runs a sync of the log. */
export function syncingNow(sync: () => void): void {
  try {
    sync();
  } catch (error) {
    throw new LogSyncError(error);
  }
}

export function isDiskFull(error: unknown): boolean {
  const code = (error as NodeJS.ErrnoException | undefined)?.code;
  return code === 'ENOSPC' || code === 'EDQUOT';
}
