// Limits of their own for operations that are far dearer than others (Amazon, "Fairness in multi-tenant systems"): on a
// gateway for Redis scans, on one for InfluxDB's protocol queries. A tenant with such a limit has a gate for them, which
// works like that for all its requests and counts what the meter charged to their class only. Large replies cost more
// units, so that they count as several requests by themselves.

import { ChargeClass, type TenantAccount } from '../../request-units/meter.ts';
import type { Clock } from '../../universal-row/environment.ts';
import type { TenantDefinition } from '../../contracts/tenancy/definitions.ts';
import type { AdmissionRules, GatewaySpare } from './gateway-admission.ts';
import { type GateAccount, TenantGate } from './tenant-gate.ts';

/** What of an account is for scans: as an account of its own. */
export class ScanAccount implements GateAccount {
  readonly #account: TenantAccount;

  constructor(account: TenantAccount) {
    this.#account = account;
  }

  get lru(): number {
    return this.#account.lruOf(ChargeClass.scan);
  }

  get requests(): number {
    return this.#account.requestsOf(ChargeClass.scan);
  }

  lruOf(kind: ChargeClass): number {
    return kind === ChargeClass.scan ? this.lru : 0;
  }

  requestsOf(kind: ChargeClass): number {
    return kind === ChargeClass.scan ? this.requests : 0;
  }
}

/** Which limit a gateway goes by. */
export type ClassLimit = 'scanRuPerSecond' | 'queryRuPerSecond';

export interface ClassGatesOptions {
  limit: ClassLimit;
  clock: Clock;
  /** Of the gateway; they may change. */
  rules: AdmissionRules;
  accountOf: (tenant: number) => TenantAccount | undefined;
  /** Somebody waits at the gate. */
  wake: (gate: TenantGate) => void;
  /** A tenant has another gate, or none. */
  changed: (tenant: number, gate: TenantGate | undefined) => void;
}

export class ClassGates {
  readonly #options: ClassGatesOptions;
  readonly #spare: GatewaySpare;
  readonly #gates = new Map<number, TenantGate>();

  constructor(options: ClassGatesOptions) {
    this.#options = options;
    // Beyond such a limit there is nothing, and what is spent is counted at the gate for all requests.
    this.#spare = {
      burst: () => false,
      borrow: () => false,
      lends: () => 0,
      used: () => {},
      wake: (gate) => options.wake(gate),
      wakeLine: () => {},
    };
  }

  gateOf(tenant: number): TenantGate | undefined {
    return this.#gates.get(tenant);
  }

  gates(): IterableIterator<TenantGate> {
    return this.#gates.values();
  }

  /** The tenant's limits may have changed. Returns its gate if it is one from before. */
  open({ number, name, limits }: TenantDefinition): TenantGate | undefined {
    const { limit, clock, rules, accountOf, changed } = this.#options;
    const quota = { perSecond: limits[limit], burst: 0, peak: 0 };
    if (quota.perSecond === 0) {
      this.drop(number);
      return undefined;
    }
    const now = clock.monotonic();
    const known = this.#gates.get(number);
    if (known === undefined) {
      const gate = new TenantGate(number, name, quota, rules, this.#spare, now);
      const account = accountOf(number);
      gate.follow(account?.tenant === number ? new ScanAccount(account) : undefined);
      this.#gates.set(number, gate);
      changed(number, gate);
      return undefined;
    }
    known.name = name;
    if (quota.perSecond !== known.quota.perSecond) known.setQuota(quota, now);
    return known;
  }

  /** Whoever waits is let in. */
  drop(tenant: number): void {
    const gate = this.gateOf(tenant);
    if (gate === undefined) return;
    this.#gates.delete(tenant);
    this.#options.changed(tenant, undefined);
    gate.release(this.#options.clock.monotonic());
  }

  endSecond(now: number): void {
    for (const gate of this.#gates.values()) gate.endSecond(now);
  }
}
