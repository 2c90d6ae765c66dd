const sliceMs = 2;

/** Yields to requests every few milliseconds of work. */
export class Pace {
  #since = performance.now();

  async step(): Promise<void> {
    if (performance.now() - this.#since < sliceMs) return;
    await new Promise(setImmediate);
    this.#since = performance.now();
  }
}
