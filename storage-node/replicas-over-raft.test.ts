// Three pods in one process, each with an engine of its own, over the replicas of one log, while nodes are cut off,
// leaders are asked to go and nodes start again.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import { Action, type Command } from '../universal-row/command.ts';
import type { Outcome } from '../universal-row/executor.ts';
import { assertSameContents, decodeSnapshot } from '../engines/conformance/contents.ts';
import { HeldReads } from '../engines/conformance/held-reads.ts';
import { type Engine, engineClosed } from '../engines/engine.ts';
import { KvEngine } from '../engines/kv/kv-engine.ts';
import { MemoryEngine } from '../engines/memory/memory-engine.ts';
import { realDisk } from './disk/real-disk.ts';
import { commandOf, TextReply } from './pod-fixture.ts';
import { Pod } from './pod.ts';
import { loadEngineModule, WasmRaftEngine } from './replicator/engine/wasm-engine.ts';
import { firstPosition } from './replicator/raft/log-position.ts';
import { RaftHost } from './replicator/raft/raft-host.ts';
import { RaftLog } from './replicator/raft/raft-log.ts';
import { replicaId } from './replicator/raft/replica-id.ts';
import { Random } from './replicator/simulation/timeline.ts';
import { Links } from './replicator/transport/links-fixture.ts';
import { noRules } from './table-rules.ts';
import { systemClock } from '../universal-row/environment.ts';
import { until } from '../test/support/until.ts';

const module = loadEngineModule();
const nodeNumbers = [1, 2, 3];
const group = 4;
const tables = new Map([0, 1, 2].map((table) => [table, noRules]));

type Create = (directory: string) => Engine;

class Node {
  readonly number: number;
  readonly failures: string[] = [];
  engine!: Engine;
  pod!: Pod;
  host!: RaftHost;
  readonly #root: string;
  readonly #links: Links;
  readonly #create: Create;

  constructor(number: number, root: string, links: Links, create: Create) {
    this.number = number;
    this.#root = join(root, String(number));
    this.#links = links;
    this.#create = create;
  }

  async start(): Promise<void> {
    this.engine = this.#create(join(this.#root, 'rows'));
    await this.engine.open();
    this.host = await RaftHost.open({
      disk: realDisk,
      directory: join(this.#root, 'wal'),
      ids: { cluster: 1, node: this.number },
      transport: this.#links.of(this.number),
      onFatal: (error) => this.failures.push(error.message),
      tickMs: 5,
      electionTicks: 10,
      heartbeatTicks: 2,
      engine: new WasmRaftEngine(module),
      limits: { keptEntries: 5, readTicks: 40 },
    });
    const log = new RaftLog({
      pod: this.host.pod,
      group,
      replica: replicaId(this.number),
      first: firstPosition(nodeNumbers.map((number) => replicaId(number))),
      durableIndex: this.engine.appliedIndexOf(group),
    });
    this.pod = new Pod({
      engine: this.engine,
      log,
      group,
      tables,
      clock: systemClock,
      rng: { next: () => 0.5 },
      maxMemoryBytes: Infinity,
      checkpointBytes: Infinity,
      report: (_level, message, fields) =>
        this.failures.push(`${message} ${String((fields as { err?: Error } | undefined)?.err)}`),
    });
    this.pod.start();
  }

  async stop(): Promise<void> {
    await this.pod.close();
    await this.host.close();
  }

  /** A tick of one command; its answer if all that it saw is committed. */
  async run(command: Command): Promise<{ outcome: Outcome; answer: string }> {
    const { pod } = this;
    const reply = new TextReply();
    const own = await pod.execute(command, reply);
    const position = pod.endTick();
    const outcome =
      position < 0
        ? 'committed'
        : await new Promise<Outcome>((resolve) => pod.whenSettled(position, resolve));
    return { outcome, answer: ((own ?? reply) as TextReply).toString() };
  }
}

/** All elements of `list` in table 0. */
function readList(): Command {
  const command = commandOf('get list', 0);
  return {
    ...command,
    action: Action.fetch,
    transform: (rows, args, reply) => {
      const row = rows.find(args.buf, args.starts[1]!, args.lens[1]!);
      const found: string[] = [];
      if (row !== 0) {
        rows.eachElement(row, 0, rows.count(row), false, (b, s, n) => {
          found.push(b.toString('latin1', s, s + n));
        });
      }
      reply.text(found.join(','));
    },
  };
}

let nodes: Node[] = [];
let root = '';
afterEach(async () => {
  for (const node of nodes) await node.stop();
  rmSync(root, { recursive: true, force: true });
});

const leader = (): Node | undefined => nodes.find(({ pod }) => pod.role === 'leader');

function otherLine(random: Random): string {
  const key = `k${random.below(5)}`;
  const n = random.below(6);
  return random.pick([
    `put ${key} ${'x'.repeat(n + 1)}`,
    `field ${key} f${n} v${n}`,
    `unfield ${key} f${n}`,
    `score ${key} m${n} ${n}`,
    `push ${key} HEAD e${n}`,
    `pop ${key} TAIL`,
    `rename ${key} k${n}`,
    `drop ${key}`,
    `expire ${key} ${Date.now() + random.below(300)}`,
    'clear',
    'swap 1 2',
  ]);
}

interface Seen {
  sentAt: number;
  answeredAt: number;
  /** The value that was appended, or all values that were read. */
  appended: string | undefined;
  read: string[];
  outcome: Outcome;
}

async function faults(random: Random, links: Links): Promise<void> {
  if (random.chance(0.02)) links.cut.add(random.pick(nodeNumbers));
  if (random.chance(0.06)) links.cut.clear();
  const node = random.pick(nodes);
  if (random.chance(0.03)) node.pod.parts.log.transfer(replicaId(random.pick(nodeNumbers)));
  if (random.chance(0.03)) await node.pod.checkpoint();
  if (random.chance(0.01)) {
    await node.stop();
    await node.start();
  }
}

test.each<[string, Create, number]>([
  ['memory', (directory) => new MemoryEngine({ directory, disk: realDisk }), 3],
  ['kv', (directory) => new KvEngine({ directory, cacheBytes: 20_000 }), 5],
])(
  'pods of model %s agree, and lose nothing that was answered',
  async (_model, create, seed) => {
    root = mkdtempSync(join(tmpdir(), 'polyrow-pods-raft-'));
    const links = new Links();
    const random = new Random(seed);
    nodes = nodeNumbers.map((number) => new Node(number, root, links, create));
    for (const node of nodes) await node.start();
    await until(() => leader() !== undefined);
    const seen: Seen[] = [];
    let time = 0;
    const send = async (node: Node, appended: string | undefined): Promise<void> => {
      const sentAt = ++time;
      const command =
        appended === undefined ? readList() : commandOf(`push list TAIL ${appended}`, 0);
      const { outcome, answer } = await node.run(command);
      if (answer.startsWith('(error)')) return;
      const read = appended === undefined ? answer.split(',').filter((one) => one !== '') : [];
      seen.push({ sentAt, answeredAt: ++time, appended, read, outcome });
    };
    for (let step = 0; step < 400; step++) {
      await faults(random, links);
      const node = random.chance(0.8) ? (leader() ?? nodes[0]!) : random.pick(nodes);
      const failed = (): void => {};
      if (random.chance(0.5)) void send(node, `v${step}`).catch(failed);
      if (random.chance(0.3)) void send(node, undefined).catch(failed);
      if (random.chance(0.5)) {
        void node.run(commandOf(otherLine(random), 1 + random.below(2))).catch(failed);
      }
      await pause(random.below(5));
    }
    links.cut.clear();
    for (let tries = 0, before = seen.length; tries < 200; tries++) {
      const node = leader();
      if (node !== undefined) await send(node, `last${tries}`);
      if (seen.slice(before).some(({ outcome }) => outcome === 'committed')) break;
      await pause(20);
    }
    const indexes = (): number[] => nodes.map(({ engine }) => engine.appliedIndexOf(group));
    await until(() => new Set(indexes()).size === 1);
    const contents = await Promise.all(
      nodes.map(({ pod }) => decodeSnapshot(pod.parts.engine.exportSnapshot())),
    );
    for (const one of contents.slice(1)) assertSameContents(one, contents[0]!, 'rows of a replica');
    check(seen, (contents[0]!.get('0/list')?.items ?? []) as string[]);
    while (!(await countsOne(leader()))) await pause(10);
    expect(nodes.flatMap(({ failures }) => failures)).toEqual([]);
  },
  120_000,
);

/** Whether the pod ran one more command, a write, and has counted it once with its work. */
async function countsOne(node: Node | undefined): Promise<boolean> {
  if (node === undefined) return false;
  node.pod.load!.take();
  const { answer } = await node.run(commandOf('push list TAIL counted', 0));
  // Another may have begun to lead meanwhile.
  if (answer.startsWith('(error)')) return false;
  const { commands, sent, work } = node.pod.load!.take();
  expect(commands).toBe(1);
  expect(sent).toBeGreaterThan(0);
  expect(work.elements).toBe(1);
  expect(work.logBytes).toBeGreaterThan('counted'.length);
  return true;
}

/** The answers agree with the order of the elements. */
function check(seen: readonly Seen[], list: readonly string[]): void {
  expect(new Set(list).size).toBe(list.length);
  const committed = seen.filter(({ outcome }) => outcome === 'committed');
  expect(committed.length).toBeGreaterThan(50);
  for (const { appended, outcome } of seen) {
    if (appended === undefined) continue;
    if (outcome === 'committed') expect(list).toContain(appended);
    if (outcome === 'lost') expect(list).not.toContain(appended);
  }
  for (const { appended, read, sentAt } of committed) {
    if (appended !== undefined) continue;
    expect(read).toEqual(list.slice(0, read.length));
    for (const other of committed) {
      if (other.answeredAt >= sentAt) continue;
      if (other.appended !== undefined) expect(read).toContain(other.appended);
      expect(read.length).toBeGreaterThanOrEqual(other.read.length);
    }
  }
}

test('replicas are deleted while entries and commands wait for the disk', async () => {
  root = mkdtempSync(join(tmpdir(), 'polyrow-pods-raft-'));
  const schedulers = nodeNumbers.map(() => new HeldReads(4));
  for (const scheduler of schedulers) scheduler.isOn = false;
  const links = new Links();
  const started = nodeNumbers.map((number, i) => {
    const create: Create = (directory) =>
      new KvEngine({ directory, cacheBytes: 0, readScheduler: schedulers[i] });
    return new Node(number, root, links, create);
  });
  nodes = started;
  for (const node of started) await node.start();
  await until(() => leader() !== undefined);
  const first = leader()!;
  const schedulerOf = (node: Node): HeldReads => schedulers[started.indexOf(node)]!;
  for (let i = 0; i < 50; i++) await first.run(commandOf(`field k${i} f 1`, 1));
  // Followers wait for rows of an entry, and commands of the leader for rows of theirs.
  const commands: Command[] = [];
  const answers: Promise<{ answer: string }>[] = [];
  const run = (line: string): void => {
    const command = commandOf(line, 1);
    commands.push(command);
    answers.push(first.run(command));
  };
  const others = started.filter((node) => node !== first);
  for (const node of others) schedulerOf(node).isOn = true;
  let written = 0;
  await until(() => {
    run(`field k${written % 50} g${written++} 2`);
    return others.every((node) => schedulerOf(node).held.length > 0);
  });
  schedulerOf(first).isOn = true;
  await until(() => {
    run(`field k${written++ % 50} f 3`);
    run(`get k${written % 50}`);
    return schedulerOf(first).held.length > 0;
  });
  for (const node of [...others, first]) {
    await node.pod.close();
    await node.host.pod.removeGroup(group, replicaId(node.number));
  }
  for (const scheduler of schedulers) scheduler.releaseAll();
  const texts = (await Promise.all(answers)).map(({ answer }) => answer);
  const refused = commands.filter((_, i) => texts[i] === `(error) ${engineClosed.message}`);
  expect(refused.length).toBeGreaterThan(0);
  for (const { notRun } of refused) expect(notRun).toEqual({ why: 'notLeader', leader: 0 });
  // It refuses what comes late as well.
  const late = commandOf('put late 1', 1);
  await first.pod.execute(late, new TextReply());
  expect(late.notRun).toEqual({ why: 'notLeader', leader: 0 });
  nodes = [];
  for (const node of started) await node.host.close();
  expect(started.flatMap(({ failures }) => failures)).toEqual([]);
});

test.each<[string, Create]>([
  ['memory', (directory) => new MemoryEngine({ directory, disk: realDisk })],
  ['kv', (directory) => new KvEngine({ directory, cacheBytes: 20_000 })],
])(
  'a pod of model %s is closed while it installs a snapshot, and installs it later',
  async (_model, create) => {
    root = mkdtempSync(join(tmpdir(), 'polyrow-pods-raft-'));
    const links = new Links();
    let imports = 0;
    let underWay = 0;
    nodes = nodeNumbers.map(
      (number) =>
        new Node(number, root, links, (directory) => {
          const engine = create(directory);
          const take = engine.importSnapshot.bind(engine);
          engine.importSnapshot = (batches, ...others) => {
            imports++;
            underWay++;
            return take(slowly(batches), ...others).finally(() => underWay--);
          };
          return engine;
        }),
    );
    for (const node of nodes) await node.start();
    await until(() => leader() !== undefined);
    const away = nodes.find((node) => node !== leader())!;
    await away.run(commandOf('put early 1', 0)).catch(() => undefined);
    await away.stop();
    const value = 'x'.repeat(100_000);
    for (let i = 0; i < 40; i++) {
      // Another may have begun to lead meanwhile.
      await until(() => leader() !== undefined && leader() !== away);
      await leader()!.run(commandOf(`put k${i} ${value}`, 0));
    }
    for (const node of nodes) if (node !== away) await node.pod.checkpoint();
    await away.start();
    await until(() => underWay > 0);
    await away.pod.close();
    // Its engine is closed, and not in use. The other groups of the node go on.
    expect(underWay).toBe(0);
    await pause(50);
    expect(away.failures).toEqual([]);
    await away.host.close();

    await away.start();
    await until(() => away.engine.appliedIndexOf(group) === leader()?.engine.appliedIndexOf(group));
    const [own, leaders] = await Promise.all(
      [away, leader()!].map(({ pod }) => decodeSnapshot(pod.parts.engine.exportSnapshot())),
    );
    assertSameContents(own!, leaders!, 'rows of a replica');
    expect(imports).toBeGreaterThan(1);
    expect(nodes.flatMap(({ failures }) => failures)).toEqual([]);
  },
);

async function* slowly(batches: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  for await (const batch of batches) {
    await pause(20);
    yield batch;
  }
}
