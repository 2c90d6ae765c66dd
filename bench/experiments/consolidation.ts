import { GatewayShares } from '../../access/admission/shares/gateway-shares.ts';
import { ClusterBuilder } from '../../control/scheduler/cluster-builder.ts';
import type { ClusterModel } from '../../control/scheduler/cluster-model.ts';
import type { Policy } from '../../control/scheduler/proposal.ts';
import { Chance } from '../../control/scheduler/simulation/chance.ts';
import {
  GatewayScaler,
  usualHosts,
  usualScaling,
} from '../../control/scheduler/xstor/gateway-scaler.ts';
import { GatewaySet, type Host } from '../../control/scheduler/xstor/gateway-set.ts';
import { modelMix, usualModelMix } from '../../control/scheduler/xstor/model-mix.ts';
import { mean } from '../support/statistics.ts';
import { randomModelMix } from './cluster/random-model-mix.ts';
import type { Experiment, Measure } from './experiment.ts';
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
function consolidate(seed: number, ssdGib: number, policy: Policy): Consolidated {
  const pods = memoryCluster(seed, ssdGib);
  const disabled = new Set<number>();
  const freedByRun: number[] = [];
  const environment = { now: 0, rng: new Chance(seed) };
  for (let run = 0; run < 100; run++) {
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
    'moves. The default is worst fit where all pods have room, and first fit where they have not; beside it either alone, and ' +
    'pods at random on nodes at random that have room.',
  run({ seeds, progress }) {
    const { moves, threshold } = usualModelMix;
    const bySize = ssdSizes.map((gib) => {
      progress(`SSD nodes of ${gib} GiB`);
      const by = (policy: Policy) => seeds.map((seed) => consolidate(seed, gib, policy));
      return {
        gib,
        usual: by(modelMix()),
        worst: by(modelMix({ ...usualModelMix, fit: 'worst' })),
        first: by(modelMix({ ...usualModelMix, fit: 'first' })),
        random: by(randomModelMix(moves, threshold)),
      };
    });
    const line = (of: 'usual' | 'first') =>
      bySize.map((one) => ({
        label: `SSD nodes of ${one.gib} GiB`,
        points: one[of][0]!.freedByRun.map((freed, run): [number, number] => [run + 1, freed]),
      }));
    return {
      measures: bySize.flatMap(({ gib, usual, worst, first, random }): Measure[] => [
        overSeeds(
          usual.map(({ freed }) => freed),
          { metric: `${gib} GiB: memory nodes freed, of 20`, threshold: 12, better: 'higher' },
          first.map(({ freed }) => freed),
        ),
        overSeeds(
          usual.map(({ highest }) => highest * 100),
          {
            metric: `${gib} GiB: highest memory use of an SSD node, %`,
            threshold: 75,
            better: 'lower',
          },
          first.map(({ highest }) => highest * 100),
        ),
        overSeeds(
          usual.map(({ deviation }, i) => deviation / first[i]!.deviation),
          {
            metric: `${gib} GiB: deviation of memory use over SSD nodes, of that of first fit`,
            threshold: 0.5,
            better: 'lower',
          },
          worst.map(({ deviation }, i) => deviation / first[i]!.deviation),
        ),
        overSeeds(
          usual.map(({ freed }) => freed),
          {
            metric: `${gib} GiB: memory nodes freed, beside worst fit`,
            threshold: mean(worst.map(({ freed }) => freed)),
            better: 'higher',
          },
          worst.map(({ freed }) => freed),
        ),
        overSeeds(
          usual.map(({ freed }) => freed),
          {
            metric: `${gib} GiB: memory nodes freed, beside pods and nodes at random; nothing done frees none`,
            threshold: mean(random.map(({ freed }) => freed)),
            better: 'higher',
          },
          random.map(({ freed }) => freed),
        ),
        overSeeds(
          usual.map(({ deviation }) => deviation * 100),
          {
            metric: `${gib} GiB: deviation of memory use, points, beside pods and nodes at random`,
            threshold: mean(random.map(({ deviation }) => deviation * 100)),
            better: 'lower',
          },
          random.map(({ deviation }) => deviation * 100),
        ),
      ]),
      xLabel: 'run',
      yLabel: 'memory nodes freed',
      before: { title: 'first fit', lines: line('first') },
      after: { title: 'by the room that is left', lines: line('usual') },
      explanation:
        'Where SSD nodes fill up to the threshold they are alike whatever the fit: what differs between nodes is the gap that ' +
        'no further pod fits into, a point of their memory. Worst fit spends the room in such gaps, and frees fewer nodes; so ' +
        'the default is first fit there, and worst fit where all pods have room. The deviation has the ratio of worst fit beside it.',
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

/** How gateways are scaled and placed: by the policy, scaled by it on hosts at random, or those of the night all day. */
type Hosting = 'policy' | 'random hosts' | 'nothing';

/** Shares have to come to the quota whichever gateways there are. */
function checkShares(shares: GatewayShares): void {
  let total = 0;
  for (const gateway of shares.gateways()) total += shares.of(gateway);
  if (Math.abs(total - peakLru) > 1e-3) throw new Error(`the shares come to ${total}`);
}

/** One peak a day, four times the night's load. What the policy measures and what is served have noise of their own. */
function day(seed: number, hosting: Hosting): Day {
  const [chance, judged] = [new Chance(seed), new Chance(seed + 1000)];
  const base = Array.from({ length: hosts }, () => chance.uniform(0.1, 0.5));
  const nodes = base.map((cpu, node): Host => ({ node, cpu, cpuP95: cpu, memory: 0.4 }));
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
  /** When gateways that start will serve, and those that finish the requests they have. */
  const readyAt = new Map<string, number>();
  const finishing = new Set<string>();
  let step = -startSteps;
  const shares = new GatewayShares(peakLru);
  const scaler = new GatewayScaler();
  const set = new GatewaySet({
    gatewayShare,
    scaler,
    shares,
    actions: {
      start: (gateway) => readyAt.set(gateway, step + startSteps),
      stopAccepting: (gateway) => finishing.add(gateway),
      stop: (gateway) => {
        readyAt.delete(gateway);
        finishing.delete(gateway);
      },
    },
  });
  const serving = (): string[] =>
    set.list().flatMap(({ id, state }) => (state === 'serving' ? [id] : []));
  const startAtRandom = (count: number): void => {
    for (let i = 0; i < count; i++) set.start(chance.below(hosts));
  };
  const least = Math.ceil(peakLru / 4 / (gatewayLru * usualScaling.target));
  if (hosting === 'random hosts') startAtRandom(least);
  else set.grow(least, nodes);
  const fixed = Math.ceil(peakLru / (gatewayLru * usualScaling.target));
  for (step = 0; step < stepsOfDay; step++) {
    const wave = Math.sin((Math.PI * step) / stepsOfDay) ** 4;
    const load = (of: Chance): number => (peakLru / 4) * (1 + 3 * wave) * (1 + 0.03 * of.normal());
    // The database pods have a day of their own.
    const own = (node: number, of: Chance): number =>
      base[node]! * (1 + 0.4 * wave) * (1 + 0.05 * of.normal());
    const [asked, measured] = [load(judged), load(chance)];
    for (const [gateway, at] of readyAt) {
      if (at > step) continue;
      readyAt.delete(gateway);
      set.serves(gateway);
    }
    // Requests take milliseconds: a step after a gateway was told to drain they are done.
    for (const gateway of [...finishing]) {
      set.report(gateway, { accepts: false, connections: 0, inFlight: 0 });
    }
    const ids = serving();
    const count = ids.length;
    // Clients spread their connections evenly.
    for (const id of ids) {
      set.report(id, { accepts: true, connections: Math.round(asked / count), inFlight: 1 });
    }
    checkShares(shares);
    result.asked += asked;
    result.rejected += Math.max(0, asked - count * gatewayLru);
    result.podSteps += set.list().length;
    result.staticPodSteps += fixed;
    const useOf = (units: number): number => Math.min(1, units / (count * gatewayLru));
    const gateways = new Float64Array(hosts);
    for (const { node, state } of set.list()) if (state === 'serving') gateways[node]!++;
    for (const one of nodes) {
      const seen = own(one.node, chance);
      const borrows = gateways[one.node]! * gatewayShare;
      one.cpu = seen + borrows * useOf(measured);
      if (step % 4 === 0) history[one.node]!.push(seen);
      const used = own(one.node, judged);
      if (borrows === 0) continue;
      alone.push(1 / (1 - Math.min(0.95, used)));
      shared.push(1 / (1 - Math.min(0.95, used + borrows * useOf(asked))));
    }
    if (step % 20 === 0) {
      for (const one of nodes) {
        const lastHour = history[one.node]!.slice(-60).sort((a, b) => a - b);
        one.cpuP95 = lastHour[Math.floor(lastHour.length * 0.95)]!;
      }
      result.counts.push([step / 240, count]);
      result.demand.push([step / 240, asked / gatewayLru]);
    }
    if (hosting === 'nothing') continue;
    const now = step * stepMs;
    const use = measured / (set.count * gatewayLru);
    if (hosting === 'policy') set.adjust(now, use, nodes);
    else {
      const wanted = scaler.desired(now, set.count, use);
      startAtRandom(wanted - set.count);
      while (set.count > wanted && set.drain(chance.pick(serving()), now));
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
    'LRU/s that take 30 s to start, on 60 storage nodes whose database pods have a day of their own. Loads that the policy ' +
    'sees and loads that it is judged on are two draws of the noise. Without: as many gateways as the peak needs, all day. ' +
    'Beside it: as many gateways on hosts at random, and those of the night all day.',
  run({ seeds, progress }) {
    const days = seeds.map((seed) => {
      progress(`seed ${seed}`);
      return day(seed, 'policy');
    });
    const random = seeds.map((seed) => day(seed, 'random hosts'));
    const nothing = seeds.map((seed) => day(seed, 'nothing'));
    const rejects = (of: readonly Day[]): number[] =>
      of.map(({ rejected, asked }) => (100 * rejected) / asked);
    const ratios = (of: readonly Day[]): number[] => of.map(({ hostedRatio }) => hostedRatio);
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
        overSeeds(rejects(days), {
          metric: 'units rejected because gateways were missing, %',
          threshold: 0.1,
          better: 'lower',
        }),
        overSeeds(
          ratios(days),
          {
            metric: 'p99 of the database pods on the hosts, of that without gateways',
            threshold: 1.05,
            better: 'lower',
          },
          days.map(() => 1),
        ),
        overSeeds(
          ratios(days),
          {
            metric: 'the same, beside hosts at random',
            threshold: mean(ratios(random)),
            better: 'lower',
          },
          ratios(random),
        ),
        overSeeds(
          rejects(days),
          {
            metric: 'units rejected, %, beside the gateways of the night all day',
            threshold: mean(rejects(nothing)),
            better: 'lower',
          },
          rejects(nothing),
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
    };
  },
};
