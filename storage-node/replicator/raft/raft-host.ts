// Drives the groups of a node in real time: runs a `RaftPod` on the event loop with one timer, and carries its
// messages. The timer stops while all groups sleep.
//
// Inputs of an event-loop tick (messages, proposals, ends of syncs) are processed once, at its end:
// all groups' decisions, one write to the log, one write to each connection.

import type { Clock, Disk, Rng } from '../../../universal-row/environment.ts';
import { systemClock, systemRng } from '../../../universal-row/environment.ts';
import type { FsyncPolicy } from '../partition-log.ts';
import type { RaftEngine } from '../engine/raft-engine.ts';
import { loadEngineModule, WasmRaftEngine } from '../engine/wasm-engine.ts';
import type { Transport } from '../transport/transport.ts';
import type { RaftGroup } from './raft-group.ts';
import type { RaftGroupLimits } from './raft-group-parts.ts';
import { RaftPod } from './raft-pod.ts';
import type { OpenGroupOptions } from './group-opening.ts';
import { nodeOfReplica } from './replica-id.ts';

export interface RaftHostOptions {
  disk: Disk;
  directory: string;
  ids: { cluster: number; node: number };
  /** Undefined for a node without peers. */
  transport: Transport | undefined;
  /** The node must end: the state on disk, or of the consensus engine, is uncertain. */
  onFatal: (error: Error) => void;
  clock?: Clock;
  rng?: Rng;
  /** See `RaftPodOptions`. */
  fsync?: FsyncPolicy;
  boot?: string;
  acceptLoss?: boolean;
  tickMs?: number;
  electionTicks?: number;
  heartbeatTicks?: number;
  segmentBytes?: number;
  maxLogBytes?: number;
  ballastBytes?: number;
  limits?: Partial<RaftGroupLimits>;
  payloadCacheBytes?: number;
  /** Of this host alone; a new one unless given. */
  engine?: RaftEngine;
}

const defaultTickMs = 50;
const compareMs = 1000;
/** For how long leases are not used once the clocks have differed. */
const doubtMs = 10_000;

export class RaftHost {
  readonly pod: RaftPod;
  /** Milliseconds that the last ticks of work took at most. */
  longestTickMs = 0;
  readonly #options: RaftHostOptions;
  readonly #clock: Clock;
  readonly #tickMs: number;
  /** While something waits for time to pass. */
  #timer: NodeJS.Timeout | undefined;
  #lastTickAt: number;
  #comparedAt: { monotonic: number; wall: number };
  #tickDue = false;
  #workDue = false;
  #closed = false;

  static async open(options: RaftHostOptions): Promise<RaftHost> {
    const { disk, directory, ids, transport } = options;
    // Wake-ups before the host exists are handled in its first tick.
    const host: { current: RaftHost | undefined } = { current: undefined };
    const engine = options.engine ?? new WasmRaftEngine(loadEngineModule());
    const pod = await RaftPod.open({
      disk,
      directory,
      ids: { cluster: ids.cluster, pod: ids.node },
      rng: options.rng ?? systemRng,
      engine,
      tickMs: options.tickMs ?? defaultTickMs,
      clocksAgree: () => host.current?.clocksAgree() ?? false,
      ...pick(options, [
        'segmentBytes',
        'maxLogBytes',
        'ballastBytes',
        'electionTicks',
        'heartbeatTicks',
        'limits',
        'payloadCacheBytes',
        'fsync',
        'boot',
        'acceptLoss',
      ]),
      send: (to, lane, bytes) => transport?.send(nodeOfReplica(to), lane, bytes) ?? false,
      wake: () => host.current?.schedule(),
      fatal: (error) => {
        if (host.current) host.current.#fail(error);
        else options.onFatal(error);
      },
    });
    host.current = new RaftHost(options, pod);
    return host.current;
  }

  private constructor(options: RaftHostOptions, pod: RaftPod) {
    this.#options = options;
    this.pod = pod;
    this.#clock = options.clock ?? systemClock;
    this.#tickMs = options.tickMs ?? defaultTickMs;
    this.#lastTickAt = this.#clock.monotonic();
    this.#comparedAt = { monotonic: this.#lastTickAt, wall: this.#clock.now() };
    const { cluster, node } = options.ids;
    options.transport?.start(
      { cluster, node, incarnation: pod.incarnation },
      {
        onMessage: (_node, _lane, bytes) => {
          pod.receive(bytes);
          this.schedule();
        },
        onUp: (node) => {
          pod.nodeUp(node);
          this.schedule();
        },
        onDown: (node) => {
          pod.nodeDown(node);
          this.schedule();
        },
      },
    );
    this.schedule();
  }

  /** Whether time passes for the groups: not while all of them sleep. */
  get isTicking(): boolean {
    return this.#timer !== undefined;
  }

  openGroup(options: OpenGroupOptions): RaftGroup {
    const group = this.pod.openGroup(options);
    this.schedule();
    return group;
  }

  /** Work is done at the end of this event-loop tick. */
  schedule(): void {
    if (this.#workDue || this.#closed) return;
    this.#workDue = true;
    setImmediate(() => this.#work());
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#stop();
    this.pod.work();
    await this.pod.close();
    await this.#options.transport?.close();
  }

  /**
   * After a stall, queued messages are processed before time continues: a stall of this process is
   * not silence of its peers.
   */
  #onTimer(): void {
    if (this.#tickDue) return;
    this.#tickDue = true;
    this.schedule();
  }

  #work(): void {
    this.#workDue = false;
    if (this.#closed) return;
    const began = this.#clock.monotonic();
    try {
      if (this.#tickDue) this.#tick(began);
      if (this.pod.work()) this.schedule();
      this.#options.transport?.flush();
      this.#keepTime();
    } catch (error) {
      this.#fail(error as Error);
    }
    this.longestTickMs = Math.max(this.longestTickMs, this.#clock.monotonic() - began);
  }

  #keepTime(): void {
    const { needsTicks } = this.pod;
    if (needsTicks === (this.#timer !== undefined)) return;
    if (!needsTicks) {
      clearInterval(this.#timer);
      this.#timer = undefined;
      return;
    }
    // No time has passed for those that slept.
    this.#lastTickAt = this.#clock.monotonic();
    this.#timer = setInterval(() => this.#onTimer(), this.#tickMs);
  }

  /**
   * Leases use the monotonic clock. While it and the wall clock advance at different rates, neither is trusted.
   * Checked before each use, because the machine may have been suspended since the last tick.
   */
  clocksAgree(): boolean {
    const { monotonic, wall } = this.#comparedAt;
    const passed = this.#clock.monotonic() - monotonic;
    const differs = Math.abs(this.#clock.now() - wall - passed);
    if (differs <= Math.max(passed, compareMs) * 0.05) return true;
    this.#compareAnew();
    this.pod.dropLeases(Math.ceil(doubtMs / this.#tickMs));
    return false;
  }

  #compareAnew(): void {
    this.#comparedAt = { monotonic: this.#clock.monotonic(), wall: this.#clock.now() };
  }

  /**
   * At most one tick is made up for, and time never goes faster than the clock: a voter that counts too many ticks would
   * not keep a lease for as long as its leader takes it to.
   */
  #tick(now: number): void {
    this.#tickDue = false;
    const passed = now - this.#lastTickAt;
    const ticks = Math.min(2, Math.floor(passed / this.#tickMs));
    const isLate = passed >= 3 * this.#tickMs;
    this.#lastTickAt = isLate ? now : this.#lastTickAt + ticks * this.#tickMs;
    if (this.clocksAgree() && now - this.#comparedAt.monotonic >= compareMs) this.#compareAnew();
    for (let left = ticks; left > 0; left--) this.pod.tick();
  }

  #fail(error: Error): void {
    if (this.#closed) return;
    this.#stop();
    this.#options.onFatal(error);
  }

  #stop(): void {
    this.#closed = true;
    clearInterval(this.#timer);
  }
}

function pick<T extends object, K extends keyof T>(
  from: T,
  keys: readonly K[],
): Partial<Pick<T, K>> {
  const picked: Partial<Pick<T, K>> = {};
  for (const key of keys) if (from[key] !== undefined) picked[key] = from[key];
  return picked;
}
