// A node of a history: one life after the other of the real driver and engine over its disk.

import { FaultyDisk } from '../../disk/faulty-disk.ts';
import { decodePeerMessage, encodePeerMessage } from '../raft/peer-message.ts';
import { areHeartbeats } from '../raft/heartbeats.ts';
import { firstPosition, joiningPosition } from '../raft/log-position.ts';
import type { LogPosition } from '../raft/log-position.ts';
import { RaftPod } from '../raft/raft-pod.ts';
import type { RaftGroup } from '../raft/raft-group.ts';
import { nodeOfReplica } from '../raft/replica-id.ts';
import { MessageType } from '../engine/frames.ts';
import type { FsyncPolicy } from '../partition-log.ts';
import { FencedType } from '../raft/fence.ts';
import type { Checker, LogProgress } from './checker.ts';
import type { Defect } from './defects.ts';
import type { EnginePool } from './engine-pool.ts';
import { SimulatedMachine } from './machine.ts';
import type { Network } from './network.ts';
import { Random } from './timeline.ts';
import type { Timeline } from './timeline.ts';

interface NodeWorld {
  engines: EnginePool;
  timeline: Timeline;
  network: Network;
  checker: Checker;
  random: Random;
  defect: Defect;
  fsync: FsyncPolicy;
  tickMs: number;
  idleTicks: number;
  /** Clocks that differ by 4 % at most, and reads that rely on them. */
  leases: boolean;
  nodes: () => readonly SimulatedNode[];
  /** The faults have ended. */
  isHealed: () => boolean;
  /** Milliseconds that a sync takes at most, by how fast a disk is. */
  syncMs: number;
  slowSyncMs: number;
  breach: (error: Error) => void;
  /** The node has made a promise that must survive its crash. */
  promised: (node: SimulatedNode, what: 'vote' | 'append' | 'outcome') => void;
}

const groupNumber = 7;
const pingBytes = 9;
/** In ticks. */
const pingEvery = 4;
const silentAfter = 20;

interface Life {
  pod: RaftPod;
  group: RaftGroup;
  machine: SimulatedMachine;
  /** Ids of the proposals, by position. */
  proposed: Map<number, number>;
  progress: LogProgress | undefined;
}

export class SimulatedNode {
  readonly id: number;
  readonly replica: number;
  readonly #world: NodeWorld;
  readonly #first: LogPosition;
  #disk: FaultyDisk;
  #life: Life | undefined;
  #generation = 0;
  #pausedUntil = 0;
  #inbox: Uint8Array[] = [];
  readonly #peers = new Map<number, { incarnation: number; heardAt: number }>();
  #pings = 0;
  #workDue = false;
  /** Boots of its machine. */
  #boots = 1;
  #isDoubtful = false;
  #keepsLeases = true;
  /** Rate of its clock relative to the simulated time. */
  readonly #rate: number;
  readonly #tickMs: number;

  /** `voters` of a group that begins; undefined for a replica that is to join. */
  constructor(world: NodeWorld, id: number, replica: number, voters?: readonly number[]) {
    this.#first = voters === undefined ? joiningPosition : firstPosition(voters);
    this.#world = world;
    this.id = id;
    this.replica = replica;
    const differs = world.leases ? 0.04 : 0.2;
    this.#rate = 1 + (2 * world.random.next() - 1) * differs;
    this.#tickMs = world.tickMs / this.#rate;
    const rng = new Random(world.random.below(2 ** 32));
    // Each disk has a speed of its own, until the faults end.
    const slow = world.random.chance(0.5) ? world.syncMs : world.slowSyncMs;
    const syncTime = (): Promise<void> => {
      const syncMs = world.isHealed() ? 4 : slow;
      return world.timeline.sleep(0.1 + world.random.next() * syncMs);
    };
    this.#disk = new FaultyDisk({ rng, syncTime });
  }

  get isUp(): boolean {
    return this.#life !== undefined;
  }

  get life(): Life | undefined {
    return this.#life;
  }

  async start(): Promise<void> {
    const { world, generation } = { world: this.#world, generation: ++this.#generation };
    const isCurrent = (): boolean => generation === this.#generation;
    const fatal = (error: Error): void => {
      if (isCurrent()) world.breach(error);
    };
    const random = new Random(world.random.below(2 ** 32));
    const engine = world.engines.take(random);
    const disk = world.defect.disk(this.#disk);
    const pod = await RaftPod.open({
      disk,
      directory: '/log',
      ids: { cluster: 1, pod: this.id },
      rng: random,
      engine: world.defect.engine(engine),
      fsync: world.fsync,
      boot: String(this.#boots),
      segmentBytes: 4096,
      ballastBytes: 0,
      electionTicks: 6,
      tickMs: world.tickMs,
      clock: { now: () => 0, monotonic: () => world.timeline.now * this.#rate },
      heartbeatTicks: 1,
      limits: {
        checkpointEntries: 12,
        keptEntries: 6,
        maxMessageBytes: 64,
        readTicks: 20,
        outcomeTicks: 40,
        idleTicks: world.idleTicks,
      },
      payloadCacheBytes: 64,
      send: (to, _lane, bytes) => {
        if (isCurrent()) this.#send(to, bytes);
        return true;
      },
      wake: () => {
        if (isCurrent()) this.#schedule();
      },
      fatal,
    });
    if (!isCurrent()) return;
    const machine = new SimulatedMachine(
      disk,
      `/rows-${this.replica}`,
      this.replica,
      world.checker,
      fatal,
    );
    const proposed = new Map<number, number>();
    const group = pod.openGroup({
      group: groupNumber,
      replica: this.replica,
      first: this.#first,
      machine: world.defect.machine(machine),
      listener: {
        onOutcome: (position, outcome, index) => {
          // Answers of a crashed node reach no client.
          if (!isCurrent()) return;
          world.checker.outcome(proposed.get(position)!, outcome, index);
          if (outcome === 'committed') world.promised(this, 'outcome');
        },
        onRole: () => undefined,
      },
    });
    // A server opens all its groups before it says which of them keep leases.
    const saysLater = (generation >> 1) % 2 === 1;
    const setLeases = (): void => {
      if (isCurrent()) group.setLeases(world.leases && this.#keepsLeases);
    };
    if (saysLater) world.timeline.after(8 * world.tickMs, setLeases);
    else setLeases();
    machine.onDurable = (index) => {
      if (isCurrent()) group.stateIsDurable(index);
    };
    this.#life = { pod, group, machine, proposed, progress: undefined };
    this.#tick(generation);
  }

  /** The power fails (`torn`), or the process ends. */
  crash(torn: boolean): void {
    if (this.#life === undefined) return;
    this.#generation++;
    this.#life = undefined;
    this.#inbox = [];
    this.#peers.clear();
    this.#disk = torn ? this.#disk.crash() : this.#disk.evict().kill();
    if (!torn) return;
    this.#boots++;
    this.#isDoubtful = this.#world.fsync !== 'always';
  }

  /** Whether it is a voter, as far as it knows, that may lack what it has acknowledged before a power cut. */
  get isDoubtful(): boolean {
    const status = this.#life?.group.status();
    if (this.#isDoubtful && status?.isFenced === false) this.#isDoubtful = false;
    return this.#isDoubtful && status?.members.voters.includes(this.replica) !== false;
  }

  /** Stops for so long, and then continues as if nothing had been. */
  pause(ms: number): void {
    this.#pausedUntil = Math.max(this.#pausedUntil, this.#world.timeline.now + ms);
  }

  resume(): void {
    this.#pausedUntil = 0;
    this.#schedule();
  }

  receive(bytes: Uint8Array): void {
    if (this.#life === undefined) return;
    // As a host does: the engine is told at once, and asked at the end of the event-loop tick.
    if (this.#isPaused || this.#inbox.length > 0) this.#inbox.push(bytes);
    else this.#take(this.#life.pod, bytes);
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

  /** Switches this replica's leases from now on. */
  setLeases(isOn: boolean): void {
    this.#keepsLeases = isOn;
    if (!this.#isPaused) this.#life?.group.setLeases(this.#world.leases && isOn);
  }

  /** The link to a node was lost, and may be there again at once. */
  linkLost(node: number): void {
    if (!this.#life || this.#isPaused) return;
    this.#life.pod.nodeDown(node);
    this.#life.pod.nodeUp(node);
    this.#schedule();
  }

  /** `then` is told whether it was answered. */
  read(then: (isSafe: boolean) => void = () => undefined): void {
    if (!this.#life || this.#isPaused) return;
    const { checker } = this.#world;
    const { acknowledged: before, losses } = checker;
    const { machine, group } = this.#life;
    if (this.#world.leases) {
      checker.isAsOf(this.replica, machine.index, group.staleness().ms / this.#rate);
    }
    group.whenApplied(before, (isThere) => {
      if (isThere) checker.session(this.replica, machine.index, before);
    });
    this.#world.defect.read(group, (isSafe) => {
      if (isSafe && losses === checker.losses) checker.read(this.replica, machine.index, before);
      then(isSafe);
    });
    this.#schedule();
  }

  get #isPaused(): boolean {
    return this.#world.timeline.now < this.#pausedUntil;
  }

  #send(to: number, bytes: Uint8Array): void {
    if (areHeartbeats(bytes)) {
      this.#world.network.send(this.id, nodeOfReplica(to), bytes.slice());
      return;
    }
    const peer = decodePeerMessage(bytes);
    const { message } = peer;
    const { checker, network, defect } = this.#world;
    checker.message(message);
    const altered = defect.sent(message);
    const sent = altered === message ? bytes : encodePeerMessage({ ...peer, message: altered });
    network.send(this.id, nodeOfReplica(to), sent.slice());
    // The moment after a promise has left is the one at which it may be forgotten.
    const { type } = message;
    const isGrant = type === MessageType.voteResponse || type === FencedType.vote;
    const isVote = isGrant || type === MessageType.vote;
    if (isVote) this.#world.promised(this, 'vote');
    if (type === MessageType.appendResponse) this.#world.promised(this, 'append');
  }

  #tick(generation: number): void {
    if (generation !== this.#generation || this.#life === undefined) return;
    if (!this.#isPaused) {
      this.#ping();
      this.#life.pod.tick();
      this.#work();
    }
    this.#world.timeline.after(this.#tickMs, () => this.#tick(generation));
  }

  /**
   * As the transport does: sends pings to the others, and tells the pod of silent or restarted
   * peers.
   */
  #ping(): void {
    const { network, nodes } = this.#world;
    const { pod } = this.#life!;
    const ping = Buffer.alloc(pingBytes);
    ping.writeUInt32LE(this.id, 0);
    ping.writeUInt32LE(pod.incarnation, 4);
    const now = ++this.#pings;
    for (const { id } of nodes()) {
      if (id === this.id) continue;
      if (now % pingEvery === 0) network.send(this.id, id, ping);
      const peer = this.#peers.get(id);
      if (peer && now - peer.heardAt > silentAfter) {
        this.#peers.delete(id);
        pod.nodeDown(id);
      }
    }
  }

  #check(group: RaftGroup): void {
    const { checker } = this.#world;
    const { role, term, applied, commit, members } = group.status();
    if (role === 'leader') checker.leader(term, this.replica);
    const life = this.#life!;
    checker.progress(this.replica, { applied, commit }, life.progress);
    // A replica that joins knows no members.
    if (applied !== life.progress?.applied && applied > 0) {
      checker.members(this.replica, applied, members);
    }
    life.progress = { applied, commit };
  }

  #take(pod: RaftPod, bytes: Uint8Array): void {
    if (bytes.length === pingBytes) this.#heard(pod, bytes);
    else pod.receive(bytes);
  }

  #heard(pod: RaftPod, bytes: Uint8Array): void {
    const ping = Buffer.from(bytes);
    const id = ping.readUInt32LE(0);
    const incarnation = ping.readUInt32LE(4);
    const peer = this.#peers.get(id);
    if (peer && incarnation < peer.incarnation) return;
    if (peer && incarnation > peer.incarnation) pod.nodeDown(id);
    if (incarnation !== peer?.incarnation) pod.nodeUp(id);
    this.#peers.set(id, { incarnation, heardAt: this.#pings });
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
      for (const bytes of this.#inbox.splice(0)) this.#take(pod, bytes);
      if (this.#world.defect.work(pod, group)) this.#schedule();
      this.#check(group);
      if (proposed.size > 4096) throw new Error('proposals are never forgotten');
    } catch (error) {
      this.#world.breach(error as Error);
    }
  }
}
