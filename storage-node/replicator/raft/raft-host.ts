// The groups of a node on real time: runs a `RaftPod` on the event loop, with one timer, and carries its messages.
//
// What a tick of the event loop brings (messages, proposals, ends of syncs) is worked off once, at its end: all
// groups' decisions, one write to the log, one write to each connection.

import type { Clock, Disk, Rng } from '../../../universal-row/environment.ts';
import { systemClock, systemRng } from '../../../universal-row/environment.ts';
import { loadEngineModule, WasmRaftEngine } from '../engine/wasm-engine.ts';
import type { Transport } from '../transport/transport.ts';
import type { RaftGroup } from './raft-group.ts';
import type { RaftGroupLimits } from './raft-group-parts.ts';
import { RaftPod } from './raft-pod.ts';
import type { OpenGroupOptions } from './raft-pod.ts';
import { nodeOfReplica } from './replica-id.ts';

export interface RaftHostOptions {
  disk: Disk;
  directory: string;
  ids: { cluster: number; node: number };
  /** Undefined for a node that talks to nobody. */
  transport: Transport | undefined;
  /** The node must end: what is on disk, or in the consensus engine, is in doubt. */
  onFatal: (error: Error) => void;
  clock?: Clock;
  rng?: Rng;
  tickMs?: number;
  electionTicks?: number;
  heartbeatTicks?: number;
  segmentBytes?: number;
  maxLogBytes?: number;
  limits?: Partial<RaftGroupLimits>;
  /** The compiled engine, where several hosts of a process share it. */
  module?: ConstructorParameters<typeof WasmRaftEngine>[0];
}

export const defaultTickMs = 50;
const compareMs = 1000;
/** For how long leases are not used once the clocks have differed. */
const doubtMs = 10_000;

export class RaftHost {
  readonly pod: RaftPod;
  /** Milliseconds that the last turns of work took at most. */
  longestTurnMs = 0;
  readonly #options: RaftHostOptions;
  readonly #clock: Clock;
  readonly #tickMs: number;
  readonly #timer: NodeJS.Timeout;
  #lastTickAt: number;
  #comparedAt: { monotonic: number; wall: number };
  #tickDue = false;
  #workDue = false;
  #closed = false;

  static async open(options: RaftHostOptions): Promise<RaftHost> {
    const { disk, directory, ids, transport } = options;
    // What wakes the host before it exists is done by its first turn.
    const host: { current: RaftHost | undefined } = { current: undefined };
    const engine = new WasmRaftEngine(options.module ?? loadEngineModule());
    const pod = await RaftPod.open({
      disk,
      directory,
      ids: { cluster: ids.cluster, pod: ids.node },
      rng: options.rng ?? systemRng,
      engine,
      tickMs: options.tickMs ?? defaultTickMs,
      ...pick(options, [
        'segmentBytes',
        'maxLogBytes',
        'electionTicks',
        'heartbeatTicks',
        'limits',
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
    this.#timer = setInterval(() => this.#onTimer(), this.#tickMs);
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

  openGroup(options: OpenGroupOptions): RaftGroup {
    const group = this.pod.openGroup(options);
    this.schedule();
    return group;
  }

  /** Work is done at the end of this event-loop tick. */
  schedule(): void {
    if (this.#workDue || this.#closed) return;
    this.#workDue = true;
    setImmediate(() => this.#turn());
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#stop();
    this.pod.work();
    await this.pod.close();
    await this.#options.transport?.close();
  }

  /** After a stall, what came meanwhile is worked off before time goes on: a pause of ours is no silence of theirs. */
  #onTimer(): void {
    if (this.#tickDue) return;
    this.#tickDue = true;
    this.schedule();
  }

  #turn(): void {
    this.#workDue = false;
    if (this.#closed) return;
    const began = this.#clock.monotonic();
    try {
      if (this.#tickDue) this.#tick(began);
      if (this.pod.work()) this.schedule();
      this.#options.transport?.flush();
    } catch (error) {
      this.#fail(error as Error);
    }
    this.longestTurnMs = Math.max(this.longestTurnMs, this.#clock.monotonic() - began);
  }

  /** Leases are kept by the monotonic clock: while the other one goes at another rate, neither is trusted. */
  #compareClocks(now: number): void {
    const passed = now - this.#comparedAt.monotonic;
    if (passed < compareMs) return;
    const wall = this.#clock.now();
    const differs = Math.abs(wall - this.#comparedAt.wall - passed);
    if (differs > passed * 0.05) this.pod.dropLeases(Math.ceil(doubtMs / this.#tickMs));
    this.#comparedAt = { monotonic: now, wall };
  }

  /** At most one tick is made up for. */
  #tick(now: number): void {
    this.#tickDue = false;
    const missed = now - this.#lastTickAt >= 1.5 * this.#tickMs;
    this.#lastTickAt = now;
    this.#compareClocks(now);
    this.pod.tick();
    if (missed) this.pod.tick();
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
