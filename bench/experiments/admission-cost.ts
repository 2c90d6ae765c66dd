import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../support/processes.ts';
import { median } from '../support/statistics.ts';
import { type Experiment, type Line, type Measure, reaches } from './experiment.ts';
import type { ServerOptions, ServerOrder, ServerReport } from './live/admitting-server.ts';
import { RedisLoad } from './live/redis-load.ts';

const connections = 64;
/** Requests that stand in the fair queue in overload, beside those that come. */
const standing = 32;
/** Of a request of the load: a fifth are writes. */
const meanCost = 1.2;

class Server {
  readonly #child: ChildProcess;

  static async start(options: ServerOptions): Promise<Server> {
    const script = join(import.meta.dirname, 'live', 'admitting-server.js');
    const child = fork(script, [JSON.stringify(options)], {
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    });
    await once(child, 'message');
    return new Server(child);
  }

  private constructor(child: ChildProcess) {
    this.#child = child;
  }

  async order(order: ServerOrder): Promise<unknown> {
    const answered = once(this.#child, 'message');
    this.#child.send(order);
    return ((await answered) as unknown[])[0];
  }

  async stop(): Promise<void> {
    const ended = once(this.#child, 'exit');
    this.#child.kill('SIGTERM');
    await ended;
  }
}

interface Sample {
  /** Of busy samples, %. */
  share: number;
  /** Units asked for, of those that the pod may do. */
  offered: number;
}

const explanation =
  'A small command takes such a server some ten microseconds in all, so that one per cent is a hundred ' +
  'nanoseconds: more than the policies take where their code and data are at hand, and less than they take where ' +
  'other processes have driven those out of the caches.';

export const admissionCost: Experiment = {
  id: 'CR-overhead',
  title: 'What admission costs',
  kind: 'LIVE',
  source: "J. Vanlightly's analysis of serverless CockroachDB, part 2, admission control",
  setup:
    'A Redis server of one pod in a process of its own, with the buckets of ten tenants, the fair queue and the slots ' +
    `before the pod, and ${connections} connections that read and write values of 1 kB, one command at a time. A ` +
    'profile says which share of its processor time goes to these and to asking them: at 0.7 of what the server can ' +
    'do, and with more than twice the units that the pod may do asked for, so that most commands are refused and ' +
    `${standing} others stand in the queue.`,
  async run({ quick, progress }) {
    const rounds = quick ? 1 : 5;
    const seconds = quick ? 2 : 4;
    const directory = mkdtempSync(join(tmpdir(), 'polyrow-admission-'));
    const port = await freePort();
    const server = await Server.start({ directory, port });
    const load = await RedisLoad.connect(port, connections);
    const measure = async (rate: number, podRate: number, queued: number): Promise<Sample> => {
      await server.order({ set: { podRate, standing: queued } });
      await server.order('profile');
      const { answered } = await load.run(rate, seconds);
      const report = (await server.order('report')) as ServerReport;
      return {
        share: (100 * report.admission) / report.busy,
        offered: (answered * meanCost) / seconds / podRate,
      };
    };
    const calm: Sample[] = [];
    const flooded: Sample[] = [];
    try {
      progress('warming up');
      // Code that is not compiled yet costs what it never will again.
      await load.run(Infinity, quick ? 1.5 : 4);
      for (let round = 0; round < rounds; round++) {
        progress(`round ${round + 1} of ${rounds}`);
        const { answered } = await load.run(Infinity, 1);
        const most = answered;
        calm.push(await measure(0.7 * most, most * meanCost, 0));
        flooded.push(await measure(Infinity, (most * meanCost) / 3, standing));
      }
    } finally {
      load.close();
      await server.stop();
      rmSync(directory, { recursive: true, force: true });
    }
    const shares = (samples: readonly Sample[]): number =>
      median(samples.map(({ share }) => share));
    const line = (label: string, samples: readonly Sample[]): Line => ({
      label,
      points: samples.map(({ share }, round): [number, number] => [round + 1, share]),
    });
    const measures: Measure[] = [
      {
        metric: 'processor time of admission at 0.7 load, %',
        value: shares(calm),
        threshold: 1,
        better: 'lower',
        paper: 'about 1 %',
      },
      {
        metric: 'processor time of admission at 2x overload, %',
        value: shares(flooded),
        threshold: 2,
        better: 'lower',
      },
      {
        metric: 'units asked for in overload, of those that the pod may do',
        value: median(flooded.map(({ offered }) => offered)),
        threshold: 2,
        better: 'higher',
      },
    ];
    return {
      measures,
      xLabel: 'round',
      yLabel: 'processor time, %',
      before: { title: '0.7 of what the server can do', lines: [line('admission', calm)] },
      after: { title: 'twice what the pod may do', lines: [line('admission', flooded)] },
      ...(measures.every(reaches) ? {} : { explanation }),
    };
  },
};
