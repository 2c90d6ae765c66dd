// A pool for tests: gateways, the scheduler of their shares, and a network between them with
// configurable losses and delays, on a simulated clock.

import { ChargeClass, Meter } from '../../request-units/meter.ts';
import { noLimits, type TenantDefinition } from '../../contracts/tenancy/definitions.ts';
import type { FromGateway, ToGateway } from './pool-messages.ts';
import { GatewayAdmission } from '../../access/admission/gateway-admission.ts';
import { PoolAgent } from './pool-agent.ts';
import { PoolScheduler, type PoolSchedulerOptions } from './pool-scheduler.ts';

export function limited(number: number, ruPerSecond: number): TenantDefinition {
  const limits = { ...noLimits, ruPerSecond };
  return { name: `t${number}`, number, state: 'active', firstTable: 16, databases: 16, limits };
}

interface PoolMember {
  name: string;
  meter: Meter;
  admission: GatewayAdmission;
  agent: PoolAgent;
}

export class PoolWorld {
  ms = 0;
  /** Faults of messages from here on: lost, duplicated, and delayed by up to `delayMs`. */
  loss: (message: FromGateway | ToGateway) => boolean = () => false;
  doubles: () => boolean = () => false;
  delayMs: () => number = () => 0;
  readonly members = new Map<string, PoolMember>();
  readonly quotas = new Map<number, number>();
  scheduler: PoolScheduler | undefined;
  sent = 0;
  readonly #underWay: { at: number; arrive: () => void }[] = [];
  #starts = 0;
  /** Wall time may be anything. */
  readonly #clock = { now: () => this.wallMs, monotonic: () => this.ms };
  wallMs = 0;

  startScheduler(options: Partial<PoolSchedulerOptions> = {}): PoolScheduler {
    const scheduler = new PoolScheduler({
      clock: this.#clock,
      send: (name, message) =>
        this.#post(message, () => this.members.get(name)?.agent.hear(message)),
      ...options,
    });
    scheduler.setQuotas(this.quotas);
    this.scheduler = scheduler;
    return scheduler;
  }

  /** Returns its name. */
  join(firstPart = 0): string {
    const name = `gateway ${++this.#starts}`;
    const meter = new Meter({ plane: 'redis', run: name });
    const admission = new GatewayAdmission({
      clock: this.#clock,
      accountOf: (tenant) => meter.account(tenant),
    });
    const agent = new PoolAgent({
      gateway: name,
      admission,
      clock: this.#clock,
      firstPart,
      send: (message) => this.#post(message, () => this.scheduler?.hear(message)),
    });
    this.members.set(name, { name, meter, admission, agent });
    for (const [tenant, quota] of this.quotas) agent.follow(limited(tenant, quota));
    agent.second();
    this.deliver();
    return name;
  }

  /** Removes a gateway, with or without a goodbye. */
  end(name: string, says: 'nothing' | 'goodbye'): void {
    if (says === 'goodbye') this.members.get(name)?.agent.goodbye();
    this.members.delete(name);
    this.deliver();
  }

  /** As in the catalog, every party learns of the change at a different time. */
  setQuota(tenant: number, perSecond: number): void {
    this.quotas.set(tenant, perSecond);
    for (const { agent } of this.members.values()) agent.follow(limited(tenant, perSecond));
    this.scheduler?.setQuotas([[tenant, perSecond]]);
    this.deliver();
  }

  /** The tenant asks for so many units of a gateway in this second. */
  ask(name: string, tenant: number, units: number): void {
    const { admission, meter } = this.members.get(name)!;
    const limiter = admission.limiterOf(tenant)!;
    const cost = units / 100;
    for (let i = 0; i < 100; i++) {
      limiter.costs.mean = cost;
      if (limiter.admit(this.ms, 0)) {
        meter.account(tenant).charge(ChargeClass.write, 0, false, cost, 0, 0, 0, 0);
        limiter.settle(this.ms);
      } else limiter.refuse(this.ms);
    }
  }

  #post(message: FromGateway | ToGateway, arrive: () => void): void {
    this.sent++;
    if (this.loss(message)) return;
    for (let copies = this.doubles() ? 2 : 1; copies > 0; copies--) {
      this.#underWay.push({ at: this.ms + this.delayMs(), arrive });
    }
  }

  /** Delivers the messages due by now. */
  deliver(): void {
    for (;;) {
      const due = this.#underWay.findIndex(({ at }) => at <= this.ms);
      if (due < 0) return;
      this.#underWay.splice(due, 1)[0]!.arrive();
    }
  }

  /** Each message arrives at its time. */
  #advance(to: number): void {
    while (this.ms < to) {
      this.ms = this.#underWay.reduce((next, { at }) => Math.min(next, Math.max(at, this.ms)), to);
      this.deliver();
    }
  }

  pass(ms: number): void {
    const until = this.ms + ms;
    while (this.ms < until) {
      this.#advance(Math.min(until, 100 * (Math.floor(this.ms / 100) + 1)));
      if (this.ms % 100 !== 0) continue;
      this.deliver();
      if (this.ms % 1000 !== 0) continue;
      for (const { admission, agent } of this.members.values()) {
        admission.endSecond();
        agent.second();
      }
      this.deliver();
      this.scheduler?.second();
      this.deliver();
    }
  }

  /** Units a second that a gateway goes by. */
  shareOf(name: string, tenant: number): number {
    const member = this.members.get(name);
    const quota = member?.admission.limiterOf(tenant)?.quota.perSecond ?? 0;
    // A gateway without a part keeps one that is too small to count.
    return quota < 1e-3 ? 0 : quota;
  }

  /** Total over all gateways. */
  inForce(tenant: number): number {
    let sum = 0;
    for (const name of this.members.keys()) sum += this.shareOf(name, tenant);
    return sum;
  }

  /** As the scheduler wants it. */
  planned(tenant: number): number {
    let sum = 0;
    for (const share of this.scheduler!.sharesOf(tenant).values()) sum += share;
    return sum;
  }
}
