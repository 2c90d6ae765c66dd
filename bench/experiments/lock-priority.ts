import { DualQueues, type PodWork } from './baselines/dual-queues.ts';
import type { Placed } from '../../storage-node/admission/tenant-queue.ts';
import { WorkKind } from '../../storage-node/admission/work-kind.ts';
import { mean, percentile } from '../support/statistics.ts';
import type { Experiment, Line } from './experiment.ts';
import { Chance } from './sim/chance.ts';
import { Simulation } from './sim/simulation.ts';
import { fixedSlots } from './workloads/queued-pod.ts';

const slots = 4;
const serviceMs = 2;
const priorities = { low: -1, mid: 0, high: 10 };
/** Overload of the middle, and then what lets the pod catch up, ms. */
const cycleMs = 20_000;
const overloadMs = 10_000;
const holderEveryMs = 250;
/** From one answer to the next operation of the same transaction. */
const thinkMs = 20;
/** Operations of one that takes the lock; the lock is had from the first one on. */
const holderOperations = 5;

class Operation implements PodWork {
  readonly kind = WorkKind.smallWrite;
  readonly tenant = 1;
  readonly cost = 1;
  readonly bytes = 0;
  readonly operations = 0;
  readonly deadline = Infinity;
  readonly arrivedAt: number;
  readonly done: () => void;
  priority: number;
  startedAt: number;
  holdsLocks: boolean;
  ticket: Placed | undefined = undefined;

  constructor(priority: number, startedAt: number, now: number, locks: boolean, done: () => void) {
    this.priority = priority;
    this.startedAt = startedAt;
    this.arrivedAt = now;
    this.holdsLocks = locks;
    this.done = done;
  }
}

interface Waits {
  priority: number;
  granted: () => void;
}

/** The lock of one row, had in the order of priority, then of asking. */
class Lock {
  readonly #waiting: Waits[] = [];
  #isHeld = false;
  /** What its holder has asked the pod for. */
  holder: Operation | undefined;

  /** Whether it is had at once. */
  take(who: Waits): boolean {
    if (this.#isHeld) {
      const behind = this.#waiting.findIndex(({ priority }) => priority < who.priority);
      this.#waiting.splice(behind < 0 ? this.#waiting.length : behind, 0, who);
      return false;
    }
    this.#isHeld = true;
    who.granted();
    return true;
  }

  release(): void {
    this.holder = undefined;
    const next = this.#waiting.shift();
    this.#isHeld = next !== undefined;
    next?.granted();
  }
}

/** Arrival and answer of those of high priority, ms. */
function run(raised: boolean, seconds: number, seed: number): [at: number, took: number][] {
  const simulation = new Simulation();
  const chance = new Chance(seed);
  const queues = new DualQueues<Operation>(
    {
      slots: fixedSlots(slots),
      overload: 'fifo',
      tenantCap: false,
      ...(!raised && { lockPriority: false }),
    },
    undefined,
    () => {},
    0,
  );
  queues.setTenant(1, 1);
  const lock = new Lock();
  const answers: [number, number][] = [];
  const open = new Set<number>();

  const begin = (operation: Operation): void => {
    simulation.after(serviceMs * chance.uniform(0.8, 1.2), () => {
      queues.leave(operation.kind, 1, 1, simulation.now());
      operation.done();
      pump();
    });
  };
  const pump = (): void => {
    const now = simulation.now();
    for (let next = queues.next(now); next !== undefined; next = queues.next(now)) begin(next);
  };
  const ask = (operation: Operation): void => {
    const now = simulation.now();
    if (queues.tryEnter(operation.kind, 1, 1, 0, now)) begin(operation);
    else queues.wait(operation, now);
  };
  const middle = (): void => {
    const load = simulation.now() % cycleMs < overloadMs ? 1.5 : 0.3;
    simulation.after(chance.exponential((load * slots) / serviceMs), () => {
      const now = simulation.now();
      ask(new Operation(priorities.mid, now, now, false, () => {}));
      middle();
    });
  };
  /** Takes the lock with its first operation, and gives it back after its last. */
  const holder = (): void => {
    const startedAt = simulation.now();
    let left = holderOperations - 1;
    const next = (): void => {
      if (left-- === 0) {
        lock.release();
        return;
      }
      simulation.after(thinkMs, () => {
        const operation = new Operation(priorities.low, startedAt, simulation.now(), true, next);
        lock.holder = operation;
        ask(operation);
      });
    };
    const first = new Operation(priorities.low, startedAt, startedAt, false, () => {
      lock.take({ priority: priorities.low, granted: next });
    });
    ask(first);
  };
  const waiter = (): void => {
    const at = simulation.now();
    open.add(at);
    const granted = (): void => {
      const done = (): void => {
        open.delete(at);
        answers.push([at, simulation.now() - at]);
        lock.release();
      };
      const operation = new Operation(priorities.high, at, simulation.now(), true, done);
      lock.holder = operation;
      ask(operation);
    };
    const isHad = lock.take({ priority: priorities.high, granted });
    if (!isHad && lock.holder !== undefined) queues.raise(lock.holder, priorities.high);
  };
  middle();
  simulation.every(holderEveryMs, holder, holderEveryMs / 2);
  // Now and then while somebody holds the lock, and at other times.
  const waiters = (): void => {
    simulation.after(chance.exponential(1 / 100), () => {
      waiter();
      waiters();
    });
  };
  waiters();
  simulation.runUntil(seconds * 1000);
  for (const at of open) answers.push([at, seconds * 1000 - at]);
  return answers.sort(([a], [b]) => a - b);
}

function line(answers: readonly [number, number][]): Line {
  return { label: 'high priority', points: answers.map(([at, took]) => [at / 1000, took]) };
}

export const lockPriority: Experiment = {
  id: 'CR-inversion',
  title: 'Who holds a lock goes first',
  kind: 'SIM',
  source: "J. Vanlightly's analysis of serverless CockroachDB, part 2, admission control",
  setup:
    'Four slots. For ten of every twenty seconds half as much work again of middle priority comes as they can do. Transactions ' +
    'of low priority, four a second, take a lock with the first of five operations; others of high priority, ten a second, ' +
    'need that lock for one operation. Without the mechanism priorities stay what they are.',
  run({ seeds, quick }) {
    const seconds = quick ? 40 : 120;
    const before = seeds.map((seed) => run(false, seconds, seed));
    const after = seeds.map((seed) => run(true, seconds, seed));
    const p99 = (runs: readonly [number, number][][]): number =>
      mean(
        runs.map((answers) =>
          percentile(
            answers.map(([, took]) => took),
            0.99,
          ),
        ),
      );
    return {
      measures: [
        {
          metric: 'p99 of who waits for the lock, of that without',
          value: p99(after) / p99(before),
          threshold: 0.2,
          better: 'lower',
          without: 1,
        },
      ],
      xLabel: 'second',
      yLabel: 'answer, ms',
      before: { title: 'priorities as they are', lines: [line(before[0]!)] },
      after: { title: 'holders of locks raised', lines: [line(after[0]!)] },
    };
  },
};
