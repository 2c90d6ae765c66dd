import {
  type OverloadOrder,
  type Work,
  WorkQueue,
} from '../../storage-node/admission/work-queue.ts';
import { mean } from '../support/statistics.ts';
import type { Experiment, Line } from './experiment.ts';
import { Chance } from './sim/chance.ts';
import { Simulation } from './sim/simulation.ts';

/** Operations a second, one at a time. */
const serverRate = 1000;
const operations = 5;
const deadlineMs = 1000;
const tickMs = 10;
const seconds = 60;

interface Operation extends Work {
  /** Of the transaction: operations still to come after this one. */
  left: number;
}

interface Run {
  /** Per cent of transactions that were done in time. */
  completed: number;
  /** In which work was served, as starts of transactions. */
  order: number[];
  line: Line;
}

/** A line that knows of no deadlines: what a server without admission control has. */
class PlainLine {
  readonly #items: Operation[] = [];
  #head = 0;

  push(work: Operation): void {
    this.#items.push(work);
  }

  pop(): Operation | undefined {
    const next = this.#items[this.#head];
    if (next !== undefined) this.#head++;
    return next;
  }

  tick(): void {
    // It never changes.
  }
}

type Order = OverloadOrder | 'plain';

function run(overload: Order, load: number, seed: number, length = seconds): Run {
  const simulation = new Simulation();
  const chance = new Chance(seed);
  const queue = overload === 'plain' ? new PlainLine() : new WorkQueue<Operation>({ overload });
  const order: number[] = [];
  const begun = new Float64Array(length);
  const done = new Float64Array(length);
  let isBusy = false;
  const serve = (): void => {
    if (isBusy) return;
    const now = simulation.now();
    const next = queue.pop(now);
    if (next === undefined) return;
    isBusy = true;
    order.push(next.startedAt);
    simulation.after(1000 / serverRate, () => {
      isBusy = false;
      const at = simulation.now();
      if (at <= next.deadline) {
        if (next.left > 0) queue.push({ ...next, arrivedAt: at, left: next.left - 1 });
        else done[Math.floor(next.startedAt / 1000)]!++;
      }
      serve();
    });
  };
  const rate = (load * serverRate) / operations / 1000;
  const generate = (): void => {
    simulation.after(chance.exponential(rate), () => {
      const at = simulation.now();
      if (at >= length * 1000) return;
      begun[Math.floor(at / 1000)]!++;
      queue.push({
        priority: 0,
        startedAt: at,
        arrivedAt: at,
        deadline: at + deadlineMs,
        left: operations - 1,
      });
      serve();
      generate();
    });
  };
  generate();
  simulation.every(tickMs, () => {
    queue.tick(simulation.now());
    serve();
  });
  simulation.runUntil(length * 1000 + deadlineMs);
  const sum = (values: Float64Array): number => values.reduce((total, value) => total + value, 0);
  return {
    completed: (100 * sum(done)) / sum(begun),
    order,
    line: {
      label: overload === 'plain' ? 'fifo' : overload,
      points: Array.from(begun, (count, second): [number, number] => [
        second,
        (100 * done[second]!) / (count || 1),
      ]),
    },
  };
}

export const epochLifo: Experiment = {
  id: 'CR-epoch-lifo',
  title: 'The newest epoch first, under overload',
  kind: 'SIM',
  source: "J. Vanlightly's analysis of serverless CockroachDB, part 2, admission control",
  setup:
    'A server of 1,000 operations a second; transactions of five operations, one after the other, that are worth ' +
    'nothing after a second, arriving at random at twice and three times what it can do.',
  run({ seeds }) {
    const completed = (overload: Order, load: number): number =>
      mean(seeds.map((seed) => run(overload, load, seed).completed));
    const [fifo2, lifo2, epoch2] = [
      completed('plain', 2),
      completed('lifo', 2),
      completed('epoch-lifo', 2),
    ];
    const [lifo3, epoch3] = [completed('lifo', 3), completed('epoch-lifo', 3)];
    const sameOrder = seeds.filter((seed) => {
      const [a, b] = [run('fifo', 0.8, seed, 20), run('epoch-lifo', 0.8, seed, 20)];
      return a.order.join() === b.order.join();
    });
    return {
      measures: [
        {
          metric: 'completed at 2x, %',
          value: epoch2,
          threshold: 38,
          better: 'higher',
          without: fifo2,
        },
        {
          metric: 'completed at 2x, of that in LIFO order',
          value: epoch2 / lifo2,
          threshold: 1.3,
          better: 'higher',
        },
        {
          metric: 'completed at 2x, of that in FIFO order',
          value: epoch2 / fifo2,
          threshold: 10,
          better: 'higher',
        },
        {
          metric: 'completed at 3x, %',
          value: epoch3,
          threshold: 25,
          better: 'higher',
          without: completed('plain', 3),
        },
        {
          metric: 'completed at 3x, of that in LIFO order',
          value: epoch3 / lifo3,
          threshold: 2,
          better: 'higher',
        },
        {
          metric: 'runs without overload in the very order of FIFO, %',
          value: (100 * sameOrder.length) / seeds.length,
          threshold: 100,
          better: 'higher',
        },
      ],
      xLabel: 'second',
      yLabel: 'completed, %',
      before: {
        title: 'FIFO and LIFO at 2x',
        lines: [run('plain', 2, seeds[0]!).line, run('lifo', 2, seeds[0]!).line],
      },
      after: { title: 'epoch-LIFO at 2x', lines: [run('epoch-lifo', 2, seeds[0]!).line] },
    };
  },
};
