// ACL LOG: refused commands and failed logins, newest first. Repeated similar entries within a
// short time are counted as one.

import type { Denial } from './selector.ts';

export interface AclLogEntry {
  reason: Denial['reason'] | 'auth';
  context: 'toplevel' | 'multi' | 'lua';
  /** The command, key or channel that was refused. */
  object: string;
  user: string;
  count: number;
  /** Wall clock, milliseconds. */
  at: number;
  /** As CLIENT LIST shows it. */
  client: string;
}

const maxEntries = 128;
const togetherMs = 60_000;
export const maxObjectLength = 256;

export class AclLog {
  #entries: AclLogEntry[] = [];

  get entries(): readonly AclLogEntry[] {
    return this.#entries;
  }

  add(entry: Omit<AclLogEntry, 'count'>): void {
    const object = entry.object.slice(0, maxObjectLength);
    const like = this.#entries.findIndex(
      (old) =>
        old.reason === entry.reason &&
        old.context === entry.context &&
        old.object === object &&
        old.user === entry.user &&
        entry.at - old.at <= togetherMs,
    );
    const [old] = like < 0 ? [] : this.#entries.splice(like, 1);
    this.#entries.unshift({ ...entry, object, count: (old?.count ?? 0) + 1 });
    if (this.#entries.length > maxEntries) this.#entries.length = maxEntries;
  }

  reset(): void {
    this.#entries = [];
  }
}
