// A node of a history: one life after the other of the real driver and engine over its disk.

import { FaultyDisk } from '../../disk/faulty-disk.ts';
import { decodePeerMessage } from '../raft/peer-message.ts';
import { firstPosition, RaftPod } from '../raft/raft-pod.ts';
import type { RaftGroup } from '../raft/raft-group.ts';
import type { LogPosition } from '../raft/state-machine.ts';
import { WasmRaftEngine } from '../engine/wasm-engine.ts';
import { emptyConf, MessageType } from '../engine/frames.ts';
import type { Checker } from './checker.ts';
import type { Defect } from './defects.ts';
import { SimulatedMachine } from './machine.ts';
import type { Network } from './network.ts';
import { Random } from './timeline.ts';
import type { Timeline } from './timeline.ts';

export interface NodeWorld {
  module: ConstructorParameters<typeof WasmRaftEngine>[0];
  timeline: Timeline;
  network: Network;
  checker: Checker;
  random: Random;
  defect: Defect;
  tickMs: number;
  /** Milliseconds that a sync takes at most. */
  syncMs: number;
  breach: (error: Error) => void;
  /** The node has answered a vote or an append. */
  promised: (node: SimulatedNode, isVote: boolean) => void;
}

const groupNumber = 7;
const nodesApart = 1000;

/** Replica ids tell the node: none is used twice. */
export const nodeOf = (replica: number): number => Math.floor(replica / nodesApart);
export const replicaOf = (node: number, count: number): number => node * nodesApart + count;

interface Life {
  pod: RaftPod;
  group: RaftGroup;
  machine: SimulatedMachine;
  /** Ids of the proposals, by position. */
  proposed: Map<number, number>;
}

export class SimulatedNode {
  readonly id: number;
  readonly replica: number;
  readonly #world: NodeWorld;
  #disk: FaultyDisk;
  #life: Life | undefined;
  #generation = 0;
  #pausedUntil = 0;
  #inbox: Uint8Array[] = [];
  #workDue = false;
  /** Of its clock against the world's. */
  #tickMs: number;

  constructor(world: NodeWorld, id: number, replica: number) {
    this.#world = world;
    this.id = id;
    this.replica = replica;
    this.#tickMs = world.tickMs * (0.8 + world.random.next() * 0.4);
    const rng = new Random(world.random.below(2 ** 32));
    const syncTime = (): Promise<void> =>
      world.timeline.sleep(0.1 + world.random.next() * world.syncMs);
    this.#disk = new FaultyDisk({ rng, syncTime });
  }

  get isUp(): boolean {
    return this.#life !== undefined;
  }

  get life(): Life | undefined {
    return this.#life;
  }

  /** `voters` of a group that begins; undefined for a replica that is to join. */
  async start(voters?: readonly number[]): Promise<void> {
    const { world, generation } = { world: this.#world, generation: ++this.#generation };
    const isCurrent = (): boolean => generation === this.#generation;
    const fatal = (error: Error): void => {
      if (isCurrent()) world.breach(error);
    };
    const random = new Random(world.random.below(2 ** 32));
    let clock = 0n;
    const engine = new WasmRaftEngine(world.module, {
      now: () => (clock += 1000n),
      random: (bytes) => random.bytes(bytes),
    });
    const disk = world.defect.disk(this.#disk);
    const pod = await RaftPod.open({
      disk,
      directory: '/log',
      ids: { cluster: 1, pod: this.id },
      rng: random,
      engine: world.defect.engine(engine),
      segmentBytes: 4096,
      electionTicks: 6,
      heartbeatTicks: 1,
      limits: {
        checkpointEntries: 12,
        keptEntries: 6,
        maxMessageBytes: 64,
        readTicks: 20,
        outcomeTicks: 40,
      },
      payloadCacheBytes: 64,
      send: (_group, to, bytes) => {
        if (isCurrent()) this.#send(to, bytes);
      },
      wake: () => {
        if (isCurrent()) this.#schedule();
      },
      fatal,
    });
    if (!isCurrent()) return;
    const first: LogPosition =
      voters === undefined ? { index: 0, term: 0, conf: emptyConf } : firstPosition(voters);
    const machine = new SimulatedMachine(
      disk,
      `/rows-${this.replica}`,
      this.replica,
      first,
      world.checker,
      fatal,
    );
    const proposed = new Map<number, number>();
    const group = pod.openGroup({
      group: groupNumber,
      replica: this.replica,
      machine: world.defect.machine(machine),
      listener: {
        onOutcome: (position, outcome, index) => {
          // What a node that has died would say reaches no client.
          if (isCurrent()) world.checker.outcome(proposed.get(position)!, outcome, index);
        },
        onRole: () => undefined,
      },
    });
    this.#life = { pod, group, machine, proposed };
    this.#tick(generation);
  }

  /** The power fails (`torn`), or the process ends. */
  crash(torn: boolean): void {
    if (this.#life === undefined) return;
    this.#generation++;
    this.#life = undefined;
    this.#inbox = [];
    this.#disk = torn ? this.#disk.crash() : this.#disk.kill();
  }

  /** Stops for so long, and then goes on as if nothing had been. */
  pause(ms: number): void {
    this.#pausedUntil = Math.max(this.#pausedUntil, this.#world.timeline.now + ms);
  }

  receive(bytes: Uint8Array): void {
    if (this.#life === undefined) return;
    this.#inbox.push(bytes);
    this.#schedule();
  }

  propose(ids: readonly number[]): boolean {
    if (!this.#life || this.#isPaused) return false;
    let taken = false;
    for (const id of ids) {
      const payload = Buffer.alloc(4 + (id % 40));
      payload.writeUInt32LE(id);
      const position = this.#life.group.propose(payload);
      if (position < 0) continue;
      this.#life.proposed.set(position, id);
      taken = true;
    }
    if (taken) this.#schedule();
    return taken;
  }

  read(): void {
    if (!this.#life || this.#isPaused) return;
    const { checker } = this.#world;
    const before = checker.acknowledged;
    const { machine, group } = this.#life;
    group.readBarrier((isSafe) => {
      if (isSafe) checker.read(this.replica, machine.index, before);
    });
    this.#schedule();
  }

  get #isPaused(): boolean {
    return this.#world.timeline.now < this.#pausedUntil;
  }

  #send(to: number, bytes: Uint8Array): void {
    const { message } = decodePeerMessage(bytes);
    this.#world.checker.message(message);
    this.#world.network.send(this.id, nodeOf(to), bytes);
    // The moment after a promise has left is the one at which it may be forgotten.
    if (message.type === MessageType.voteResponse) this.#world.promised(this, true);
    if (message.type === MessageType.appendResponse) this.#world.promised(this, false);
  }

  #tick(generation: number): void {
    if (generation !== this.#generation || this.#life === undefined) return;
    if (!this.#isPaused) {
      this.#life.pod.tick();
      this.#work();
    }
    this.#world.timeline.after(this.#tickMs, () => this.#tick(generation));
  }

  #schedule(): void {
    if (this.#workDue) return;
    this.#workDue = true;
    this.#world.timeline.after(0, () => {
      this.#workDue = false;
      this.#work();
    });
  }

  #work(): void {
    if (this.#life === undefined) return;
    if (this.#isPaused) {
      if (this.#workDue) return;
      this.#workDue = true;
      this.#world.timeline.after(this.#pausedUntil - this.#world.timeline.now, () => {
        this.#workDue = false;
        this.#work();
      });
      return;
    }
    try {
      const { pod, group, proposed } = this.#life;
      for (const bytes of this.#inbox.splice(0)) pod.receive(bytes);
      if (this.#world.defect.work(pod, group)) this.#schedule();
      const { role, term } = group.status();
      if (role === 'leader') this.#world.checker.leader(term, this.replica);
      if (proposed.size > 4096) throw new Error('proposals are never forgotten');
    } catch (error) {
      this.#world.breach(error as Error);
    }
  }
}
