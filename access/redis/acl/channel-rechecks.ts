// Checks whether clients may continue to listen after their user's rules have changed. Few names and patterns are
// checked before the change is answered. Many are checked afterwards, in slices, one client after the other.

import type { Permissions } from './acl-user.ts';
import { sharedSlices } from '../shared-slices.ts';

// Matches of a name with a pattern: a millisecond or two.
const sliceMatches = 20_000;

/** A connection that listens to channels. */
interface Listener {
  readonly closed: boolean;
  /** Undefined before it has logged in. */
  readonly currentPermissions: Permissions | undefined;
  /** Subscriptions of the connection, and whether each is a pattern. */
  subscriptions(): Generator<{ name: string; isPattern: boolean }>;
  /** The user of the connection may no longer listen. */
  revoke(): void;
}

interface Recheck {
  connection: Listener;
  permissions: Permissions;
  /** Absent before it has begun. */
  names?: ReturnType<Listener['subscriptions']>;
}

export class ChannelRechecks {
  readonly #queue: Recheck[] = [];
  /** Matches left in this round of the event loop. */
  #left = sliceMatches;
  #isScheduled = false;
  /** Slices that were needed so far. */
  slices = 0;

  /** At once if that takes no more than `matches` and there is time for as many, or else later. */
  add(connection: Listener, permissions: Permissions, matches: number): void {
    this.#queue.push({ connection, permissions });
    this.#schedule();
    if (matches <= this.#left && this.#queue.length === 1) this.#run();
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    sharedSlices.add(() => {
      this.#isScheduled = false;
      this.#left = sliceMatches;
      if (this.#queue.length === 0) return;
      this.slices++;
      this.#run();
      if (this.#queue.length > 0) this.#schedule();
    });
  }

  #run(): void {
    while (this.#left > 0) {
      const recheck = this.#queue[0];
      if (recheck === undefined) return;
      if (this.#isDone(recheck)) this.#queue.shift();
    }
  }

  #isDone(recheck: Recheck): boolean {
    const { connection, permissions } = recheck;
    // Another change has its own check.
    if (connection.closed || connection.currentPermissions !== permissions) return true;
    recheck.names ??= connection.subscriptions();
    const matches = 1 + permissions.channelPatterns;
    while (this.#left > 0) {
      const next = recheck.names.next();
      if (next.done === true) return true;
      this.#left -= matches;
      const { name, isPattern } = next.value;
      if (permissions.allowsChannel(Buffer.from(name, 'latin1'), isPattern)) continue;
      connection.revoke();
      return true;
    }
    return false;
  }
}
