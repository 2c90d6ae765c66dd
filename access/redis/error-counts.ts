// How many errors were answered, by their code: the section Errorstats of INFO.

/** Limit of separately counted codes: scripts can return any code. */
const maxCodes = 128;
const longestCode = 32;

export class ErrorCounts {
  #total = 0;
  readonly #codes = new Map<string, number>();

  get total(): number {
    return this.#total;
  }

  /** By code, in the order in which they came first. */
  get codes(): ReadonlyMap<string, number> {
    return this.#codes;
  }

  /** An error as it was answered, or its beginning: `WRONGTYPE Operation against`. */
  add(text: string): void {
    this.#total++;
    const end = text.indexOf(' ');
    let code = end <= 0 || end >= longestCode ? 'ERR' : text.slice(0, end);
    if (!this.#codes.has(code) && this.#codes.size >= maxCodes) code = 'ERR';
    this.#codes.set(code, (this.#codes.get(code) ?? 0) + 1);
  }

  reset(): void {
    this.#total = 0;
    this.#codes.clear();
  }
}
