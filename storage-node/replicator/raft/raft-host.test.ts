// Nodes on a real disk and in real time, messages handed over in memory.

import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { realDisk } from '../../disk/real-disk.ts';
import { loadEngineModule, WasmRaftEngine } from '../engine/wasm-engine.ts';
import type { Outcome } from '../partition-log.ts';
import { Links } from '../transport/links-fixture.ts';
import { RaftHost } from './raft-host.ts';
import { firstPosition } from './log-position.ts';
import type { RaftGroup } from './raft-group.ts';
import { RegisterMachine } from './register-fixture.ts';
import { replicaId } from './replica-id.ts';
import { until } from '../../../test/support/until.ts';

type HostOptions = Parameters<typeof RaftHost.open>[0];

const module = loadEngineModule();

class TestNode {
  host!: RaftHost;
  groups: RaftGroup[] = [];
  machines: RegisterMachine[] = [];
  readonly outcomes: Outcome[] = [];
  readonly node: number;
  readonly #directory: string;
  readonly #links: Links;

  constructor(node: number, root: string, links: Links) {
    this.node = node;
    this.#directory = join(root, String(node));
    this.#links = links;
  }

  async start(
    groups: number,
    options: Partial<Pick<HostOptions, 'segmentBytes' | 'maxLogBytes' | 'fsync'>> = {},
  ) {
    this.host = await RaftHost.open({
      disk: realDisk,
      directory: join(this.#directory, 'wal'),
      ids: { cluster: 1, node: this.node },
      transport: this.#links.of(this.node),
      onFatal: (error) => {
        throw error;
      },
      tickMs: 10,
      electionTicks: 10,
      heartbeatTicks: 2,
      engine: new WasmRaftEngine(module),
      limits: { checkpointEntries: 50, keptEntries: 10, idleTicks: 10 },
      ...options,
    });
    const first = firstPosition([1, 2, 3].map((node) => replicaId(node)));
    this.machines = [];
    this.groups = Array.from({ length: groups }, (_, i) => {
      const rows = join(this.#directory, 'rows');
      const machine = new RegisterMachine(realDisk, rows, `group-${i}`);
      this.machines.push(machine);
      const group = this.host.openGroup({
        group: i + 1,
        replica: replicaId(this.node),
        first,
        machine,
        listener: {
          onOutcome: (_position, outcome) => void this.outcomes.push(outcome),
          onRole: () => undefined,
        },
      });
      machine.onDurable = (index) => group.stateIsDurable(index);
      return group;
    });
  }

  get segments(): number {
    return readdirSync(join(this.#directory, 'wal')).filter((name) => name.startsWith('seg'))
      .length;
  }
}

const open: TestNode[] = [];
const roots: string[] = [];
afterEach(async () => {
  for (const { host } of open.splice(0)) await host.close();
  for (const root of roots.splice(0)) rmSync(root, { recursive: true });
});

function nodes(count: number): TestNode[] {
  const root = mkdtempSync(join(tmpdir(), 'raft-host-'));
  roots.push(root);
  const links = new Links();
  const all = Array.from({ length: count }, (_, i) => new TestNode(i + 1, root, links));
  open.push(...all);
  return all;
}

const leaderOf = (all: TestNode[], group: number): RaftGroup | undefined =>
  all.map(({ groups }) => groups[group]!).find(({ role }) => role === 'leader');

test('groups share a log on disk, and have their entries again after a restart', async () => {
  const groups = 20;
  const all = nodes(3);
  for (const node of all) await node.start(groups);
  const each = Array.from({ length: groups }, (_, i) => i);
  await until(() => each.every((group) => leaderOf(all, group)));
  for (const group of each) {
    const position = leaderOf(all, group)!.propose(Buffer.from(`name=of group ${group}`));
    expect(position).toBeGreaterThan(0);
  }
  const committed = (): number => all.flatMap(({ outcomes }) => outcomes).length;
  await until(() => committed() === groups);
  for (const { outcomes } of all) expect(new Set(outcomes).size).toBeLessThanOrEqual(1);

  for (const node of all) await node.host.close();
  for (const node of all) await node.start(groups);
  await until(() => each.every((group) => leaderOf(all, group)));
  const hasIt = ({ machines }: TestNode): boolean =>
    each.every((group) => machines[group]!.registers.get('name') === `of group ${group}`);
  await until(() => all.every(hasIt));
});

test('segments go once no group needs them; a group that writes seldom does not keep them', async () => {
  const all = nodes(3);
  const sizes = { segmentBytes: 16 * 1024, maxLogBytes: 64 * 1024 };
  for (const node of all) await node.start(2, sizes);
  await until(() => leaderOf(all, 0) !== undefined && leaderOf(all, 1) !== undefined);
  // On a busy machine another one may lead in between.
  await until(() => {
    leaderOf(all, 1)?.propose(Buffer.from('seldom=written'));
    return all.every(({ machines }) => machines[1]!.registers.get('seldom') === 'written');
  });
  const value = 'x'.repeat(1000);
  let written = 0;
  for (; written < 400; written++) {
    const leader = leaderOf(all, 0);
    leader?.propose(Buffer.from(`key ${written}=${value}`));
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
  const isShort = ({ segments }: TestNode): boolean => segments < 15;
  await until(() => all.every(isShort));
  expect(all[0]!.machines[1]!.registers.get('seldom')).toBe('written');
  for (const node of all) await node.host.close();
  for (const node of all) await node.start(2, sizes);
  await until(() => leaderOf(all, 1) !== undefined);
  for (const { machines } of all) expect(machines[1]!.registers.get('seldom')).toBe('written');
});

test('after a stop of one node the others go on, and it catches up when it is back', async () => {
  const all = nodes(3);
  for (const node of all) await node.start(1);
  await until(() => leaderOf(all, 0) !== undefined);
  const down = all.find(({ groups }) => groups[0]!.role === 'leader')!;
  await down.host.close();
  const up = all.filter((node) => node !== down);
  await until(() => leaderOf(up, 0) !== undefined);
  // More than is kept for those that are behind: it is sent a snapshot. On a busy machine others lead in between.
  for (let i = 0; !up.some(({ outcomes }) => outcomes.length >= 150); i++) {
    leaderOf(up, 0)?.propose(Buffer.from(`key ${i}=x`));
    await new Promise((resolve) => setTimeout(resolve, 3));
  }
  await down.start(1);
  await until(() => {
    leaderOf(all, 0)?.propose(Buffer.from('last=x'));
    return down.machines[0]!.registers.get('last') === 'x';
  });
  expect(down.machines[0]!.registers.get('key 0')).toBe('x');
});

test.each([false, true])(
  'no time passes for groups that sleep, until there is a write or their leader is gone (leases: %s)',
  async (hasLeases) => {
    const all = nodes(3);
    for (const node of all) await node.start(2, { fsync: 'everysec' });
    for (const { groups } of all) for (const group of groups) group.setLeases(hasLeases);
    const leads = (among: TestNode[]) => (): boolean =>
      [0, 1].every((group) => leaderOf(among, group) !== undefined);
    const isStill = (): boolean => all.every(({ host }) => !host.isTicking);
    await until(leads(all));
    await until(isStill);
    expect(all.map(({ host }) => host.pod.asleep)).toEqual([2, 2, 2]);
    leaderOf(all, 0)!.propose(Buffer.from('name=value'));
    const hasIt = ({ machines }: TestNode): boolean =>
      machines[0]!.registers.get('name') === 'value';
    await until(() => all.every(hasIt));
    await until(isStill);
    // What was written is on disk by then.
    for (const { host } of all) {
      const { appendedLsn, durableLsn } = host.pod.status();
      expect(durableLsn).toBe(appendedLsn);
    }
    const down = all.find(({ groups }) => groups[0]!.role === 'leader')!;
    await down.host.close();
    await until(leads(all.filter((node) => node !== down)));
  },
);

test('of many groups few look for a leader at a time, and the table of all does not fill the segments of the log', async () => {
  const [node] = nodes(1);
  await node!.start(400, { segmentBytes: 4096 });
  const { pod } = node!.host;
  expect(pod.openGroups - pod.asleep).toBe(256);
  // The table of 400 groups is longer than a segment should be.
  expect(pod.status().bytes).toBeGreaterThan(10 * 4096);
  expect(node!.segments).toBeLessThan(20);
});
