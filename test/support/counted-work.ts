// Work counted instead of timed: how often the blocks of our own code were run, by V8's precise coverage. The same on
// every machine, and whatever else it does. What V8 does by itself, as a search in a string, does not count.

import { Session } from 'node:inspector';
import { sep } from 'node:path';

/** Folders whose blocks are counted: our own code, and the regular expression library. */
const counted = [
  '/access/',
  '/universal-row/',
  '/storage-node/',
  '/engines/',
  '/node_modules/re2js/',
];

interface Coverage {
  result: {
    url: string;
    functions: { ranges: { count: number }[] }[];
  }[];
}

export class WorkCounter {
  readonly #session = new Session();

  constructor() {
    this.#session.connect();
    this.#post('Profiler.enable');
    this.#post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
  }

  /** Blocks run by `run`, which is synchronous. */
  count(run: () => void): number {
    this.#take();
    run();
    return this.#take();
  }

  close(): void {
    this.#post('Profiler.stopPreciseCoverage');
    this.#session.disconnect();
  }

  /** Since it was last asked. */
  #take(): number {
    const { result } = this.#post('Profiler.takePreciseCoverage') as Coverage;
    let sum = 0;
    for (const { url, functions } of result) {
      const path = url.replaceAll(sep, '/');
      if (!counted.some((folder) => path.includes(folder))) continue;
      for (const { ranges } of functions) for (const { count } of ranges) sum += count;
    }
    return sum;
  }

  /** Answered at once: the session is of this thread. */
  #post(method: string, parameters: object = {}): unknown {
    let answer: unknown;
    this.#session.post(method, parameters, (error: Error | null, result?: unknown) => {
      if (error !== null) throw error;
      answer = result;
    });
    return answer;
  }
}
