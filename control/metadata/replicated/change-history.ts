// The last changes of a store, in memory, for its followers.

import { HistoryGone } from '../document-store.ts';

export interface StoredChange {
  revision: number;
  collection: string;
  id: string;
  /** JSON; undefined after a removal. */
  text: string | undefined;
  /** Last revision of the same write. */
  last: number;
}

/** Size of all texts kept. */
const maxBytes = 64 * 1024 * 1024;
/** Bytes after which an answer leaves the rest to the next call. */
const answerBytes = 16 * 1024 * 1024;

export class ChangeHistory {
  readonly #maxLength: number;
  #changes: StoredChange[] = [];
  /** How many of the first ones are dropped. */
  #dropped = 0;
  #bytes = 0;
  #revision: number;

  /** Begins after a revision. */
  constructor(maxLength: number, revision = 0) {
    this.#maxLength = maxLength;
    this.#revision = revision;
  }

  get revision(): number {
    return this.#revision;
  }

  /** Revision of the oldest change that is kept; the next one's if there is none. */
  get oldest(): number {
    return this.#revision + 1 - (this.#changes.length - this.#dropped);
  }

  /** The change of the next revision. */
  add(change: StoredChange): void {
    this.#changes.push(change);
    this.#revision = change.revision;
    this.#bytes += change.text?.length ?? 0;
    while (this.#revision - this.oldest >= this.#maxLength || this.#bytes > maxBytes) {
      this.#bytes -= this.#changes[this.#dropped++]!.text?.length ?? 0;
    }
    if (this.#dropped < 1000 || this.#dropped * 2 < this.#changes.length) return;
    this.#changes = this.#changes.slice(this.#dropped);
    this.#dropped = 0;
  }

  /** The first of the changes after a revision: whole writes. Throws `HistoryGone`. */
  after(revision: number): StoredChange[] {
    const { oldest } = this;
    if (revision + 1 < oldest || revision > this.#revision) throw new HistoryGone(revision, oldest);
    const found: StoredChange[] = [];
    let bytes = 0;
    for (let at = this.#dropped + revision + 1 - oldest; at < this.#changes.length; at++) {
      const change = this.#changes[at]!;
      found.push(change);
      bytes += change.text?.length ?? 0;
      if (bytes > answerBytes && change.revision === change.last) break;
    }
    return found;
  }

  /** Kept changes from a revision on. */
  from(revision: number): StoredChange[] {
    const { oldest } = this;
    return this.#changes.slice(this.#dropped + Math.max(revision, oldest) - oldest);
  }
}
