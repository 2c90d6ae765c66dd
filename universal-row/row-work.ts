// What commands had the rows' store do, as plain numbers: whoever asked for them adds up and charges. A
// connection has one of these for all of its commands, and begins anew with each.

export class RowWork {
  /** Rows looked for. */
  lookups = 0;
  /** Values, fields and elements read one by one, and their bytes. */
  reads = 0;
  readBytes = 0;
  /** Keys, members, fields and their values walked along; and elements of arrays. */
  walked = 0;
  arrayWalked = 0;
  values = 0;
  fields = 0;
  scores = 0;
  elements = 0;
  /** Rows, fields and elements that went. */
  removed = 0;
  /** Bytes of the log. */
  logBytes = 0;
  /** Reads that were not in memory, for which commands had to wait and run again. */
  misses = 0;

  reset(): void {
    this.lookups = 0;
    this.reads = 0;
    this.readBytes = 0;
    this.walked = 0;
    this.arrayWalked = 0;
    this.values = 0;
    this.fields = 0;
    this.scores = 0;
    this.elements = 0;
    this.removed = 0;
    this.logBytes = 0;
    this.misses = 0;
  }

  /** All was undone, and will be done again when what was missing is there. */
  restart(): void {
    const misses = this.misses + 1;
    this.reset();
    this.misses = misses;
  }
}
