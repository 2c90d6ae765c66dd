// One quota over ten servers, in four shapes of traffic, and four ways to keep it: equal shares;
// shares that a scheduler moves; shares by gossip between the servers; and a tracker that counts
// for all, with leases. Demand varies around the quota.

import { GatewayShares } from '../../../access/admission/shares/gateway-shares.ts';
import { GossipShare } from '../baselines/gossip-share.ts';
import { ShareScheduler } from '../../../access/admission/shares/share-scheduler.ts';
import { LeasedQuota, QuotaTracker } from '../baselines/token-leases.ts';
import { TrackerRing } from '../baselines/tracker-ring.ts';
import { TokenBucket } from '../../../request-units/token-bucket.ts';
import type { Line, Measure } from '../experiment.ts';
import { Chance } from '../sim/chance.ts';

export const shapes = ['even', 'connection-skewed', 'multi-balancer', 'moving hotspot'] as const;
type Shape = (typeof shapes)[number];
export const skewedShapes = shapes.filter((shape) => shape !== 'even');
export const variants = ['split', 'scheduler', 'hash', 'gossip'] as const;
export type Variant = (typeof variants)[number];

const servers = 10;
const names = Array.from({ length: servers }, (_, i) => `s${i}`);
/** Requests a second. */
const quota = 5000;
const hotspotSeconds = 60;
/** From a server to the tracker or to another server and back, milliseconds. */
const tripMs = 1;

/** Requests by millisecond and server. */
interface Traffic {
  arrivals: Uint8Array;
  seconds: number;
}

export interface Run {
  /**
   * Sum over seconds of the difference between the units admitted and those one bucket would admit,
   * relative to the latter, %.
   */
  error: number;
  /** The mean over the run, of all kinds. */
  messagesPerSecond: number;
  /** Questions to the tracker in its busiest second. */
  trackerPeak: number;
  /** Milliseconds. */
  p99Added: number;
  admitted: Float64Array;
  allowed: Float64Array;
}

/** Fraction of the traffic that reaches each server. */
function weightsOf(shape: Shape, seconds: number, chance: Chance): (second: number) => number[] {
  const even = names.map(() => 1 / servers);
  if (shape === 'even') return () => even;
  if (shape === 'connection-skewed') {
    // Four clients that keep their connections have nine tenths of it.
    const weights = even.map((weight) => weight * 0.1);
    for (let client = 0; client < 4; client++) weights[chance.below(servers)]! += 0.9 / 4;
    return () => weights;
  }
  if (shape === 'multi-balancer') {
    // Behind three balancers, one of which most clients use.
    const weights = even.map((_, i) => (i < 4 ? 0.85 / 4 : 0.15 / (servers - 4)));
    return () => weights;
  }
  const spots = Array.from({ length: Math.ceil(seconds / hotspotSeconds) }, () => 0);
  for (let i = 1; i < spots.length; i++) {
    spots[i] = (spots[i - 1]! + 1 + chance.below(servers - 1)) % servers;
  }
  const byspot = spots.map((spot) => even.map((_, i) => (i === spot ? 0.8 : 0.2 / (servers - 1))));
  return (second) => byspot[Math.floor(second / hotspotSeconds)]!;
}

function trafficOf(shape: Shape, seconds: number, seed: number): Traffic {
  const chance = new Chance(seed);
  const weightsAt = weightsOf(shape, seconds, chance);
  const arrivals = new Uint8Array(seconds * 1000 * servers);
  for (let second = 0; second < seconds; second++) {
    // From four fifths of the quota to six, and back in forty seconds.
    const wave = 1 + 0.2 * Math.sin((2 * Math.PI * second) / 40);
    const asked = quota * wave * chance.uniform(0.97, 1.03);
    const weights = weightsAt(second);
    const none = weights.map((weight) => Math.exp((-asked * weight) / 1000));
    for (let ms = second * 1000; ms < second * 1000 + 1000; ms++) {
      for (let s = 0; s < servers; s++) {
        let count = 0;
        for (let p = chance.next(); p > none[s]!; p *= chance.next()) count++;
        arrivals[ms * servers + s] = count;
      }
    }
  }
  return { arrivals, seconds };
}

/** Requests admitted by one bucket for all servers, by second. */
function allowedOf({ arrivals, seconds }: Traffic, limit: number): Float64Array {
  const bucket = new TokenBucket(limit, limit, 0);
  const allowed = new Float64Array(seconds);
  for (let ms = 0; ms < seconds * 1000; ms++) {
    let asked = 0;
    for (let s = 0; s < servers; s++) asked += arrivals[ms * servers + s]!;
    const second = Math.floor(ms / 1000);
    allowed[second]! += Math.floor(bucket.takeSome(asked, ms));
  }
  return allowed;
}

/** Each server admits by a bucket of its share. */
function runShares(traffic: Traffic, variant: Exclude<Variant, 'hash'>): Run {
  const { arrivals, seconds } = traffic;
  const shares = new GatewayShares(quota, names);
  const scheduler = new ShareScheduler(shares);
  const gossips = names.map(
    (name) =>
      new GossipShare(
        quota,
        names.filter((other) => other !== name),
        0,
      ),
  );
  const buckets = names.map((name) => new TokenBucket(shares.of(name), shares.of(name), 0));
  const used = new Float64Array(servers);
  const asked = new Float64Array(servers);
  const admitted = new Float64Array(seconds);
  let messages = 0;
  for (let ms = 0; ms < seconds * 1000; ms++) {
    const second = Math.floor(ms / 1000);
    for (let s = 0; s < servers; s++) {
      const count = arrivals[ms * servers + s]!;
      asked[s]! += count;
      if (variant === 'gossip') gossips[s]!.observe(count);
      for (let n = 0; n < count; n++) if (buckets[s]!.take(1, ms)) used[s]!++;
      // Servers tell each other at moments of their own.
      if (variant !== 'gossip' || ms % 1000 !== s * 97) continue;
      const rate = gossips[s]!.endPeriod(ms);
      for (let o = 0; o < servers; o++) {
        if (o === s) continue;
        messages++;
        gossips[o]!.receive(names[s]!, rate, ms);
        buckets[o]!.reshape(gossips[o]!.share(), gossips[o]!.share(), ms);
      }
      buckets[s]!.reshape(gossips[s]!.share(), gossips[s]!.share(), ms);
    }
    if (ms % 1000 !== 999) continue;
    admitted[second] = used.reduce((sum, value) => sum + value, 0);
    if (variant === 'scheduler') {
      names.forEach((name, s) => scheduler.report(name, used[s]!, asked[s]! - used[s]!, ms + 1));
      scheduler.reassign(ms + 1);
      names.forEach((name, s) => buckets[s]!.reshape(shares.of(name), shares.of(name), ms + 1));
      messages += 2 * servers;
    }
    used.fill(0);
    asked.fill(0);
  }
  return told(traffic, quota, admitted, { messages, trackerPeak: 0, p99Added: 0 });
}

interface LeasingServer {
  quota: LeasedQuota;
  tracker: QuotaTracker;
  /** When those came that wait for an answer, from `head` on. */
  waiting: number[];
  head: number;
  answerAt: number;
  granted: number;
  refusedMs: number;
  leaseMs: number;
}

/** Asks trackers for tokens, of which the key's is one of three. */
function runTracker(traffic: Traffic, limit: number, leaseAbove: number): Run {
  const { arrivals, seconds } = traffic;
  const trackers = new Map(
    ['t1', 't2', 't3'].map((name) => [name, new QuotaTracker(limit, 0, { leaseAbove })] as const),
  );
  const tracker = trackers.get(new TrackerRing(trackers.keys()).ownerOf(4711)!)!;
  const sides = names.map(
    (): LeasingServer => ({
      quota: new LeasedQuota(0),
      tracker,
      waiting: [],
      head: 0,
      answerAt: Infinity,
      granted: 0,
      refusedMs: 0,
      leaseMs: 0,
    }),
  );
  const admitted = new Float64Array(seconds);
  const asks = new Uint32Array(seconds * 1000);
  // By millisecond of delay.
  const added = new Float64Array(1000);
  for (let ms = 0; ms < seconds * 1000; ms++) {
    const second = Math.floor(ms / 1000);
    for (let s = 0; s < servers; s++) {
      const side = sides[s]!;
      if (ms >= side.answerAt) {
        side.answerAt = Infinity;
        side.quota.answer(side.granted, side.refusedMs, side.leaseMs, ms);
        for (; side.head < side.waiting.length; side.head++) {
          const decision = side.quota.decideAgain(1, ms);
          if (decision === 'wait') break;
          added[Math.min(999, ms - side.waiting[side.head]!)]!++;
          if (decision === 'yes') admitted[second]!++;
        }
        if (side.head === side.waiting.length) {
          side.waiting.length = 0;
          side.head = 0;
        }
        asks[ms]! += ask(side, s, ms);
      }
      for (let n = arrivals[ms * servers + s]!; n > 0; n--) {
        const decision = side.quota.decide(1, ms);
        if (decision === 'wait') side.waiting.push(ms);
        else added[0]!++;
        if (decision === 'yes') admitted[second]!++;
        asks[ms]! += ask(side, s, ms);
      }
    }
  }
  return told(traffic, limit, admitted, {
    messages: 2 * asks.reduce((sum, value) => sum + value, 0),
    trackerPeak: mostInSecond(asks),
    p99Added: quantile(added, 0.99),
  });
}

/** 1 if the server has a question for the tracker now. */
function ask(side: LeasingServer, server: number, ms: number): number {
  const wanted = side.quota.ask(ms);
  if (wanted === 0) return 0;
  const { tracker } = side;
  side.granted = tracker.ask(names[server]!, wanted, side.quota.seen, ms + tripMs / 2);
  side.refusedMs = tracker.refusedMs;
  side.leaseMs = tracker.leaseMs;
  side.answerAt = ms + tripMs;
  return 1;
}

function mostInSecond(perMs: Uint32Array): number {
  let sum = 0;
  let most = 0;
  for (let ms = 0; ms < perMs.length; ms++) {
    sum += perMs[ms]! - (ms >= 1000 ? perMs[ms - 1000]! : 0);
    most = Math.max(most, sum);
  }
  return most;
}

function quantile(counts: Float64Array, q: number): number {
  const all = counts.reduce((sum, value) => sum + value, 0);
  let below = 0;
  return counts.findIndex((count) => (below += count) >= q * all);
}

function told(
  traffic: Traffic,
  limit: number,
  admitted: Float64Array,
  more: { messages: number; trackerPeak: number; p99Added: number },
): Run {
  const allowed = allowedOf(traffic, limit);
  let off = 0;
  let sum = 0;
  for (let second = 0; second < allowed.length; second++) {
    off += Math.abs(admitted[second]! - allowed[second]!);
    sum += allowed[second]!;
  }
  const { messages, trackerPeak, p99Added } = more;
  const messagesPerSecond = messages / traffic.seconds;
  return { error: (100 * off) / sum, messagesPerSecond, trackerPeak, p99Added, admitted, allowed };
}

// The three experiments have the same table, of which each looks at other rows.
const known = new Map<string, Record<Variant, Run>>();

/** All variants on the same traffic. */
export function runVariants(
  shape: Shape,
  { quick, seed }: { quick: boolean; seed: number },
): Record<Variant, Run> {
  const id = `${shape} ${quick} ${seed}`;
  let runs = known.get(id);
  if (runs === undefined) {
    const traffic = trafficOf(shape, quick ? 120 : 240, seed);
    runs = {
      split: runShares(traffic, 'split'),
      scheduler: runShares(traffic, 'scheduler'),
      gossip: runShares(traffic, 'gossip'),
      hash: runTracker(traffic, quota, 1000),
    };
    known.set(id, runs);
  }
  return runs;
}

/** A key of 50,000 a second that comes from nowhere, with a quota of four fifths of that. */
export function runFastKey(seed: number, leaseAbove: number): Run {
  const chance = new Chance(seed);
  const seconds = 10;
  const arrivals = new Uint8Array(seconds * 1000 * servers);
  const none = Math.exp(-50_000 / 1000 / servers);
  for (let i = 0; i < arrivals.length; i++) {
    let count = 0;
    for (let p = chance.next(); p > none; p *= chance.next()) count++;
    arrivals[i] = count;
  }
  return runTracker({ arrivals, seconds }, 40_000, leaseAbove);
}

export function meanOf(
  shape: Shape,
  variant: Variant,
  of: 'error' | 'messagesPerSecond' | 'p99Added',
  { quick, seeds }: { quick: boolean; seeds: readonly number[] },
): number {
  const sum = seeds.reduce(
    (all, seed) => all + runVariants(shape, { quick, seed })[variant][of],
    0,
  );
  return sum / seeds.length;
}

/** How far off a variant is in each shape, beside equal shares. */
export function errorMeasures(
  variant: Variant,
  some: readonly Shape[],
  context: { quick: boolean; seeds: readonly number[] },
): Measure[] {
  return some.map((shape) => ({
    metric: `${shape}, ${variant}: admitted off what is allowed, %`,
    value: meanOf(shape, variant, 'error', context),
    threshold: 5,
    better: 'lower',
    ...(variant !== 'split' && { without: meanOf(shape, 'split', 'error', context) }),
  }));
}

export function admittedLines({ admitted, allowed }: Run): Line[] {
  const line = (label: string, values: Float64Array): Line => ({
    label,
    points: Array.from(values, (value, second): [number, number] => [second, value]),
  });
  return [line('allowed', allowed), line('admitted', admitted)];
}
