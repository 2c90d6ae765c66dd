// `RaftEngine` over the WebAssembly module. One instance holds all groups of a pod.

import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { brotliDecompressSync } from 'node:zlib';
import { FrameReader, FrameWriter } from './frames.ts';
import type { ConfState, Entry, Message, Ready, Snapshot } from './frames.ts';
import { imports } from './host.ts';
import type { EngineHost } from './host.ts';
import { RaftError } from './raft-engine.ts';
import type {
  ConfChange,
  EngineMemory,
  GroupOptions,
  GroupReady,
  GroupStatus,
  PeerProgress,
  RaftEngine,
  Transition,
} from './raft-engine.ts';

interface Exports {
  memory: WebAssembly.Memory;
  _initialize(): void;
  in_buffer(bytes: number): number;
  out_buffer(): number;
  last_error(): number;
  group_create(bytes: number): number;
  group_destroy(group: number): number;
  set_asleep(group: number, on: number): number;
  tick(group: number): number;
  tick_all(): number;
  propose(group: number, bytes: number): number;
  step(group: number, bytes: number, local: number): number;
  step_all(bytes: number): number;
  has_ready(group: number): number;
  ready(group: number): number;
  ready_all(maxBytes: number): number;
  advance(group: number): number;
  storage_done(group: number, kind: number, keepOwn: number): number;
  campaign(group: number): number;
  transfer_leader(group: number, to: number): number;
  forget_leader(group: number): number;
  report_unreachable(group: number, id: number): number;
  report_snapshot(group: number, id: number, ok: number): number;
  read_index(group: number, bytes: number): number;
  propose_conf_change(group: number, bytes: number): number;
  apply_conf_change(group: number, bytes: number): number;
  decode_conf_change(bytes: number): number;
  set_snapshot(group: number, bytes: number): number;
  compact(group: number, index: number): number;
  status(group: number): number;
  progress(group: number): number;
  entries(group: number, from: number, maxBytes: number): number;
  set_election_timeout(group: number, ticks: number): number;
  set_verbose(on: number): void;
  gc(): void;
  gc_percent(percent: number): number;
  memory_stats(): number;
}

const flag = {
  preVote: 1,
  checkQuorum: 2,
  asyncStorage: 4,
  leaseReads: 8,
  noForwarding: 16,
  stepDownOnRemoval: 32,
  noConfChangeValidation: 64,
} as const;

const defaultInflightMessages = 256;
const noBytes = new Uint8Array(0);

/**
 * Reads, checks and compiles the module: some 50 ms, once a process. Throws when the file does not
 * match the sources beside it.
 */
export function loadEngineModule(): WebAssembly.Module {
  const wasm = brotliDecompressSync(readFileSync(new URL('raft.wasm.br', import.meta.url)));
  const expected = readFileSync(new URL('raft.wasm.sha256', import.meta.url), 'latin1').trim();
  const found = createHash('sha256').update(wasm).digest('hex');
  if (found !== expected) {
    throw new Error(`raft.wasm.br is damaged: its content has SHA-256 ${found}, not ${expected}`);
  }
  return new WebAssembly.Module(wasm);
}

export class WasmRaftEngine implements RaftEngine {
  readonly #x: Exports;
  readonly #out = new FrameWriter();
  /** A view of the module's memory, which is another one after it has grown. */
  #memory: Uint8Array;
  #fault: unknown;

  constructor(module: WebAssembly.Module, host: EngineHost = {}) {
    const instance = new WebAssembly.Instance(
      module,
      imports(host, () => this.#x.memory),
    );
    this.#x = instance.exports as Exports;
    this.#x._initialize();
    this.#memory = new Uint8Array(this.#x.memory.buffer);
  }

  create(o: GroupOptions): number {
    let flags = 0;
    for (const [name, value] of Object.entries(flag)) {
      if (o[name as keyof typeof flag] === true) flags |= value;
    }
    const w = this.#begin().u64(o.id).u32(o.electionTicks).u32(o.heartbeatTicks).u32(flags);
    w.u64(o.maxMessageBytes ?? 0).u64(o.maxCommittedBytes ?? 0);
    w.u32(o.maxInflightMessages ?? defaultInflightMessages).u64(o.maxUncommittedBytes ?? 0);
    w.u64(o.applied ?? o.snapshot.index).snapshot(o.snapshot);
    w.hardState(o.hard ?? { term: o.snapshot.term, vote: 0, commit: o.snapshot.index });
    w.entries(o.entries ?? []);
    return this.#send((n) => this.#x.group_create(n));
  }

  destroy(group: number): void {
    this.#call(() => this.#x.group_destroy(group));
  }

  setAsleep(group: number, asleep: boolean): void {
    this.#call(() => this.#x.set_asleep(group, asleep ? 1 : 0));
  }

  tick(group: number): void {
    this.#call(() => this.#x.tick(group));
  }

  tickAll(): number[] {
    const r = this.#read(this.#call(() => this.#x.tick_all()));
    const dead: number[] = [];
    while (r.at < r.end) dead.push(r.u32());
    return dead;
  }

  propose(group: number, entries: readonly Uint8Array[]): void {
    const w = this.#begin();
    for (const entry of entries) w.bytes(entry);
    this.#send((n) => this.#x.propose(group, n));
  }

  step(group: number, message: Message): void {
    this.#begin().framed(message);
    this.#send((n) => this.#x.step(group, n, 0));
  }

  stepLocal(group: number, message: Message): void {
    this.#begin().framed(message);
    this.#send((n) => this.#x.step(group, n, 1));
  }

  stepAll(messages: readonly { group: number; message: Message }[]): Map<number, number> {
    const w = this.#begin();
    for (const { group, message } of messages) w.u32(group).framed(message);
    const r = this.#read(this.#send((n) => this.#x.step_all(n)));
    const refused = new Map<number, number>();
    while (r.at < r.end) refused.set(r.u32(), r.u32() | 0);
    return refused;
  }

  hasReady(group: number): boolean {
    return this.#call(() => this.#x.has_ready(group)) === 1;
  }

  ready(group: number): Ready | undefined {
    const length = this.#call(() => this.#x.ready(group));
    return length === 0 ? undefined : this.#read(length).ready();
  }

  readyAll(maxBytes: number): GroupReady[] {
    const r = this.#read(this.#call(() => this.#x.ready_all(maxBytes)));
    const all: GroupReady[] = [];
    while (r.at < r.end) {
      const group = r.u32();
      const code = r.u32() | 0;
      const length = r.u32();
      all.push({
        group,
        ready: length === 0 ? new RaftError(code, 'the group is dead') : r.ready(),
      });
    }
    return all;
  }

  advance(group: number): void {
    this.#call(() => this.#x.advance(group));
  }

  storageDone(group: number, kind: 'append' | 'apply', keepOwn = false): Message[] {
    const done = this.#call(() =>
      this.#x.storage_done(group, kind === 'append' ? 0 : 1, keepOwn ? 1 : 0),
    );
    const r = this.#read(done);
    const messages: Message[] = [];
    while (r.at < r.end) messages.push(r.framed());
    return messages;
  }

  campaign(group: number): void {
    this.#call(() => this.#x.campaign(group));
  }

  transferLeader(group: number, to: number): void {
    this.#call(() => this.#x.transfer_leader(group, to));
  }

  forgetLeader(group: number): void {
    this.#call(() => this.#x.forget_leader(group));
  }

  reportUnreachable(group: number, id: number): void {
    this.#call(() => this.#x.report_unreachable(group, id));
  }

  reportSnapshot(group: number, id: number, ok: boolean): void {
    this.#call(() => this.#x.report_snapshot(group, id, ok ? 1 : 0));
  }

  readIndex(group: number, context: Uint8Array): void {
    this.#begin().raw(context);
    this.#send((n) => this.#x.read_index(group, n));
  }

  proposeConfChange(
    group: number,
    changes: readonly ConfChange[],
    transition: Transition,
    context = noBytes,
    version: 1 | 2 = 2,
  ): void {
    const w = this.#begin().u32(version).u32(transition).u32(changes.length);
    for (const { type, id } of changes) w.u32(type).u64(id);
    w.bytes(context);
    this.#send((n) => this.#x.propose_conf_change(group, n));
  }

  applyConfChange(group: number, entry: Entry): ConfState {
    this.#begin().u32(entry.kind).raw(entry.data);
    return this.#read(this.#send((n) => this.#x.apply_conf_change(group, n))).confState();
  }

  decodeConfChange(entry: Entry): {
    transition: number;
    changes: ConfChange[];
    context: Uint8Array;
  } {
    this.#begin().u32(entry.kind).raw(entry.data);
    const r = this.#read(this.#send((n) => this.#x.decode_conf_change(n)));
    const transition = r.u32();
    const changes: ConfChange[] = [];
    for (let left = r.count(12); left > 0; left--) changes.push({ type: r.u32(), id: r.u64() });
    return { transition, changes, context: r.bytes() };
  }

  setSnapshot(group: number, snapshot: Snapshot): void {
    this.#begin().snapshot(snapshot);
    this.#send((n) => this.#x.set_snapshot(group, n));
  }

  compact(group: number, index: number): void {
    this.#call(() => this.#x.compact(group, index));
  }

  status(group: number): GroupStatus {
    const r = this.#read(this.#call(() => this.#x.status(group)));
    return {
      id: r.u64(),
      term: r.u64(),
      vote: r.u64(),
      commit: r.u64(),
      applied: r.u64(),
      lead: r.u64(),
      lastIndex: r.u64(),
      firstIndex: r.u64(),
      pendingAppends: r.u64(),
      pendingApplies: r.u64(),
      role: r.u32(),
    };
  }

  progress(group: number): { conf: ConfState; peers: PeerProgress[] } {
    const r = this.#read(this.#call(() => this.#x.progress(group)));
    const conf = r.confState();
    const peers: PeerProgress[] = [];
    for (let left = r.count(44); left > 0; left--) {
      const id = r.u64();
      const state = r.u32();
      const flags = r.u32();
      peers.push({
        id,
        state,
        learner: (flags & 1) !== 0,
        paused: (flags & 2) !== 0,
        recentlyActive: (flags & 4) !== 0,
        inflightFull: (flags & 8) !== 0,
        match: r.u64(),
        next: r.u64(),
        pendingSnapshot: r.u64(),
        inflight: r.u32(),
      });
    }
    return { conf, peers };
  }

  entries(group: number, from = 0, maxBytes = 0): Entry[] {
    return this.#read(this.#call(() => this.#x.entries(group, from, maxBytes))).entries();
  }

  setElectionTimeout(group: number, ticks: number): void {
    this.#call(() => this.#x.set_election_timeout(group, ticks));
  }

  setVerbose(verbose: boolean): void {
    this.#run(() => this.#x.set_verbose(verbose ? 1 : 0));
  }

  collectGarbage(): void {
    this.#run(() => this.#x.gc());
  }

  setCollectorPercent(percent: number): void {
    this.#run(() => this.#x.gc_percent(percent));
  }

  memory(): EngineMemory {
    const r = this.#read(this.#call(() => this.#x.memory_stats()));
    return {
      heap: r.u64(),
      system: r.u64(),
      collections: r.u64(),
      pauseNanoseconds: r.u64(),
    };
  }

  #begin(): FrameWriter {
    return this.#out.reset();
  }

  /** Passes on the bytes written since `#begin`. */
  #send(call: (bytes: number) => number): number {
    const bytes = this.#out.done();
    const at = this.#run(() => this.#x.in_buffer(bytes.length)) >>> 0;
    this.#view().set(bytes, at);
    return this.#call(() => call(bytes.length));
  }

  #call(call: () => number): number {
    const result = this.#run(call);
    if (result >= 0) return result;
    const length = this.#run(() => this.#x.last_error());
    const at = this.#run(() => this.#x.out_buffer()) >>> 0;
    throw new RaftError(result, Buffer.from(this.#view().subarray(at, at + length)).toString());
  }

  /**
   * After an exception that the module does not catch, its state is unknown: it must not be called
   * again.
   */
  #run<T>(call: () => T): T {
    if (this.#fault !== undefined) {
      throw new Error('the consensus engine has failed before', { cause: this.#fault });
    }
    try {
      return call();
    } catch (error) {
      this.#fault = error;
      throw error;
    }
  }

  #read(length: number): FrameReader {
    const at = length === 0 ? 0 : this.#run(() => this.#x.out_buffer()) >>> 0;
    return new FrameReader(this.#view(), at, at + length);
  }

  #view(): Uint8Array {
    const { buffer } = this.#x.memory;
    if (this.#memory.buffer !== buffer) this.#memory = new Uint8Array(buffer);
    return this.#memory;
  }
}
