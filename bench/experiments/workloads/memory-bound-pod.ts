// A pod of time series on a small heap, with two tenants. Both write all the time; the first also has dashboards whose
// queries hold memory while they run. All that runs shares one processor. The less of the heap is free, the more
// often it is collected, and a collection takes as long as there is memory in use, while everything stands still.

import { PodQueues, type WorkKind } from '../../../storage-node/admission/pod/pod-queues.ts';
import type { Line } from '../experiment.ts';
import { Chance } from '../sim/chance.ts';

/** Units a second that the pod does while its memory is not short. */
export const podRate = 1000;
const stepMs = 1;
const drainMs = 10;
/** Processor time of a unit, without collections. */
const unitMs = 0.9;
const heapMb = 512;
/** Memory in use under any load: series, and points not yet on disk. */
const baseMb = 160;
/** Garbage that only a full collection finds, by time at work, and how long that takes by memory in use. */
const garbageMbPerMs = 0.1;
const collectMsPerMb = 1;
/** Where no more is free than this, a pod would have died; here it goes on as if that were free. */
const leastFreeMb = 4;

interface Client {
  tenant: 1 | 2;
  kind: WorkKind;
  /** Units, at least and at most. */
  cost: readonly [number, number];
  /** Held at the end of the work; it grows to that evenly. */
  memoryMb: readonly [number, number];
  /** From one request to the next, or until it is answered if that is later. */
  intervalMs: number;
}

interface Piece {
  client: Client;
  next: number;
  arrivedAt: number;
  memoryMb: number;
  /** Milliseconds of processor time. */
  total: number;
  left: number;
  cost: number;
}

interface PodRunOptions {
  queues: boolean;
  seconds: number;
  seed: number;
}

export interface PodRun {
  /** Units of work done a second: of writes, and of queries. */
  written: number;
  queried: number;
  /** Mean of the second tenant, ms. */
  latency: number;
  /** Longest from a query's arrival to its beginning, ms; of those that never began as well. */
  longestWait: number;
  /** Work refused because it had waited too long, or too much waited. */
  refused: number;
  /** Pieces that had to wait. */
  queued: number;
  /** Memory in use by second, MB. */
  memory: Line;
  /** Units done by second. */
  done: Line;
}

const writers = { kind: 'write', memoryMb: [1, 3], intervalMs: 1000 } as const;

function clients(): Client[] {
  const all: Client[] = [];
  for (let i = 0; i < 16; i++) all.push({ ...writers, tenant: 1, cost: [15, 25] });
  for (let i = 0; i < 14; i++) all.push({ ...writers, tenant: 2, cost: [15, 20] });
  // With eight of them the heap is hardly short, and with ten the pod does next to nothing but collect.
  for (let i = 0; i < 9; i++) {
    all.push({
      tenant: 1,
      kind: 'read',
      cost: [100, 300],
      memoryMb: [30, 60],
      intervalMs: 2000,
    });
  }
  all.push({ tenant: 2, kind: 'read', cost: [2, 6], memoryMb: [1, 3], intervalMs: 5000 });
  return all;
}

export function runMemoryBoundPod({ queues: enabled, seconds, seed }: PodRunOptions): PodRun {
  const chance = new Chance(seed);
  const queues = new PodQueues<Piece>({ enabled, podRate }, 0);
  const all = clients();
  /** When each is going to ask again; Infinity while it waits for an answer. */
  const asksAt = all.map(({ intervalMs }) => chance.uniform(0, intervalMs));
  const running: Piece[] = [];
  const end = seconds * 1000;
  const run: PodRun = {
    written: 0,
    queried: 0,
    latency: 0,
    longestWait: 0,
    refused: 0,
    queued: 0,
    memory: { label: 'memory in use', points: [] },
    done: { label: 'done', points: [] },
  };
  const points = { memory: [] as [number, number][], done: [] as [number, number][] };
  let latencies = 0;
  let answers = 0;
  let garbage = 0;
  let collecting = 0;
  let doneInSecond = 0;
  let now = 0;
  const begin = (piece: Piece): void => {
    running.push(piece);
    if (piece.client.kind === 'read') {
      run.longestWait = Math.max(run.longestWait, now - piece.arrivedAt);
    }
  };
  const askAgain = ({ next, arrivedAt, client }: Piece): void => {
    asksAt[next] = Math.max(now, arrivedAt + client.intervalMs * chance.uniform(0.9, 1.1));
  };
  const answer = (piece: Piece): void => {
    const { client, cost, arrivedAt } = piece;
    if (client.kind === 'read') run.queried += cost / seconds;
    else run.written += cost / seconds;
    doneInSecond += cost;
    if (client.tenant === 2) {
      latencies += now - arrivedAt;
      answers++;
    }
    askAgain(piece);
  };
  const refuse = (piece: Piece): void => {
    run.refused++;
    askAgain(piece);
  };
  const ask = (next: number): void => {
    const client = all[next]!;
    const cost = chance.uniform(...client.cost);
    const total = cost * unitMs;
    const memoryMb = chance.uniform(...client.memoryMb);
    const piece = { client, next, arrivedAt: now, memoryMb, total, left: total, cost };
    asksAt[next] = Infinity;
    const placement = queues.offer(client.kind, cost, piece, now);
    if (placement === 'run') begin(piece);
    else if (placement === 'queued') run.queued++;
    else refuse(piece);
  };
  const work = (inUse: number): void => {
    if (collecting > 0) {
      collecting -= stepMs;
      return;
    }
    if (running.length === 0) return;
    const each = stepMs / running.length;
    for (let i = running.length - 1; i >= 0; i--) {
      const piece = running[i]!;
      piece.left -= each;
      if (piece.left > 0) continue;
      running[i] = running[running.length - 1]!;
      running.pop();
      answer(piece);
    }
    garbage += garbageMbPerMs * stepMs;
    if (garbage < Math.max(leastFreeMb, heapMb - inUse)) return;
    garbage = 0;
    collecting = inUse * collectMsPerMb;
  };
  for (; now < end; now += stepMs) {
    for (let next = 0; next < all.length; next++) if (asksAt[next]! <= now) ask(next);
    if (now % drainMs === 0) queues.drain(now, begin, refuse);
    let inUse = baseMb;
    for (const { memoryMb, left, total } of running) inUse += memoryMb * (1 - left / total);
    work(inUse);
    if (now % 1000 !== 0) continue;
    points.memory.push([now / 1000, inUse]);
    points.done.push([now / 1000, doneInSecond]);
    doneInSecond = 0;
  }
  // Requests still waiting have waited until now, at least.
  queues.drain(Infinity, begin, ({ client, arrivedAt }) => {
    if (client.kind === 'read') run.longestWait = Math.max(run.longestWait, end - arrivedAt);
  });
  run.latency = latencies / answers;
  return {
    ...run,
    memory: { label: run.memory.label, points: points.memory },
    done: { label: run.done.label, points: points.done },
  };
}
