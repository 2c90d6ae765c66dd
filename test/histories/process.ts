// A node of a history as a process: one life after the other over its disk. Each life has the node's part of the metadata, its view of the
// cluster and the controller, as in the server. What it serves is the subclass's. Sockets, the disk, the clock, the consensus of the metadata
// and the threads of a process are simulated.

import type { LinkContext } from '../../cluster-links/cluster-link.ts';
import type { ReplicaStatus } from '../../contracts/cluster.ts';
import type { Json } from '../../control/metadata/document-store.ts';
import { ClusterViewFeed } from '../../server/cluster/cluster-view.ts';
import { Controller } from '../../server/cluster/controller.ts';
import { answerGroupQuestions } from '../../server/cluster/group-questions.ts';
import type { PlaneHost, Planes } from '../../server/planes/plane-host.ts';
import type { PlaneMachine } from '../../server/planes/plane-machine.ts';
import { FaultyDisk } from '../../storage-node/disk/faulty-disk.ts';
import type { FsyncPolicy } from '../../storage-node/replicator/partition-log.ts';
import type { RaftGroupLimits } from '../../storage-node/replicator/raft/raft-group-parts.ts';
import type { EnginePool } from '../../storage-node/replicator/simulation/engine-pool.ts';
import { Random } from '../../storage-node/replicator/simulation/timeline.ts';
import type { MetadataService, NodeMetadata } from './metadata.ts';
import type { OwnedTimeline, Owner } from './owned-timeline.ts';
import type { Host, Wires } from './wires.ts';

/** Replicas of each group. */
export const copies = 3;

export const secret = Buffer.alloc(32, 7);

export interface ProcessWorld {
  readonly seed: number;
  readonly timeline: OwnedTimeline;
  readonly wires: Wires;
  readonly metadata: MetadataService;
  readonly engines: EnginePool;
  readonly random: Random;
  readonly limits: Partial<RaftGroupLimits>;
  readonly fsync: FsyncPolicy;
  /** Leaders answer reads by leases. */
  readonly leases: boolean;
  /** Milliseconds after which replicas of a node that is away are made on others. */
  readonly rebuildAfterMs: number;
  readonly breach: (error: Error) => void;
}

/** What a life begins with. */
export interface Start {
  readonly owner: Owner;
  /** Starts so far, with this one. */
  readonly lives: number;
  readonly host: Host;
  readonly disk: FaultyDisk;
  readonly machine: PlaneMachine;
  readonly metadata: NodeMetadata;
  readonly feed: ClusterViewFeed;
  readonly report: (level: string, message: string, fields?: object) => void;
  readonly fatal: (error: unknown) => void;
}

/** What serves in one life. */
export interface Life {
  readonly owner: Owner;
  readonly metadata: NodeMetadata;
  status(): ReplicaStatus[];
  transfer(group: number, to: number): void;
  /** The process has ended. */
  ended(): void;
}

export const note = (): void => {};

const ballastBytes = 64 * 1024;
/** Calls of a disk that fail. */
const failing: ReadonlySet<string> = new Set(['write', 'sync', 'syncDirectory', 'create']);

function codesOf(error: unknown): string[] {
  const codes: string[] = [];
  for (let at = error as NodeJS.ErrnoException | undefined; at; at = at.cause as typeof at) {
    if (at.code !== undefined) codes.push(at.code);
  }
  return codes;
}

function isFull(error: unknown): boolean {
  return codesOf(error).includes('ENOSPC') || /disk full/.test(String(error));
}

function isFailure(error: unknown): boolean {
  return codesOf(error).includes('EIO') || /EIO/.test(String(error));
}

export abstract class NodeProcess<L extends Life> {
  readonly number: number;
  protected readonly world: ProcessWorld;
  #lives = 0;
  /** Boots of its machine. */
  #boots = 1;
  #disk: FaultyDisk;
  #owner: Owner | undefined;
  #host: Host | undefined;
  #isListening = false;
  #life: L | undefined;
  #inbox: (() => void)[] = [];
  #isScheduled = false;
  /** In this life its disk was full, or a call of it has failed or will. */
  #mayFail = false;
  #willFail = false;

  constructor(world: ProcessWorld, number: number) {
    this.world = world;
    this.number = number;
    const { timeline, random } = world;
    const syncTime = (): Promise<void> => timeline.sleep(0.1 + random.next() * 6);
    this.#disk = new FaultyDisk({ rng: new Random(random.below(2 ** 32)), syncTime });
  }

  /** Opens what the node serves. */
  protected abstract open(start: Start): Promise<L>;

  get life(): L | undefined {
    return this.#life;
  }

  /** Where others connect to; undefined while the node does not listen. */
  get host(): Host | undefined {
    return this.#isListening ? this.#host : undefined;
  }

  start(): void {
    if (this.#owner !== undefined) return;
    const owner: Owner = { isAlive: true, pausedUntil: 0, immediateAt: 0 };
    this.#owner = owner;
    this.#inbox = [];
    this.#isScheduled = false;
    this.#mayFail = this.#willFail || this.#disk.capacityBytes !== Infinity;
    const { timeline } = this.world;
    const failed = (error: Error): void => this.#failed(owner, error);
    timeline.as(owner, () => timeline.after(0, () => void this.#start(owner).catch(failed)));
  }

  async #start(owner: Owner): Promise<void> {
    const { metadata: service } = this.world;
    const lives = ++this.#lives;
    const disk = this.#disk;
    const metadata = service.enter(this.number, lives, owner);
    const fatal = (error: unknown): void => this.#failed(owner, error as Error);
    const report = (level: string, message: string, fields?: object): void => {
      const { err, error = err } = (fields ?? {}) as { err?: Error; error?: Error };
      // A node reports what its disk does, and goes on.
      if (level === 'error' && !this.#isOfDisk(error)) fatal(error ?? new Error(message));
    };
    const host = this.#newHost(owner, lives);
    this.#host = host;
    const machine = this.#machine(host, disk);
    const feed = await ClusterViewFeed.open(metadata, fatal);
    this.#life = await this.open({
      ...{ owner, lives, host, disk, machine, metadata, feed, report, fatal },
    });
  }

  /** What brings the cluster to its wanted state while this node leads the metadata. */
  protected control(
    { metadata }: Start,
    planes: Planes,
    catalogs: ConstructorParameters<typeof Controller>[0]['catalogs'],
  ): void {
    const { rebuildAfterMs } = this.world;
    answerGroupQuestions(metadata.handlers, planes);
    new Controller({
      ...{ metadata, catalogs, report: note },
      policy: () => ({ replicas: copies, leastNodes: copies, rebuildAfterMs }),
    }).start();
  }

  #newHost(owner: Owner, lives: number): Host {
    const context: LinkContext = {
      identity: { cluster: '1', node: String(this.number), incarnation: lives, level: 1 },
      secret,
    };
    return {
      ...{ number: this.number, owner, context, services: new Map() },
      // Another interval for each life of a process: links with the same one share a timer.
      pingMs: 250 + (this.world.seed * 1000 + this.number * 100 + lives) / 1e9,
      soon: (act) => {
        if (!owner.isAlive) return;
        this.#inbox.push(act);
        this.#schedule(owner);
      },
    };
  }

  #machine(host: Host, disk: FaultyDisk): PlaneMachine {
    const { engines, random, limits, wires } = this.world;
    return {
      disk,
      dial: wires.dialFor(host),
      listen: async () => {
        if (this.#host === host) this.#isListening = true;
        return {
          serve: (purpose, service) => {
            if (service === undefined) host.services.delete(purpose);
            else host.services.set(purpose, service);
          },
          close: async () => {},
        };
      },
      raftOptions: () => ({
        ...{ rng: new Random(random.below(2 ** 32)), boot: String(this.#boots), ballastBytes },
        engine: engines.take(new Random(random.below(2 ** 32))),
        payloadCacheBytes: 16 * 1024,
        limits: { ...limits, maxMessageBytes: 8 * 1024 },
      }),
    };
  }

  /** The process ends at once: what it has written stays. If its machine loses power, what it has synced does. */
  kill(losesPower: boolean): void {
    const owner = this.#owner;
    if (owner === undefined) return;
    owner.isAlive = false;
    this.world.metadata.left(this.number);
    if (this.#host !== undefined) this.world.wires.ended(this.#host);
    this.#owner = undefined;
    this.#host = undefined;
    this.#isListening = false;
    this.#life?.ended();
    this.#life = undefined;
    this.#inbox = [];
    this.#willFail = false;
    if (losesPower) this.#boots++;
    this.#disk = losesPower ? this.#disk.crash() : this.#disk.evict().kill();
  }

  // ---- its disk

  /** From now on there is room for so many bytes more. */
  fill(bytes: number): void {
    this.#mayFail = true;
    this.#disk.capacityBytes = this.#disk.usedBytes() + bytes;
  }

  makeRoom(): void {
    this.#disk.capacityBytes = Infinity;
  }

  /** There is room, and no call fails any more. */
  mend(): void {
    this.makeRoom();
    this.#willFail = false;
    this.#disk.fault = () => undefined;
  }

  /** One of its next calls fails. The process may end by it. */
  failOnce(after: number): void {
    let calls = after;
    this.#mayFail = this.#willFail = true;
    this.#disk.fault = (operation) => {
      if (!failing.has(operation) || calls-- > 0) return undefined;
      this.#disk.fault = () => undefined;
      this.#willFail = false;
      return 'EIO';
    };
  }

  /** Ends the process where its disk has failed, and breaks the history otherwise. */
  #failed(owner: Owner, error: Error): void {
    if (!owner.isAlive) return;
    const { timeline, breach } = this.world;
    if (!this.#isOfDisk(error)) return breach(error);
    // What others hear of its end is none of its own events.
    owner.isAlive = false;
    timeline.as(undefined, () => timeline.after(0, () => this.kill(false)));
  }

  #isOfDisk(error: unknown): boolean {
    return this.#mayFail && (isFull(error) || isFailure(error));
  }

  /** The process stands still for so long. */
  pause(ms: number): void {
    if (this.#owner !== undefined) this.#owner.pausedUntil = this.world.timeline.now + ms;
  }

  /** Has the node do something, while it serves. */
  do(act: (life: L) => unknown): void {
    const life = this.#life;
    if (life !== undefined) this.world.timeline.as(life.owner, () => act(life));
  }

  status(group: number): ReplicaStatus | undefined {
    return this.#life?.status().find((one) => one.group === group);
  }

  // ---- orders of operators, which may be refused

  transfer(group: number, to: number): void {
    this.do((life) => attempt(() => life.transfer(group, to)));
  }

  /** Has a replica of a group move to another node. */
  move(group: number, from: number, to: number): void {
    const body: Json = { group, from, to };
    const document = { collection: 'groupMoves', id: String(group), body, expected: 0 };
    this.do(({ metadata }) => attempt(() => metadata.store.write([document])));
  }

  #schedule(owner: Owner): void {
    if (this.#isScheduled || !owner.isAlive) return;
    this.#isScheduled = true;
    const { timeline } = this.world;
    timeline.as(owner, () =>
      timeline.after(0, () => {
        this.#isScheduled = false;
        this.#turn();
      }),
    );
  }

  /** What the sockets of the process have. */
  #turn(): void {
    try {
      for (const act of this.#inbox.splice(0)) act();
    } catch (error) {
      this.world.breach(error as Error);
    }
  }
}

/** The one plane of a node, as its control plane calls it. */
export function planesOf(
  name: 'redis' | 'influx',
  calls: Record<string, (body: unknown) => Promise<unknown>>,
): Planes {
  const call = async (what: string, body: unknown): Promise<unknown> => {
    const answer = calls[what];
    if (answer === undefined) throw new Error(`no answer to ${what}`);
    return await answer(body);
  };
  const plane = (of: 'redis' | 'influx'): PlaneHost =>
    ({ name: of, isUp: of === name, call }) as unknown as PlaneHost;
  return { redis: plane('redis'), influx: plane('influx') };
}

/** An order may be refused, or have no known outcome. */
export function attempt(act: () => unknown): void {
  const refused = (error: unknown): void => {
    if (error instanceof TypeError) throw error;
  };
  try {
    void Promise.resolve(act()).catch(refused);
  } catch (error) {
    refused(error);
  }
}
