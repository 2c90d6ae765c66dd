// A node of a history: a pod of rows in memory over a replica of their log, one life after the other over its disk. Pod, log,
// engine and once-only writes are those of the server. What a pod server and a transport do around them is done here in short.

import { FaultyDisk } from '../disk/faulty-disk.ts';
import { MemoryEngine } from '../../engines/memory/memory-engine.ts';
import type { Command, NotRun } from '../../universal-row/command.ts';
import type { Clock } from '../../universal-row/environment.ts';
import type { Outcome } from '../../universal-row/executor.ts';
import { ValueWriter } from '../../universal-row/protocol/values.ts';
import { Pod } from '../pod.ts';
import { firstPosition } from '../replicator/raft/log-position.ts';
import { RaftLog } from '../replicator/raft/raft-log.ts';
import { RaftPod } from '../replicator/raft/raft-pod.ts';
import { nodeOfReplica, replicaId } from '../replicator/raft/replica-id.ts';
import type { EnginePool } from '../replicator/simulation/engine-pool.ts';
import type { Network } from '../replicator/simulation/network.ts';
import { Random, type Timeline } from '../replicator/simulation/timeline.ts';
import { noRules } from '../table-rules.ts';

export const group = 16;
export const tableNumbers = [0, 1, 2];

export interface RowsWorld {
  readonly timeline: Timeline;
  readonly network: Network;
  readonly engines: EnginePool;
  readonly random: Random;
  /** Numbers of all nodes, from 1 on. */
  readonly nodes: readonly number[];
  readonly limits: { readonly checkpointEntries: number; readonly keptEntries: number };
  readonly breach: (error: Error) => void;
}

/** What became of a command. */
export type Answer =
  | { readonly kind: 'done'; readonly values: Buffer }
  | { readonly kind: 'notRun'; readonly why: NotRun }
  /** Its outcome is unknown, or the node has ended. */
  | { readonly kind: 'unknown' };

interface Request {
  readonly command: Command;
  readonly then: (answer: Answer) => void;
}

interface Answered extends Request {
  readonly losses: number;
  readonly values: Buffer;
}

interface Life {
  readonly raft: RaftPod;
  readonly log: RaftLog;
  readonly pod: Pod;
  readonly engine: MemoryEngine;
  /** Answers of the tick under way. */
  answered: Answered[];
  /** Requests that have come, or been begun, and have no answer. */
  readonly open: Set<Request>;
}

const tickMs = 50;
/** Ticks without a ping after which a node counts as down. */
const silentTicks = 25;

export class RowsNode {
  readonly number: number;
  /** Starts so far. */
  lives = 0;
  readonly #world: RowsWorld;
  readonly #clock: Clock;
  #disk: FaultyDisk;
  #life: Life | undefined;
  #starting = false;
  #hasEnded = false;
  #pausedUntil = 0;
  #inbox: (Uint8Array | Request)[] = [];
  #isScheduled = false;
  /** By node: ticks since it was last heard of. */
  readonly #silence = new Map<number, number>();

  constructor(world: RowsWorld, number: number) {
    this.#world = world;
    this.number = number;
    const { timeline, random } = world;
    this.#clock = { now: () => 1_000_000 + timeline.now, monotonic: () => timeline.now };
    const syncTime = (): Promise<void> => timeline.sleep(0.1 + random.next() * 6);
    this.#disk = new FaultyDisk({ rng: new Random(random.below(2 ** 32)), syncTime });
  }

  get life(): Life | undefined {
    return this.#life;
  }

  get isPaused(): boolean {
    return this.#world.timeline.now < this.#pausedUntil;
  }

  async start(): Promise<void> {
    if (this.#life !== undefined || this.#starting) return;
    this.#starting = true;
    const { engines, random, nodes, limits, breach } = this.#world;
    const lives = ++this.lives;
    const isCurrent = (): boolean => this.lives === lives && !this.#hasEnded;
    this.#hasEnded = false;
    const disk = this.#disk;
    const fatal = (error: Error): void => {
      if (isCurrent()) breach(error);
    };
    const engine = new MemoryEngine({ directory: '/rows', disk, clock: this.#clock });
    await engine.open();
    const raft = await RaftPod.open({
      ...{ disk, directory: '/log', ids: { cluster: 1, pod: this.number }, fsync: 'everysec' },
      rng: new Random(random.below(2 ** 32)),
      engine: engines.take(new Random(random.below(2 ** 32))),
      ...{ boot: 'one', segmentBytes: 256 * 1024, ballastBytes: 0, clock: this.#clock, tickMs },
      ...{ electionTicks: 20, heartbeatTicks: 3, payloadCacheBytes: 16 * 1024 },
      limits: { ...limits, maxMessageBytes: 8 * 1024 },
      send: (to, _lane, bytes) => {
        if (!isCurrent()) return false;
        this.#world.network.send(this.number, nodeOfReplica(to), Uint8Array.from(bytes));
        return true;
      },
      wake: () => {
        if (isCurrent()) this.#schedule();
      },
      fatal,
    });
    if (!isCurrent()) return;
    const log = new RaftLog({
      ...{ pod: raft, group, replica: replicaId(this.number) },
      first: firstPosition(nodes.map((number) => replicaId(number))),
      durableIndex: engine.appliedIndexOf(group),
    });
    const pod = new Pod({
      ...{ engine, log, group, clock: this.#clock },
      tables: new Map(tableNumbers.map((table) => [table, noRules])),
      rng: { next: () => 0.5 },
      ...{ maxMemoryBytes: Infinity, checkpointBytes: Infinity },
      report: (level, message, fields) => {
        if (level === 'error' && isCurrent()) breach(new Error(`${message} ${describe(fields)}`));
      },
    });
    this.#starting = false;
    this.#life = { raft, log, pod, engine, answered: [], open: new Set() };
    this.#inbox = [];
    this.#tick(lives);
  }

  /** The process ends at once: what it has written stays. */
  kill(): void {
    if (this.#life === undefined) return;
    const { open } = this.#life;
    this.#life = undefined;
    this.#hasEnded = true;
    this.#pausedUntil = 0;
    this.#silence.clear();
    this.#disk = this.#disk.kill();
    const requests = [...open, ...this.#inbox.filter((one) => 'then' in one)] as Request[];
    this.#inbox = [];
    for (const { then } of requests) then({ kind: 'unknown' });
  }

  /** The process stands still for so long. */
  pause(ms: number): void {
    this.#pausedUntil = this.#world.timeline.now + ms;
    this.#world.timeline.after(ms, () => this.#schedule());
  }

  resume(): void {
    this.#pausedUntil = 0;
    this.#schedule();
  }

  receive(bytes: Uint8Array): void {
    if (this.#life === undefined) return;
    this.#inbox.push(bytes);
    this.#schedule();
  }

  /** A command of a gateway has come. */
  request(command: Command, then: (answer: Answer) => void): void {
    if (this.#life === undefined) {
      then({ kind: 'unknown' });
      return;
    }
    this.#inbox.push({ command, then });
    this.#schedule();
  }

  #tick(life: number): void {
    if (this.lives !== life || this.#life === undefined) return;
    if (!this.isPaused) {
      this.#ping();
      this.#life.pod.maintain();
      this.#life.raft.tick();
      this.#schedule();
    }
    this.#world.timeline.after(tickMs, () => this.#tick(life));
  }

  /** As the transport does: tells the pod of silent nodes, and of those that are heard again. */
  #ping(): void {
    const { nodes, network } = this.#world;
    for (const node of nodes) {
      if (node === this.number) continue;
      network.send(this.number, node, Uint8Array.of(this.number));
      const silence = this.#silence.get(node);
      if (silence === undefined) continue;
      if (silence < silentTicks) this.#silence.set(node, silence + 1);
      else {
        this.#silence.delete(node);
        this.#life!.raft.nodeDown(node);
      }
    }
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    this.#world.timeline.after(0, () => {
      this.#isScheduled = false;
      if (this.#life !== undefined && !this.isPaused) this.#turn(this.#life);
    });
  }

  /** One round of the event loop. */
  #turn(life: Life): void {
    try {
      for (const one of this.#inbox.splice(0)) {
        if ('then' in one) this.#run(life, one);
        else this.#take(life, one);
      }
      this.#endTick(life);
      if (life.raft.work()) this.#schedule();
    } catch (error) {
      this.#world.breach(error as Error);
    }
  }

  #take({ raft }: Life, bytes: Uint8Array): void {
    if (bytes.length > 1) {
      raft.receive(bytes);
      return;
    }
    const node = bytes[0]!;
    if (!this.#silence.has(node)) raft.nodeUp(node);
    this.#silence.set(node, 0);
  }

  /** As a pod server does (gateway-requests.ts). */
  #run(life: Life, request: Request): void {
    const { pod, open } = life;
    const { command } = request;
    const { losses } = pod;
    const reply = new ValueWriter(64);
    command.notRun = undefined;
    open.add(request);
    const answer = (own: ValueWriter): void => {
      if (command.notRun !== undefined) {
        open.delete(request);
        request.then({ kind: 'notRun', why: command.notRun });
        return;
      }
      const answered = { ...request, losses, values: Buffer.from(own.view()) };
      life.answered.push(answered);
      open.delete(request);
      open.add(answered);
    };
    const done = pod.execute(command, reply);
    if (!(done instanceof Promise)) {
      answer(reply);
      return;
    }
    done.then(
      (own) => {
        if (this.#life !== life) return;
        answer((own ?? reply) as ValueWriter);
        this.#schedule();
      },
      (error: unknown) => {
        if (this.#life === life) this.#world.breach(error as Error);
      },
    );
  }

  #endTick(life: Life): void {
    const { pod, open, answered } = life;
    life.answered = [];
    const position = pod.flushTick();
    const settle =
      (one: Answered) =>
      (outcome: Outcome): void => {
        if (this.#life !== life) return;
        open.delete(one);
        one.then(
          outcome === 'committed' ? { kind: 'done', values: one.values } : { kind: 'unknown' },
        );
      };
    for (const one of answered) {
      if (one.losses !== pod.losses) settle(one)('unknown');
      else if (position < 0) settle(one)('committed');
      else pod.whenSettled(position, settle(one));
    }
  }
}

function describe(fields: object | undefined): string {
  const error = (fields as { err?: Error } | undefined)?.err;
  return error?.message ?? '';
}
