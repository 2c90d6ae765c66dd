// Pods that evaluate ahead of the commit, over three replicas of one log, while leaders are cut off and replaced.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { realDisk } from '../../disk/real-disk.ts';
import { loadEngineModule, WasmRaftEngine } from '../engine/wasm-engine.ts';
import type { LogListener, LogRole, Outcome, StateSnapshot } from '../partition-log.ts';
import { Random } from '../simulation/timeline.ts';
import { entryOpsAt } from '../tick-entry.ts';
import { Links } from '../transport/links-fixture.ts';
import type { OpenGroupOptions } from './group-opening.ts';
import { firstPosition } from './log-position.ts';
import { RaftHost } from './raft-host.ts';
import { RaftLog } from './raft-log.ts';
import type { RaftPod } from './raft-pod.ts';
import { replicaId } from './replica-id.ts';
import type { StateMachine } from './state-machine.ts';
import { until } from '../../../test/support/until.ts';

const module = loadEngineModule();
const nodeNumbers = [1, 2, 3];

/** Its rows are the values that were written, in order. */
class ModelPod implements LogListener {
  rows: string[] = [];
  index = 0;
  role: LogRole = 'follower';
  log!: RaftLog;
  host!: RaftHost;
  /** Evaluated, and not committed. */
  #ahead: { position: number; values: string[] }[] = [];
  readonly node: number;
  /** Whether it undoes at once, and continues with commands in the following microtasks. */
  readonly #isEager: boolean;

  constructor(node: number, isEager: boolean) {
    this.node = node;
    this.#isEager = isEager;
  }

  async start(root: string, links: Links, electionTicks: number): Promise<void> {
    this.host = await RaftHost.open({
      disk: realDisk,
      directory: join(root, String(this.node)),
      ids: { cluster: 1, node: this.node },
      transport: links.of(this.node),
      onFatal: (error) => {
        throw error;
      },
      tickMs: 5,
      electionTicks,
      heartbeatTicks: 2,
      engine: new WasmRaftEngine(module),
      limits: { keptEntries: 5, readTicks: 40, maxEntryBytes: 1 << 20 },
    });
    this.log = new RaftLog({
      pod: this.host.pod,
      group: 1,
      replica: replicaId(this.node),
      first: firstPosition(nodeNumbers.map((node) => replicaId(node))),
      durableIndex: this.index,
    });
    this.log.listen(this);
  }

  /** A tick of the pod; the outcome of its values. */
  write(values: readonly string[]): Promise<Outcome> {
    for (const value of values) {
      this.log.begin();
      const { writer } = this.log;
      writer.reserve(value.length + 1);
      writer.pos += writer.buf.write(`${value};`, writer.pos);
      this.log.end();
    }
    const position = this.log.endTick(Date.now());
    if (values.length > 0) this.#ahead.push({ position, values: [...values] });
    return new Promise((resolve) => this.log.whenSettled(position, resolve));
  }

  get seen(): string[] {
    return [...this.rows, ...this.#ahead.flatMap(({ values }) => values)];
  }

  async apply(entry: Buffer, index: number): Promise<void> {
    expect(this.#ahead).toEqual([]);
    expect(index).toBeGreaterThan(this.index);
    const text = entry.toString('latin1', entryOpsAt);
    // A pod that reads from disk takes its time.
    if (index % 3 === 0) await new Promise(setImmediate);
    this.rows.push(...text.split(';').slice(0, -1));
    this.index = index;
    if (index % 20 === 0) this.log.truncate(index);
  }

  committed(position: number, index: number): void {
    // Ticks that were gathered are committed together.
    expect(this.#ahead[0]!.position).toBeLessThanOrEqual(position);
    expect(index).toBeGreaterThan(this.index);
    while (this.#ahead.length > 0 && this.#ahead[0]!.position <= position) {
      this.rows.push(...this.#ahead.shift()!.values);
    }
    this.index = index;
    if (index % 20 === 0) this.log.truncate(index);
  }

  lost(position: number): void | Promise<void> {
    const undo = (): void => {
      this.#ahead = this.#ahead.filter((one) => one.position < position);
    };
    if (!this.#isEager) return new Promise(setImmediate).then(undo);
    undo();
    void this.#goOn(position);
  }

  async #goOn(position: number): Promise<void> {
    for (let i = 0; i < 8 && this.role === 'leader'; i++) {
      await Promise.resolve();
      if (this.role === 'leader') void this.write([`after ${this.node}.${position}.${i}`]);
    }
  }

  roleChanged(role: LogRole): void {
    if (role === 'leader') expect(this.#ahead).toEqual([]);
    this.role = role;
  }

  exportSnapshot(): StateSnapshot {
    const rows = [...this.rows];
    async function* batches(): AsyncGenerator<Buffer> {
      for (let at = 0; at < rows.length; at += 50) {
        yield await Promise.resolve(Buffer.from(JSON.stringify(rows.slice(at, at + 50))));
      }
    }
    return { index: this.index, batches: batches() };
  }

  async installSnapshot({ index, batches }: StateSnapshot): Promise<void> {
    const rows: string[] = [];
    for await (const batch of batches) rows.push(...(JSON.parse(batch.toString()) as string[]));
    this.rows = rows;
    this.index = index;
  }
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

let pods: ModelPod[] = [];
let root = '';
afterEach(async () => {
  for (const { host } of pods) await host.close();
  rmSync(root, { recursive: true, force: true });
});

async function start(isEager = false, electionTicks = 10): Promise<Links> {
  root = mkdtempSync(join(tmpdir(), 'raft-log-'));
  const links = new Links();
  pods = nodeNumbers.map((node) => new ModelPod(node, isEager));
  for (const pod of pods) await pod.start(root, links, electionTicks);
  await until(() => pods.some(({ role }) => role === 'leader'));
  return links;
}

const leader = (): ModelPod | undefined => pods.find(({ role }) => role === 'leader');

test.each([
  ['that take their time to undo', false],
  ['that undo at once, and go on', true],
])('whatever happens to leaders of pods %s, outcomes are true and pods agree', async (_, eager) => {
  const links = await start(eager);
  const random = new Random(7);
  const told: { value: string; outcome: Outcome }[] = [];
  const reads: Promise<unknown>[] = [];
  let acknowledged = 0;
  for (let step = 0; step < 400; step++) {
    if (random.chance(0.02)) links.cut.add(random.pick(nodeNumbers));
    if (random.chance(0.05)) links.cut.clear();
    if (random.chance(0.02)) leader()?.log.transfer(replicaId(random.pick(nodeNumbers)));
    const pod = random.chance(0.9)
      ? random.pick(pods.filter(({ role }) => role === 'leader'))
      : leader();
    if (pod && random.chance(0.7)) {
      const values = Array.from({ length: 1 + random.below(3) }, (_, i) => `${step}.${i}`);
      void pod.write(values).then((outcome) => {
        for (const value of values) told.push({ value, outcome });
        if (outcome === 'committed') acknowledged += values.length;
      });
    } else if (pod) {
      // A tick that only reads must see all that was acknowledged before.
      const before = acknowledged;
      const seen = pod.seen.length;
      reads.push(
        pod.write([]).then((outcome) => {
          if (outcome === 'committed') expect(seen).toBeGreaterThanOrEqual(before);
        }),
      );
    }
    await pause(random.below(6));
  }
  links.cut.clear();
  await until(() => leader() !== undefined);
  let last: Outcome = 'unknown';
  for (let tries = 0; last !== 'committed' && tries < 100; tries++) {
    last = (await leader()?.write([`last ${tries}`])) ?? 'unknown';
    if (last !== 'committed') await pause(50);
  }
  expect(last).toBe('committed');
  await Promise.all(reads);
  const longest = (): string[] => leader()?.rows ?? [];
  await until(() => pods.every(({ rows }) => rows.length === longest().length));
  for (const { rows } of pods) expect(rows).toEqual(longest());
  const rows = new Set(longest());
  expect(rows.size).toBe(longest().length);
  expect(told.filter(({ outcome }) => outcome === 'committed').length).toBeGreaterThan(50);
  for (const { value, outcome } of told) {
    if (outcome === 'committed') expect(rows).toContain(value);
    if (outcome === 'lost') expect(rows).not.toContain(value);
  }
});

test('ticks that find entries under way become one entry', async () => {
  await start();
  const { log } = leader()!;
  const before = leader()!.index;
  const outcomes = Array.from({ length: 20 }, (_, i) => leader()!.write([`a${i}`, `b${i}`]));
  // An entry ends while a tick is under way, which has written and has no position yet.
  log.begin();
  log.writer.pos += log.writer.buf.write('open;', log.writer.pos);
  log.end();
  await until(() => leader()!.index > before);
  expect(leader()!.rows.slice(-4)).not.toContain('open');
  outcomes.push(leader()!.write(['end']), leader()!.write([]));
  expect(new Set(await Promise.all(outcomes))).toEqual(new Set(['committed']));
  expect(leader()!.index - before).toBeLessThan(10);
  const pending = log.endTick(Date.now());
  expect(log.isCommitted(pending)).toBe(false);
  await new Promise((resolve) => log.whenSettled(pending, resolve));
  expect(log.isCommitted(pending)).toBe(true);
  await until(() => pods.every(({ rows }) => rows.at(-1) === 'end'));
  const others = pods.filter((pod) => pod !== leader());
  for (const { rows } of others) expect(rows).toContain('open');
});

test('ticks wait for a change of members, and none is lost', async () => {
  // A busy machine must not cause an election.
  await start(false, 400);
  const one = leader()!;
  const { log } = one;
  const out = pods.find((pod) => pod !== one)!;
  const change = [{ replica: replicaId(out.node), to: 'removed' }] as const;
  expect(log.changeMembers(change)).toBe(true);
  expect(log.changeMembers(change)).toBe(false);
  // More than one entry may have.
  const values = Array.from({ length: 30 }, (_, i) => `${i} ${'x'.repeat(100_000)}`);
  const outcomes = values.map((value) => one.write([value]));
  // The change may end while a tick is under way, which has written and has no position yet.
  log.begin();
  log.writer.pos += log.writer.buf.write('open;', log.writer.pos);
  log.end();
  await until(() => log.status().replication!.members.voters.length === 2);
  expect(one.rows).toEqual([]);
  outcomes.push(one.write(['end']));
  expect(new Set(await Promise.all(outcomes))).toEqual(new Set(['committed']));
  const other = pods.find((pod) => pod !== one && pod !== out)!;
  await until(() => other.rows.at(-1) === 'end');
  expect(other.rows).toEqual([...values, 'open', 'end']);
});

test('what waits for a change that removes the leader is lost and undone, and so are reads after it', async () => {
  await start(false, 400);
  const one = leader()!;
  expect(one.log.changeMembers([{ replica: replicaId(one.node), to: 'removed' }])).toBe(true);
  const outcomes: Promise<Outcome>[] = [];
  for (let i = 0; i < 10; i++) {
    outcomes.push(one.write([`${i} ${'x'.repeat(100_000)}`]), one.write([]));
  }
  expect(new Set(await Promise.all(outcomes))).toEqual(new Set(['lost']));
  await until(() => one.role !== 'leader');
  expect(one.seen).toEqual([]);
  await until(() => leader() !== undefined);
  expect(await leader()!.write(['next'])).toBe('committed');
  expect(leader()!.rows).toEqual(['next']);
});

test('what an entry takes of the log is counted, for checkpoints are due by it', async () => {
  await start();
  const writer = leader()!;
  const before = writer.log.writtenBytes;
  for (let i = 0; i < 10; i++) await writer.write(['x'.repeat(1000)]);
  const small = writer.log.writtenBytes - before;
  expect(small).toBeGreaterThan(10_000);
  expect(small).toBeLessThan(13_000);
  await writer.write(Array.from({ length: 50 }, () => 'y'.repeat(1000)));
  expect(writer.log.writtenBytes - before - small).toBeLessThan(52_000);
});

test('what was applied is read back, and a pod that opens again is told the rest', async () => {
  const links = await start();
  const writer = leader()!;
  for (let i = 0; i < 10; i++) expect(await writer.write([`a${i}`, `b${i}`])).toBe('committed');
  const entries: string[] = [];
  const { index, log } = writer;
  for await (const { buf, start: from, end } of log.readBack(index - 3, index)) {
    entries.push(buf.toString('latin1', from, end));
  }
  expect(entries).toEqual(['a7;b7;', 'a8;b8;', 'a9;b9;']);
  const status = writer.log.status();
  expect(status.replication).toMatchObject({ pendingPositions: 0, pendingBytes: 0 });

  const other = pods.find((pod) => pod !== writer)!;
  await until(() => other.rows.length === 20);
  await other.host.close();
  // Its engine had a checkpoint of half of it.
  other.index -= 5;
  other.rows = other.rows.slice(0, 10);
  await other.start(root, links, 10);
  await until(() => other.rows.length === 20);
  expect(other.rows).toEqual(leader()?.rows ?? []);
});

test('a log that is closed gives up the snapshot that its pod installs, and waits for that', async () => {
  let machine!: StateMachine;
  const openGroup = (o: OpenGroupOptions): unknown => {
    ({ machine } = o);
    return { setLeases: () => undefined };
  };
  const log = new RaftLog({
    pod: { openGroup, closeGroup: () => undefined } as unknown as RaftPod,
    ...{ group: 1, replica: replicaId(1), first: firstPosition([replicaId(1)]), durableIndex: 0 },
  });
  const pod = new ModelPod(1, false);
  const events: string[] = [];
  pod.installSnapshot = async ({ batches }) => {
    try {
      for await (const _ of batches) await new Promise(setImmediate);
      events.push('whole');
    } finally {
      // An engine takes its time to give up what it has taken.
      await new Promise(setImmediate);
      events.push('ended');
    }
  };
  log.listen(pod);
  async function* endless(): AsyncGenerator<Uint8Array> {
    for (;;) yield await Promise.resolve(Buffer.from('[]'));
  }
  const install = machine.install({ index: 5, chunks: endless() });
  const failed = expect(install).rejects.toThrow('closed');
  await new Promise(setImmediate);
  await log.close();
  events.push('closed');
  expect(events).toEqual(['ended', 'closed']);
  expect(log.lastIndex).toBe(0);
  await failed;
});
