// A tenant that was idle demands its full share of a pod at once, while others use all that they can get.

import { FairQueue } from '../../../storage-node/admission/fair-queue.ts';
import { PodBuckets } from '../../../storage-node/admission/pod/pod-buckets.ts';
import type { Line } from '../experiment.ts';
import { Chance } from '../sim/chance.ts';
import { Simulation } from '../sim/simulation.ts';

/** Units a second; a request is one. */
const podRate = 500;
/** Requests that are worked on side by side. */
const slots = 8;
const serviceMs = (slots * 1000) / podRate;
const borrowers = [1, 2, 3];
const owner = 0;
const idleMs = 2000;
const demandMs = 1000;
/** A request that was refused, or is not served, counts as this late. */
const latestMs = 2000;

/**
 * `borrowing`: the pod's buckets, fair order. `hard`: a tenant has its own bucket only. `chance`: as `borrowing`, with
 * the next of the queue drawn at random. `none`: no buckets, arrival order.
 */
export type Sharing = 'borrowing' | 'hard' | 'chance' | 'none';

export interface ReclaimRun {
  /** For each demand: milliseconds by which the latest request was later than its service takes. */
  delays: number[];
  /** Use of the pod's capacity, %. */
  use: number;
  /** Units a second that the owner is served, by tenths of seconds. */
  owner: Line;
}

interface Request {
  tenant: number;
  at: number;
  demand: number;
}

/** Each demand is for a share of 10 to 50 % of the pod; the three others share the rest and offer twice the pod. */
export function runReclaim(sharing: Sharing, demands: number, seed: number): ReclaimRun {
  const simulation = new Simulation();
  const chance = new Chance(seed);
  const buckets = new PodBuckets({ podRate }, 0);
  const queue = new FairQueue<Request>();
  const waiting: Request[] = [];
  const delays = Array.from({ length: demands }, () => 0);
  const end = demands * (idleMs + demandMs);
  const servedByTenth = new Float64Array(Math.ceil(end / 100));
  let [busy, served] = [0, 0];

  const nextOf = (): Request | undefined => {
    if (sharing === 'none') return waiting.shift();
    if (sharing !== 'chance') return queue.pop();
    const at = chance.below(Math.max(1, waiting.length));
    const drawn = waiting[at];
    const last = waiting.pop();
    if (at < waiting.length) waiting[at] = last!;
    return drawn;
  };
  const serve = (): void => {
    while (busy < slots) {
      const next = nextOf();
      if (next === undefined) return;
      busy++;
      simulation.after(serviceMs, () => {
        busy--;
        served++;
        if (next.tenant === owner) answered(next);
        serve();
      });
    }
  };
  const answered = ({ demand, at }: Request): void => {
    const now = simulation.now();
    const tenth = Math.floor(now / 100);
    if (tenth < servedByTenth.length) servedByTenth[tenth]! += 10;
    note(demand, now - at - serviceMs);
  };
  const note = (demand: number, delay: number): void => {
    delays[demand] = Math.max(delays[demand]!, Math.min(latestMs, delay));
  };
  const mayEnter = (tenant: number, now: number): boolean => {
    if (sharing === 'none') return waiting.length < 10 * podRate;
    // A pod's bucket that lends nothing: requests beyond the tenant's own share are refused.
    if (sharing === 'hard' && !buckets.isWithin(tenant, 0, now)) return false;
    if (!buckets.mayBegin(tenant, now)) return false;
    buckets.charge(tenant, 1, now);
    return true;
  };
  const arrive = (tenant: number, demand: number): void => {
    const at = simulation.now();
    if (!mayEnter(tenant, at)) {
      if (tenant === owner) note(demand, latestMs);
      return;
    }
    const request = { tenant, at, demand };
    if (sharing === 'none' || sharing === 'chance') waiting.push(request);
    else queue.push(tenant, 1, request);
    serve();
  };
  const setShares = (share: number): void => {
    const now = simulation.now();
    for (const tenant of [owner, ...borrowers]) {
      const part = tenant === owner ? share : (1 - share) / borrowers.length;
      buckets.setTenant(tenant, part * podRate, now);
      queue.setWeight(tenant, part);
    }
  };
  const borrow = (tenant: number): void => {
    simulation.after(chance.exponential((2 * podRate) / borrowers.length / 1000), () => {
      arrive(tenant, 0);
      borrow(tenant);
    });
  };
  setShares(0.5);
  for (const tenant of borrowers) borrow(tenant);
  const demanded: { at: number; share: number }[] = [];
  for (let demand = 0; demand < demands; demand++) {
    const share = chance.uniform(0.1, 0.5);
    const from = demand * (idleMs + demandMs) + idleMs + chance.uniform(-100, 0);
    demanded.push({ at: from, share });
    simulation.at(from - idleMs / 2, () => setShares(share));
    const gap = 1000 / (share * podRate);
    for (let number = 0; number < Math.floor(demandMs / gap); number++) {
      simulation.at(from + (number + chance.uniform(0, 0.5)) * gap, () => arrive(owner, demand));
    }
  }
  simulation.runUntil(end + latestMs);
  // Requests still waiting have waited until now.
  for (const { tenant, demand, at } of waiting) {
    if (tenant === owner) note(demand, simulation.now() - at);
  }
  return {
    delays,
    use: (100 * served * 1000) / podRate / simulation.now(),
    owner: {
      label: 'the owner',
      points: Array.from(servedByTenth.subarray(0, 120), (rate, tenth) => [tenth / 10, rate]),
    },
  };
}
