// Result of a restore's comparison of the written data with the backup.

export interface RestoredTable {
  /** Its number here. */
  readonly table: number;
  readonly rows: number;
  /** Rows with an expiry; and those of them that are due already and are dropped at once. */
  readonly expiring: number;
  readonly due: number;
  readonly checksum: string;
  /** False where a chain of backups was made without checksums, and only tells how many rows there are in the end. */
  readonly checksumCompared: boolean;
}

export interface RestoredShard {
  readonly database: string;
  readonly policy: string;
  readonly startSeconds: number;
  readonly rows: number;
  readonly values: number;
  readonly checksum: string;
}

/** The written data differs from the backup. Existing data is not replaced. */
export class RestoreMismatchError extends Error {
  override readonly name = 'RestoreMismatchError';
}

/** There are rows where they are to be restored. */
export class NotEmptyError extends Error {
  override readonly name = 'NotEmptyError';
}
