// What a restore found when it compared what it had written with what the backup has.

export interface RestoredTable {
  /** Its number here. */
  readonly table: number;
  readonly rows: number;
  /** Of the rows, those with an expiry; and how many of these are due already and go at once. */
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

/** What was written is not what the backup has. Nothing of it takes the place of anything. */
export class RestoreMismatchError extends Error {
  override readonly name = 'RestoreMismatchError';
}

/** There are rows where they are to be restored. */
export class NotEmptyError extends Error {
  override readonly name = 'NotEmptyError';
}
