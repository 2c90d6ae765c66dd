// A limit on how fast a burst is spent: the limiter of a tenant that has one.

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ChargeClass, Meter } from '../../request-units/meter.ts';
import { noLimits, type TenantDefinition } from '../../contracts/tenancy/definitions.ts';
import type { AdmissionRules } from './admission-rules.ts';
import { GatewayAdmission } from './gateway-admission.ts';
import type { TenantLimiter } from './tenant-limiter.ts';

const [rate, burst, peak] = [100, 10_000, 1000];
/** Units of a peak that may be spent at once, in seconds of the peak rate. */
const peakSeconds = 0.1;

interface Spent {
  at: number;
  units: number;
}

class World {
  ms = 0;
  readonly spent: Spent[] = [];
  readonly admission: GatewayAdmission;
  readonly #meter = new Meter({ plane: 'redis', run: 'test' });

  constructor(limits: object, rules: Partial<AdmissionRules> = {}) {
    this.admission = new GatewayAdmission({
      clock: { now: () => 0, monotonic: () => this.ms },
      rules,
      accountOf: (tenant) => this.#meter.account(tenant),
    });
    this.limit(limits);
  }

  limit(limits: object): void {
    const definition: TenantDefinition = {
      name: 't1',
      number: 1,
      state: 'active',
      firstTable: 16,
      databases: 16,
      limits: { ...noLimits, ...limits },
    };
    this.admission.follow(definition);
  }

  get limiter(): TenantLimiter {
    return this.admission.limiterOf(1)!;
  }

  charge(units: number, requests = 1): void {
    const account = this.#meter.account(1);
    for (let i = 0; i < requests; i++) {
      account.charge(ChargeClass.write, 0, false, units / requests, 1, 1, 1, 1);
    }
    this.spent.push({ at: this.ms, units });
    this.limiter.settle(this.ms);
  }

  /** Everything that is let in just now, a request at a time, or as many as pass uncharged. */
  takeAll(units: number, passes: boolean): void {
    for (;;) {
      let requests = 0;
      while (passes && this.limiter.pass()) requests++;
      if (requests > 0) {
        this.charge(units * requests, requests);
        continue;
      }
      if (!this.limiter.admit(this.ms, 0)) return;
      this.charge(units);
    }
  }

  run(ms: number, units: (ms: number) => number, passes = true): void {
    for (const end = this.ms + ms; this.ms < end; this.ms += 5)
      this.takeAll(units(this.ms), passes);
  }

  /** The most that was spent within so long. */
  mostWithin(ms: number): number {
    let [first, sum, most] = [0, 0, 0];
    for (const { at, units } of this.spent) {
      sum += units;
      while (this.spent[first]!.at <= at - ms) sum -= this.spent[first++]!.units;
      most = Math.max(most, sum);
    }
    return most;
  }

  total(): number {
    return this.spent.reduce((sum, { units }) => sum + units, 0);
  }
}

const limits = { ruPerSecond: rate, burstRu: burst, peakRuPerSecond: peak };

test.each([true, false])('a burst is spent no faster than its limit (passes: %s)', (passes) => {
  const world = new World(limits);
  world.run(60_000, () => 1, passes);
  expect(world.mostWithin(1000)).toBeLessThanOrEqual(peak * (1 + peakSeconds) + 1);
  expect(world.mostWithin(1000)).toBeGreaterThan(peak * 0.99);
  // Beyond the burst there is a second of the rate.
  expect(world.mostWithin(10_000)).toBeLessThanOrEqual(rate * 11 + burst + 1);
  expect(world.total()).toBeCloseTo(burst + rate * 61, -2);
  const before = world.total();
  world.run(60_000, () => 1, passes);
  expect((world.total() - before) / 60).toBeCloseTo(rate, 0);
});

test('whatever requests cost and whenever they come, both limits hold', () => {
  const cost = fc.integer({ min: 1, max: 40 });
  const step = fc.record({ pause: fc.nat(3000), load: fc.nat(3000), cost });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 12 }), fc.boolean(), (steps, passes) => {
      const world = new World(limits);
      for (const { pause, load, cost: units } of steps) {
        world.ms += pause;
        world.run(load, () => units, passes);
      }
      // The cost of a request is known when it is over, so the last one may exceed the limit; half
      // a peak's worth of uncharged requests may pass at their earlier cost.
      const late = passes ? 40 * peak * peakSeconds * 0.5 : 40;
      expect(world.mostWithin(1000)).toBeLessThanOrEqual(peak * (1 + peakSeconds) + late);
      expect(world.mostWithin(10_000)).toBeLessThanOrEqual(rate * 11 + burst + late);
    }),
    { seed: 7, numRuns: 60 },
  );
});

test('what is charged later counts in both', () => {
  const world = new World(limits);
  world.charge(3 * peak);
  // Half of the burst and more is still there, and nothing can be spent before the speed of it is paid for.
  expect(world.limiter.balance(world.ms)).toBeCloseTo(-(3 - peakSeconds) * peak, 6);
  expect(world.limiter.admit(world.ms, 0)).toBe(false);
  world.ms += 2800;
  expect(world.limiter.admit(world.ms, 0)).toBe(false);
  world.ms += 200;
  expect(world.limiter.admit(world.ms, 0)).toBe(true);
});

test('it comes, changes and goes while requests do, and takes nothing of the burst with it', () => {
  const world = new World({ ruPerSecond: rate, burstRu: burst });
  const spentIn = (ms: number): number => {
    const before = world.total();
    world.run(ms, () => 1);
    return world.total() - before;
  };
  world.limit(limits);
  expect(spentIn(2000)).toBeLessThanOrEqual(peak * 2.1 + 1);
  world.limit({ ...limits, peakRuPerSecond: 2 * peak });
  expect(spentIn(1000)).toBeGreaterThan(peak * 1.9);
  world.limit({ ...limits, peakRuPerSecond: 0 });
  expect(spentIn(5)).toBeGreaterThan(4000);
  expect(world.total()).toBeCloseTo(burst + rate * 4, -2);
  world.limit({ ...limits, ruPerSecond: 0 });
  expect(world.admission.limiterOf(1)).toBeUndefined();
});
