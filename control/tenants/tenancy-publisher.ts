// Sends changes of tenants, users and tokens to the data planes; one update at a time, in ascending
// order. A change is confirmed when all planes have taken it. A plane that did not answer may have
// missed a change, so the next update is the full state, and is sent again until it is taken.

import type { TenancyUpdate } from '../../contracts/tenancy/definitions.ts';
import type { TenancyState } from './tenancy-state.ts';
import { TenantError } from './tenant-error.ts';

/** Resolves once all planes have taken it. */
type SendUpdate = (update: TenancyUpdate) => Promise<void>;

const retryAfterMs = 1000;

export class TenancyPublisher {
  readonly #state: TenancyState;
  readonly #revision: () => number;
  readonly #report: (message: string) => void;
  readonly #listeners = new Set<(update: TenancyUpdate) => void>();
  #send: SendUpdate | undefined;
  #last: Promise<void> = Promise.resolve();
  /** Why the planes do not have everything. */
  #failure: string | undefined;
  #retry: NodeJS.Timeout | undefined;

  constructor(state: TenancyState, revision: () => number, report: (message: string) => void) {
    this.#state = state;
    this.#revision = revision;
    this.#report = report;
  }

  /** Planes are attached from now on. They have the state of the last snapshot. */
  async attach(send: SendUpdate): Promise<void> {
    this.#send = send;
    await this.publish();
  }

  /** Sees every update that all planes have taken. Returns how to stop. */
  onUpdate(listener: (update: TenancyUpdate) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Sends the current state. Resolves when all planes apply it. Rejects with `unconfirmed` if a plane did not confirm. */
  async publish(): Promise<void> {
    const sent = this.#last.then(() => this.#sendChanges());
    this.#last = sent;
    await sent;
    if (this.#failure === undefined) return;
    throw new TenantError(
      'unconfirmed',
      `stored, but not yet in force everywhere: ${this.#failure}`,
    );
  }

  /** Stops sending, because the planes are stopped or about to stop. */
  async close(): Promise<void> {
    this.#send = undefined;
    clearTimeout(this.#retry);
    await this.#last;
    clearTimeout(this.#retry);
  }

  async #sendChanges(): Promise<void> {
    if (this.#send === undefined) return;
    const revision = this.#revision();
    const update =
      this.#failure === undefined ? this.#state.update(revision) : this.#state.snapshot(revision);
    if (update === undefined) return;
    try {
      await this.#send(update);
    } catch (error) {
      this.#failure = error instanceof Error ? error.message : String(error);
      this.#report(`tenants and users are not the same everywhere: ${this.#failure}`);
      clearTimeout(this.#retry);
      this.#retry = setTimeout(() => void this.publish().catch(() => {}), retryAfterMs).unref();
      return;
    }
    this.#failure = undefined;
    for (const listener of this.#listeners) listener(update);
  }
}
