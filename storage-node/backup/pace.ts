const sliceMs = 2;

/** Gives requests their turn every few milliseconds of work. */
export class Pace {
  #since = performance.now();

  async step(): Promise<void> {
    if (performance.now() - this.#since < sliceMs) return;
    await new Promise(setImmediate);
    this.#since = performance.now();
  }
}
