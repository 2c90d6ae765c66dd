import { ClusterBuilder } from '../../control/scheduler/cluster-builder.ts';
import type { ClusterModel } from '../../control/scheduler/cluster-model.ts';
import { Chance } from '../../control/scheduler/simulation/chance.ts';
import {
  evictions,
  GatewayScaler,
  type HostNode,
  hostsFor,
  usualHosts,
  usualScaling,
} from '../../control/scheduler/xstor/gateway-scaler.ts';
import { modelMix, usualModelMix } from '../../control/scheduler/xstor/model-mix.ts';
import type { Experiment } from './experiment.ts';
import { overSeeds } from './over-seeds.ts';

const gibibyte = 2 ** 30;
const memoryNodes = 20;
const ssdNodes = 60;

interface MemoryPod {
  node: number;
  bytes: number;
}

/** Pods of 8 to 32 GiB fill memory nodes of 768 GiB to 60 %; SSD nodes have a quarter of their memory in use. */
function memoryCluster(seed: number, ssdGib: number): MemoryPod[] {
  const chance = new Chance(seed);
  const pods: MemoryPod[] = [];
  for (let node = 0; node < memoryNodes; node++) {
    for (let left = 0.6 * 768; left > 4; ) {
      const size = Math.min(left, chance.uniform(8, 32));
      pods.push({ node, bytes: size * gibibyte });
      left -= size;
    }
  }
  for (let node = memoryNodes; node < memoryNodes + ssdNodes; node++) {
    pods.push({ node, bytes: ssdGib * chance.uniform(0.1, 0.4) * gibibyte });
  }
  return pods;
}

function modelOf(
  pods: readonly MemoryPod[],
  disabled: ReadonlySet<number>,
  ssdGib: number,
): ClusterModel {
  const builder = new ClusterBuilder({ dimensions: ['cpu'], points: 1, pointSeconds: 60 });
  for (let node = 0; node < memoryNodes + ssdNodes; node++) {
    const isMemory = node < memoryNodes;
    builder.node({
      id: `${isMemory ? 'memory' : 'ssd'}${node}`,
      hardware: isMemory ? 'memory' : 'ssd',
      memoryBytes: (isMemory ? 768 : ssdGib) * gibibyte,
      state: disabled.has(node) ? 'draining' : 'active',
    });
  }
  pods.forEach(({ node, bytes }, i) => {
    builder.pod({ id: `pod${i}`, node, model: 'memory', limits: [1], memoryBytes: bytes });
  });
  return builder.build();
}

interface Consolidated {
  freed: number;
  /** Standard deviation of memory use over SSD nodes, and the highest. */
  deviation: number;
  highest: number;
  freedByRun: number[];
}

/** Runs until nothing moves any more. */
function consolidate(seed: number, ssdGib: number, fit: 'worst' | 'first'): Consolidated {
  const pods = memoryCluster(seed, ssdGib);
  const disabled = new Set<number>();
  const freedByRun: number[] = [];
  for (let run = 0; run < 100; run++) {
    const policy = modelMix({ ...usualModelMix, fit });
    const environment = { now: 0, rng: new Chance(seed) };
    const proposals = policy.plan(modelOf(pods, disabled, ssdGib), environment);
    for (const { change } of proposals) {
      if (change.kind === 'move-pod') pods[change.pod]!.node = change.toNode;
      if (change.kind === 'disable-node') disabled.add(change.node);
    }
    freedByRun.push(disabled.size);
    if (proposals.length === 0) break;
  }
  const use = new Float64Array(ssdNodes);
  for (const { node, bytes } of pods) {
    if (node >= memoryNodes) use[node - memoryNodes]! += bytes / (ssdGib * gibibyte);
  }
  const mean = use.reduce((sum, one) => sum + one, 0) / ssdNodes;
  const deviation = Math.sqrt(use.reduce((sum, one) => sum + (one - mean) ** 2, 0) / ssdNodes);
  return { freed: disabled.size, deviation, highest: Math.max(...use), freedByRun };
}

/** Memory of SSD nodes: so little that they fill up, and so much that all pods fit. */
const ssdSizes = [256, 512] as const;

export const modelConsolidation: Experiment = {
  id: 'XS-3-modelmix',
  title: 'Pods of the in-memory model move onto SSD nodes',
  kind: 'SIM',
  source: 'X-Stor, section 3',
  setup:
    '20 memory nodes of 768 GiB at 60 %, 60 SSD nodes at 25 % of 256 or 512 GiB; runs of at most 20 moves until nothing ' +
    'moves. Beside worst fit: each pod goes to the first SSD node that has room.',
  run({ seeds, progress }) {
    const bySize = ssdSizes.map((gib) => {
      progress(`SSD nodes of ${gib} GiB`);
      const fit = (of: 'worst' | 'first') => seeds.map((seed) => consolidate(seed, gib, of));
      return { gib, worst: fit('worst'), first: fit('first') };
    });
    const line = (of: 'worst' | 'first') =>
      bySize.map((one) => ({
        label: `SSD nodes of ${one.gib} GiB`,
        points: one[of][0]!.freedByRun.map((freed, run): [number, number] => [run + 1, freed]),
      }));
    return {
      measures: bySize.flatMap(({ gib, worst, first }) => [
        overSeeds(
          worst.map(({ freed }) => freed),
          { metric: `${gib} GiB: memory nodes freed, of 20`, threshold: 12, better: 'higher' },
          first.map(({ freed }) => freed),
        ),
        overSeeds(
          worst.map(({ highest }) => highest * 100),
          {
            metric: `${gib} GiB: highest memory use of an SSD node, %`,
            threshold: 75,
            better: 'lower',
          },
          first.map(({ highest }) => highest * 100),
        ),
        overSeeds(
          worst.map(({ deviation }, i) => deviation / first[i]!.deviation),
          {
            metric: `${gib} GiB: deviation of memory use over SSD nodes, of that of first fit`,
            threshold: 0.5,
            better: 'lower',
          },
          worst.map(() => 1),
        ),
      ]),
      xLabel: 'run',
      yLabel: 'memory nodes freed',
      before: { title: 'first fit', lines: line('first') },
      after: { title: 'worst fit', lines: line('worst') },
      explanation:
        'Where SSD nodes fill up to the threshold, first fit frees more nodes and leaves them as even: worst fit spends ' +
        'the room in pieces that no further pod fits into. It is worth having where memory is left over, as the ' +
        'second size shows.',
    };
  },
};

const stepMs = 15_000;
const stepsOfDay = 86_400_000 / stepMs;
const hosts = 60;
/** Share of a host's processors that a gateway has: 4 cores of 96. */
const gatewayShare = 4 / 96;
/** LRU/s of a gateway, and of the peak of the day. */
const gatewayLru = 10_000;
const peakLru = 400_000;
/** Steps until a new gateway serves. */
const startSteps = 2;

interface Day {
  podSteps: number;
  staticPodSteps: number;
  rejected: number;
  asked: number;
  /** 99th percentile of 1 / (1 - use) of database pods on hosts, with gateways over without. */
  hostedRatio: number;
  counts: [number, number][];
  demand: [number, number][];
}

/** One peak a day, four times the night's load, with noise of 3 %. */
function day(seed: number): Day {
  const chance = new Chance(seed);
  const scaler = new GatewayScaler();
  const base = Array.from({ length: hosts }, () => chance.uniform(0.1, 0.5));
  const nodes = base.map(
    (cpu, node): HostNode => ({ node, cpu, cpuP95: cpu, memory: 0.4, gateways: 0 }),
  );
  const history = base.map((): number[] => []);
  const result: Day = {
    podSteps: 0,
    staticPodSteps: 0,
    rejected: 0,
    asked: 0,
    hostedRatio: 0,
    counts: [],
    demand: [],
  };
  const [alone, shared]: [number[], number[]] = [[], []];
  let starting: { node: number; at: number }[] = [];
  const add = (count: number, step: number): void => {
    for (const node of hostsFor(count, nodes, gatewayShare)) {
      starting.push({ node, at: step + startSteps });
    }
  };
  const serving = (): number => nodes.reduce((sum, { gateways }) => sum + gateways, 0);
  add(Math.ceil(peakLru / 4 / (gatewayLru * usualScaling.target)), -startSteps);
  const fixed = Math.ceil(peakLru / (gatewayLru * usualScaling.target));
  for (let step = 0; step < stepsOfDay; step++) {
    const wave = Math.sin((Math.PI * step) / stepsOfDay) ** 4;
    const asked = (peakLru / 4) * (1 + 3 * wave) * (1 + 0.03 * chance.normal());
    for (const { node } of starting.filter(({ at }) => at <= step)) nodes[node]!.gateways++;
    starting = starting.filter(({ at }) => at > step);
    const count = serving();
    const use = Math.min(1, asked / (count * gatewayLru));
    result.asked += asked;
    result.rejected += Math.max(0, asked - count * gatewayLru);
    result.podSteps += count + starting.length;
    result.staticPodSteps += fixed;
    for (const one of nodes) {
      // The database pods have a day of their own.
      const own = base[one.node]! * (1 + 0.4 * wave) * (1 + 0.05 * chance.normal());
      const borrowed = one.gateways * gatewayShare * use;
      one.cpu = own + borrowed;
      if (step % 4 === 0) history[one.node]!.push(own);
      if (one.gateways > 0) {
        alone.push(1 / (1 - Math.min(0.95, own)));
        shared.push(1 / (1 - Math.min(0.95, own + borrowed)));
      }
    }
    if (step % 20 === 0) {
      for (const one of nodes) {
        const lastHour = history[one.node]!.slice(-60).sort((a, b) => a - b);
        one.cpuP95 = lastHour[Math.floor(lastHour.length * 0.95)]! + one.gateways * gatewayShare;
      }
      result.counts.push([step / 240, count]);
      result.demand.push([step / 240, asked / gatewayLru]);
    }
    for (const node of evictions(nodes)) {
      nodes[node]!.gateways--;
      add(1, step);
    }
    const current = serving() + starting.length;
    const wanted = scaler.desired(step * stepMs, current, asked / (current * gatewayLru));
    if (wanted > current) add(wanted - current, step);
    // Nodes on the busiest hosts leave first, drained: they serve their accepted requests.
    const byLoad = [...nodes].sort((a, b) => b.cpu - a.cpu);
    for (let surplus = Math.min(current - wanted, serving() - 1); surplus > 0; surplus--) {
      const host = byLoad.find(({ gateways }) => gateways > 0);
      if (host !== undefined) host.gateways--;
    }
  }
  const p99 = (values: number[]): number =>
    Float64Array.from(values).sort()[Math.floor(values.length * 0.99)]!;
  result.hostedRatio = p99(shared) / p99(alone);
  return result;
}

export const gatewayConsolidation: Experiment = {
  id: 'XS-3-svcmix',
  title: 'Gateways on storage nodes, as many as the load needs',
  kind: 'SIM',
  source: 'X-Stor, section 3',
  setup:
    'A day of 1 + 3 sin⁴ of the time, four times as much at its peak as at night, with noise of 3 %; gateways of 10,000 ' +
    'LRU/s that take 30 s to start, on 60 storage nodes whose database pods have a day of their own. Without: as many ' +
    'gateways as the peak needs, all day.',
  run({ seeds, progress }) {
    const days = seeds.map((seed) => {
      progress(`seed ${seed}`);
      return day(seed);
    });
    const first = days[0]!;
    const demand = { label: 'gateways that the load would fill', points: first.demand };
    const fixed = first.staticPodSteps / stepsOfDay;
    return {
      measures: [
        overSeeds(
          days.map(({ podSteps, staticPodSteps }) => (100 * podSteps) / staticPodSteps),
          {
            metric: 'hours of gateways, of those sized for the peak, %',
            threshold: 60,
            better: 'lower',
          },
          days.map(() => 100),
        ),
        overSeeds(
          days.map(({ rejected, asked }) => (100 * rejected) / asked),
          {
            metric: 'units rejected because gateways were missing, %',
            threshold: 0.1,
            better: 'lower',
          },
        ),
        overSeeds(
          days.map(({ hostedRatio }) => hostedRatio),
          {
            metric: 'p99 of the database pods on the hosts, of that without gateways',
            threshold: 1.05,
            better: 'lower',
          },
          days.map(() => 1),
        ),
      ],
      xLabel: 'hour',
      yLabel: 'gateways',
      before: {
        title: 'sized for the peak',
        lines: [demand, { label: 'gateways', points: [[0, fixed] as const, [24, fixed] as const] }],
      },
      after: {
        title: `scaled; gateways leave hosts above ${usualHosts.evictAbove * 100} %`,
        lines: [demand, { label: 'gateways', points: first.counts }],
      },
      explanation:
        'Gateways go to hosts below 50 % and leave at 60 %; a database pod in between pays for its guest, whose ' +
        'processor time is taken to be worth as much as its own.',
    };
  },
};
