// Many groups on the hosts of three nodes, each with a pod and an engine of its own, over one write-ahead log a node:
// kills and cuts, groups that are closed and opened again, members that come and go, a log that stays short.

import { afterEach, expect, test } from 'vitest';
import { systemClock } from '../universal-row/environment.ts';
import type { Outcome } from '../universal-row/executor.ts';
import { decodeSnapshot, type EngineContents } from '../engines/conformance/contents.ts';
import { MemoryEngine } from '../engines/memory/memory-engine.ts';
import { FaultyDisk } from './disk/faulty-disk.ts';
import { commandOf, TextReply } from './pod-fixture.ts';
import { Pod } from './pod.ts';
import { loadEngineModule, WasmRaftEngine } from './replicator/engine/wasm-engine.ts';
import type { MemberChange } from './replicator/partition-log.ts';
import { firstPosition, joiningPosition } from './replicator/raft/log-position.ts';
import type { LogPosition } from './replicator/raft/log-position.ts';
import { RaftHost } from './replicator/raft/raft-host.ts';
import { RaftLog } from './replicator/raft/raft-log.ts';
import { replicaId } from './replicator/raft/replica-id.ts';
import { Random } from './replicator/simulation/timeline.ts';
import { Links } from './replicator/transport/links-fixture.ts';
import { noRules } from './table-rules.ts';
import { until } from '../test/support/until.ts';

const module = loadEngineModule();
const groupCount = 20;
const tables = new Map([[0, noRules]]);
const maxLogBytes = 96 * 1024;

interface Replica {
  pod: Pod;
  /** Ticks that had seen what was lost meanwhile. */
  losses: number;
  log: RaftLog;
  engine: MemoryEngine;
}

class Node {
  readonly number: number;
  readonly failures: string[] = [];
  readonly groups = new Map<number, Replica>();
  host!: RaftHost;
  #disk: FaultyDisk;
  #life = 0;
  readonly #links: Links;
  readonly #random: Random;

  constructor(number: number, links: Links) {
    this.number = number;
    this.#links = links;
    this.#random = new Random(number);
    this.#disk = new FaultyDisk({ rng: this.#random });
  }

  async start(): Promise<void> {
    const life = ++this.#life;
    this.host = await RaftHost.open({
      disk: this.#disk,
      directory: '/wal',
      ids: { cluster: 1, node: this.number },
      transport: this.#links.of(this.number),
      // A life that was killed finds its disk gone.
      onFatal: (error) => life === this.#life && this.failures.push(String(error.stack)),
      tickMs: 10,
      electionTicks: 10,
      heartbeatTicks: 2,
      engine: new WasmRaftEngine(module),
      segmentBytes: 16 * 1024,
      maxLogBytes,
      limits: { keptEntries: 5, readTicks: 40, idleTicks: 20 },
    });
  }

  async open(group: number, first: LogPosition, count = 0): Promise<Replica> {
    const life = this.#life;
    const engine = new MemoryEngine({ directory: `/rows-${group}-${count}`, disk: this.#disk });
    await engine.open();
    const log = new RaftLog({
      pod: this.host.pod,
      group,
      replica: replicaId(this.number, count),
      first,
      durableIndex: engine.appliedIndexOf(group),
    });
    const report = (_level: string, message: string, fields?: object): void => {
      if (life !== this.#life) return;
      this.failures.push(`${message} ${String((fields as { err?: Error } | undefined)?.err)}`);
    };
    const pod = new Pod({
      ...{ engine, log, group, tables, report },
      clock: systemClock,
      rng: { next: () => 0.5 },
      maxMemoryBytes: Infinity,
      checkpointBytes: 20_000,
    });
    pod.start();
    const replica = { pod, log, engine, losses: 0 };
    this.groups.set(group, replica);
    return replica;
  }

  async close(group: number): Promise<void> {
    await this.groups.get(group)?.pod.close();
    this.groups.delete(group);
  }

  /** Kills the process; with `torn`, unsynced data is uncertain. */
  async kill(torn: boolean): Promise<void> {
    const killed = [...this.groups.values()];
    const { host } = this;
    this.#life++;
    this.#disk = torn ? this.#disk.crash() : this.#disk.evict().kill();
    this.groups.clear();
    const gone = (): void => {};
    await host.close().catch(gone);
    for (const { pod } of killed) void pod.close().catch(gone);
  }

  async stop(): Promise<void> {
    for (const group of [...this.groups.keys()]) await this.close(group);
    await this.host.close();
  }
}

let nodes: Node[] = [];
let links: Links;
afterEach(async () => {
  for (const node of nodes) await node.stop();
  nodes = [];
});

const voters = (...numbers: number[]): LogPosition =>
  firstPosition(numbers.map((number) => replicaId(number)));

async function start(count: number): Promise<void> {
  links = new Links();
  nodes = Array.from({ length: count }, (_, i) => new Node(i + 1, links));
  for (const node of nodes) await node.start();
}

const leaderOf = (group: number): Replica | undefined =>
  nodes.map((node) => node.groups.get(group)).find((replica) => replica?.pod.role === 'leader');

/** Outcome of appending one element to a group's list. */
async function append(group: number, value: string): Promise<Outcome | 'refused'> {
  const leader = leaderOf(group);
  if (leader === undefined) return 'refused';
  const { pod, losses } = leader;
  const reply = new TextReply();
  const done = pod.execute(commandOf(`push list TAIL ${value}`, 0), reply);
  const own = done instanceof Promise ? await done : done;
  const position = pod.endTick();
  if (position === Number.MAX_SAFE_INTEGER) leader.losses++;
  if (((own ?? reply) as TextReply).toString().startsWith('(error)')) return 'refused';
  const outcome = await new Promise<Outcome>((resolve) => pod.whenSettled(position, resolve));
  // A loss is told once: another command of the same tick may have heard of it.
  return leader.losses === losses ? outcome : 'unknown';
}

async function listOf({ pod }: Replica): Promise<string[]> {
  const rows: EngineContents = await decodeSnapshot(pod.parts.engine.exportSnapshot());
  return (rows.get('0/list')?.items ?? []) as string[];
}

async function appendUntilDone(group: number, value: string): Promise<void> {
  for (let tries = 0; tries < 300; tries++) {
    if ((await append(group, `${value}-${tries}`)) === 'committed') return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  throw new Error(`group ${group} does not serve`);
}

/** Appends to random groups for as long as `during` takes. What was committed, by group. */
async function underLoad(during: () => Promise<void>): Promise<Map<number, string[]>> {
  const committed = new Map<number, string[]>();
  const random = new Random(9);
  let isOver = false;
  const writing: Promise<void>[] = [];
  const load = (async () => {
    for (let i = 0; !isOver; i++) {
      const group = 1 + random.below(groupCount);
      const value = `v${i}-${'x'.repeat(random.below(300))}`;
      const done = append(group, value).then((outcome) => {
        if (outcome !== 'committed') return;
        committed.set(group, [...(committed.get(group) ?? []), value]);
      });
      writing.push(done.catch(() => {}));
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
  })();
  await during();
  isOver = true;
  await load;
  await Promise.race([Promise.all(writing), new Promise((resolve) => setTimeout(resolve, 1000))]);
  return committed;
}

const groups = Array.from({ length: groupCount }, (_, i) => i + 1);

/** Every replica of every group has the same rows, and all that was committed. */
async function agree(committed: ReadonlyMap<number, readonly string[]>): Promise<void> {
  for (const group of groups) await appendUntilDone(group, 'last');
  for (const group of groups) {
    const replicas = nodes.flatMap((node) => node.groups.get(group) ?? []);
    const indexes = (): number[] => replicas.map(({ engine }) => engine.appliedIndexOf(group));
    await until(() => new Set(indexes()).size === 1);
    const lists = await Promise.all(replicas.map(listOf));
    for (const list of lists) expect(list).toEqual(lists[0]);
    expect(lists[0]!.filter((value, i, all) => all.indexOf(value) !== i)).toEqual([]);
    expect(lists[0]).toEqual(expect.arrayContaining([...(committed.get(group) ?? [])]));
  }
  for (const { failures } of nodes) expect(failures).toEqual([]);
}

test('kills and cuts lose nothing of any group, and the log stays short', {
  timeout: 120_000,
}, async () => {
  await start(3);
  for (const node of nodes) for (const group of groups) await node.open(group, voters(1, 2, 3));
  await until(() => groups.every((group) => leaderOf(group) !== undefined));
  const random = new Random(3);
  const committed = await underLoad(async () => {
    for (let round = 0; round < 12; round++) {
      await new Promise((resolve) => setTimeout(resolve, 150));
      const node = random.pick(nodes);
      if (random.chance(0.4)) {
        links.cut.add(node.number);
        await new Promise((resolve) => setTimeout(resolve, 50 + random.below(300)));
        links.cut.clear();
      } else {
        await node.kill(random.chance(0.7));
        await new Promise((resolve) => setTimeout(resolve, random.below(200)));
        await node.start();
        for (const group of groups) await node.open(group, voters(1, 2, 3));
      }
    }
  });
  expect([...committed.values()].flat().length).toBeGreaterThan(30);
  await agree(committed);
  // Only one group continues; the others release the log that they share with it.
  await underBusyGroup(1);
  const isShort = ({ host }: Node): boolean => host.pod.status().bytes < 2 * maxLogBytes;
  await until(() => nodes.every(isShort));
  await until(() => nodes.every(({ host }) => host.pod.asleep >= groupCount - 1));
});

async function underBusyGroup(group: number): Promise<void> {
  for (let i = 0; i < 400; i++) {
    void append(group, `busy${i}-${'x'.repeat(1000)}`).catch(() => {});
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

test('groups that are closed and opened again under load go on where they were', {
  timeout: 120_000,
}, async () => {
  await start(3);
  for (const node of nodes) for (const group of groups) await node.open(group, voters(1, 2, 3));
  await until(() => groups.every((group) => leaderOf(group) !== undefined));
  const random = new Random(5);
  const committed = await underLoad(async () => {
    for (let round = 0; round < 60; round++) {
      const node = random.pick(nodes);
      const group = 1 + random.below(groupCount);
      await node.close(group);
      await new Promise((resolve) => setTimeout(resolve, random.below(30)));
      await node.open(group, voters(1, 2, 3));
    }
  });
  await agree(committed);
  for (const { host } of nodes)
    for (const group of groups) expect(host.pod.knows(group)).toBe(true);
  // Nothing of what was closed is left behind.
  for (const node of nodes) for (const group of groups) await node.close(group);
  for (const { host } of nodes) expect(host.pod.openGroups).toBe(0);
});

const changeOf = (to: MemberChange['to'], ...numbers: number[]): MemberChange[] =>
  numbers.map((number) => ({ replica: replicaId(number), to }));

async function change(group: number, changes: readonly MemberChange[]): Promise<void> {
  await until(() => leaderOf(group)?.log.changeMembers(changes) === true);
}

const membersOf = (group: number): { voters: number[]; learners: number[]; outgoing: number[] } =>
  leaderOf(group)?.log.status().replication?.members ?? { voters: [], learners: [], outgoing: [] };

test('groups grow from one replica to three and back under load, and their leaders move', {
  timeout: 120_000,
}, async () => {
  await start(3);
  for (const group of groups) await nodes[0]!.open(group, voters(1));
  await until(() => groups.every((group) => leaderOf(group) !== undefined));
  // Enough entries that a new member is sent a snapshot.
  for (const group of groups) for (let i = 0; i < 20; i++) await append(group, `before${i}`);
  for (const { pod } of nodes[0]!.groups.values()) await pod.checkpoint();
  const committed = await underLoad(async () => {
    await Promise.all(groups.map(growAndShrink));
  });
  expect([...committed.values()].flat().length).toBeGreaterThan(20);
  for (const group of groups) {
    expect(membersOf(group).voters).toEqual([replicaId(3)]);
    for (const node of nodes.slice(0, 2)) {
      await node.close(group);
      await node.host.pod.removeGroup(group, replicaId(node.number));
      expect(node.host.pod.knows(group)).toBe(false);
    }
  }
  await agree(committed);
  // A removed replica never votes again, not even after a restart and many segments.
  const first = nodes[0]!;
  await first.kill(true);
  await first.start();
  for (const group of groups) {
    await expect(first.open(group, voters(1))).rejects.toThrow('was removed');
    first.groups.delete(group);
  }
  // Its node may have another one.
  const [group] = groups as [number];
  await change(group, [{ replica: replicaId(1, 1), to: 'learner' }]);
  const again = await first.open(group, joiningPosition, 1);
  await until(() => again.engine.appliedIndexOf(group) > 0);
  await appendUntilDone(group, 'again');
  const leader = leaderOf(group)!;
  const isSame = (): boolean =>
    again.engine.appliedIndexOf(group) === leader.engine.appliedIndexOf(group);
  await until(isSame);
  expect(await listOf(again)).toEqual(await listOf(leader));
});

async function growAndShrink(group: number): Promise<void> {
  await change(group, changeOf('learner', 2, 3));
  for (const node of nodes.slice(1)) await node.open(group, joiningPosition);
  const isThere = ({ number }: Node): boolean =>
    (nodes[number - 1]!.groups.get(group)?.engine.appliedIndexOf(group) ?? 0) > 0;
  await until(() => nodes.slice(1).every(isThere));
  await change(group, changeOf('voter', 2, 3));
  await until(() => {
    const { voters: now, outgoing } = membersOf(group);
    return now.length === 3 && outgoing.length === 0;
  });
  await until(() => {
    const leader = leaderOf(group);
    if (leader === nodes[2]!.groups.get(group)) return true;
    leader?.log.transfer(replicaId(3));
    return false;
  });
  await change(group, changeOf('removed', 1, 2));
  await until(() => membersOf(group).voters.length === 1);
}
