// What is answered to commands that are over the quota: in words that clients can go by, and as bytes, because they
// are often many at once; and how many of a tenant's commands are refused in a second, because that takes time, too.

import { chargeClasses, type ChargeClass } from '../../../request-units/meter.ts';
import { TokenBucket } from '../../../request-units/token-bucket.ts';
import type { TenantGate } from '../../admission/tenant-gate.ts';

// A few percent of a processor.
const refusalsPerSecond = 200_000;
const refusalsAtOnce = 20_000;

export interface Refused {
  kind: ChargeClass;
  /** A whole transaction, which is discarded. */
  isTransaction: boolean;
}

interface Text {
  code: string;
  need: number;
  retryMs: number;
  bytes: Buffer;
}

/** Those of one tenant. A text stays good while nothing in it changes. */
export class Refusals {
  readonly #texts: (Text | undefined)[] = [];
  readonly #pace = new TokenBucket(refusalsPerSecond, refusalsAtOnce, 0);

  /** A command is refused. */
  count(now: number): void {
    this.#pace.debit(1, now);
  }

  /** Milliseconds after which more of a client's commands may be refused. */
  waitMs(now: number): number {
    return this.#pace.waitForAny(now);
  }

  bytes(code: string, gate: TenantGate, { kind, isTransaction }: Refused, retryMs: number): Buffer {
    const at = kind * 2 + (isTransaction ? 1 : 0);
    const need = gate.meanCost;
    const known = this.#texts[at];
    if (known?.code === code && known.need === need && known.retryMs === retryMs) {
      return known.bytes;
    }
    const words = [
      `-${code} RU limit: tenant=${gate.name}`,
      `kind=${chargeClasses[kind]}`,
      `need=${Number(need.toPrecision(3))}`,
      `retry_after_ms=${retryMs}`,
    ];
    if (isTransaction) words.push('(transaction discarded)');
    const bytes = Buffer.from(`${words.join(' ')}\r\n`, 'latin1');
    this.#texts[at] = { code, need, retryMs, bytes };
    return bytes;
  }
}
