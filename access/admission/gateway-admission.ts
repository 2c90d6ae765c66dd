// All gates of one gateway, and the one timer behind them. A tenant without a limit has no gate, and costs nothing.

import type { TenantAccount } from '../../request-units/meter.ts';
import type { Clock } from '../../universal-row/environment.ts';
import type { QuotaMode } from '../../contracts/table-properties.ts';
import type { TenancyUpdate, TenantDefinition } from '../../contracts/tenancy/definitions.ts';
import { batchRequest, type PodAdmission } from '../../contracts/pod-admission.ts';
import { Allocation, type AllocationPolicy } from './allocation.ts';
import { BurstPackage, burstCap } from './burst-package.ts';
import { ErrorDelay } from './error-delay.ts';
import { ClassGates, type ClassLimit } from './class-gates.ts';
import { TenantGate } from './tenant-gate.ts';

/** May change while the gateway runs. */
export interface AdmissionRules {
  /** Without, no tenant has a gate. */
  enabled: boolean;
  /** Nothing waits and nothing is refused; what would have been is counted. */
  dryRun: boolean;
  /** Milliseconds that a Redis command, and a write over HTTP, may wait; Infinity where nothing is refused. */
  commandWaitMs: number;
  writeWaitMs: number;
  /** First word of a refusal over RESP. */
  refusalCode: string;
  /** Beyond its quota a tenant may use what others leave of `gatewayRu`, or not; a table may say otherwise. */
  allocation: AllocationPolicy;
  /** Units a second that the gateway can do; 0 when that is not known. */
  gatewayRu: number;
  /** Units of each second that are kept for spikes; 0 for none. */
  burstRu: number;
  /** Queries of a tenant that may wait, and whether one is refused that costs more than could ever be saved. */
  queryQueueLength: number;
  strictQueries: boolean;
  /** Seconds of a tenant's quota that it can owe. */
  debtSeconds: number;
  /** For so many seconds from when a tenant was made its quota counts so many times. */
  warmupSeconds: number;
  warmupFactor: number;
  /** Refusals take as long as successes do. */
  delaysErrors: boolean;
  /** Part of its quota at which a tenant is near it; Infinity for no alarms. */
  alarmAt: number;
}

export const admissionDefaults: AdmissionRules = {
  enabled: true,
  dryRun: false,
  commandWaitMs: 1500,
  writeWaitMs: 4000,
  refusalCode: 'TRYAGAIN',
  allocation: 'hard',
  gatewayRu: 0,
  burstRu: 0,
  queryQueueLength: 1000,
  strictQueries: false,
  debtSeconds: 10,
  warmupSeconds: 0,
  warmupFactor: 3,
  delaysErrors: false,
  alarmAt: Infinity,
};

/** What a gate has of its gateway. */
export interface GatewaySpare {
  /** Units of the burst package. */
  burst(tenant: number, share: number, cost: number, now: number): boolean;
  /** Units a second that there could be of what others leave, for tables of this mode; 0 if it is not for them. */
  lends(mode: QuotaMode): number;
  /** Units that others leave. */
  borrow(mode: QuotaMode, cost: number, now: number): boolean;
  /** Units were spent. */
  used(units: number, now: number): void;
  /** Somebody waits at the gate, or a query in its line. */
  wake(gate: TenantGate): void;
  wakeLine(gate: TenantGate): void;
}

export interface GatewayAdmissionOptions {
  clock: Clock;
  rules?: Partial<AdmissionRules>;
  /** Queued requests resume in time slices of their tenant. */
  pod?: PodAdmission | undefined;
  /** Where a tenant's costs are charged; undefined where there is no account of its own. */
  accountOf: (tenant: number) => TenantAccount | undefined;
  /** Which operations have a limit of their own here. */
  classLimit?: ClassLimit;
  /** A tenant is near its quota: mean units a second of the last seconds. At most once a minute for each tenant. */
  alarm?: (gate: TenantGate, used: number) => void;
}

/** A tenant has another gate, or none. */
export type GateListener = (tenant: number, gate: TenantGate | undefined) => void;

// Those whose time is up are looked for this often; who is first in line is seen at every turn.
const expireEveryMs = 20;
// Queries wait longer.
const serveLinesEveryMs = 50;

export class GatewayAdmission implements GatewaySpare {
  /** For how long a refusal is held back. */
  readonly errorDelay: ErrorDelay;
  readonly #clock: Clock;
  readonly #pod: PodAdmission | undefined;
  readonly #accountOf: (tenant: number) => TenantAccount | undefined;
  /** Of tenants with a limit. */
  readonly #limited = new Map<number, TenantDefinition>();
  readonly #gates = new Map<number, TenantGate>();
  readonly #alarm: GatewayAdmissionOptions['alarm'];
  readonly #classGates: ClassGates;
  readonly #classListeners: GateListener[] = [];
  readonly #listeners: GateListener[] = [];
  /** Gates at which somebody waits. */
  readonly #awaited = new Set<TenantGate>();
  /** Of those, gates whose tenants wait for a turn with the thread. */
  readonly #inTurn = new Set<TenantGate>();
  /** Gates in whose lines queries wait. */
  readonly #lines = new Set<TenantGate>();
  #rules: AdmissionRules;
  #burst: BurstPackage;
  #allocation: Allocation;
  #timer: NodeJS.Timeout | undefined;
  #lineTimer: NodeJS.Timeout | undefined;
  #expiredAt = 0;

  constructor(options: GatewayAdmissionOptions) {
    const { clock, rules = {}, pod, accountOf, classLimit = 'scanRuPerSecond', alarm } = options;
    this.#alarm = alarm;
    this.#clock = clock;
    this.#pod = pod;
    this.#accountOf = accountOf;
    this.#rules = { ...admissionDefaults, ...rules };
    this.errorDelay = new ErrorDelay({ enabled: this.#rules.delaysErrors });
    this.#burst = this.#newBurst();
    this.#allocation = this.#newAllocation();
    this.#classGates = new ClassGates({
      limit: classLimit,
      clock,
      rules: this.#rules,
      accountOf,
      wake: (gate) => this.wake(gate),
      changed: (tenant, gate) => {
        for (const listener of this.#classListeners) listener(tenant, gate);
      },
    });
  }

  get rules(): Readonly<AdmissionRules> {
    return this.#rules;
  }

  /** Takes effect at once, for those that wait too: whoever need wait no longer goes on within the call. */
  setRules(rules: Partial<AdmissionRules>): void {
    const wasDry = this.#rules.dryRun;
    Object.assign(this.#rules, rules);
    this.errorDelay.options.enabled = this.#rules.delaysErrors;
    if (!this.#rules.enabled) for (const number of this.#limited.keys()) this.#drop(number);
    else for (const definition of this.#limited.values()) this.#open(definition);
    this.#burst = this.#newBurst();
    this.#allocation = this.#newAllocation();
    const now = this.#clock.monotonic();
    for (const gate of [...this.#gates.values(), ...this.#classGates.gates()]) {
      gate.rulesChanged(now);
      gate.quotaModesChanged();
      if (this.#rules.dryRun) gate.release(now);
      else if (wasDry) gate.restart(now);
    }
  }

  #newBurst(): BurstPackage {
    const { burstRu } = this.#rules;
    return new BurstPackage({ units: burstRu, capOf: burstCap(burstRu, () => this.#gates.size) });
  }

  #newAllocation(): Allocation {
    return new Allocation(this.#rules.gatewayRu);
  }

  // ---- tenants

  /** Undefined for a tenant without a limit. What it was stays good until `onChange` tells otherwise. */
  gateOf(tenant: number): TenantGate | undefined {
    return this.#gates.get(tenant);
  }

  gates(): IterableIterator<TenantGate> {
    return this.#gates.values();
  }

  /** What the tenant's scans, or queries, have to pass before that; undefined where they have no limit of their own. */
  classGateOf(tenant: number): TenantGate | undefined {
    return this.#classGates.gateOf(tenant);
  }

  classGates(): IterableIterator<TenantGate> {
    return this.#classGates.gates();
  }

  onClassChange(listener: GateListener): void {
    this.#classListeners.push(listener);
  }

  /** Learns of every gate that comes or goes, before anybody is let through for it. */
  onChange(listener: GateListener): void {
    this.#listeners.push(listener);
  }

  #tell(tenant: number, gate: TenantGate | undefined): void {
    for (const listener of this.#listeners) listener(tenant, gate);
  }

  /** What has changed of tenants. */
  update({ whole, tenants, gone }: TenancyUpdate): void {
    const names = new Set(whole ? tenants.map(({ name }) => name) : gone.tenants);
    for (const { number, name } of [...this.#limited.values()]) {
      if (names.has(name) !== whole) this.forget(number);
    }
    for (const tenant of tenants) this.follow(tenant);
  }

  /** The tenant's limits may have changed. Returns its gate now. */
  follow(definition: TenantDefinition): TenantGate | undefined {
    const { ruPerSecond, scanRuPerSecond, queryRuPerSecond } = definition.limits;
    if (ruPerSecond + scanRuPerSecond + queryRuPerSecond === 0) {
      this.forget(definition.number);
      return undefined;
    }
    this.#limited.set(definition.number, definition);
    return this.#rules.enabled ? this.#open(definition) : undefined;
  }

  #open(definition: TenantDefinition): TenantGate | undefined {
    if (this.#classGates.open(definition) !== undefined) this.#reschedule(this.#clock.monotonic());
    if (definition.limits.ruPerSecond > 0) return this.#openMain(definition);
    this.#dropMain(definition.number);
    return undefined;
  }

  #openMain({ number, name, limits, createdAt }: TenantDefinition): TenantGate {
    const { ruPerSecond, burstRu, peakRuPerSecond } = limits;
    const quota = { perSecond: ruPerSecond, burst: burstRu, peak: peakRuPerSecond };
    const gate = this.#gates.get(number);
    const now = this.#clock.monotonic();
    if (gate === undefined) {
      // Whose clock went back was made now.
      const age = createdAt === undefined ? Infinity : Math.max(0, this.#clock.now() - createdAt);
      const made = new TenantGate(number, name, quota, this.#rules, this, now, now - age);
      made.follow(this.#ownAccount(number));
      this.#gates.set(number, made);
      this.#tell(number, made);
      return made;
    }
    gate.name = name;
    const { perSecond, burst, peak } = gate.quota;
    if (quota.perSecond !== perSecond || quota.burst !== burst || quota.peak !== peak) {
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
    this.#limited.delete(tenant);
    this.#drop(tenant);
  }

  #drop(tenant: number): void {
    const scans = this.#classGates.gateOf(tenant);
    if (scans !== undefined) {
      this.#awaited.delete(scans);
      this.#classGates.drop(tenant);
    }
    this.#dropMain(tenant);
  }

  #dropMain(tenant: number): void {
    const gate = this.#gates.get(tenant);
    if (gate === undefined) return;
    this.#gates.delete(tenant);
    this.#awaited.delete(gate);
    this.#lines.delete(gate);
    this.#tell(tenant, undefined);
    gate.release(this.#clock.monotonic());
  }

  /** Tables have other modes than before. */
  quotaModesChanged(): void {
    for (const gate of this.#awaited) gate.quotaModesChanged();
    this.#reschedule(this.#clock.monotonic());
  }

  // ---- time

  /** To be called each second. */
  endSecond(): void {
    const now = this.#clock.monotonic();
    for (const gate of this.#gates.values()) {
      gate.endSecond(now);
      const used = gate.use.alarm(gate.quota.perSecond * this.#rules.alarmAt, now);
      if (used > 0) this.#alarm?.(gate, used);
    }
    this.#classGates.endSecond(now);
  }

  /** Nobody waits any longer, and nobody will: the gateway stops. */
  close(): void {
    clearTimeout(this.#timer);
    clearTimeout(this.#lineTimer);
    this.#timer = undefined;
    this.#lineTimer = undefined;
    this.setRules({ enabled: false });
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
    this.#pod?.beginTick(now);
    for (const gate of [...this.#awaited]) this.#serveGate(gate, mayBeLate);
    this.#schedule(now);
  }

  /** In the turns that its tenant has with the thread: those behind the gate go to work at once. */
  #serveGate(gate: TenantGate, mayBeLate: boolean): void {
    if (this.#inTurn.has(gate)) return;
    const request = batchRequest(gate.tenant, () => {
      this.#inTurn.delete(gate);
      this.#serveTurn(gate, mayBeLate);
    });
    const result = this.#pod?.admit(request, this.#clock.monotonic()) ?? 'admitted';
    if (result === 'admitted') this.#serveTurn(gate, mayBeLate);
    else this.#inTurn.add(gate);
  }

  #serveTurn(gate: TenantGate, mayBeLate: boolean): void {
    if (!this.#awaited.has(gate)) return;
    const now = this.#clock.monotonic();
    const isOver =
      (mayBeLate && gate.expire(now, this.#isTurnOver)) || gate.serve(now, this.#isTurnOver);
    if (gate.waiting === 0) this.#awaited.delete(gate);
    else if (isOver) this.#waitTurn(gate, mayBeLate);
  }

  #waitTurn(gate: TenantGate, mayBeLate: boolean): void {
    this.#inTurn.add(gate);
    this.#pod!.requeue(
      batchRequest(gate.tenant, () => {
        this.#inTurn.delete(gate);
        this.#serveTurn(gate, mayBeLate);
      }),
    );
  }

  readonly #isTurnOver = (): boolean => this.#pod?.isSliceOver(this.#clock.monotonic()) === true;

  #serveLines(): void {
    this.#lineTimer = undefined;
    const now = this.#clock.monotonic();
    for (const gate of [...this.#lines]) {
      gate.line.serve(now);
      if (gate.line.waiting === 0) this.#lines.delete(gate);
    }
    this.#scheduleLines();
  }

  #scheduleLines(): void {
    if (this.#lines.size === 0) return;
    this.#lineTimer ??= setTimeout(() => this.#serveLines(), serveLinesEveryMs);
  }

  // ---- for the gates

  burst(tenant: number, share: number, cost: number, now: number): boolean {
    return this.#rules.burstRu > 0 && this.#burst.take(tenant, share, cost, now);
  }

  lends(mode: QuotaMode): number {
    const { allocation, gatewayRu } = this.#rules;
    return (mode === 'server' ? allocation : mode) === 'stacked' ? gatewayRu : 0;
  }

  borrow(mode: QuotaMode, cost: number, now: number): boolean {
    return this.lends(mode) > 0 && this.#allocation.borrow(cost, now);
  }

  used(units: number, now: number): void {
    if (this.#rules.gatewayRu > 0) this.#allocation.use(units, now);
  }

  wake(gate: TenantGate): void {
    this.#awaited.add(gate);
    this.#schedule(this.#clock.monotonic());
  }

  wakeLine(gate: TenantGate): void {
    this.#lines.add(gate);
    this.#scheduleLines();
  }
}
