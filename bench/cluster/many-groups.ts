// Many groups on three processes, on real disks and connections, with the driver alone: their cost
// while idle, and the time without a leader after a process is killed.

import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type {
  ProcessAnswer,
  ProcessOptions,
  ProcessRequest,
} from '../../storage-node/replicator/raft/process-fixture.ts';
import { cpuNanoseconds } from '../support/process-usage.ts';
import { type Figure, tell } from './figures.ts';

export const manyGroupsDefaults = {
  idleGroups: 10_000,
  ledGroups: 3000,
  seconds: 60,
  /**
   * Until nothing of the load is left: after some seconds the groups are asleep, and within the next minute V8 collects
   * the garbage of all of it once.
   */
  settleSeconds: 120,
};

const nodes = [1, 2, 3];
const pollMs = 50;
const withinMs = 180_000;

class GroupProcess {
  readonly child: ChildProcess;
  readonly #answers: ((answer: ProcessAnswer) => void)[] = [];

  constructor(options: ProcessOptions) {
    const extension = import.meta.filename.endsWith('.ts') ? 'ts' : 'js';
    const program = `../../storage-node/replicator/raft/process-fixture.${extension}`;
    this.child = fork(join(import.meta.dirname, program), [JSON.stringify(options)]);
    this.child.on('message', (answer: ProcessAnswer) => this.#answers.shift()?.(answer));
  }

  next(): Promise<ProcessAnswer> {
    return new Promise((resolve) => this.#answers.push(resolve));
  }

  send(request: ProcessRequest): void {
    this.child.send(request);
  }

  async leaders(): Promise<number[]> {
    const answer = this.next();
    this.send({ kind: 'leaders' });
    return ((await answer) as { kind: 'leaders'; groups: number[] }).groups;
  }

  async kill(): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    const gone = once(this.child, 'exit');
    this.child.kill('SIGKILL');
    await gone;
  }
}

async function withGroups<T>(
  groups: number,
  use: (processes: readonly GroupProcess[], ledAfter: number) => Promise<T>,
): Promise<T> {
  const directory = mkdtempSync(join(tmpdir(), 'polyrow-bench-groups-'));
  const processes = nodes.map((node) => {
    const own = join(directory, String(node));
    mkdirSync(own);
    return new GroupProcess({
      ...{ node, nodes: nodes.length, directory: own, groups, port: 0, isLarge: true },
    });
  });
  try {
    const ready = await Promise.all(processes.map((one) => one.next()));
    const ports = Object.fromEntries(
      ready.map((answer, i) => [nodes[i]!, (answer as { port: number }).port]),
    );
    for (const one of processes) one.send({ kind: 'peers', ports });
    const metAt = performance.now();
    await allLed(processes, groups);
    return await use(processes, (performance.now() - metAt) / 1000);
  } finally {
    for (const one of processes) await one.kill();
    rmSync(directory, { recursive: true, force: true });
  }
}

/** Until each group has a leader among these. */
async function allLed(processes: readonly GroupProcess[], groups: number): Promise<void> {
  const end = performance.now() + withinMs;
  for (;;) {
    const led = new Set((await Promise.all(processes.map((one) => one.leaders()))).flat());
    if (led.size === groups) return;
    if (performance.now() > end) throw new Error(`${led.size} of ${groups} groups are led`);
    await sleep(pollMs);
  }
}

/** Shares of a processor that these processes take. */
async function sharesOver(pids: readonly number[], seconds: number): Promise<number[]> {
  const before = pids.map(cpuNanoseconds);
  await sleep(seconds * 1000);
  return pids.map((pid, i) => (cpuNanoseconds(pid) - before[i]!) / 1e9 / seconds);
}

export async function manyGroupsBench(
  options: typeof manyGroupsDefaults,
  command: string,
): Promise<boolean> {
  const figures: Figure[] = [];
  await withGroups(options.idleGroups, async (processes, ledAfter) => {
    figures.push({ name: `${options.idleGroups} new groups led`, unit: 's', value: ledAfter });
    const pids = processes.map(({ child }) => child.pid!);
    for (const [i, share] of (await sharesOver(pids, options.settleSeconds)).entries()) {
      const name = `the ${options.settleSeconds} s after it, process ${i + 1}`;
      figures.push({ name, unit: '% of a core', value: share * 100 });
    }
    for (const [i, share] of (await sharesOver(pids, options.seconds)).entries()) {
      const name = `${options.idleGroups} idle groups x 3, process ${i + 1}`;
      figures.push({ name, unit: '% of a core', value: share * 100, atMost: 2 });
    }
  });
  await withGroups(options.ledGroups, async (processes) => {
    const led = await Promise.all(processes.map((one) => one.leaders()));
    const most = led.reduce((a, b, i) => (b.length > led[a]!.length ? i : a), 0);
    const gone = new Set(led[most]);
    const left = processes.filter((_, i) => i !== most);
    await processes[most]!.kill();
    const killedAt = performance.now();
    const times: number[] = [];
    while (gone.size > 0) {
      for (const group of (await Promise.all(left.map((one) => one.leaders()))).flat()) {
        if (gone.delete(group)) times.push((performance.now() - killedAt) / 1000);
      }
      if (performance.now() - killedAt > withinMs) throw new Error(`${gone.size} are not led`);
      await sleep(pollMs);
    }
    times.sort((a, b) => a - b);
    const p99 = times[Math.ceil(times.length * 0.99) - 1]!;
    figures.push(
      { name: 'groups that the killed process led', unit: '', value: times.length },
      { name: 'led again, p99', unit: 's', value: p99, atMost: 5 },
      { name: 'all led again', unit: 's', value: times.at(-1)! },
    );
  });
  return tell('groups', command, figures);
}
