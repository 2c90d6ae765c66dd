import { MetadataUnavailable } from '../document-store.ts';

/** The time a call may take, shared by its steps. */
export class Deadline {
  readonly #end: number;
  readonly #ms: number;

  constructor(ms: number) {
    this.#ms = ms;
    this.#end = performance.now() + ms;
  }

  get isPassed(): boolean {
    return performance.now() >= this.#end;
  }

  /**
   * A call of the driver, which is notified of the time that is left, but does not always keep to it. Rejects
   * with `MetadataUnavailable`: of an unknown outcome, if it was begun at all.
   */
  async run<T>(call: (options: { timeoutMS: number }) => Promise<T>): Promise<T> {
    const timeoutMS = Math.ceil(this.#end - performance.now());
    if (timeoutMS <= 0) throw this.passed('none');
    let timer: NodeJS.Timeout | undefined;
    const timeout = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(this.passed('unknown')), timeoutMS);
    });
    try {
      return await Promise.race([call({ timeoutMS }), timeout]);
    } finally {
      clearTimeout(timer);
    }
  }

  passed(outcome: 'none' | 'unknown', cause?: unknown): MetadataUnavailable {
    const message = `the metadata store did not answer within ${this.#ms} ms`;
    return new MetadataUnavailable(message, outcome, { cause });
  }
}
