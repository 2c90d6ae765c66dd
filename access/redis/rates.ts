// How much a second: commands and bytes, over the last few samples.

interface Totals {
  readonly commands: number;
  readonly bytesIn: number;
  readonly bytesOut: number;
}

const samplesKept = 16;

export class Rates implements Totals {
  /** Per second. */
  commands = 0;
  bytesIn = 0;
  bytesOut = 0;
  readonly #samples: { readonly at: number; readonly totals: Totals }[] = [];

  /** Takes a sample; `now` is monotonic, in milliseconds. */
  sample(now: number, totals: Totals): void {
    this.#samples.push({ at: now, totals });
    if (this.#samples.length > samplesKept) this.#samples.shift();
    const first = this.#samples[0]!;
    const seconds = (now - first.at) / 1000;
    if (seconds <= 0) return;
    this.commands = Math.round((totals.commands - first.totals.commands) / seconds);
    this.bytesIn = (totals.bytesIn - first.totals.bytesIn) / seconds;
    this.bytesOut = (totals.bytesOut - first.totals.bytesOut) / seconds;
  }

  /** The totals begin at 0 again. */
  reset(): void {
    this.#samples.length = 0;
  }
}
