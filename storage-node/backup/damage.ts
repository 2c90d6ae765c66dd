/** A backup that does not read back as it was written. It names the file and the place in it. */
export class DamagedBackupError extends Error {
  override readonly name = 'DamagedBackupError';
  readonly path: string;
  /** Undefined where the file as a whole is meant. */
  readonly offset: number | undefined;

  constructor(path: string, offset: number | undefined, what: string) {
    const where = offset === undefined ? '' : ` at byte ${offset}`;
    super(`the backup is damaged: ${path}${where}: ${what}`);
    this.path = path;
    this.offset = offset;
  }
}
