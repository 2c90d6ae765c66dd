// What it costs to tell a manager the loads of regions, in the messages of Libra's section IV-A.

import { LoadTable } from '../../control/ranges/load-table.ts';
import type { Experiment } from './experiment.ts';
import { overSeeds } from './over-seeds.ts';
import { Chance } from './sim/chance.ts';

const nodes = 8;
/** Each node tells its own load, and those of all its regions, once in so many seconds. */
const heartbeatSeconds = 10;
/** So that all nodes together report 200 regions a second. */
const regionsOfNode = (200 * heartbeatSeconds) / nodes;
/** Requests a second of a node, of which a manager without nodes' sums would get each: two keys and a size. */
const requestsOfNode = 4000;

interface GatheringRun {
  /** Processor time over the time of the reports, %. */
  manager: number;
  node: number;
  /** Bytes sent, of those of the requests. */
  bytes: number;
  /** Share of a core that the manager takes, by minutes. */
  course: [minute: number, percent: number][];
}

/** Counters of a node's regions, which its heartbeats are made from. */
class Counters {
  readonly #node: number;
  readonly #chance: Chance;
  readonly #cpu = new Float64Array(regionsOfNode);
  readonly #io = new Float64Array(regionsOfNode);

  constructor(node: number, chance: Chance) {
    this.#node = node;
    this.#chance = chance;
  }

  serve(): void {
    for (let region = 0; region < regionsOfNode; region++) {
      this.#cpu[region] = this.#chance.uniform(10, 20);
      this.#io[region] = this.#chance.uniform(1000, 2000);
    }
  }

  /** The two messages. */
  told(): [node: string, regions: string] {
    let [cpu, io] = [0, 0];
    const regions = Array.from(this.#cpu, (_, i) => {
      cpu += this.#cpu[i]!;
      io += this.#io[i]!;
      const region = this.#node * regionsOfNode + i;
      return { region, cpu: tenths(this.#cpu[i]!), io: tenths(this.#io[i]!), bytes: 1e8 + region };
    });
    const node = { node: this.#node, cpu: tenths(cpu), io: tenths(io) };
    return [JSON.stringify(node), JSON.stringify({ node: this.#node, regions })];
  }
}

function tenths(value: number): number {
  return Math.round(value * 10) / 10;
}

function gathered(minutes: number, seed: number): GatheringRun {
  const counters = Array.from(
    { length: nodes },
    (_, node) => new Counters(node, new Chance(seed * nodes + node)),
  );
  const manager = new LoadTable();
  const [told, heard] = [new Clock(), new Clock()];
  const course: [number, number][] = [];
  let bytes = 0;
  for (let minute = 0; minute < minutes; minute++) {
    const before = heard.milliseconds;
    for (let beat = 0; beat < 60 / heartbeatSeconds; beat++) {
      for (const node of counters) {
        node.serve();
        const messages = told.timed(() => node.told());
        bytes += messages[0].length + messages[1].length;
        heard.timed(() => {
          manager.hearNode(JSON.parse(messages[0]) as Parameters<LoadTable['hearNode']>[0]);
          manager.hearRegions(JSON.parse(messages[1]) as Parameters<LoadTable['hearRegions']>[0]);
          return manager.isDue;
        });
      }
    }
    course.push([minute + 1, (heard.milliseconds - before) / 600]);
  }
  const milliseconds = minutes * 60_000;
  const request = JSON.stringify({ start: `user${1e9}`, end: `user${1e9}`, bytes: 1000 }).length;
  return {
    manager: (100 * heard.milliseconds) / milliseconds,
    node: (100 * told.milliseconds) / nodes / milliseconds,
    bytes: bytes / (nodes * requestsOfNode * minutes * 60 * request),
    course,
  };
}

/** Processor time of this process. */
class Clock {
  #microseconds = 0;

  timed<T>(work: () => T): T {
    const before = process.cpuUsage();
    const result = work();
    const { user, system } = process.cpuUsage(before);
    this.#microseconds += user + system;
    return result;
  }

  get milliseconds(): number {
    return this.#microseconds / 1000;
  }
}

export const loadGathering: Experiment = {
  id: 'LB-IV-gather',
  title: 'Loads of regions are gathered in small messages',
  kind: 'LIVE',
  source: 'Libra, section IV-A and table I',
  setup:
    '8 nodes with 250 regions each tell a manager their own load and those of their regions every 10 s, 200 regions a second in ' +
    'all, as JSON. Measured is the processor time of making the messages, and of reading them into the table and asking whether ' +
    'scheduling is due, over the time that they stand for; without the network. Bytes are compared with telling each of a ' +
    "node's 4,000 requests a second.",
  run({ seeds, quick, progress }) {
    const runs = seeds.map((seed) => {
      progress(`seed ${seed}`);
      return gathered(quick ? 5 : 60, seed);
    });
    const first = runs[0]!.course;
    return {
      measures: [
        overSeeds(
          runs.map(({ manager }) => manager),
          {
            metric: 'the manager: processor time, % of a core',
            threshold: 10,
            better: 'lower',
            paper: '5 to 10 %, for 100 to 200 reports a second',
          },
        ),
        overSeeds(
          runs.map(({ node }) => node),
          {
            metric: 'a node: processor time, % of a core',
            threshold: 1,
            better: 'lower',
            paper: 'below 1 %',
          },
        ),
        overSeeds(
          runs.map(({ bytes }) => bytes),
          { metric: 'bytes sent, of those of all requests', threshold: 0.01, better: 'lower' },
        ),
      ],
      xLabel: 'minute',
      yLabel: 'manager, % of a core',
      before: {
        title: 'wanted at most',
        lines: [{ label: '10 %', points: first.map(([minute]) => [minute, 10] as const) }],
      },
      after: { title: '200 reports a second', lines: [{ label: 'manager', points: first }] },
    };
  },
};
