// Three processes with a few hundred groups each, killed with SIGKILL in turn while clients write and read. Nothing that
// was acknowledged may be lost, no read may be old, and every group must be led again. KILLS says how many kills.

import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, expect, test } from 'vitest';
import type {
  ProcessAnswer,
  ProcessOptions,
  ProcessRequest,
} from '../../storage-node/replicator/raft/process-fixture.ts';
import { Random } from '../../storage-node/replicator/simulation/timeline.ts';

const dist = process.env['DIST_DIR'] ?? fileURLToPath(new URL('../../dist', import.meta.url));
const program = join(dist, 'storage-node/replicator/raft/process-fixture.js');
const full = Boolean(process.env['POLYROW_FULL']);
const kills = Number(process.env['KILLS'] ?? (full ? 200 : 3));
const groups = Number(process.env['GROUPS'] ?? 200);
const seed = Number(process.env['KILL_SEED'] ?? 1);
const clients = 16;
const answerMs = 3000;

type Result = { outcome: string } | { value: string | undefined; isSafe: boolean };

class NodeProcess {
  readonly node: number;
  port = 0;
  leads: number[] = [];
  #child: ChildProcess | undefined;
  readonly #directory: string;
  readonly #waiting = new Map<number, (result: Result | undefined) => void>();
  #ready: (() => void) | undefined;
  #leaders: (() => void) | undefined;
  #nextId = 1;

  constructor(node: number, root: string) {
    this.node = node;
    this.#directory = join(root, String(node));
  }

  async start(nodes: number): Promise<void> {
    const { node } = this;
    // A new port at each start: the previous one may be in use by another connection.
    const options: ProcessOptions = { node, nodes, port: 0, groups, directory: this.#directory };
    const child = fork(program, [JSON.stringify(options)]);
    this.#child = child;
    child.on('message', (answer: ProcessAnswer) => this.#take(answer));
    await new Promise<void>((resolve, reject) => {
      this.#ready = resolve;
      child.once('exit', (code) => reject(new Error(`node ${node} ended with ${code}`)));
    });
  }

  async kill(): Promise<void> {
    const child = this.#child;
    if (child === undefined) return;
    this.#child = undefined;
    if (child.exitCode !== null) return;
    const gone = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGKILL');
    for (const end of this.#waiting.values()) end(undefined);
    this.#waiting.clear();
    await gone;
  }

  tell(request: ProcessRequest): void {
    if (this.#child?.connected) this.#child.send(request);
  }

  /** Undefined when the outcome is unknown. */
  ask(make: (id: number) => ProcessRequest): Promise<Result | undefined> {
    if (!this.#child?.connected) return Promise.resolve({ outcome: 'refused' });
    const id = this.#nextId++;
    return new Promise((resolve) => {
      const end = (result: Result | undefined): void => {
        clearTimeout(timer);
        this.#waiting.delete(id);
        resolve(result);
      };
      const timer = setTimeout(() => end(undefined), answerMs);
      this.#waiting.set(id, end);
      this.tell(make(id));
    });
  }

  async askLeaders(): Promise<void> {
    this.leads = [];
    if (!this.#child?.connected) return;
    const answered = new Promise<void>((resolve) => {
      this.#leaders = resolve;
    });
    this.tell({ kind: 'leaders' });
    await answered;
  }

  #take(answer: ProcessAnswer): void {
    if (answer.kind === 'ready') {
      this.port = answer.port;
      this.#ready?.();
    } else if (answer.kind === 'leaders') {
      this.leads = answer.groups;
      this.#leaders?.();
    } else this.#waiting.get(answer.id)?.(answer);
  }
}

interface Register {
  group: number;
  name: string;
  /** The last value of which we know that it is written; the last one that was tried. */
  acknowledged: number;
  tried: number;
  acknowledgedAt: number;
}

/** One client for each register: its values only grow, and reads must not go back. */
class Client {
  readonly register: Register;
  problems: string[] = [];
  longestGapMs = 0;
  writes = 0;
  reads = 0;
  #guess = 0;
  readonly #nodes: readonly NodeProcess[];
  readonly #random: Random;

  constructor(nodes: readonly NodeProcess[], register: Register, random: Random) {
    this.#nodes = nodes;
    this.register = register;
    this.#random = random;
  }

  async run(isOver: () => boolean): Promise<void> {
    this.register.acknowledgedAt = performance.now();
    while (!isOver()) {
      if (this.#random.chance(0.3)) await this.read();
      else await this.#write();
    }
  }

  async read(): Promise<boolean> {
    const { group, name, acknowledged } = this.register;
    const node = this.#nodes[this.#random.below(this.#nodes.length)]!;
    const result = await node.ask((id) => ({ kind: 'read', id, group, name }));
    if (result === undefined || !('isSafe' in result) || !result.isSafe) {
      await pause(20);
      return false;
    }
    this.reads++;
    const value = Number(result.value ?? 0);
    if (value < acknowledged || value > this.register.tried) {
      this.problems.push(
        `${name} of group ${group} reads ${value} on node ${node.node}; ` +
          `${acknowledged} was acknowledged, ${this.register.tried} tried`,
      );
    }
    return true;
  }

  async #write(): Promise<void> {
    const { register } = this;
    const { group, name } = register;
    const value = ++register.tried;
    const node = this.#nodes[this.#guess]!;
    const result = await node.ask((id) => ({
      kind: 'write',
      id,
      group,
      name,
      value: String(value),
    }));
    if (result && 'outcome' in result && result.outcome === 'committed') {
      const now = performance.now();
      this.longestGapMs = Math.max(this.longestGapMs, now - register.acknowledgedAt);
      register.acknowledgedAt = now;
      register.acknowledged = value;
      this.writes++;
      return;
    }
    this.#guess = (this.#guess + 1) % this.#nodes.length;
    await pause(10);
  }
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

let nodes: NodeProcess[] = [];
let root = '';
afterEach(async () => {
  for (const node of nodes) await node.kill();
  rmSync(root, { recursive: true, force: true });
});

/** Milliseconds until so many groups have a leader. */
async function untilLed(count: number): Promise<number> {
  const began = performance.now();
  for (;;) {
    for (const node of nodes) await node.askLeaders();
    if (new Set(nodes.flatMap(({ leads }) => leads)).size >= count)
      return performance.now() - began;
    if (performance.now() - began > 30_000) throw new Error('groups have no leader');
    await pause(10);
  }
}

const percentile = (values: number[], p: number): number =>
  Math.round(values.toSorted((a, b) => a - b)[Math.ceil(values.length * p) - 1] ?? 0);

test(`${kills} kills: nothing acknowledged is lost`, {
  timeout: 120_000 + kills * 20_000,
}, async () => {
  root = mkdtempSync(join(tmpdir(), 'three-processes-'));
  const random = new Random(seed);
  nodes = [1, 2, 3].map((node) => new NodeProcess(node, root));
  for (const node of nodes) await node.start(nodes.length);
  const ports = Object.fromEntries(nodes.map(({ node, port }) => [node, port]));
  for (const node of nodes) node.tell({ kind: 'peers', ports });
  await untilLed(groups);

  let isOver = false;
  const running = Array.from({ length: clients }, (_, i) => {
    const group = Math.floor((i * groups) / clients);
    const register = { group, name: 'register', acknowledged: 0, tried: 0, acknowledgedAt: 0 };
    return new Client(nodes, register, new Random(random.below(2 ** 32)));
  });
  const ends = running.map((client) => client.run(() => isOver));

  const ledAgain: number[] = [];
  const gaps: number[] = [];
  for (let kill = 0; kill < kills; kill++) {
    await pause(500 + random.next() * 1000);
    for (const client of running) client.longestGapMs = 0;
    const victims = random.chance(0.1) ? nodes : [random.pick(nodes)];
    for (const node of victims) await node.askLeaders();
    const led = victims.length === 1 ? victims[0]!.leads : [];
    await Promise.all(victims.map((node) => node.kill()));
    if (victims.length === 1) {
      ledAgain.push(await untilLed(groups));
      await pause(1500);
      for (const { register, longestGapMs } of running) {
        if (led.includes(register.group)) gaps.push(longestGapMs);
      }
    }
    for (const node of victims) {
      await node.start(nodes.length);
      ports[node.node] = node.port;
      for (const one of nodes) one.tell({ kind: 'peers', ports });
    }
  }
  await untilLed(groups);
  isOver = true;
  await Promise.all(ends);

  for (const client of running) {
    let checks = 0;
    for (let tries = 0; tries < 500 && checks < 3; tries++) if (await client.read()) checks++;
    expect(checks).toBe(3);
    expect(client.problems).toEqual([]);
    expect(client.writes).toBeGreaterThan(0);
  }
  const sum = (of: (client: Client) => number): number => running.reduce((n, c) => n + of(c), 0);
  process.stdout.write(
    `${kills} kills, seed ${seed}: ${sum((c) => c.writes)} writes, ${sum((c) => c.reads)} reads; ` +
      `all ${groups} groups led again: p50 ${percentile(ledAgain, 0.5)} ms, ` +
      `p99 ${percentile(ledAgain, 0.99)} ms; gap of a client: ` +
      `p50 ${percentile(gaps, 0.5)} ms, p99 ${percentile(gaps, 0.99)} ms (${gaps.length})\n`,
  );
});
