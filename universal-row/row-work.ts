// Counters of a command's work in the row store, from which its price is computed. A connection reuses one object for
// all of its commands.

export class RowWork {
  /** Rows looked for. */
  lookups = 0;
  /** Values, fields and elements read one by one, and their bytes. */
  reads = 0;
  readBytes = 0;
  /** Position lookups in the order of sorted sets: ranks, and starts of ordered walks. */
  seeks = 0;
  /** Keys and members walked along; fields with their values; members with their scores; elements of arrays. */
  walked = 0;
  fieldsWalked = 0;
  scoresWalked = 0;
  arrayWalked = 0;
  values = 0;
  fields = 0;
  scores = 0;
  elements = 0;
  /** Rows, fields and elements that went. */
  removed = 0;
  /** Bytes of the log. */
  logBytes = 0;
  /** Reads that missed the memory, so that their commands had to wait and run again. */
  misses = 0;
  /** Loops, calls and the like of scripts, of commands that they called without the work in the store. */
  scriptSteps = 0;

  reset(): void {
    this.lookups = 0;
    this.reads = 0;
    this.readBytes = 0;
    this.seeks = 0;
    this.walked = 0;
    this.fieldsWalked = 0;
    this.scoresWalked = 0;
    this.arrayWalked = 0;
    this.values = 0;
    this.fields = 0;
    this.scores = 0;
    this.elements = 0;
    this.removed = 0;
    this.logBytes = 0;
    this.misses = 0;
    this.scriptSteps = 0;
  }

  /** Copies all figures from `other`. */
  copy(other: RowWork): void {
    this.lookups = other.lookups;
    this.reads = other.reads;
    this.readBytes = other.readBytes;
    this.seeks = other.seeks;
    this.walked = other.walked;
    this.fieldsWalked = other.fieldsWalked;
    this.scoresWalked = other.scoresWalked;
    this.arrayWalked = other.arrayWalked;
    this.values = other.values;
    this.fields = other.fields;
    this.scores = other.scores;
    this.elements = other.elements;
    this.removed = other.removed;
    this.logBytes = other.logBytes;
    this.misses = other.misses;
    this.scriptSteps = other.scriptSteps;
  }

  /** Adds what `now` has more than it had at `before`. */
  addSince(before: RowWork, now: RowWork): void {
    this.lookups += now.lookups - before.lookups;
    this.reads += now.reads - before.reads;
    this.readBytes += now.readBytes - before.readBytes;
    this.seeks += now.seeks - before.seeks;
    this.walked += now.walked - before.walked;
    this.fieldsWalked += now.fieldsWalked - before.fieldsWalked;
    this.scoresWalked += now.scoresWalked - before.scoresWalked;
    this.arrayWalked += now.arrayWalked - before.arrayWalked;
    this.values += now.values - before.values;
    this.fields += now.fields - before.fields;
    this.scores += now.scores - before.scores;
    this.elements += now.elements - before.elements;
    this.removed += now.removed - before.removed;
    this.logBytes += now.logBytes - before.logBytes;
    this.misses += now.misses - before.misses;
    this.scriptSteps += now.scriptSteps - before.scriptSteps;
  }

  /** The work since `before` was undone, and is repeated when the missing records are there. */
  restart(before: RowWork): void {
    const misses = this.misses + 1;
    this.copy(before);
    this.misses = misses;
  }
}
