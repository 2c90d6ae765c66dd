// Waiting of one connection's commands for the request units of their tenant. The connection passes
// the command that was not admitted; later commands stay in the parser.

import type { QuotaMode } from '../../../contracts/table-properties.ts';
import type { GatewayAdmission } from '../../admission/gateway-admission.ts';
import type { LimiterWaiter } from '../../admission/admission-rules.ts';
import type { TenantLimiter } from '../../admission/tenant-limiter.ts';
import type { CommandEntry } from '../commands/registry.ts';
import { Arrivals } from './arrivals.ts';
import { refusedInARow, type Refusals } from './refusals.ts';

// After a refusal, the rest of a pipeline waits only this long, or as long as needed to limit the
// cost of refusals: so a pipeline of any length comes to its end.
const refusedAgainMs = 10;
/** So long after a refusal. */
const refusedForMs = 100;
/** After so many refusals in a row a client counts as sending a long pipeline, even if no more input has arrived yet. */
const manyRefusals = 64;

type Ended = (entry: CommandEntry, limiter: TenantLimiter, admitted: boolean) => void;

export class CommandWait implements LimiterWaiter {
  /** Monotonic milliseconds, as all times here. */
  deadline = 0;
  readonly #ended: Ended;
  readonly #modeOf: () => QuotaMode;
  readonly #arrivals = new Arrivals();
  /** Until this time, a refusal of the client counts as recent. */
  #refusedUntil = -Infinity;
  /** Refusals in a row, without a longer pause between them. */
  #refusals = 0;
  /** Refusals reserved in advance, and the earliest time of the first of them. */
  #reserved = 0;
  #reservedFrom = 0;
  #entry: CommandEntry | undefined;
  #limiter: TenantLimiter | undefined;
  #since = 0;

  /**
   * `ended` is called when a wait ends other than by `leave`. `modeOf` returns the quota mode of the selected
   * database.
   */
  constructor(ended: Ended, modeOf: () => QuotaMode) {
    this.#ended = ended;
    this.#modeOf = modeOf;
  }

  get quotaMode(): QuotaMode {
    return this.#modeOf();
  }

  /** At which its command waits, if it does. */
  get limiter(): TenantLimiter | undefined {
    return this.#limiter;
  }

  /** When the last one began to wait. */
  get begunAt(): number {
    return this.#since;
  }

  /** Since when its command waits, or undefined. */
  get since(): number | undefined {
    return this.#entry === undefined ? undefined : this.#since;
  }

  /** More bytes came before those before them have been run: see `Arrivals`. */
  received(done: number, end: number, now: number): void {
    this.#arrivals.note(done, end, now);
  }

  /**
   * Queues a command that ends at position `done`; bytes of its client up to `received` have arrived. False when its waiting
   * time is over already, because it arrived with earlier commands of its pipeline. `isCrowded`: other tenants need the
   * thread.
   */
  begin(
    { limiter, refusals }: { limiter: TenantLimiter; refusals: Refusals },
    entry: CommandEntry,
    { rules: { commandWaitMs }, errorDelay }: Pick<GatewayAdmission, 'rules' | 'errorDelay'>,
    { done, received }: { done: number; received: number },
    now: number,
    isCrowded: boolean,
  ): boolean {
    let at = this.#arrivals.at(done);
    if (at === undefined) {
      at = now;
      this.#arrivals.note(done - 1, received, now);
    }
    const isFlood = now < this.#refusedUntil && (done < received || this.#refusals > manyRefusals);
    const refusedFrom = isFlood
      ? this.#reserve(refusals, now, isCrowded)
      : now + refusals.waitMs(now, isCrowded);
    const waitMs = isFlood ? Math.min(refusedAgainMs, commandWaitMs) : commandWaitMs;
    this.deadline = Math.max(at + waitMs, refusedFrom, now + errorDelay.delay(now - at));
    if (this.deadline <= now) return false;
    this.#entry = entry;
    this.#limiter = limiter;
    this.#since = now;
    limiter.wait(this, now);
    return true;
  }

  /** When more of its pipeline may be refused: several at a time, so that their answers leave together. */
  #reserve(refusals: Refusals, now: number, isCrowded: boolean): number {
    if (this.#reserved === 0) {
      this.#reserved = refusedInARow;
      this.#reservedFrom = now + refusals.reserve(now, isCrowded);
      this.#refusedUntil = Math.max(this.#refusedUntil, this.#reservedFrom + refusedForMs);
    }
    return this.#reservedFrom;
  }

  /** A command was refused. */
  refused(refusals: Refusals, now: number): void {
    if (this.#reserved > 0) this.#reserved--;
    else refusals.count(now);
    if (now >= this.#refusedUntil) this.#refusals = 0;
    this.#refusedUntil = now + refusedForMs;
    this.#refusals++;
  }

  /** Called by the limiter when the wait ends. */
  end(admitted: boolean): void {
    const entry = this.#entry!;
    const limiter = this.#limiter!;
    this.#entry = undefined;
    this.#limiter = undefined;
    this.#ended(entry, limiter, admitted);
  }

  /** Its client has gone. */
  leave(): void {
    this.#limiter?.leave(this);
    this.#entry = undefined;
    this.#limiter = undefined;
  }
}
