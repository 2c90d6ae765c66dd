// Which database of the source goes to which of the target: all to the one of the same number, or those that are named.

import { ExitError } from '../../server/lifecycle/exit-error.ts';

export class DatabaseMap {
  readonly #pairs: Map<number, number> | undefined;

  /** From texts such as `0` and `3:1`; none of them means all databases. */
  constructor(texts: readonly string[]) {
    this.#pairs = texts.length === 0 ? undefined : new Map(texts.map(pairOf));
  }

  get isIdentity(): boolean {
    return this.#pairs === undefined;
  }

  /** The target's number; undefined for a database that stays behind. */
  of(db: number): number | undefined {
    return this.#pairs === undefined ? db : this.#pairs.get(db);
  }

  isTarget(db: number): boolean {
    return this.#pairs === undefined || [...this.#pairs.values()].includes(db);
  }

  /** Databases of the target; undefined for all. */
  get targets(): number[] | undefined {
    return this.#pairs === undefined ? undefined : [...new Set(this.#pairs.values())];
  }

  /** As text, to tell whether it is another one. */
  get text(): string {
    return this.#pairs === undefined
      ? 'all'
      : [...this.#pairs].map((pair) => pair.join(':')).join();
  }
}

function pairOf(text: string): [number, number] {
  const found = /^(\d{1,5})(?::(\d{1,5}))?$/.exec(text);
  if (found === null) throw new ExitError(`--db ${text}: a number, or two as in 3:0`, 2);
  const from = Number(found[1]);
  return [from, found[2] === undefined ? from : Number(found[2])];
}
