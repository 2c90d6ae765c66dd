// Replies to commands over the quota: errors that clients can interpret, as bytes, because they are
// often many at once. Also limits the refusals of a tenant in a second, because refusing takes
// time, too.

import { chargeClasses, type ChargeClass } from '../../../request-units/meter.ts';
import { TokenBucket } from '../../../request-units/token-bucket.ts';
import type { TenantLimiter } from '../../admission/tenant-limiter.ts';

// A tenth of a processor; a hundredth where others need it.
const refusalsPerSecond = 200_000;
const crowdedRefusalsPerSecond = 20_000;
const atOnceSeconds = 0.1;
/**
 * Commands of a pipeline refused in a row. A refusal takes less than a microsecond; a reply sent on
 * its own takes ten.
 */
export const refusedInARow = 64;

/** Used in place of a class: a partition is at its ceiling, regardless of the command. */
export const partitionKind = chargeClasses.length;
const kindNames: readonly string[] = [...chargeClasses, 'partition'];

export interface Refused {
  kind: ChargeClass | typeof partitionKind;
  /** A whole transaction, which is discarded. */
  isTransaction: boolean;
}

interface Text {
  code: string;
  need: number;
  retryMs: number;
  bytes: Buffer;
}

/** Refusals of one tenant. A text is reused until something in it changes. */
export class Refusals {
  readonly #texts: (Text | undefined)[] = [];
  readonly #pace = new TokenBucket(refusalsPerSecond, refusalsPerSecond * atOnceSeconds, 0);

  /** A command is refused. */
  count(now: number): void {
    this.#pace.debit(1, now);
  }

  /** As `waitMs`, of so many commands, which are counted now. */
  reserve(now: number, isCrowded: boolean, commands = refusedInARow): number {
    const ms = this.waitMs(now, isCrowded);
    this.#pace.debit(commands, now);
    return ms;
  }

  /** Milliseconds after which more of a client's commands may be refused. `isCrowded` where other tenants are about. */
  waitMs(now: number, isCrowded: boolean): number {
    const rate = isCrowded ? crowdedRefusalsPerSecond : refusalsPerSecond;
    if (rate !== this.#pace.rate) this.#pace.reshape(rate, rate * atOnceSeconds, now);
    return this.#pace.waitForAny(now);
  }

  bytes(
    code: string,
    limiter: TenantLimiter,
    { kind, isTransaction }: Refused,
    retryMs: number,
  ): Buffer {
    const at = kind * 2 + (isTransaction ? 1 : 0);
    const need = limiter.meanCost;
    const known = this.#texts[at];
    if (known?.code === code && known.need === need && known.retryMs === retryMs) {
      return known.bytes;
    }
    const words = [
      `-${code} RU limit: tenant=${limiter.name}`,
      `kind=${kindNames[kind]}`,
      `need=${Number(need.toPrecision(3))}`,
      `retry_after_ms=${retryMs}`,
    ];
    if (isTransaction) words.push('(transaction discarded)');
    const bytes = Buffer.from(`${words.join(' ')}\r\n`, 'latin1');
    this.#texts[at] = { code, need, retryMs, bytes };
    return bytes;
  }
}
