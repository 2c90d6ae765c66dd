import { DualQueues, type PodWork } from './baselines/dual-queues.ts';
import type { Placed } from '../../storage-node/admission/tenant-queue.ts';
import { WorkKind } from '../../storage-node/admission/work-kind.ts';
import { mean, percentile } from '../support/statistics.ts';
import type { Experiment, Line } from './experiment.ts';
import { Chance } from './sim/chance.ts';

/** Units of writes a millisecond that the disk takes when it does nothing else. */
const diskRate = 4;
const largestWrite = 7;
const meanWrite = 4;
const clients = 64;
/** Between the writes of a client that sends them whatever becomes of the last, ms. */
const probeMs = 5;
/** Of what is written, what is to be compacted later; compaction has the share of one write under way. */
const compactedShare = 0.15;
/** What waits for compaction when it begins and ends, when the store stops writes and lets them on; units. */
const debtAt = { begin: 2800, end: 400, stop: 8000, resume: 3200 };
/** Seconds count from then on; answers do earlier, as without limits it is never calm again. */
const warmMs = 10_000;
const firstAnswersMs = 500;
const stepMs = 5;

class Write implements PodWork {
  readonly kind = WorkKind.smallWrite;
  readonly tenant = 1;
  readonly operations = 0;
  readonly bytes = 0;
  readonly deadline = Infinity;
  readonly cost: number;
  readonly arrivedAt: number;
  /** It came while the store compacted. */
  readonly inCompaction: boolean;
  readonly isProbe: boolean;
  priority = 0;
  startedAt: number;
  holdsLocks = false;
  ticket: Placed | undefined = undefined;
  /** Units yet to be written. */
  left: number;

  constructor(cost: number, now: number, inCompaction: boolean, isProbe: boolean) {
    this.cost = cost;
    this.left = cost;
    this.arrivedAt = now;
    this.startedAt = now;
    this.inCompaction = inCompaction;
    this.isProbe = isProbe;
  }
}

interface Run {
  calm: number[];
  compacting: number[];
  /** Units written, by second. */
  written: Float64Array;
}

/** Writes under way and compaction share the disk alike; what the store owes grows with what is written. */
class Store {
  readonly active: Write[] = [];
  isCompacting = false;
  #isStopped = false;
  #debt = 0;

  /** Milliseconds until the next write is done. */
  get next(): number {
    if (this.#isStopped) return Infinity;
    let least = Infinity;
    for (const { left } of this.active) if (left < least) least = left;
    return (least * (this.active.length + (this.isCompacting ? 1 : 0))) / diskRate;
  }

  pass(ms: number): void {
    const writes = this.#isStopped ? 0 : this.active.length;
    const all = writes + (this.isCompacting ? 1 : 0);
    if (all === 0) return;
    const each = (diskRate * ms) / all;
    if (writes > 0) for (const write of this.active) write.left -= each;
    this.#debt += compactedShare * each * writes - (this.isCompacting ? each : 0);
    if (this.#debt >= debtAt.stop) this.#isStopped = true;
    else if (this.#debt <= debtAt.resume) this.#isStopped = false;
    if (this.#debt >= debtAt.begin) this.isCompacting = true;
    else if (this.#debt <= debtAt.end) this.isCompacting = false;
  }
}

function run(limited: boolean, seconds: number, seed: number): Run {
  const chance = new Chance(seed);
  const store = new Store();
  const queues = new DualQueues<Write>(
    {
      slots: false,
      tenantCap: false,
      overload: 'fifo',
      limits: limited && { writeUnitsPerCore: 8 * meanWrite },
    },
    undefined,
    () => {},
    0,
  );
  queues.setTenant(1, 1);
  const result: Run = { calm: [], compacting: [], written: new Float64Array(seconds) };
  let now = 0;
  const send = (isProbe: boolean): void => {
    const cost = 1 + chance.below(largestWrite);
    const write = new Write(cost, now, store.isCompacting, isProbe);
    if (queues.tryEnter(write.kind, 1, cost, 0, now)) store.active.push(write);
    else queues.wait(write, now);
  };
  const begin = (): void => {
    for (let next = queues.next(now); next !== undefined; next = queues.next(now)) {
      store.active.push(next);
    }
  };
  const finish = (): void => {
    for (let i = store.active.length - 1; i >= 0; i--) {
      const write = store.active[i]!;
      if (write.left > 1e-9) continue;
      store.active.splice(i, 1);
      queues.leave(write.kind, 1, write.cost, now);
      result.written[Math.floor(now / 1000)]! += write.cost;
      if (write.isProbe) {
        const to = write.inCompaction ? result.compacting : result.calm;
        if (write.arrivedAt >= firstAnswersMs) to.push(now - write.arrivedAt);
      } else send(false);
    }
  };
  for (let n = 0; n < clients; n++) send(false);
  for (let probeAt = 0; now < seconds * 1000 - stepMs; ) {
    const ms = Math.min(store.next, stepMs, probeAt - now);
    store.pass(ms);
    now += ms;
    queues.setCompacting(store.isCompacting);
    finish();
    if (now >= probeAt) {
      probeAt += probeMs;
      send(true);
    }
    begin();
  }
  return result;
}

/** From the least to the most written in a second, over the mean. */
function swing({ written }: Run): number {
  const counted = [...written.subarray(warmMs / 1000, -1)];
  return (Math.max(...counted) - Math.min(...counted)) / mean(counted);
}

function line({ written }: Run): Line {
  return {
    label: 'written',
    points: Array.from(written.subarray(0, -1), (units, second): [number, number] => [
      second,
      units,
    ]),
  };
}

export const writeCeiling: Experiment = {
  id: 'AB-4.3-r2',
  title: 'A ceiling for writes under way, lowered during compaction',
  kind: 'SIM',
  source: 'ABase, section 4.3, rule 2',
  setup:
    'A model of a store, no real one: writes under way and compaction share its disk alike, 15 % of what is written is ' +
    'compacted later, in phases, and when too much waits for that the store stops writes until compaction has caught up. ' +
    '64 clients write one after the other; answers are timed by one that sends 200 writes a second whatever happens. ' +
    'Without the mechanism all writes that have come are under way.',
  run({ seeds, quick }) {
    const seconds = quick ? 70 : 190;
    const before = seeds.map((seed) => run(false, seconds, seed));
    const after = seeds.map((seed) => run(true, seconds, seed));
    const p99 = (runs: readonly Run[]): number =>
      mean(
        runs.map(({ calm, compacting }) => percentile(compacting, 0.99) / percentile(calm, 0.99)),
      );
    const units = (runs: readonly Run[]): number =>
      mean(runs.map(({ written }) => mean([...written.subarray(warmMs / 1000, -1)])));
    return {
      measures: [
        {
          metric: 'p99 of writes during compaction, of that when calm',
          value: p99(after),
          threshold: 2,
          better: 'lower',
          without: p99(before),
        },
        {
          metric: 'most less least written in a second, of the mean',
          value: mean(after.map(swing)),
          threshold: 0.3,
          better: 'lower',
          without: mean(before.map(swing)),
        },
        {
          metric: 'off: most less least written in a second, of the mean',
          value: mean(before.map(swing)),
          threshold: 0.6,
          better: 'higher',
        },
        {
          metric: 'written in all, of that without the mechanism, %',
          value: (100 * units(after)) / units(before),
          threshold: 95,
          better: 'higher',
        },
      ],
      xLabel: 'second',
      yLabel: 'units written/s',
      before: { title: 'no limits', lines: [line(before[0]!)] },
      after: { title: 'eight writes, half the units in compaction', lines: [line(after[0]!)] },
    };
  },
};
