// The metadata of a cluster: documents kept by a replicated log of its nodes. Each node has a copy,
// from which it reads once the copy has all earlier commits. A write is one entry of the log, with
// the revisions it expects; its outcome is decided where the entry is applied, so that of two
// writes that expect the same revision one wins.
//
// A write is forwarded to the leader. Without an outcome, after the loss of a leader or a link, it
// is proposed again under the same id until its time is up: replicas recognise an id applied
// before.

import { randomBytes } from 'node:crypto';
import type { ReplicatedGroup, ReplicatedMachine } from '../../../contracts/replicated-group.ts';
import type { Outcome } from '../../../universal-row/executor.ts';
import { checkCollection, checkName, encodeBodies } from '../document-checks.ts';
import {
  type DocumentChange,
  type DocumentStore,
  type DocumentWrite,
  type Json,
  MetadataUnavailable,
  RevisionConflict,
  type Snapshot,
  type StoredDocument,
} from '../document-store.ts';
import type { MetadataStatus } from '../resilient/resilient-store.ts';
import type { StoredChange } from './change-history.ts';
import { DocumentMachine } from './document-machine.ts';
import type { StoredText } from './document-state.ts';
import { encodeCommand } from './write-command.ts';
import type { WriteResult } from './write-command.ts';

interface ReplicatedStoreOptions {
  /** Path of the directory with the copy. */
  path: string;
  node: number;
  /**
   * Asks a node to make a write where it leads: `ReplicatedDocumentStore.serveWrite` there takes the bytes and gives
   * the answer. Rejects when there is none; whether it was made is unknown then.
   */
  forward: (node: number, bytes: Uint8Array, ms: number) => Promise<Uint8Array>;
  /** Nodes that might know a leader when this one does not. */
  others: () => readonly number[];
  /** Changes kept for followers. */
  historyLength?: number;
  /** After which a call ends. */
  timeoutMs?: number;
  /**
   * Time after which a read is answered from the copy, although the copy may not be the latest. Later reads are
   * answered at once, until the copy is known to be the latest again. Undefined: never; such a read rejects.
   */
  staleAfterMs?: number;
  report?: (message: string) => void;
}

/** Result of an attempt. */
type Attempt =
  | WriteResult
  /** Nothing was done; `leader` is 0 where none is known. */
  | { kind: 'refused'; why: string; leader: number }
  | { kind: 'unknown' };

interface Waiting {
  resolve: (attempt: Attempt) => void;
  timer: NodeJS.Timeout;
  result: WriteResult | undefined;
}

const defaultTimeoutMs = 10_000;
/** Time that one attempt of a write may take. */
const attemptMs = 3000;
/** Longest pause between two attempts without a leader. */
const retryMs = 100;
/** Interval between checks whether the copy is the latest again. */
const probeMs = 1000;
/** Time a write that is made waits until it can be read here. */
const seenTimeoutMs = 2000;

export class ReplicatedDocumentStore implements DocumentStore {
  /** Followers hear of every change at once, so polling is rare. */
  readonly pollMs = 60_000;
  readonly #options: ReplicatedStoreOptions;
  readonly #machine: DocumentMachine;
  readonly #waiting = new Map<number, Waiting>();
  readonly #watchers = new Set<{
    listener: (change: DocumentChange) => void;
    missed: (() => void) | undefined;
  }>();
  readonly #hints = new Set<() => void>();
  /** Called when the leader, or the state, may be another one. */
  readonly #wakers = new Set<() => void>();
  #group: ReplicatedGroup | undefined;
  #isStale = false;
  #confirmedAt = 0;
  #probe: NodeJS.Timeout | undefined;
  #isClosed = false;

  /** Throws an error with the code LEVEL_LOCKED in its cause when another process has the copy open. */
  static async open(options: ReplicatedStoreOptions): Promise<ReplicatedDocumentStore> {
    const machine = await DocumentMachine.open(options.path, options.historyLength ?? 10_000);
    return new ReplicatedDocumentStore(options, machine);
  }

  private constructor(options: ReplicatedStoreOptions, machine: DocumentMachine) {
    this.#options = options;
    this.#machine = machine;
    machine.listen({
      applied: (position, result) => {
        const waiting = this.#waiting.get(position);
        if (waiting) waiting.result = result;
      },
      settled: (position, outcome) => this.#settled(position, outcome),
      leaderChanged: () => this.#leaderChanged(),
      changed: (changes) => this.#changed(changes),
      replaced: () => this.#replaced(),
      durable: (index) => this.#group?.stateIsDurable(index),
      failed: (error) =>
        options.report?.(`the copy of the metadata is not made durable: ${error.message}`),
    });
  }

  /** State machine with which the group is opened. */
  get machine(): ReplicatedMachine {
    return this.#machine;
  }

  /** The group; once, before the first call. */
  attach(group: ReplicatedGroup): void {
    this.#group = group;
  }

  get revision(): number {
    return this.#machine.state.revision;
  }

  /** For metrics. */
  get status(): MetadataStatus {
    const ageMs = this.#isStale ? Math.max(0, Date.now() - this.#confirmedAt) : 0;
    return { up: !this.#isStale, revision: this.revision, ageMs };
  }

  /** Documents of a collection as this copy has them, without waiting for anything. */
  local(collection: string): StoredDocument[] {
    return this.#machine.state.list(collection).map(documentOf);
  }

  /** Whether this copy holds all that was committed before the call; false when that cannot be told in time. */
  isLatest(ms: number): Promise<boolean> {
    return this.#barrier(performance.now() + ms);
  }

  async get(collection: string, id: string): Promise<StoredDocument | undefined> {
    checkName(collection, id);
    await this.#readable();
    const found = this.#machine.state.get(collection, id);
    return found && documentOf(found);
  }

  async list(collection: string): Promise<StoredDocument[]> {
    checkCollection(collection);
    await this.#readable();
    return this.local(collection);
  }

  async snapshot(): Promise<Snapshot> {
    await this.#readable();
    const { state } = this.#machine;
    return { revision: state.revision, documents: state.all().map(documentOf) };
  }

  async changes(after: number): Promise<DocumentChange[]> {
    // Changes that are already here are returned without asking other nodes.
    if (after >= this.revision) await this.#readable();
    return this.#machine.history.after(after).map(changeOf);
  }

  watch(listener: (change: DocumentChange) => void, missed?: () => void): () => void {
    const watcher = { listener, missed };
    this.#watchers.add(watcher);
    return () => {
      this.#watchers.delete(watcher);
    };
  }

  onHint(listener: () => void): () => void {
    const hint = (): void => listener();
    this.#hints.add(hint);
    return () => {
      this.#hints.delete(hint);
    };
  }

  async write(changes: readonly DocumentWrite[]): Promise<number[]> {
    const texts = encodeBodies(changes);
    if (changes.length === 0) return [];
    const until = performance.now() + (this.#options.timeoutMs ?? defaultTimeoutMs);
    let since = this.#machine.state.commands;
    for (;;) {
      const command = encodeCommand(randomBytes(12).toString('base64'), since, changes, texts);
      const result = await this.#make(command, until);
      switch (result.kind) {
        case 'written': {
          const last = result.first + result.count - 1;
          await this.#seen(last, Math.min(until, performance.now() + seenTimeoutMs));
          return Array.from({ length: result.count }, (_, i) => result.first + i);
        }
        case 'conflict': {
          const { collection, id, expected, found } = result;
          // So that the next read sees the conflicting change.
          await this.#seen(found, Math.min(until, performance.now() + seenTimeoutMs));
          throw new RevisionConflict(collection, id, expected, found);
        }
        case 'forgotten':
          since = result.commands;
      }
    }
  }

  /**
   * Makes a write that another node forwards, if the log is led here. Rejects only for an invalid
   * write.
   */
  async serveWrite(bytes: Uint8Array): Promise<Uint8Array> {
    return Buffer.from(JSON.stringify(await this.#propose(bytes, attemptMs)));
  }

  /** The group must be closed before, or never attached. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    clearTimeout(this.#probe);
    for (const position of [...this.#waiting.keys()]) this.#settled(position, 'unknown');
    this.#wake();
    await this.#machine.close();
  }

  // ---- writes

  /**
   * Proposes a command until its outcome is known. `forgotten` means here that it was not applied.
   */
  async #make(command: Uint8Array, until: number): Promise<WriteResult> {
    let mayBeMade = false;
    let asked = 0;
    let why = 'the metadata have no leader';
    for (let hint = 0; ; ) {
      const leftMs = until - performance.now();
      if (leftMs <= 0 || this.#isClosed) {
        if (this.#isClosed) why = 'the store is closed';
        const end = mayBeMade ? 'it is unknown whether the change was made' : 'nothing was changed';
        throw new MetadataUnavailable(`${why}: ${end}`, mayBeMade ? 'unknown' : 'none');
      }
      const to = this.#leaderOr(hint, asked++);
      const attempt = await this.#attempt(to, command, leftMs);
      hint = 0;
      switch (attempt.kind) {
        case 'written':
        case 'conflict':
          return attempt;
        case 'forgotten':
          if (!mayBeMade) return attempt;
          throw new MetadataUnavailable('it is unknown whether the change was made', 'unknown');
        case 'unknown':
          mayBeMade = true;
          why = 'the leader of the metadata is lost';
          break;
        case 'refused':
          why = attempt.why;
          hint = attempt.leader === to ? 0 : attempt.leader;
      }
      if (hint === 0) await this.#sleep(Math.min(retryMs, until - performance.now()));
    }
  }

  /**
   * Node to ask: the leader, as known here or by a hint; else one node after the other, which may
   * know more.
   */
  #leaderOr(hint: number, asked: number): number {
    const { node, others } = this.#options;
    const leader = this.#group?.isLeader ? node : hint || (this.#group?.leader ?? 0);
    if (leader !== 0) return leader;
    const nodes = others().filter((other) => other !== node);
    return nodes[asked % Math.max(nodes.length, 1)] ?? node;
  }

  async #attempt(to: number, command: Uint8Array, leftMs: number): Promise<Attempt> {
    const { node, forward } = this.#options;
    const ms = Math.min(leftMs, attemptMs);
    if (to === node) return await this.#propose(command, ms);
    try {
      const answer = await forward(to, command, ms);
      return JSON.parse(Buffer.from(answer).toString()) as Attempt;
    } catch (error) {
      if (error instanceof MetadataUnavailable && error.outcome === 'none') {
        return { kind: 'refused', why: error.message, leader: 0 };
      }
      return { kind: 'unknown' };
    }
  }

  async #propose(command: Uint8Array, ms: number): Promise<Attempt> {
    const group = this.#group;
    if (group === undefined || this.#isClosed) {
      return { kind: 'refused', why: 'this node has no part in the metadata yet', leader: 0 };
    }
    const position = group.propose(command);
    if (position === 'too large') throw new RangeError('a write of metadata is too large');
    if (typeof position === 'string') {
      const why = position === 'not leader' ? 'the metadata have no leader' : position;
      return { kind: 'refused', why, leader: group.isLeader ? 0 : group.leader };
    }
    return await new Promise<Attempt>((resolve) => {
      const timer = setTimeout(() => this.#settled(position, 'unknown'), ms);
      this.#waiting.set(position, { resolve, timer, result: undefined });
    });
  }

  /**
   * A former leader's proposals may be committed by the next one, which then reports the outcome.
   */
  #leaderChanged(): void {
    if (this.#group?.isLeader === false) {
      for (const position of [...this.#waiting.keys()]) this.#settled(position, 'unknown');
    }
    this.#wake();
  }

  #settled(position: number, outcome: Outcome): void {
    const waiting = this.#waiting.get(position);
    if (waiting === undefined) return;
    this.#waiting.delete(position);
    clearTimeout(waiting.timer);
    if (outcome === 'lost') {
      waiting.resolve({ kind: 'refused', why: 'the leader has changed', leader: 0 });
    } else waiting.resolve(waiting.result ?? { kind: 'unknown' });
  }

  /** A write that is made can be read here, too, unless this copy is far behind. */
  async #seen(revision: number, until: number): Promise<void> {
    while (this.revision < revision && !this.#isClosed) {
      const leftMs = until - performance.now();
      if (leftMs <= 0) return;
      await this.#sleep(leftMs);
    }
  }

  // ---- reads

  async #readable(): Promise<void> {
    if (this.#isStale) return;
    const { staleAfterMs, timeoutMs = defaultTimeoutMs } = this.#options;
    if (await this.#barrier(performance.now() + (staleAfterMs ?? timeoutMs))) return;
    if (this.#isClosed) throw new MetadataUnavailable('the store is closed');
    if (staleAfterMs === undefined) {
      throw new MetadataUnavailable('most nodes that keep the metadata are out of reach');
    }
    this.#goStale();
  }

  #goStale(): void {
    if (this.#isStale) return;
    this.#isStale = true;
    const { revision } = this;
    this.#options.report?.(
      `most nodes that keep the metadata are out of reach: serving on with this node's copy (revision ${revision}); changes are refused`,
    );
    const look = async (): Promise<void> => {
      if (await this.#barrier(performance.now() + probeMs)) {
        this.#isStale = false;
        this.#options.report?.(`the metadata are back, at revision ${this.revision}`);
      } else if (!this.#isClosed) {
        this.#probe = setTimeout(() => void look(), probeMs);
        this.#probe.unref();
      }
    };
    void look();
  }

  async #barrier(until: number): Promise<boolean> {
    for (;;) {
      const leftMs = until - performance.now();
      if (leftMs <= 0 || this.#isClosed || this.#group === undefined) return false;
      if (await this.#ask(this.#group, leftMs)) {
        this.#confirmedAt = Date.now();
        return !this.#isClosed;
      }
      await this.#sleep(Math.min(retryMs, until - performance.now()));
    }
  }

  #ask(group: ReplicatedGroup, ms: number): Promise<boolean> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => resolve(false), ms);
      group.readBarrier((isSafe) => {
        clearTimeout(timer);
        resolve(isSafe);
      });
    });
  }

  // ---- the feed

  #changed(changes: readonly StoredChange[]): void {
    for (const change of changes) {
      for (const { listener } of this.#watchers) listener(changeOf(change));
    }
    this.#wake();
    for (const hint of this.#hints) hint();
  }

  #replaced(): void {
    for (const { missed } of this.#watchers) missed?.();
    this.#wake();
    for (const hint of this.#hints) hint();
  }

  /** Ends early when there may be news. */
  #sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const wake = (): void => {
        clearTimeout(timer);
        this.#wakers.delete(wake);
        resolve();
      };
      const timer = setTimeout(wake, Math.max(0, ms));
      this.#wakers.add(wake);
    });
  }

  #wake(): void {
    for (const wake of this.#wakers) wake();
  }
}

function documentOf({ collection, id, revision, text }: StoredText): StoredDocument {
  return { collection, id, revision, body: JSON.parse(text) as Json };
}

function changeOf({ revision, collection, id, text }: StoredChange): DocumentChange {
  return {
    revision,
    collection,
    id,
    body: text === undefined ? undefined : (JSON.parse(text) as Json),
  };
}
