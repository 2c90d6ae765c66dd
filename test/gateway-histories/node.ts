// A node of a history: a Redis server, a gateway, a pod server and a pod of rows in memory over a replica of their log, all as in the server,
// one life after the other over its disk. Sockets, the disk and the clock are simulated.

import { GroupExecutor } from '../../access/gateway/pods/group-executor.ts';
import { GroupTicks } from '../../access/gateway/pods/group-ticks.ts';
import { PodLink } from '../../access/gateway/pods/pod-link.ts';
import { RemoteExecutor } from '../../access/gateway/pods/remote-executor.ts';
import type { LinkContext } from '../../cluster-links/cluster-link.ts';
import { MemoryEngine } from '../../engines/memory/memory-engine.ts';
import { FaultyDisk } from '../../storage-node/disk/faulty-disk.ts';
import { PodServer } from '../../storage-node/pod-server/pod-server.ts';
import { Pod } from '../../storage-node/pod.ts';
import { firstPosition } from '../../storage-node/replicator/raft/log-position.ts';
import { RaftLog } from '../../storage-node/replicator/raft/raft-log.ts';
import { RaftPod } from '../../storage-node/replicator/raft/raft-pod.ts';
import { nodeOfReplica, replicaId } from '../../storage-node/replicator/raft/replica-id.ts';
import type { EnginePool } from '../../storage-node/replicator/simulation/engine-pool.ts';
import type { Network } from '../../storage-node/replicator/simulation/network.ts';
import { Random } from '../../storage-node/replicator/simulation/timeline.ts';
import { noRules } from '../../storage-node/table-rules.ts';
import type { Clock } from '../../universal-row/environment.ts';
import type { OwnedTimeline, Owner } from './owned-timeline.ts';
import { type FrontClient, RedisFront } from './redis-front.ts';
import type { Host, Wires } from './wires.ts';

export const group = 16;
export const tableNumbers = [0, 1, 2];

export interface NodesWorld {
  readonly seed: number;
  readonly timeline: OwnedTimeline;
  /** Of the log's messages. */
  readonly network: Network;
  readonly wires: Wires;
  readonly engines: EnginePool;
  readonly random: Random;
  /** Numbers of all nodes, from 1 on. */
  readonly nodes: readonly number[];
  readonly limits: { readonly checkpointEntries: number; readonly keptEntries: number };
  readonly breach: (error: Error) => void;
}

interface Life {
  readonly owner: Owner;
  readonly host: Host;
  readonly raft: RaftPod;
  readonly log: RaftLog;
  readonly pod: Pod;
  readonly engine: MemoryEngine;
  readonly gateway: GroupExecutor;
  readonly redis: RedisFront;
}

const tickMs = 50;
/** Ticks without a ping after which a node counts as down. */
const silentTicks = 25;
const leaderWaitMs = 4000;
const secret = Buffer.alloc(32, 7);

export class GatewayNode {
  readonly number: number;
  /** Starts so far. */
  lives = 0;
  readonly #world: NodesWorld;
  readonly #clock: Clock;
  #disk: FaultyDisk;
  #owner: Owner | undefined;
  #host: Host | undefined;
  #life: Life | undefined;
  #inbox: (() => void)[] = [];
  #isScheduled = false;
  /** By node: ticks since it was last heard of. */
  readonly #silence = new Map<number, number>();

  constructor(world: NodesWorld, number: number) {
    this.#world = world;
    this.number = number;
    const { timeline, random } = world;
    this.#clock = {
      now: () => 1_000_000 + Math.floor(timeline.now),
      monotonic: () => timeline.now,
    };
    const syncTime = (): Promise<void> => timeline.sleep(0.1 + random.next() * 6);
    this.#disk = new FaultyDisk({ rng: new Random(random.below(2 ** 32)), syncTime });
  }

  get life(): Life | undefined {
    return this.#life;
  }

  /** Where others connect to; undefined while the node does not listen. */
  get host(): Host | undefined {
    return this.#host;
  }

  get isPaused(): boolean {
    return this.#world.timeline.now < (this.#owner?.pausedUntil ?? 0);
  }

  start(): void {
    if (this.#owner !== undefined) return;
    const owner: Owner = { isAlive: true, pausedUntil: 0, immediateAt: 0 };
    this.#owner = owner;
    this.#inbox = [];
    this.#isScheduled = false;
    this.#silence.clear();
    const { timeline, breach } = this.#world;
    timeline.as(owner, () => timeline.after(0, () => void this.#start(owner).catch(breach)));
  }

  async #start(owner: Owner): Promise<void> {
    const { engines, random, nodes, limits, breach, timeline, wires } = this.#world;
    const lives = ++this.lives;
    const disk = this.#disk;
    const fatal = (error: Error): void => {
      if (owner.isAlive) breach(error);
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
        if (!owner.isAlive) return false;
        this.#post(nodeOfReplica(to), Uint8Array.from(bytes));
        return true;
      },
      wake: () => this.#schedule(owner),
      fatal,
    });
    if (!owner.isAlive) return;
    const log = new RaftLog({
      ...{ pod: raft, group, replica: replicaId(this.number) },
      first: firstPosition(nodes.map((number) => replicaId(number))),
      durableIndex: engine.appliedIndexOf(group),
    });
    const report = (level: string, message: string, fields?: object): void => {
      const why = (fields as { err?: Error } | undefined)?.err?.message ?? '';
      if (level === 'error') fatal(new Error(`${message} ${why}`));
    };
    const pod = new Pod({
      ...{ engine, log, group, clock: this.#clock },
      tables: new Map(tableNumbers.map((table) => [table, noRules])),
      rng: { next: () => 0.5 },
      ...{ maxMemoryBytes: Infinity, checkpointBytes: Infinity },
      report,
    });
    const server = new PodServer({
      podOf: () => ({ executor: pod, mayWait: true }),
      answer: () => null,
      ...{ report, failed: (error: unknown) => fatal(error as Error) },
    });
    const context: LinkContext = {
      identity: { cluster: '1', node: String(this.number), incarnation: lives, level: 1 },
      secret,
    };
    const host: Host = {
      ...{ number: this.number, owner, context, service: server },
      // Another interval for each life of a process: links with the same one share a timer.
      pingMs: 250 + (this.#world.seed * 1000 + this.number * 100 + lives) / 1e9,
      soon: (act) => {
        if (!owner.isAlive) return;
        this.#inbox.push(act);
        this.#schedule(owner);
      },
    };
    const ticks = new GroupTicks();
    const remotes = new Map<number, RemoteExecutor>();
    const gateway = new GroupExecutor({
      ...{ group: () => group, node: this.number, incarnation: lives, ticks },
      ...{ local: () => pod, log: () => log, remoteOf: (node: number) => remotes.get(node) },
      ...{ waitMs: leaderWaitMs, refusalOf: () => undefined, mayWait: false },
      numbersTransactions: () => true,
    });
    gateway.setReplicas(nodes);
    for (const node of nodes) {
      if (node === this.number) continue;
      const link = new PodLink({
        ...{ host: `node-${node}`, port: node, node: String(node), context, report },
        dial: wires.dialFor(host),
      });
      remotes.set(node, new RemoteExecutor(link, () => undefined));
      void link.start();
    }
    // As a plane does (cluster-rows.ts).
    log.leaderChanged = () => {
      setImmediate(() => {
        if (pod.leader !== 0) gateway.leaderIs(nodeOfReplica(pod.leader));
      });
    };
    this.#host = host;
    const redis = new RedisFront({ timeline, host, gateway, ticks, report, breach });
    this.#life = { owner, host, raft, log, pod, engine, gateway, redis };
    this.#tick(this.#life, timeline);
  }

  /** The process ends at once: what it has written stays. */
  kill(): void {
    const owner = this.#owner;
    if (owner === undefined) return;
    owner.isAlive = false;
    if (this.#host !== undefined) this.#world.wires.ended(this.#host);
    this.#owner = undefined;
    this.#host = undefined;
    this.#life?.redis.ended();
    this.#life = undefined;
    this.#inbox = [];
    this.#disk = this.#disk.kill();
  }

  /** The process stands still for so long. */
  pause(ms: number): void {
    if (this.#owner !== undefined) this.#owner.pausedUntil = this.#world.timeline.now + ms;
  }

  /** A message of another node's log has come. */
  receive(bytes: Uint8Array): void {
    this.#host?.soon(() => this.#take(this.#life!, bytes));
  }

  /** Undefined while the node does not listen. */
  connect(): FrontClient | undefined {
    const { timeline } = this.#world;
    const life = this.#life;
    return life && timeline.as(life.owner, () => life.redis.connect());
  }

  #post(to: number, bytes: Uint8Array): void {
    const { timeline, network } = this.#world;
    // Messages under way are no process's.
    timeline.as(undefined, () => network.send(this.number, to, bytes));
  }

  #tick(life: Life, timeline: OwnedTimeline): void {
    const { pod, raft, owner } = life;
    this.#ping(raft);
    pod.maintain();
    raft.tick();
    this.#schedule(owner);
    timeline.after(tickMs, () => this.#tick(life, timeline));
  }

  /** As the transport does: tells the pod of silent nodes, and of those that are heard again. */
  #ping(raft: RaftPod): void {
    for (const node of this.#world.nodes) {
      if (node === this.number) continue;
      this.#post(node, Uint8Array.of(this.number));
      const silence = this.#silence.get(node);
      if (silence === undefined) continue;
      if (silence < silentTicks) this.#silence.set(node, silence + 1);
      else {
        this.#silence.delete(node);
        raft.nodeDown(node);
      }
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

  #schedule(owner: Owner): void {
    if (this.#isScheduled || !owner.isAlive) return;
    this.#isScheduled = true;
    const { timeline } = this.#world;
    timeline.as(owner, () =>
      timeline.after(0, () => {
        this.#isScheduled = false;
        if (this.#life !== undefined) this.#turn(this.#life);
      }),
    );
  }

  /** One round of the event loop. */
  #turn(life: Life): void {
    try {
      for (const act of this.#inbox.splice(0)) act();
      if (life.raft.work()) this.#schedule(life.owner);
    } catch (error) {
      this.#world.breach(error as Error);
    }
  }
}
