// Chooses the number of points of a batch, so that reading and storing a batch takes a few milliseconds, which is one
// step of the thread. A point takes ten times as long before the code is compiled, and more fields take longer.

import { defaultLineParserLimits } from '../line-protocol/line-parser.ts';

const firstRows = 500;
export const leastRows = 250;
/** Thresholds in milliseconds: a step below `shortMs` may grow, a step above `longMs` must shrink. */
const shortMs = 3;
const longMs = 6;

export class BatchPace {
  /** Most points of the next batch: a multiple of `leastRows`. */
  rows = firstRows;

  /** Reports that a batch of `rows` points took `ms` milliseconds. */
  took(rows: number, ms: number): void {
    if (ms > longMs) this.rows = Math.max(leastRows, this.rows >> 1);
    // A batch that ended for another reason tells nothing of a larger one.
    else if (ms < shortMs && rows * 2 > this.rows) {
      this.rows = Math.min(defaultLineParserLimits.rows, this.rows * 2);
    }
  }
}
