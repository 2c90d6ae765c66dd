// All gates of one gateway, and the one timer behind them. A tenant without a limit has no gate, and costs nothing.

import type { TenantAccount } from '../../request-units/meter.ts';
import type { Clock } from '../../universal-row/environment.ts';
import type { TenantDefinition } from '../../universal-row/tenancy/definitions.ts';
import { Allocation, type AllocationPolicy } from './allocation.ts';
import { BurstPackage, sharedBurstCap } from './burst-package.ts';
import { type GateReport, TenantGate } from './tenant-gate.ts';

/** May change while the gateway runs. */
export interface AdmissionRules {
  /** Nothing waits and nothing is refused; what would have been is counted. */
  dryRun: boolean;
  /** Milliseconds that a Redis command, and a write over HTTP, may wait. */
  commandWaitMs: number;
  writeWaitMs: number;
  /** First word of a refusal over RESP. */
  refusalCode: string;
  /** Beyond its quota a tenant may use what others leave of `gatewayRu`, or not. */
  allocation: AllocationPolicy;
  /** Units a second that the gateway can do; 0 when that is not known. */
  gatewayRu: number;
  /** Units of each second that are kept for spikes; 0 for none. */
  burstRu: number;
  /** Queries of a tenant that may wait, and whether one is refused that costs more than could ever be saved. */
  queryQueueLength: number;
  strictQueries: boolean;
}

export const admissionDefaults: AdmissionRules = {
  dryRun: false,
  commandWaitMs: 1500,
  writeWaitMs: 4000,
  refusalCode: 'TRYAGAIN',
  allocation: 'hard',
  gatewayRu: 0,
  burstRu: 0,
  queryQueueLength: 1000,
  strictQueries: false,
};

/** What a gate has of its gateway. */
export interface GatewaySpare {
  /** Units of the burst package. */
  burst(tenant: number, share: number, cost: number, now: number): boolean;
  /** Units that others leave. */
  borrow(cost: number, now: number): boolean;
  /** Units were spent. */
  used(units: number, now: number): void;
  /** Somebody waits at the gate. */
  wake(gate: TenantGate): void;
}

export interface GatewayAdmissionOptions {
  clock: Clock;
  rules?: Partial<AdmissionRules>;
  /** Where a tenant's costs are charged; undefined where there is no account of its own. */
  accountOf: (tenant: number) => TenantAccount | undefined;
}

// Those whose time is up are looked for this often; who is first in line is seen at every turn.
const expireEveryMs = 20;

export class GatewayAdmission implements GatewaySpare {
  readonly #clock: Clock;
  readonly #accountOf: (tenant: number) => TenantAccount | undefined;
  readonly #gates = new Map<number, TenantGate>();
  /** Gates at which somebody waits. */
  readonly #awaited = new Set<TenantGate>();
  #rules: AdmissionRules;
  #burst: BurstPackage;
  #allocation: Allocation;
  #timer: NodeJS.Timeout | undefined;
  #expiredAt = 0;

  constructor({ clock, rules = {}, accountOf }: GatewayAdmissionOptions) {
    this.#clock = clock;
    this.#accountOf = accountOf;
    this.#rules = { ...admissionDefaults, ...rules };
    this.#burst = this.#newBurst();
    this.#allocation = this.#newAllocation();
  }

  get rules(): Readonly<AdmissionRules> {
    return this.#rules;
  }

  /** Takes effect at once, for those that wait too. */
  setRules(rules: Partial<AdmissionRules>): void {
    Object.assign(this.#rules, rules);
    this.#burst = this.#newBurst();
    this.#allocation = this.#newAllocation();
    if (this.#rules.dryRun) for (const gate of this.#gates.values()) gate.release();
  }

  #newBurst(): BurstPackage {
    const { burstRu } = this.#rules;
    return new BurstPackage({ units: burstRu, capOf: sharedBurstCap(burstRu) });
  }

  #newAllocation(): Allocation {
    const { gatewayRu, allocation } = this.#rules;
    return new Allocation(gatewayRu, gatewayRu === 0 ? 'hard' : allocation);
  }

  // ---- tenants

  /** Undefined for a tenant without a limit. What it was stays good until `onChange` tells otherwise. */
  gateOf(tenant: number): TenantGate | undefined {
    return this.#gates.get(tenant);
  }

  gates(): IterableIterator<TenantGate> {
    return this.#gates.values();
  }

  /** The tenant's limits may have changed. Returns its gate now. */
  follow({ number, name, limits }: TenantDefinition): TenantGate | undefined {
    const quota = { perSecond: limits.ruPerSecond, burst: limits.burstRu };
    const gate = this.#gates.get(number);
    if (quota.perSecond === 0) {
      this.forget(number);
      return undefined;
    }
    const now = this.#clock.monotonic();
    if (gate === undefined) {
      const made = new TenantGate(number, name, quota, this.#rules, this, now);
      made.follow(this.#ownAccount(number));
      this.#gates.set(number, made);
      return made;
    }
    gate.name = name;
    if (quota.perSecond !== gate.quota.perSecond || quota.burst !== gate.quota.burst) {
      gate.setQuota(quota, now);
      this.#reschedule(now);
    }
    return gate;
  }

  #ownAccount(tenant: number): TenantAccount | undefined {
    const account = this.#accountOf(tenant);
    return account?.tenant === tenant ? account : undefined;
  }

  /** It has no limit, or is no more: whoever waits is let in. */
  forget(tenant: number): void {
    const gate = this.#gates.get(tenant);
    if (gate === undefined) return;
    this.#gates.delete(tenant);
    this.#awaited.delete(gate);
    gate.release();
  }

  /** Its part of the quota on this gateway, in units a second. */
  setShare(tenant: number, share: number): void {
    const gate = this.#gates.get(tenant);
    if (gate === undefined) return;
    const now = this.#clock.monotonic();
    gate.setShare(share, now);
    this.#reschedule(now);
  }

  // ---- time

  /** To be called each second. */
  endSecond(): void {
    const now = this.#clock.monotonic();
    for (const gate of this.#gates.values()) gate.endSecond(now);
  }

  /** What was spent and missed since the last time, of tenants with a limit. */
  report(): GateReport[] {
    return Array.from(this.#gates.values(), (gate) => gate.report());
  }

  /** Nobody waits any longer: the gateway stops. */
  close(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    for (const gate of this.#gates.values()) gate.release();
    this.#awaited.clear();
  }

  /** Those who wait may have to wait less, or more. */
  #reschedule(now: number): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#schedule(now);
  }

  #schedule(now: number): void {
    if (this.#timer !== undefined || this.#awaited.size === 0) return;
    let ms = expireEveryMs;
    for (const gate of this.#awaited) ms = Math.min(ms, gate.nextServe(now));
    this.#timer = setTimeout(() => this.#serve(), Math.max(1, Math.ceil(ms)));
  }

  #serve(): void {
    this.#timer = undefined;
    const now = this.#clock.monotonic();
    const mayBeLate = now - this.#expiredAt >= expireEveryMs;
    if (mayBeLate) this.#expiredAt = now;
    for (const gate of [...this.#awaited]) {
      if (mayBeLate) gate.expire(now);
      gate.serve(now);
      if (gate.waiting === 0) this.#awaited.delete(gate);
    }
    this.#schedule(now);
  }

  // ---- for the gates

  burst(tenant: number, share: number, cost: number, now: number): boolean {
    return this.#rules.burstRu > 0 && this.#burst.take(tenant, share, cost, now);
  }

  borrow(cost: number, now: number): boolean {
    return this.#allocation.borrow(cost, now);
  }

  used(units: number, now: number): void {
    if (this.#rules.gatewayRu > 0) this.#allocation.use(units, now);
  }

  wake(gate: TenantGate): void {
    this.#awaited.add(gate);
    this.#schedule(this.#clock.monotonic());
  }
}
