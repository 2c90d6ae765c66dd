// ABase: the number of tenants affected by the failure of a pool, and the savings of pools compared
// with a cluster for each tenant.

import {
  defaultPoolRules,
  nodesNeeded,
  poolFor,
  type PoolRules,
  type PoolUse,
  refusalOf,
} from '../../control/autoscaler/scaling/pool-rules.ts';
import type { Experiment, Line } from './experiment.ts';
import { overSeeds } from './over-seeds.ts';
import { Chance } from './sim/chance.ts';

const capacityOfNode = 1000;
const pools = 10;
const nodesOfPool = 100;

interface Fleet {
  pools: { nodeCapacity: Float64Array; nodeLoad: Float64Array; quotas: Map<string, number> }[];
  tenants: number;
  /** Changes admitted that leave a pool outside its limits. */
  breaches: number;
}

type Choice = (
  pools: readonly PoolUse[],
  tenant: string,
  quota: number,
  load: number,
) => number | undefined;

const firstWithRoom: Choice = (all, tenant, quota, load) => {
  const found = all.findIndex(
    (pool) => refusalOf(pool, tenant, quota, load, defaultPoolRules) === undefined,
  );
  return found < 0 ? undefined : found;
};

/** Tenants come one by one, some leave, and some get another quota. */
function fill(seed: number, events: number, choose: Choice, rules: PoolRules): Fleet {
  const chance = new Chance(seed);
  const fleet: Fleet = {
    pools: Array.from({ length: pools }, () => ({
      nodeCapacity: new Float64Array(nodesOfPool).fill(capacityOfNode),
      nodeLoad: new Float64Array(nodesOfPool),
      quotas: new Map(),
    })),
    tenants: 0,
    breaches: 0,
  };
  const loads = new Map<string, { pool: number; load: number }>();
  const add = (pool: number, load: number): void => {
    const { nodeLoad } = fleet.pools[pool]!;
    for (let node = 0; node < nodesOfPool; node++) nodeLoad[node]! += load / nodesOfPool;
  };
  for (let event = 0; event < events; event++) {
    const quota = chance.lognormal(Math.log(500), 1.2);
    const load = quota * chance.uniform(0.3, 0.85);
    const known = chance.happens(0.2) ? chance.pick([...loads.keys(), '']) : '';
    const of = loads.get(known);
    if (of === undefined) {
      const tenant = `t${event}`;
      const pool = choose(fleet.pools, tenant, quota, load);
      if (pool === undefined) continue;
      fleet.pools[pool]!.quotas.set(tenant, quota);
      loads.set(tenant, { pool, load });
      add(pool, load);
    } else if (chance.happens(0.5)) {
      fleet.pools[of.pool]!.quotas.delete(known);
      loads.delete(known);
      add(of.pool, -of.load);
    } else {
      const pool = fleet.pools[of.pool]!;
      if (refusalOf(pool, known, quota, load - of.load, rules) !== undefined) continue;
      pool.quotas.set(known, quota);
      add(of.pool, load - of.load);
      of.load = load;
    }
    for (const { nodeCapacity, nodeLoad, quotas } of fleet.pools) {
      const capacity = nodeCapacity.length * capacityOfNode;
      const used = nodeLoad.reduce((sum, one) => sum + one, 0);
      let largest = 0;
      for (const one of quotas.values()) largest = Math.max(largest, one);
      // Rounding of sums must not count.
      const isBroken =
        quotas.size > rules.mostTenants ||
        nodeCapacity.length > rules.mostNodes ||
        largest * rules.capacityPerQuota > capacity * (1 + 1e-9) ||
        capacity - used < rules.idlePart * capacity * (1 - 1e-9);
      if (isBroken) fleet.breaches++;
    }
  }
  fleet.tenants = loads.size;
  return fleet;
}

/** Tenants of the pool that has most, % of all. */
function radius({ pools: all, tenants }: Fleet): number {
  return (100 * Math.max(...all.map(({ quotas }) => quotas.size))) / tenants;
}

export const failureRadius: Experiment = {
  id: 'AB-7-limits',
  title: 'The failure of a pool concerns few tenants',
  kind: 'SIM',
  source: 'ABase, section 7; the paper has no figure',
  setup:
    `${pools} pools of ${nodesOfPool} nodes. Tenants with quotas of lognormal size come one by one; one change in ten takes a tenant ` +
    'away, and one in ten asks for another quota. The rules admit or refuse, and a new tenant goes to the pool with fewest. ' +
    'Without: to the first pool that has room.',
  run({ seeds, quick, progress }) {
    const events = quick ? 500 : 2000;
    const runs = seeds.map((seed) => {
      progress(`seed ${seed}`);
      const chance = new Chance(seed + 1000);
      const atRandom: Choice = (all, tenant, quota, load) => {
        const open = all.flatMap((pool, number) =>
          refusalOf(pool, tenant, quota, load, defaultPoolRules) === undefined ? [number] : [],
        );
        return open.length === 0 ? undefined : chance.pick(open);
      };
      const fewest: Choice = (...of) => poolFor(...of, defaultPoolRules);
      return {
        ours: fill(seed, events, fewest, defaultPoolRules),
        first: fill(seed, events, firstWithRoom, defaultPoolRules),
        random: fill(seed, events, atRandom, defaultPoolRules),
      };
    });
    const sizes = (of: Fleet): Line => ({
      label: 'tenants',
      points: of.pools.map(({ quotas }, pool) => [pool + 1, quotas.size]),
    });
    const mean = (values: readonly number[]): number =>
      values.reduce((sum, value) => sum + value, 0) / values.length;
    const atRandom = runs.map(({ random }) => radius(random));
    return {
      measures: [
        overSeeds(
          runs.map(({ ours }) => radius(ours)),
          {
            metric: `tenants that the failure of a pool touches, at most, % (${pools} pools)`,
            threshold: 100 / pools,
            better: 'lower',
          },
          runs.map(({ first }) => radius(first)),
        ),
        overSeeds(
          runs.map(({ ours }) => radius(ours)),
          {
            metric: 'the same, beside a pool at random',
            threshold: mean(atRandom),
            better: 'lower',
          },
          atRandom,
        ),
        overSeeds(
          runs.map(({ ours }) => ours.breaches),
          {
            metric: 'pools outside their limits after any change',
            threshold: 0,
            better: 'lower',
          },
        ),
        overSeeds(
          runs.map(({ ours, first }) => (100 * ours.tenants) / first.tenants),
          {
            metric: 'tenants admitted, % of those where the first pool with room takes them',
            threshold: 95,
            better: 'higher',
          },
        ),
      ],
      explanation:
        'One in so many pools is what pools of the very same number would have. Tenants that leave make numbers differ by a few, ' +
        'and a pool that is full refuses those that others take.',
      xLabel: 'pool',
      yLabel: 'tenants',
      before: { title: 'first pool with room', lines: [sizes(runs[0]!.first)] },
      after: { title: 'pool with fewest', lines: [sizes(runs[0]!.ours)] },
    };
  },
};

const resources = ['CPU', 'memory', 'disk'] as const;
/** Use of single-tenant clusters in the paper, which the drawn loads are scaled to, and of pools. */
const paperUse = [
  { before: 0.17, after: 0.44 },
  { before: 0.52, after: 0.63 },
  { before: 0.27, after: 0.46 },
] as const;
/** A node of three may be lost: the other two take half as much more each. */
const singleTenantLimit = 2 / 3;
const leastNodes = 3;
const hours = 24;
/** Quotas are such that the highest hour uses this part. */
const useOfQuota = 0.65;

interface Load {
  /** Usage of each hour, in nodes; the mean of all and the maximum. */
  hourly: number[];
  mean: number;
  highest: number;
}

/** Loads of each tenant in each resource, before they are scaled. */
function drawLoads(chance: Chance, tenants: number): Load[][] {
  return Array.from({ length: tenants }, () => {
    const size = chance.lognormal(0, 1);
    const peakHour = chance.uniform(0, hours);
    return resources.map((_, resource) => {
      const of = size * chance.lognormal(0, 0.5);
      // Memory and disk use does not depend on the hour.
      const amplitude = resource === 0 ? chance.uniform(0.2, 0.8) : 0;
      const hourly = Array.from(
        { length: hours },
        (__, hour) => of * (1 + amplitude * Math.cos((2 * Math.PI * (hour - peakHour)) / hours)),
      );
      return { hourly, mean: of, highest: Math.max(...hourly) };
    });
  });
}

function ownNodes(loads: readonly Load[], scales: readonly number[]): number {
  const needed = loads.map(({ highest }, of) => (highest * scales[of]!) / singleTenantLimit);
  return Math.max(leastNodes, Math.ceil(Math.max(...needed)));
}

/** Scales loads so that clusters of one tenant are used as in the paper. */
function scaledToPaper(loads: readonly Load[][]): number[] {
  const scales = resources.map(() => 1);
  for (let step = 0; step < 200; step++) {
    const nodes = loads.reduce((sum, tenant) => sum + ownNodes(tenant, scales), 0);
    resources.forEach((_, of) => {
      const used = loads.reduce((sum, tenant) => sum + tenant[of]!.mean * scales[of]!, 0) / nodes;
      scales[of]! *= Math.sqrt(paperUse[of]!.before / used);
    });
  }
  return scales;
}

interface Consolidated {
  /** Use in each resource, of all nodes over the day. */
  before: number[];
  after: number[];
  /** Highest use of a node that is left when one is lost, in the scarcest resource and highest hour. */
  worstBefore: number;
  worstAfter: number;
  nodesBefore: number;
  nodesAfter: number;
}

function consolidate(seed: number, tenants: number): Consolidated {
  const loads = drawLoads(new Chance(seed), tenants);
  const scales = scaledToPaper(loads);
  const own = loads.map((tenant) => ownNodes(tenant, scales));
  const nodesBefore = own.reduce((sum, nodes) => sum + nodes, 0);
  const total = (of: number): number =>
    loads.reduce((sum, tenant) => sum + tenant[of]!.mean * scales[of]!, 0);
  const worstBefore = Math.max(
    ...loads.flatMap((tenant, i) =>
      tenant.map(({ highest }, of) => ((highest * scales[of]!) / own[i]!) * 1.5),
    ),
  );
  // Pools of as many tenants each as need fewer nodes than a pool may have.
  const parts = Math.ceil(nodesBefore / defaultPoolRules.mostNodes);
  let [nodesAfter, worstAfter] = [0, 0];
  for (let part = 0; part < parts; part++) {
    const members = loads.filter((_, tenant) => tenant % parts === part);
    const highest = resources.map((_, of) =>
      Math.max(
        ...Array.from(
          { length: hours },
          (__, hour) => members.reduce((sum, one) => sum + one[of]!.hourly[hour]!, 0) * scales[of]!,
        ),
      ),
    );
    const nodes = Math.max(
      ...highest.map((load, of) => {
        const largest = Math.max(...members.map((one) => one[of]!.highest)) * scales[of]!;
        return nodesNeeded(load, largest / useOfQuota, 1, defaultPoolRules);
      }),
    );
    nodesAfter += nodes;
    worstAfter = Math.max(worstAfter, ...highest.map((load) => load / (nodes - 1)));
  }
  return {
    before: resources.map((_, of) => total(of) / nodesBefore),
    after: resources.map((_, of) => total(of) / nodesAfter),
    worstBefore,
    worstAfter,
    nodesBefore,
    nodesAfter,
  };
}

export const clustersToPools: Experiment = {
  id: 'AB-5.3-intra-pools',
  title: 'Clusters of one tenant each are put together into pools',
  kind: 'SIM',
  source: 'ABase, section 6.4',
  setup:
    '500 tenants with lognormal loads in processor (with a day), memory and disk, scaled so that a cluster for each is used as in ' +
    'the paper: of three nodes or more, none above two thirds in its highest hour, as the loss of one adds half to others. ' +
    "And the same tenants in pools of as few nodes as the pools' rules allow, whose nodes are used alike, as AB-5.3-intra shows.",
  run({ seeds }) {
    const runs = seeds.map((seed) => consolidate(seed, 500));
    return {
      measures: [
        ...resources.map((name, of) => {
          const { before, after } = paperUse[of]!;
          return overSeeds(
            runs.map((one) => one.after[of]! / one.before[of]!),
            {
              metric: `${name} use, times that of clusters of one tenant`,
              threshold: Number((after / before).toFixed(2)),
              better: 'higher',
              paper: `${100 * before} to ${100 * after} %`,
            },
            runs.map(() => 1),
          );
        }),
        ...resources.map((name, of) =>
          overSeeds(
            runs.map((one) => 100 * Math.abs(one.before[of]! - paperUse[of]!.before)),
            {
              metric: `${name} use of clusters of one tenant: points off the paper's`,
              threshold: 1,
              better: 'lower',
            },
          ),
        ),
        overSeeds(
          runs.map(({ worstAfter }) => 100 * worstAfter),
          {
            metric: 'highest use of a node in the highest hour after the loss of one, %',
            threshold: 100,
            better: 'lower',
          },
          runs.map(({ worstBefore }) => 100 * worstBefore),
        ),
      ],
      explanation:
        'The same loads on nodes of the same kind rise alike: with a fifth of a pool idle memory bounds all three, from 52 to 80 % ' +
        'at most, and a pool with a large tenant is ten times its quota. In the paper processor use rises twice as much as memory ' +
        'use, so that its nodes or what they keep in memory changed too.',
      xLabel: 'seed',
      yLabel: 'nodes',
      before: {
        title: 'a cluster for each tenant',
        lines: [{ label: 'nodes', points: runs.map(({ nodesBefore }, i) => [i + 1, nodesBefore]) }],
      },
      after: {
        title: 'pools',
        lines: [{ label: 'nodes', points: runs.map(({ nodesAfter }, i) => [i + 1, nodesAfter]) }],
      },
    };
  },
};
