// Work of the last runs of each script and function, by which RU EXPLAIN tells the cost of the next one.

import { RowWork } from '../../universal-row/row-work.ts';

/** Runs of which the means are: of the last one to two times as many. */
const windowRuns = 16;

/** Sums over some runs. */
class RunSums {
  readonly work = new RowWork();
  runs = 0;
  sent = 0;

  clear(): void {
    this.work.reset();
    this.runs = 0;
    this.sent = 0;
  }
}

/** The runs of one script. */
export class ScriptRuns {
  #now = new RunSums();
  #before = new RunSums();

  /** A run has answered with `sent` bytes; its work is from `before` to `after`. */
  add(before: RowWork, after: RowWork, sent: number): void {
    if (this.#now.runs === windowRuns) {
      [this.#now, this.#before] = [this.#before, this.#now];
      this.#now.clear();
    }
    const sums = this.#now;
    sums.work.addSince(before, after);
    sums.runs++;
    sums.sent += sent;
  }

  get runs(): number {
    return this.#now.runs + this.#before.runs;
  }

  /** Mean bytes of an answer. */
  get sent(): number {
    return (this.#now.sent + this.#before.sent) / this.runs;
  }

  /** Mean work of a run. */
  work(): RowWork {
    const mean = new RowWork();
    const none = new RowWork();
    for (const { work } of [this.#now, this.#before]) mean.addSince(none, work);
    return mean.divided(this.runs);
  }
}

/** By script or function, whose histories go with them. */
export class ScriptCosts {
  readonly #runs = new WeakMap<object, ScriptRuns>();

  of(script: object): ScriptRuns | undefined {
    return this.#runs.get(script);
  }

  take(script: object): ScriptRuns {
    let runs = this.#runs.get(script);
    if (runs === undefined) this.#runs.set(script, (runs = new ScriptRuns()));
    return runs;
  }
}
