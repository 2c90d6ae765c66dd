// X-Stor: faults of pods, found by collectors, by gateways, and by both.

import {
  type DetectorOptions,
  FaultDetector,
  type Probe,
} from '../../control/detection/fault-detector.ts';
import type { Experiment } from './experiment.ts';
import { overSeeds } from './over-seeds.ts';
import { Chance } from './sim/chance.ts';

const kinds = ['crash', 'hang', 'slow disk', 'one-way cut', 'corrupt reads'] as const;
type Fault = (typeof kinds)[number];

/** Share of probes and of gateways' reports that something else disturbs. */
const noise = 0.03;
/** Fraction of idle pods; the others serve 5 to 500 requests a second. */
const idleShare = 0.3;
const tickMs = 1000;
const timeoutMs = 500;
/** Share of a pod's rows that a fault corrupts, and rows that a probe reads. */
const corruptRows = 0.05;
const rowsOfProbe = 16;

interface Pod {
  /** Requests a second. */
  rate: number;
  /** Milliseconds of a probe, and the 99th percentile of requests, when all is well. */
  probeMs: number;
  requestMs: number;
  /** Share of requests that read the disk. */
  diskShare: number;
}

function newPod(chance: Chance): Pod {
  return {
    rate: chance.happens(idleShare) ? 0 : Math.exp(chance.uniform(Math.log(5), Math.log(500))),
    probeMs: chance.uniform(0.5, 2),
    requestMs: chance.uniform(1, 5),
    diskShare: chance.uniform(0.05, 0.6),
  };
}

/** Result of a probe by the pod's own node, or by another. */
function probe(pod: Pod, fault: Fault | undefined, chance: Chance, isLocal: boolean): Probe {
  const latencyMs = pod.probeMs * chance.lognormal(0, 0.2);
  if (chance.happens(noise)) {
    // A pause, or a connection that is lost.
    return chance.happens(0.5) ? { ok: true, latencyMs: latencyMs * 20 } : { ok: false, latencyMs };
  }
  if (fault === 'crash' || fault === 'hang') return { ok: false, latencyMs: timeoutMs };
  // Replies do not leave the node.
  if (fault === 'one-way cut' && !isLocal) return { ok: false, latencyMs: timeoutMs };
  // A probe writes, and that is on the disk.
  if (fault === 'slow disk') return { ok: true, latencyMs: latencyMs * 10 };
  if (fault === 'corrupt reads') {
    // Random rows; others are asked to read the row in question.
    const isFound = chance.happens(isLocal ? 1 - (1 - corruptRows) ** rowsOfProbe : 0.95);
    return { ok: !isFound, isCorrupt: isFound, latencyMs };
  }
  return { ok: true, latencyMs };
}

/** One second of one pod. */
function tick(
  detector: FaultDetector,
  n: number,
  pod: Pod,
  fault: Fault | undefined,
  chance: Chance,
  now: number,
): void {
  detector.probed(n, probe(pod, fault, chance, true), now);
  // Gateways keep a connection to an idle pod alive, which says nothing of its disk.
  const isIdle = pod.rate === 0;
  const requests = isIdle ? 1 : Math.max(1, Math.round(pod.rate * chance.lognormal(0, 0.2)));
  let errors = 0;
  let corrupt = 0;
  let p99Ms = pod.requestMs * chance.lognormal(0, 0.15);
  if (chance.happens(noise)) {
    if (chance.happens(0.5)) p99Ms *= 20;
    else errors = Math.ceil(requests * chance.uniform(0, 0.5));
  }
  if (fault === 'crash' || fault === 'hang' || fault === 'one-way cut') errors = requests;
  else if (fault === 'slow disk' && !isIdle) p99Ms *= 10;
  else if (fault === 'corrupt reads' && !isIdle) {
    for (let i = 0; i < requests; i++) if (chance.happens(corruptRows * pod.diskShare)) corrupt++;
    errors = Math.min(requests, errors + corrupt);
  }
  detector.served(n, { requests, errors, corrupt, p99Ms }, now);
}

/** Asks three other nodes, which probe twice each. */
function confirm(
  detector: FaultDetector,
  n: number,
  pod: Pod,
  fault: Fault | undefined,
  chance: Chance,
  now: number,
): boolean {
  const probes = Array.from({ length: 3 }, () => [
    probe(pod, fault, chance, false),
    probe(pod, fault, chance, false),
  ]);
  return detector.confirmed(n, probes, now);
}

interface Found {
  /** Milliseconds to detection, by fault; Infinity: never. */
  times: number[];
  byKind: Map<Fault, number[]>;
}

/** Two hundred faults, each on a pod of its own that was well for a minute. */
function inject(seed: number, options: DetectorOptions): Found {
  const chance = new Chance(seed);
  const found: Found = { times: [], byKind: new Map(kinds.map((kind) => [kind, []])) };
  for (let i = 0; i < 200; i++) {
    const fault = kinds[i % kinds.length]!;
    const detector = new FaultDetector(options);
    const pod = newPod(chance);
    let time = Infinity;
    const beginsAt = 60_000 + chance.uniform(0, tickMs);
    for (let now = 0; now < 90_000 && time === Infinity; now += tickMs) {
      const current = now >= beginsAt ? fault : undefined;
      tick(detector, 0, pod, current, chance, now);
      for (const { pod: n } of detector.due(now)) {
        const isFault = confirm(detector, n, pod, current, chance, now);
        // The confirming probes take time themselves.
        if (isFault && current !== undefined) time = now - beginsAt + 2 * timeoutMs;
      }
    }
    found.times.push(time);
    found.byKind.get(fault)!.push(time);
  }
  return found;
}

/** Healthy pods for a day: how many are found to be at fault. */
function falsePositives(seed: number, pods: number, seconds: number): number {
  const chance = new Chance(seed + 1000);
  const detector = new FaultDetector();
  const all = Array.from({ length: pods }, () => newPod(chance));
  let count = 0;
  for (let second = 0; second < seconds; second++) {
    const now = second * tickMs;
    all.forEach((pod, n) => tick(detector, n, pod, undefined, chance, now));
    for (const { pod } of detector.due(now)) {
      if (confirm(detector, pod, all[pod]!, undefined, chance, now)) count++;
    }
  }
  return (count * 86_400) / seconds;
}

function recall(times: readonly number[]): number {
  return (100 * times.filter((time) => time <= 30_000).length) / times.length;
}

function p99(times: readonly number[]): number {
  const sorted = [...times].sort((a, b) => a - b);
  return sorted[Math.ceil(sorted.length * 0.99) - 1]! / 1000;
}

export const faultDetection: Experiment = {
  id: 'XS-7-detect',
  title: 'Faults found by probes and by real requests',
  kind: 'SIM',
  source: 'X-Stor, section 7, which gives no figures',
  setup:
    '200 faults of five kinds, each on a pod of its own; three pods in ten are idle but for the keep-alives of gateways. 3 % of probes and of reports of gateways ' +
    'are disturbed by something else. A probe reads 16 rows; corruption has 5 % of them. A suspicion is confirmed by three other nodes with two probes each. False positives: ' +
    'thirty healthy pods for a day.',
  run({ seeds, quick, progress }) {
    const both = seeds.map((seed) => inject(seed, {}));
    const active = seeds.map((seed) => inject(seed, { passive: false }));
    const passive = seeds.map((seed) => inject(seed, { active: false }));
    const recalls = (all: readonly Found[]): number[] => all.map(({ times }) => recall(times));
    const wrong = seeds.slice(0, quick ? 1 : seeds.length).map((seed) => {
      progress(`a day of healthy pods, seed ${seed}`);
      return falsePositives(seed, 30, 86_400);
    });
    const curve = (all: Found): [number, number][] =>
      Array.from({ length: 61 }, (_, i) => [
        i / 4,
        (100 * all.times.filter((time) => time <= i * 250).length) / all.times.length,
      ]);
    return {
      measures: [
        overSeeds(recalls(both), { metric: 'faults found, %', threshold: 99, better: 'higher' }),
        overSeeds(
          recalls(both).map((value, i) => value - recalls(active)[i]!),
          {
            metric: 'points more than by probes alone; without: found by these, %',
            threshold: 10,
            better: 'higher',
          },
          recalls(active),
        ),
        overSeeds(
          recalls(both).map((value, i) => value - recalls(passive)[i]!),
          {
            metric: 'points more than by requests alone; without: found by these, %',
            threshold: 10,
            better: 'higher',
          },
          recalls(passive),
        ),
        overSeeds(
          both.map(({ times }) => p99(times)),
          { metric: 'p99 of the time to detection, s', threshold: 5, better: 'lower' },
        ),
        overSeeds(wrong, {
          metric: 'false positives a day of 30 pods',
          threshold: 1,
          better: 'lower',
        }),
      ],
      xLabel: 'seconds after the fault',
      yLabel: 'found, %',
      before: {
        title: 'one half alone',
        lines: [
          { label: 'probes', points: curve(active[0]!) },
          { label: 'requests', points: curve(passive[0]!) },
        ],
      },
      after: { title: 'both', lines: [{ label: 'both', points: curve(both[0]!) }] },
    };
  },
};
