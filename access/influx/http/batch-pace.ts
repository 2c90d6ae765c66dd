// Points of a batch, so that it is read and stored within some milliseconds, which is one step of the thread. A point
// takes ten times as long while the code is not compiled yet, and one with many fields takes longer than one with a few.

import { defaultLineParserLimits } from '../line-protocol/line-parser.ts';

const firstRows = 500;
const leastRows = 250;
/** A step of less than `shortMs` may become longer, and one of more than `longMs` is to become shorter. */
const shortMs = 3;
const longMs = 6;

export class BatchPace {
  /** Most points of the next batch. */
  rows = firstRows;

  /** A batch of so many points took so long. */
  took(rows: number, ms: number): void {
    if (ms > longMs) this.rows = Math.max(leastRows, this.rows >> 1);
    // A batch that ended for another reason tells nothing of a larger one.
    else if (ms < shortMs && rows * 2 > this.rows) {
      this.rows = Math.min(defaultLineParserLimits.rows, this.rows * 2);
    }
  }
}
