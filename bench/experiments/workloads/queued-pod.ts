// A pod with the queues of storage-node/admission before its processor and its disk. Requests of several sources take a
// slot for as long as the processor needs for them, and then, if the cache does not have it, a worker for so many reads
// of the disk, one after the other.

import { CpuSlots } from '../baselines/cpu-slots.ts';
import {
  DualQueues,
  type DualQueuesOptions,
  type PodWork,
  type WriteGate,
} from '../baselines/dual-queues.ts';
import type { Placed } from '../../../storage-node/admission/tenant-queue.ts';
import { WorkKind } from '../../../storage-node/admission/work-kind.ts';
import { Chance } from '../sim/chance.ts';
import { Simulation } from '../sim/simulation.ts';

/** What a request is, before it has come. */
export interface Shape {
  kind: WorkKind;
  /** Units. */
  cost: number;
  /** In a slot, ms. */
  cpuMs: number;
  /** Of a write, for the store. */
  bytes?: number;
  /** Reads of the disk; none if the cache has it. */
  operations?: number;
}

export interface Source {
  tenant: number;
  quota: number;
  /** Requests a millisecond, at random, at a time in ms; or how many are always under way. */
  load: ((now: number) => number) | { backlog: number };
  make: (chance: Chance) => Shape;
}

export interface QueuedPodOptions {
  slots: number;
  queues?: Partial<DualQueuesOptions>;
  gate?: WriteGate;
  sources: readonly Source[];
  /** One read of the disk, ms, give or take a fifth. */
  operationMs?: number;
  /**
   * A request keeps its slot until it has been read from the disk: what a single queue before a pool of threads
   * comes to.
   */
  singleLayer?: boolean;
  seconds: number;
  /** Requests that come earlier are not counted. */
  warmMs?: number;
  seed: number;
}

export interface SourceRun {
  /** Arrival to answer, ms, of what was answered or still waits at the end: as long as it has waited. */
  latencies: number[];
  /** The same by whether the disk was read. */
  hits: number[];
  /** From asking for a worker to having one, ms. */
  readWaits: number[];
  served: number;
  /** Reads of the disk that were done. */
  operations: number;
  /** Time in slots, ms. */
  slotMs: number;
  /** p99 of latencies by second of arrival comes from these. */
  bySecond: number[][];
}

class Request implements PodWork {
  readonly kind: WorkKind;
  readonly cost: number;
  readonly bytes: number;
  readonly operations: number;
  readonly cpuMs: number;
  readonly tenant: number;
  readonly source: number;
  readonly arrivedAt: number;
  readonly deadline = Infinity;
  startedAt: number;
  priority = 0;
  holdsLocks = false;
  ticket: Placed | undefined = undefined;
  readAskedAt = 0;

  constructor(shape: Shape, tenant: number, source: number, now: number) {
    this.kind = shape.kind;
    this.cost = shape.cost;
    this.cpuMs = shape.cpuMs;
    this.bytes = shape.bytes ?? 0;
    this.operations = shape.operations ?? 0;
    this.tenant = tenant;
    this.source = source;
    this.arrivedAt = now;
    this.startedAt = now;
  }
}

/** A fixed number of slots. */
export function fixedSlots(slots: number): CpuSlots {
  return new CpuSlots({ cores: 1, startPerCore: slots, maxPerCore: slots });
}

export function runQueuedPod(options: QueuedPodOptions): SourceRun[] {
  const { sources, operationMs = 0, singleLayer = false, seconds, warmMs = 1000 } = options;
  const end = seconds * 1000;
  const simulation = new Simulation();
  const chance = new Chance(options.seed);
  const queues = new DualQueues<Request>(
    { slots: fixedSlots(options.slots), overload: 'fifo', ...options.queues },
    options.gate,
    () => {},
    0,
  );
  for (const { tenant, quota } of sources) queues.setTenant(tenant, quota);
  const outstanding = new Set<Request>();
  const runs = sources.map(
    (): SourceRun => ({
      latencies: [],
      hits: [],
      readWaits: [],
      served: 0,
      operations: 0,
      slotMs: 0,
      bySecond: Array.from({ length: seconds }, () => []),
    }),
  );

  const note = (request: Request, now: number): void => {
    if (request.arrivedAt < warmMs) return;
    const run = runs[request.source]!;
    const took = now - request.arrivedAt;
    run.latencies.push(took);
    if (request.operations === 0) run.hits.push(took);
    run.bySecond[Math.floor(request.arrivedAt / 1000)]?.push(took);
  };
  const pump = (): void => {
    const now = simulation.now();
    for (let next = queues.next(now); next !== undefined; next = queues.next(now)) compute(next);
  };
  const pumpReads = (): void => {
    const now = simulation.now();
    for (let next = queues.nextRead(now); next !== undefined; next = queues.nextRead(now)) {
      read(next);
    }
  };
  const readTime = ({ operations }: Request): number => {
    let time = 0;
    for (let n = 0; n < operations; n++) time += operationMs * chance.uniform(0.8, 1.2);
    return time;
  };
  const compute = (request: Request): void => {
    const time = request.cpuMs * chance.uniform(0.8, 1.2) + (singleLayer ? readTime(request) : 0);
    simulation.after(time, () => {
      const now = simulation.now();
      const { kind, tenant, cost, operations } = request;
      if (now >= warmMs) runs[request.source]!.slotMs += time;
      queues.leave(kind, tenant, cost, now);
      pump();
      if (operations === 0 || singleLayer) {
        done(request);
        return;
      }
      request.readAskedAt = now;
      if (queues.tryRead(kind, tenant, cost, operations, now)) read(request);
      else {
        queues.waitRead(request, now);
        pumpReads();
      }
    });
  };
  const read = (request: Request): void => {
    const run = runs[request.source]!;
    if (request.arrivedAt >= warmMs) run.readWaits.push(simulation.now() - request.readAskedAt);
    simulation.after(readTime(request), () => {
      const now = simulation.now();
      if (now >= warmMs) run.operations += request.operations;
      queues.leaveRead(request.kind, request.tenant, now);
      pumpReads();
      done(request);
    });
  };
  const done = (request: Request): void => {
    outstanding.delete(request);
    runs[request.source]!.served++;
    note(request, simulation.now());
    if (typeof sources[request.source]!.load !== 'function') arrive(request.source);
  };
  const arrive = (source: number): void => {
    const now = simulation.now();
    const { tenant, make } = sources[source]!;
    const request = new Request(make(chance), tenant, source, now);
    outstanding.add(request);
    if (queues.tryEnter(request.kind, tenant, request.cost, request.bytes, now)) compute(request);
    else {
      queues.wait(request, now);
      pump();
    }
  };
  sources.forEach(({ load }, source) => {
    if (typeof load !== 'function') {
      for (let n = 0; n < load.backlog; n++) arrive(source);
      return;
    }
    const generate = (): void => {
      simulation.after(chance.exponential(load(simulation.now())), () => {
        arrive(source);
        generate();
      });
    };
    generate();
  });
  simulation.every(1, () => {
    pump();
    pumpReads();
  });
  simulation.runUntil(end);
  for (const request of outstanding) note(request, end);
  return runs;
}
