// Pods in one process, messages handed over by hand, logs on a disk in memory.

import { FaultyDisk } from '../../disk/faulty-disk.ts';
import { loadEngineModule, WasmRaftEngine } from '../engine/wasm-engine.ts';
import type { FsyncPolicy, Outcome } from '../partition-log.ts';
import { Random } from '../simulation/timeline.ts';
import type { LogPosition } from './log-position.ts';
import { firstPosition } from './log-position.ts';
import { RaftPod } from './raft-pod.ts';
import type { RaftGroup } from './raft-group.ts';
import { replicaId } from './replica-id.ts';
import type { ExportedState, StateMachine } from './state-machine.ts';

const module = loadEngineModule();

export class TestMachine implements StateMachine {
  durableIndex = 0;
  applied: string[] = [];
  /** Where the log ended when the machine was opened with it. */
  logEnd: number | undefined;
  #index = 0;

  logEndsAt(index: number): void {
    this.logEnd = index;
  }

  apply(index: number, proposals: readonly Uint8Array[]): void {
    this.#index = index;
    for (const proposal of proposals) this.applied.push(Buffer.from(proposal).toString());
  }

  exportState(): ExportedState {
    const state = Buffer.from(JSON.stringify(this.applied));
    async function* chunks(): AsyncGenerator<Uint8Array> {
      for (let at = 0; at < state.length; at += 10)
        yield await Promise.resolve(state.subarray(at, at + 10));
    }
    return { index: this.#index, chunks: chunks() };
  }

  async install({ index, chunks }: ExportedState): Promise<void> {
    const parts: Uint8Array[] = [];
    for await (const chunk of chunks) parts.push(Buffer.from(chunk));
    this.applied = JSON.parse(Buffer.concat(parts).toString()) as string[];
    this.#index = index;
    this.durableIndex = index;
  }

  checkpoint(): void {
    this.durableIndex = this.#index;
  }
}

/** Milliseconds, of all pods: goes on with their ticks. */
let clock = 0;

export class TestPod {
  disk = new FaultyDisk({ rng: new Random(1) });
  pod!: RaftPod;
  group!: RaftGroup;
  machine = new TestMachine();
  outcomes: [number, Outcome][] = [];
  down = false;
  fsync: FsyncPolicy = 'always';
  ballastBytes = 0;
  /** Of its machine. */
  boots = 1;
  fatal = (error: Error): unknown => {
    throw error;
  };
  acceptLoss = false;
  readonly replica: number;
  engine!: WasmRaftEngine;
  first: LogPosition;
  readonly #post: (to: number, bytes: Uint8Array) => void;

  constructor(
    replica: number,
    voters: readonly number[],
    post: (to: number, bytes: Uint8Array) => void,
  ) {
    this.replica = replica;
    this.#post = post;
    this.first = firstPosition(voters);
  }

  async open(): Promise<void> {
    const random = new Random(this.replica);
    this.engine = new WasmRaftEngine(module, { random: (bytes) => random.bytes(bytes) });
    this.pod = await RaftPod.open({
      disk: this.disk,
      directory: '/log',
      ids: { cluster: 1, pod: this.replica },
      rng: random,
      clock: { now: () => clock, monotonic: () => clock },
      engine: this.engine,
      fsync: this.fsync,
      boot: String(this.boots),
      acceptLoss: this.acceptLoss,
      ballastBytes: this.ballastBytes,
      electionTicks: 10,
      heartbeatTicks: 1,
      limits: { maxEntryBytes: 4096, maxPendingBytes: 8192, maxMessageBytes: 64, idleTicks: 30 },
      payloadCacheBytes: 16,
      send: (to, _lane, bytes) => {
        this.#post(to, bytes.slice());
        return true;
      },
      wake: () => undefined,
      fatal: (error) => this.fatal(error),
    });
    this.openGroup();
  }

  /** After a crash, or as if all of the process was gone. */
  async reopen(machine: TestMachine): Promise<void> {
    this.machine = machine;
    await this.open();
  }

  openGroup(): void {
    this.group = this.pod.openGroup({
      group: 3,
      replica: this.replica,
      first: this.first,
      machine: this.machine,
      listener: {
        onOutcome: (position, outcome) => void this.outcomes.push([position, outcome]),
        onRole: () => undefined,
      },
    });
  }
}

export class Pods {
  readonly pods: TestPod[];
  sent = 0;
  #mail: { to: number; bytes: Uint8Array }[] = [];

  constructor(count: number) {
    const ids = Array.from({ length: count }, (_, i) => replicaId(i + 1));
    const post = (to: number, bytes: Uint8Array): void => {
      this.sent++;
      this.#mail.push({ to, bytes });
    };
    this.pods = ids.map((id) => new TestPod(id, ids, post));
  }

  async open(): Promise<this> {
    for (const pod of this.pods) await pod.open();
    return this;
  }

  /** Runs ticks, and between them all that they set off. */
  async tick(times: number): Promise<void> {
    for (; times > 0; times--) {
      clock += 50;
      for (const { pod, down } of this.pods) if (!down) pod.tick();
      for (let round = 0; round < 12; round++) {
        for (const { pod, down } of this.pods) if (!down) pod.work();
        for (const { to, bytes } of this.#mail.splice(0)) {
          const target = this.pods.find(({ replica }) => replica === to);
          if (target && !target.down) target.pod.receive(bytes);
        }
        await new Promise(setImmediate);
      }
    }
  }

  get leader(): TestPod {
    return this.pods.find(({ group, down }) => !down && group.role === 'leader')!;
  }
}
