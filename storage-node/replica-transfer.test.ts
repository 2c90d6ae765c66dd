// A pod over the log of one replica, of whose group the test is the rest: every step is the test's, and so is its order.
// Leaders go by plan and without notice, with ticks open, under way, or refused.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as nextTick } from 'node:timers/promises';
import { afterAll, describe, expect, test } from 'vitest';
import { RecordBatchWriter } from '../universal-row/record-batch.ts';
import { applyBatch, applyOps } from '../engines/apply.ts';
import { assertSameContents, decodeSnapshot } from '../engines/conformance/contents.ts';
import type { Engine } from '../engines/engine.ts';
import { KvEngine } from '../engines/kv/kv-engine.ts';
import { MemoryEngine } from '../engines/memory/memory-engine.ts';
import { MemoryDisk } from '../engines/memory/testing/memory-disk.ts';
import { Random } from '../engines/memory/testing/oracle.ts';
import { applySlice } from './apply-slice.ts';
import { commandOf, TestClock, TextReply } from './pod-fixture.ts';
import { Pod } from './pod.ts';
import { firstPosition } from './replicator/raft/log-position.ts';
import { RaftLog } from './replicator/raft/raft-log.ts';
import type { RaftPod } from './replicator/raft/raft-pod.ts';
import { replicaId } from './replicator/raft/replica-id.ts';
import type { StateMachine } from './replicator/raft/state-machine.ts';
import type { LogRole, Outcome } from './replicator/partition-log.ts';
import { entryOpsAt, TickEntry } from './replicator/tick-entry.ts';
import { noRules } from './table-rules.ts';

const group = 5;
const [own, other] = [replicaId(1), replicaId(2)];
const tables = new Map([0, 1].map((table) => [table, noRules]));
const root = mkdtempSync(join(tmpdir(), 'polyrow-transfer-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));
let directories = 0;

const models: Record<string, () => Engine> = {
  memory: () => new MemoryEngine({ directory: '/rows', disk: new MemoryDisk() }),
  kv: () => new KvEngine({ directory: join(root, String(directories++)), cacheBytes: 0 }),
};

interface Listener {
  onOutcome(position: number, outcome: Outcome): void;
  onRole(role: LogRole, leader: number): void;
}

/** Stands for the replica's part of the group, and for all others. */
class Rest {
  readonly committed: Buffer[] = [];
  /** Proposed, and without an outcome. */
  pending: { position: number; entry: Buffer }[] = [];
  failure: Error | undefined;
  machine!: StateMachine;
  listener!: Listener;
  role: LogRole = 'follower';
  /** The group has been asked to hand over: it takes no proposals meanwhile. */
  handsOverTo = 0;
  /** Every proposal is refused. */
  refuses = false;
  #applied = 0;
  #positions = 0;
  #timeouts: (() => void)[] = [];
  #barriers: ((isSafe: boolean) => void)[] = [];

  get pod(): RaftPod {
    const pod = {
      fsync: 'always',
      maxEntryBytes: 64 * 1024 * 1024,
      openGroup: (options: { machine: StateMachine; listener: Listener }) => {
        this.machine = options.machine;
        this.listener = options.listener;
        return this.#group;
      },
      closeGroup: () => undefined,
      sync: () => Promise.resolve(),
      fail: (error: Error) => {
        this.failure ??= error;
      },
    };
    return pod as unknown as RaftPod;
  }

  get #group(): object {
    const role = (): LogRole => this.role;
    const applied = (): number => this.#applied;
    return {
      keepAfter: Infinity,
      get role() {
        return role();
      },
      get appliedIndex() {
        return applied();
      },
      setLeases: () => undefined,
      stateIsDurable: () => undefined,
      readBarrier: (then: (isSafe: boolean) => void) => void this.#barriers.push(then),
      whenLeading: (then: () => void) => void this.#barriers.push(then),
      afterElectionTimeout: (then: () => void) => void this.#timeouts.push(then),
      transfer: (to: number) => {
        if (this.role === 'leader') this.handsOverTo = to;
      },
      proposeAlone: (entry: Buffer) => {
        if (this.role !== 'leader' || this.handsOverTo !== 0 || this.refuses) return -1;
        const position = ++this.#positions;
        this.pending.push({ position, entry });
        return position;
      },
    };
  }

  lead(): void {
    this.role = 'leader';
    this.listener.onRole('leader', own);
  }

  /** The replica leads no more. Which of its proposals are in the next leader's log is left open. */
  stepDown(leader: number): void {
    this.role = 'follower';
    this.handsOverTo = 0;
    this.listener.onRole('follower', leader);
  }

  answerReads(): void {
    for (const then of this.#barriers.splice(0)) then(true);
  }

  endTimeouts(): void {
    this.handsOverTo = 0;
    for (const then of this.#timeouts.splice(0)) then();
  }

  /** The first proposal of this replica is committed. */
  async commitOwn(isTold = true): Promise<void> {
    const { position, entry } = this.pending.shift()!;
    if (!isTold) this.listener.onOutcome(position, 'unknown');
    await this.#apply(entry, isTold ? position : 0);
    if (isTold) this.listener.onOutcome(position, 'committed');
  }

  loseOwn(): void {
    for (const { position } of this.pending.splice(0)) this.listener.onOutcome(position, 'lost');
  }

  async commitOther(key: string, value: string): Promise<void> {
    const entry = new TickEntry();
    entry.begin();
    putInto(entry.writer, key, value);
    entry.end();
    await this.#apply(entry.take(0)!, 0);
  }

  async #apply(entry: Buffer, position: number): Promise<void> {
    const index = this.committed.push(entry);
    await this.machine.apply(index, [entry], position);
    this.#applied = index;
  }

  /** All that is committed, with `more` entries that the replica gets no more, comes as a snapshot. */
  async install(more: number): Promise<void> {
    for (let i = 0; i < more; i++) {
      const entry = new TickEntry();
      entry.begin();
      putInto(entry.writer, `k${i}`, `snapshot ${this.committed.length}`);
      entry.end();
      this.committed.push(entry.take(0)!);
    }
    const index = this.committed.length;
    await this.machine.install({ index, chunks: this.reference().exportSnapshot() });
    this.#applied = index;
  }

  reference(): MemoryEngine {
    const engine = new MemoryEngine();
    for (const [i, entry] of this.committed.entries()) {
      applyBatch(engine, entry, entryOpsAt, entry.length, i + 1, group);
    }
    return engine;
  }
}

function putInto(writer: RecordBatchWriter, key: string, value: string): void {
  const [k, v] = [Buffer.from(key), Buffer.from(value)];
  writer.value(0, k, 0, k.length, v, 0, v.length, 0);
}

class Replicated {
  readonly rest = new Rest();
  readonly clock = new TestClock();
  readonly reports: string[] = [];
  readonly engine: Engine;
  log!: RaftLog;
  pod!: Pod;

  constructor(model: string) {
    this.engine = models[model]!();
  }

  async open(): Promise<void> {
    await this.engine.open();
    this.log = new RaftLog({
      pod: this.rest.pod,
      group,
      replica: own,
      first: firstPosition([own, other, replicaId(3)]),
      durableIndex: 0,
    });
    this.pod = new Pod({
      engine: this.engine,
      log: this.log,
      group,
      tables,
      clock: this.clock,
      rng: { next: () => 0.5 },
      maxMemoryBytes: Infinity,
      checkpointBytes: Infinity,
      report: (_level, message, fields) =>
        this.reports.push(`${message} ${String((fields as { err?: Error } | undefined)?.err)}`),
    });
  }

  /** Reads of the rows, and what the log tells the pod, take their turns. */
  async ticks(count = 4): Promise<void> {
    for (let i = 0; i < count; i++) await nextTick();
  }

  async lead(): Promise<void> {
    this.rest.lead();
    while (this.pod.role !== 'leader') {
      await nextTick();
      this.rest.answerReads();
    }
  }

  /** A command in the tick under way. */
  run(line: string): void {
    const done = this.pod.execute(commandOf(line, 0), new TextReply());
    if (done instanceof Promise) done.catch(() => undefined);
  }

  /** A write that no client asked for, whose tick stays open though it is no command's. */
  writeUnasked(key: string, value: string): void {
    const { engine, log } = this.pod.parts;
    const writer = new RecordBatchWriter();
    putInto(writer, key, value);
    log.begin();
    log.writer.reserve(writer.pos);
    writer.buf.copy(log.writer.buf, log.writer.pos, 0, writer.pos);
    log.writer.pos += writer.pos;
    applyOps(engine, writer.buf, 0, writer.pos);
    engine.commit(log.end());
  }

  /** All that is committed is in the rows, and nothing else. */
  async check(): Promise<void> {
    expect(this.rest.failure).toBeUndefined();
    expect(this.reports).toEqual([]);
    expect(this.engine.appliedIndexOf(group)).toBe(this.rest.committed.length);
    const expected = await decodeSnapshot(this.rest.reference().exportSnapshot());
    assertSameContents(await decodeSnapshot(this.engine.exportSnapshot()), expected, 'the replica');
  }
}

describe.each(Object.keys(models))('a planned transfer of a pod of model %s', (model) => {
  test.each([
    ['has written since it was paused', false],
    ['has written, and was refused by the group that hands over', true],
  ])('undoes what the pod %s', async (_, isEnded) => {
    const replica = new Replicated(model);
    const { rest } = replica;
    await replica.open();
    await replica.lead();
    replica.run('put k0 first');
    replica.pod.endTick();
    await rest.commitOwn();
    replica.log.transfer(other);
    await replica.ticks();
    expect(rest.handsOverTo).toBe(other);
    replica.writeUnasked('k1', 'unasked');
    if (isEnded) replica.pod.endTick();
    // The next leader's first entry comes with the news of it.
    rest.stepDown(other);
    await rest.commitOther('k0', 'second');
    await replica.ticks();
    await replica.check();
    await replica.pod.close();
  });

  test('takes along what a change has written that failed in the instant after', async () => {
    const replica = new Replicated(model);
    const { rest } = replica;
    await replica.open();
    await replica.lead();
    const writer = new RecordBatchWriter();
    putInto(writer, 'k0', 'slice');
    const failed = applySlice(replica.pod, writer.buf.subarray(0, writer.pos), {
      done: () => {
        throw new Error('a row has to be read');
      },
    });
    await expect(failed).rejects.toThrow('a row has to be read');
    replica.log.transfer(other);
    await replica.ticks();
    expect(rest.pending).toHaveLength(1);
    expect(rest.handsOverTo).toBe(0);
    await rest.commitOwn();
    await replica.ticks();
    expect(rest.handsOverTo).toBe(other);
    rest.stepDown(other);
    await rest.commitOther('k1', 'second');
    await replica.ticks();
    await replica.check();
    await replica.pod.close();
  });
});

test('a leadership that was over before the pod heard of it does not begin', async () => {
  const replica = new Replicated('memory');
  const { rest } = replica;
  await replica.open();
  rest.lead();
  rest.stepDown(other);
  await replica.ticks();
  // A follower's read is safe once the leader has answered.
  rest.answerReads();
  await replica.ticks();
  expect(replica.pod.role).toBe('follower');
  await rest.commitOther('k0', 'value');
  await replica.check();
  await replica.pod.close();
});

class History {
  readonly #random: Random;
  readonly #replica: Replicated;
  #writes = 0;
  leaderships = 0;
  handOvers = 0;

  constructor(seed: number, model: string) {
    this.#random = new Random(seed);
    this.#replica = new Replicated(model);
  }

  async run(steps: number): Promise<void> {
    const { rest, pod } = (await this.#replica.open(), this.#replica);
    for (let i = 0; i < steps; i++) {
      await this.#step();
      for (let ticks = this.#random.below(3); ticks > 0; ticks--) await nextTick();
    }
    // What is left is lost, and the next leader goes on.
    if (rest.role === 'leader') rest.stepDown(other);
    rest.refuses = false;
    rest.loseOwn();
    await this.#replica.ticks(10);
    await rest.commitOther('k0', 'last');
    await this.#replica.ticks(10);
    await this.#replica.check();
    await pod.close();
  }

  get #value(): string {
    return `v${++this.#writes}`;
  }

  async #step(): Promise<void> {
    const random = this.#random;
    const { rest, pod, log, clock } = this.#replica;
    const isLeader = pod.role === 'leader';
    const key = `k${random.below(5)}`;
    const kind = random.below(100);
    if (kind < 25) {
      const expires = random.below(3) === 0 ? ` ${clock.time + random.below(200)}` : '';
      this.#replica.run(`put ${key} ${this.#value}${expires}`);
    } else if (kind < 40) pod.endTick();
    else if (kind < 46) {
      clock.time += random.below(300);
      pod.maintain();
    } else if (kind < 52) {
      // As by a pod that does not look whether it is paused.
      if (isLeader && (pod.rowsReady === undefined || pod.isPaused)) await this.#unasked(key);
    } else if (kind < 57) {
      const writer = new RecordBatchWriter();
      putInto(writer, key, this.#value);
      const slice = writer.buf.subarray(0, writer.pos);
      if (isLeader) applySlice(pod, slice).catch(() => undefined);
    } else if (kind < 70) await this.#commit();
    else if (kind < 76) log.transfer(other);
    else if (kind < 80) rest.answerReads();
    else if (kind < 82) rest.refuses = !rest.refuses;
    else if (kind < 84) await pod.checkpoint();
    else if (kind < 87) rest.endTimeouts();
    else await this.#changeLeader();
  }

  /** Rows that are being read belong to others. */
  async #unasked(key: string): Promise<void> {
    const { pod } = this.#replica;
    if (pod.isPaused) await nextTick();
    try {
      if (pod.role === 'leader') this.#replica.writeUnasked(key, this.#value);
    } catch {
      this.#replica.pod.parts.log.abandon();
      this.#replica.pod.parts.engine.rollback();
    }
  }

  async #commit(): Promise<void> {
    const { rest } = this.#replica;
    if (rest.role === 'leader') {
      if (rest.pending.length > 0) await rest.commitOwn();
    } else if (this.#random.below(6) === 0) {
      rest.loseOwn();
      await rest.install(this.#random.below(3));
    } else await rest.commitOther(`k${this.#random.below(5)}`, this.#value);
  }

  async #changeLeader(): Promise<void> {
    const { rest } = this.#replica;
    const random = this.#random;
    if (rest.role !== 'leader') {
      this.leaderships++;
      rest.lead();
      return;
    }
    if (rest.handsOverTo === 0 && random.below(3) > 0) return;
    if (rest.handsOverTo !== 0) this.handOvers++;
    rest.stepDown(random.below(2) === 0 ? other : 0);
    // Some are in the next leader's log, of which this replica may be told late.
    for (let left = random.below(rest.pending.length + 1); left > 0; left--) {
      await rest.commitOwn(random.below(3) > 0);
    }
    if (random.below(2) === 0) await nextTick();
    rest.loseOwn();
    if (random.below(2) === 0) await rest.commitOther(`k${random.below(5)}`, this.#value);
  }
}

const full = process.env['POLYROW_FULL'] !== undefined;

test.each([
  ['memory', full ? 5000 : 150],
  ['kv', full ? 1000 : 40],
])(
  'whatever comes together at changes of leader, a pod of model %s has what is committed',
  async (model, histories) => {
    const only = process.env['POLYROW_SEED'];
    const first = process.env['CI'] ? 0 : Math.floor(Math.random() * 1e9);
    const seeds =
      only === undefined ? Array.from({ length: histories }, (_, i) => first + i) : [Number(only)];
    let [leaderships, handOvers] = [0, 0];
    for (const seed of seeds) {
      const history = new History(seed, model);
      try {
        await history.run(60);
      } catch (error) {
        throw new Error(`seed ${seed}`, { cause: error });
      }
      leaderships += history.leaderships;
      handOvers += history.handOvers;
    }
    expect(leaderships).toBeGreaterThan(0);
    if (only === undefined) expect(handOvers).toBeGreaterThan(0);
  },
  600_000,
);
