import {
  AccessPools,
  accessPoolsDefaults,
  LeastRequests,
  type Move,
} from '../gateway-pools/access-pools.ts';
import type { Experiment, Line } from './experiment.ts';
import { Chance } from './sim/chance.ts';
import { Simulation } from './sim/simulation.ts';

const gateways = 64;
const tenants = 400;
/** Units a second. */
const gatewayCapacity = 1000;

interface Tenant {
  quota: number;
  partitions: number;
}

interface Setting {
  pools: AccessPools;
  tenants: Tenant[];
}

/** Tenants come one by one, with quotas and bytes that differ by orders of magnitude. */
function settingOf(poolCount: number, seed: number, options = accessPoolsDefaults): Setting {
  const chance = new Chance(seed);
  const pools = new AccessPools(options);
  for (let p = 0; p < poolCount; p++) {
    pools.addPool(`p${p}`);
    for (let g = 0; g < gateways / poolCount; g++) {
      pools.addGateway(`p${p}`, `p${p}g${g}`, gatewayCapacity);
    }
  }
  const all = Array.from({ length: tenants }, (_, tenant): Tenant => {
    const quota = 50 * chance.lognormal(0, 1);
    const partitions = Math.ceil(Math.max(quota / 25, chance.lognormal(1, 1)));
    pools.assign(tenant, quota, partitions);
    return { quota, partitions };
  });
  return { pools, tenants: all };
}

/** Routes of the gateway that has most, per cent of all. */
function routesHeld({ pools, tenants: all }: Setting): number {
  const sum = (some: Iterable<number>): number => {
    let count = 0;
    for (const tenant of some) count += all[tenant]!.partitions;
    return count;
  };
  const held = [...pools.pools()].map((pool) => sum(pools.tenantsOf(pool)));
  return (100 * Math.max(...held)) / sum(all.keys());
}

/** Tenants of the pool that has most, per cent of all. */
function tenantsHeld({ pools }: Setting): number {
  const held = [...pools.pools()].map((pool) => pools.tenantsOf(pool).size);
  return (100 * Math.max(...held)) / tenants;
}

interface Crash {
  /** Per cent of tenants of which a request failed. */
  affected: number;
  /** Per cent of tenants whose requests failed in each second. */
  bySecond: Float64Array;
}

const crashSeconds = 40;
const poisonFrom = 10_000;
const restartMs = 5000;
const requestsPerSecond = 4000;
const poisonPerSecond = 30;

/** From the tenth second on each request of one tenant brings down the gateway that works on it. */
function crashLoop({ pools, tenants: all }: Setting, poison: number, seed: number): Crash {
  const simulation = new Simulation();
  const chance = new Chance(seed + 1000);
  const names = [...pools.pools()];
  const balancers = new Map(
    names.map((name) => [name, new LeastRequests([...pools.gatewaysOf(name)].length)] as const),
  );
  /** Tenants whose requests each gateway works on, of the present run of its process. */
  const working = new Map(
    names.map((name) => [name, [...pools.gatewaysOf(name)].map(() => new Map<number, number>())]),
  );
  const failedIn = Array.from({ length: crashSeconds }, () => new Set<number>());
  const failed = new Set<number>();
  const fails = (tenant: number): void => {
    // Requests of the poisonous tenant itself are not counted.
    if (tenant === poison) return;
    failed.add(tenant);
    failedIn[Math.floor(simulation.now() / 1000)]!.add(tenant);
  };
  const arrive = (tenant: number): void => {
    const pool = pools.poolOf(tenant);
    const balancer = balancers.get(pool)!;
    const gateway = balancer.pick();
    if (gateway < 0) return fails(tenant);
    const work = working.get(pool)![gateway]!;
    if (tenant !== poison || simulation.now() < poisonFrom) {
      work.set(tenant, (work.get(tenant) ?? 0) + 1);
      simulation.after(chance.exponential(1 / 10), () => {
        // The request is in another process, or still running.
        const left = work.get(tenant) ?? 0;
        if (left > 1) work.set(tenant, left - 1);
        else work.delete(tenant);
      });
      return;
    }
    for (const other of work.keys()) fails(other);
    work.clear();
    balancer.setUp(gateway, false);
    simulation.after(restartMs, () => balancer.setUp(gateway, true));
  };
  const generate = (tenant: number, perSecond: number, first: number): void => {
    const next = (): void => {
      simulation.after(chance.exponential(perSecond / 1000), () => {
        if (simulation.now() >= crashSeconds * 1000) return;
        arrive(tenant);
        next();
      });
    };
    simulation.after(first, next);
  };
  const sum = all.reduce((total, { quota }) => total + quota, 0);
  all.forEach(({ quota }, tenant) => generate(tenant, (requestsPerSecond * quota) / sum, 0));
  generate(poison, poisonPerSecond, poisonFrom);
  simulation.every(1000, () => balancers.forEach((balancer) => balancer.fade()));
  simulation.runUntil(crashSeconds * 1000 - 1);
  return {
    affected: (100 * failed.size) / tenants,
    bySecond: Float64Array.from(failedIn, ({ size }) => (100 * size) / tenants),
  };
}

const moveSeconds = 60;

/** Requests lost while one tenant in ten moves, by steps or all at once. */
function lostInMoves({ pools }: Setting, bySteps: boolean, seed: number): number {
  const simulation = new Simulation();
  const chance = new Chance(seed + 2000);
  const moving = Array.from({ length: tenants / 10 }, (_, i) => i * 10);
  const balancers = Array.from({ length: 4 }, (_, i) => {
    pools.addBalancer(`b${i}`);
    // Where it believes each tenant to be.
    return new Map(moving.map((tenant) => [tenant, pools.poolOf(tenant)]));
  });
  /**
   * State of each gateway: tenants, with their running requests and the time when the last one
   * ended.
   */
  const tables = new Map<string, Map<number, { working: number; lastAt: number }>>();
  const gatewaysOf = new Map<string, string[]>();
  for (const pool of pools.pools()) {
    gatewaysOf.set(pool, [...pools.gatewaysOf(pool)]);
    for (const gateway of pools.gatewaysOf(pool)) {
      const known = moving.filter((tenant) => pools.poolOf(tenant) === pool);
      tables.set(gateway, new Map(known.map((tenant) => [tenant, { working: 0, lastAt: 0 }])));
    }
  }
  let lost = 0;
  const send = (tenant: number): void => {
    const pool = chance.pick(balancers).get(tenant)!;
    const gateway = chance.pick(gatewaysOf.get(pool)!);
    simulation.after(chance.uniform(0.2, 5), () => {
      const table = tables.get(gateway)!;
      const entry = table.get(tenant);
      if (entry === undefined) {
        lost++;
        return;
      }
      entry.working++;
      // One in fifty is a long query.
      const took = chance.happens(0.02) ? chance.exponential(1 / 1000) : chance.exponential(1 / 5);
      simulation.after(took, () => {
        entry.working--;
        entry.lastAt = simulation.now();
        if (table.get(tenant) !== entry) lost++;
      });
    });
  };
  const load = (tenant: number, gateway: string): void => {
    simulation.after(chance.uniform(20, 800), () => {
      tables.get(gateway)!.set(tenant, { working: 0, lastAt: simulation.now() });
      acknowledge(tenant, 'loading', gateway);
    });
  };
  const direct = (tenant: number, to: string, balancer: number): void => {
    simulation.after(chance.uniform(20, 1500), () => {
      balancers[balancer]!.set(tenant, to);
      acknowledge(tenant, 'switching', `b${balancer}`);
    });
  };
  const drain = (tenant: number, gateway: string): void => {
    simulation.every(100, () => {
      const entry = tables.get(gateway)!.get(tenant)!;
      // So long that nothing can be on its way any more.
      const isDone = entry.working === 0 && simulation.now() >= entry.lastAt + 100;
      if (!isDone) return true;
      tables.get(gateway)!.delete(tenant);
      acknowledge(tenant, 'draining', gateway);
      return false;
    });
  };
  /** Tells the parties of the phase; `was` is the phase before. */
  const enter = (move: Move | undefined, was: string | undefined): void => {
    if (move === undefined || move.phase === was) return;
    const { tenant, from, to, phase } = move;
    if (phase === 'loading') for (const gateway of gatewaysOf.get(to)!) load(tenant, gateway);
    if (phase === 'switching') balancers.forEach((_, i) => direct(tenant, to, i));
    if (phase === 'draining') for (const gateway of gatewaysOf.get(from)!) drain(tenant, gateway);
  };
  const acknowledge = (tenant: number, phase: Move['phase'], who: string): void => {
    if (!bySteps) return;
    pools.acknowledge(tenant, phase, who);
    enter(pools.moveOf(tenant), phase);
  };
  moving.forEach((tenant, i) => {
    simulation.at(1000 + i * 1000, () => {
      const from = pools.poolOf(tenant);
      if (bySteps) {
        enter(pools.beginMove(tenant), undefined);
        return;
      }
      // All are told at the same time, and do as they are told when they hear of it.
      const to = pools.leastLoaded(from)!;
      for (const gateway of gatewaysOf.get(to)!) load(tenant, gateway);
      balancers.forEach((_, b) => direct(tenant, to, b));
      for (const gateway of gatewaysOf.get(from)!) {
        simulation.after(chance.uniform(20, 800), () => tables.get(gateway)!.delete(tenant));
      }
    });
    simulation.every(2, () => {
      if (simulation.now() < (moveSeconds - 10) * 1000 && chance.happens(0.2)) send(tenant);
    });
  });
  simulation.runUntil(moveSeconds * 1000);
  if (bySteps && [...pools.moves()].length > 0) return Infinity;
  return lost;
}

function lineOf({ bySecond }: Crash): Line[] {
  const points = Array.from(bySecond, (part, second): [number, number] => [second, part]);
  return [{ label: 'tenants with failed requests, %', points }];
}

export const accessPools: Experiment = {
  id: 'XS-5.2-pools',
  title: 'Gateways stand in pools, each for some of the tenants',
  kind: 'SIM',
  source: 'X-Stor, section 5.2 and figure 5',
  setup:
    'Withdrawn as a claim about the server, which has one gateway a protocol and does not run this policy (bench/gateway-pools). ' +
    '64 gateways, in 8 pools or all in one, and 400 tenants with lognormal quotas that come one by one. From the tenth second ' +
    "on a tenant's requests bring down each gateway that works on one, for 5 s; its pool is that of a tenant by chance, and " +
    'then the one with most tenants. And 40 tenants move to other pools under load, by steps, or as everyone hears of it.',
  run({ quick, seeds, progress }) {
    const some = quick ? seeds.slice(0, 2) : seeds;
    const mean = (of: (seed: number) => number): number =>
      some.reduce((sum, seed) => sum + of(seed), 0) / some.length;
    const crashOf = (poolCount: number, inLargest: boolean, seed: number): Crash => {
      progress(`${poolCount} pools, seed ${seed}`);
      const setting = settingOf(poolCount, seed);
      const { pools } = setting;
      let poison = new Chance(seed).below(tenants);
      if (inLargest) {
        const largest = [...pools.pools()].toSorted(
          (a, b) => pools.tenantsOf(b).size - pools.tenantsOf(a).size,
        )[0]!;
        [poison] = [...pools.tenantsOf(largest)] as [number];
      }
      return crashLoop(setting, poison, seed);
    };
    const literal = (of: (setting: Setting) => number): string =>
      mean((seed) => of(settingOf(8, seed, { tolerance: 0 }))).toFixed(1);
    return {
      measures: [
        {
          metric: 'tenants with failed requests, poison in the pool of a tenant by chance, %',
          value: mean((seed) => crashOf(8, false, seed).affected),
          threshold: 15,
          better: 'lower',
          without: mean((seed) => crashOf(1, false, seed).affected),
        },
        {
          metric: 'the same in the pool with most tenants, %',
          value: mean((seed) => crashOf(8, true, seed).affected),
          threshold: 15,
          better: 'lower',
        },
        {
          metric: 'routes of the gateway that holds most, % of all',
          value: mean((seed) => routesHeld(settingOf(8, seed))),
          threshold: 15,
          better: 'lower',
          without: mean((seed) => routesHeld(settingOf(1, seed))),
        },
        {
          metric: 'requests lost while 40 tenants move',
          value: mean((seed) => lostInMoves(settingOf(8, seed), true, seed)),
          threshold: 0,
          better: 'lower',
          without: mean((seed) => lostInMoves(settingOf(8, seed), false, seed)),
        },
      ],
      xLabel: 'second',
      yLabel: '% of tenants',
      before: { title: 'one pool', lines: lineOf(crashOf(1, false, some[0]!)) },
      after: { title: '8 pools', lines: lineOf(crashOf(8, false, some[0]!)) },
      explanation:
        'Of pools of which the loads differ by less than a fifth of the mean a new tenant gets the one with fewest tenants ' +
        `and routes. By the least load alone the pool with most tenants has ${literal(tenantsHeld)} % of them, and a gateway ` +
        `of the pool with most routes ${literal(routesHeld)} %.`,
    };
  },
};
