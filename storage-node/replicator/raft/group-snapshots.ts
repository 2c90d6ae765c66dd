// Snapshots of a group in progress: those sent to followers that are too far behind, and the snapshot being received.

import type { Disk } from '../../../universal-row/environment.ts';
import type { Message, Snapshot } from '../engine/frames.ts';
import { isDiskFull } from '../wal/log-errors.ts';
import type { PeerMessage } from './peer-message.ts';
import { decodeNumbers, encodeNumbers, SnapshotSender, SnapshotType } from './snapshot-sender.ts';
import { SnapshotStaging } from './snapshot-staging.ts';
import type { LogPosition } from './log-position.ts';
import type { StateMachine } from './state-machine.ts';

interface GroupSnapshotsParts {
  group: number;
  disk: Disk;
  directory: string;
  machine: StateMachine;
  /** Term and members of an index that the log still has. */
  positionAt: (index: number) => LogPosition;
  post: (message: Message, payloads: Uint8Array[]) => boolean;
  /** Ends the engine's wait for a snapshot: whether the follower received all of it. */
  report: (to: number, ok: boolean) => void;
  /** Index up to which a follower has the log; 0 while unknown. */
  matchOf: (to: number) => number;
  /** How many may be under way in the pod: taken and given back. */
  slots: { free: number };
  /** `tick` is to be called. */
  time: () => void;
}

/** A follower that has received all of a snapshot, and installs it. */
interface Install {
  readonly index: number;
  /** Number of its start. */
  readonly incarnation: number;
  /** Last part, which is sent again from time to time: a follower that does not install refuses it. */
  readonly last: Message;
  ticks: number;
}

/** A snapshot that was received as a whole and given to the engine, which may not want it. */
interface Received {
  readonly snapshot: Snapshot;
  readonly staging: SnapshotStaging;
}

const noBytes = new Uint8Array(0);
const askTicks = 20;
/** Ticks after which a follower without an answer to its snapshot is asked what it has. */
const installTicks = 600;

export class GroupSnapshots {
  readonly #p: GroupSnapshotsParts;
  readonly #senders = new Map<number, SnapshotSender | 'begins'>();
  /**
   * Followers that install a snapshot, by replica. The engine only knows the index of the last checkpoint, which is older
   * than the state that was sent. Told of the arrival, the engine would send the log from the checkpoint on, again with each
   * heartbeat of an install that takes seconds. So it is told nothing until the follower has the state.
   */
  readonly #installs = new Map<number, Install>();
  /** The snapshot being received. */
  #staging: SnapshotStaging | undefined;
  /** Those received in this tick. A part of another leader's may come before the engine has taken the first. */
  readonly #received: Received[] = [];
  #nextId = 1;
  #closed = false;

  constructor(parts: GroupSnapshotsParts) {
    this.#p = parts;
  }

  get isSending(): boolean {
    return this.#senders.size > 0 || this.#installs.size > 0;
  }

  /** The log after it is needed by a follower that is being sent a snapshot. */
  get oldestIndex(): number {
    let oldest = Infinity;
    for (const sender of this.#senders.values()) {
      oldest = Math.min(oldest, sender === 'begins' ? 0 : sender.index);
    }
    for (const { index } of this.#installs.values()) oldest = Math.min(oldest, index);
    return oldest;
  }

  /** Sends the state, in place of the empty snapshot in the engine's message. */
  send(message: Message): void {
    const { to } = message;
    const { slots, report } = this.#p;
    if (this.#senders.has(to)) return;
    if (slots.free === 0) return report(to, false);
    slots.free--;
    this.#senders.set(to, 'begins');
    this.#installs.delete(to);
    this.#p.time();
    this.#begin(message).catch(() => this.#failed(to));
  }

  tick(): void {
    for (const sender of this.#senders.values()) if (sender !== 'begins') sender.tick();
    for (const [to, install] of this.#installs) {
      if (this.#p.matchOf(to) >= install.index) this.#installs.delete(to);
      else if (++install.ticks > installTicks) this.#giveUp(to);
      else if (install.ticks % askTicks === 0) this.#p.post(install.last, []);
    }
  }

  /** A message of a replica has come. One that has started again has not installed its snapshot. */
  heard(from: number, incarnation: number): void {
    const install = this.#installs.get(from);
    if (install !== undefined && install.incarnation !== incarnation) this.#giveUp(from);
  }

  #giveUp(to: number): void {
    this.#installs.delete(to);
    this.#p.report(to, true);
  }

  /** A part of a snapshot, or an answer to one. True when it completes one: the message is the engine's then. */
  receive({ message, payloads, incarnation }: PeerMessage): boolean {
    const numbers = decodeNumbers(message.context);
    if (numbers === undefined) return false;
    const { id, number } = numbers;
    if (message.type === SnapshotType.answer) {
      this.#answered(message, incarnation, id, number);
      return false;
    }
    const key = `${message.from} ${incarnation} ${id}`;
    const chunk = message.type === SnapshotType.chunk ? payloads[0] : undefined;
    const isNext = this.#stage(key, number, chunk);
    const staging = this.#staging?.sender === key ? this.#staging : undefined;
    const { snapshot } = message;
    const isWhole = isNext && staging !== undefined && snapshot !== undefined;
    if (isWhole) {
      staging.next++;
      this.#received.push({ snapshot, staging });
      this.#staging = undefined;
    }
    const context = encodeNumbers(id, staging?.next ?? 0);
    const answer = { ...message, type: SnapshotType.answer, snapshot: undefined, context };
    this.#p.post({ ...answer, to: message.from, from: message.to, reject: !staging }, []);
    return isWhole;
  }

  #answered({ from, reject }: Message, incarnation: number, id: number, number: number): void {
    const sender = this.#senders.get(from);
    if (sender === undefined && reject && this.#installs.has(from)) this.#giveUp(from);
    if (sender === undefined || sender === 'begins') return;
    const last = sender.answered(id, number, reject);
    if (last === undefined) return;
    this.#installs.set(from, { index: sender.index, incarnation, last, ticks: 0 });
    this.#ended(from);
  }

  /** Whether a part is the one waited for; a chunk is kept. On a full disk the whole snapshot is refused. */
  #stage(sender: string, number: number, chunk: Uint8Array | undefined): boolean {
    try {
      if (number === 0 && this.#staging?.sender !== sender) {
        this.#staging?.remove();
        const { disk, directory, group } = this.#p;
        this.#staging = new SnapshotStaging(disk, directory, group, sender);
      }
      const staging = this.#staging?.sender === sender ? this.#staging : undefined;
      const isNext = staging?.next === number;
      if (staging && isNext && chunk) staging.add(chunk);
      return isNext;
    } catch (error) {
      if (!isDiskFull(error)) throw error;
      this.#staging?.remove();
      this.#staging = undefined;
      return false;
    }
  }

  /** The state of the snapshot that the engine has accepted. */
  take({ index, term }: Snapshot): SnapshotStaging {
    const at = this.#received.findIndex(
      ({ snapshot }) => snapshot.index === index && snapshot.term === term,
    );
    if (at === -1) throw new Error('the state of a snapshot is missing');
    const [{ staging }] = this.#received.splice(at, 1) as [Received];
    return staging;
  }

  /** The engine has accepted what it wanted. */
  endTick(): void {
    for (const { staging } of this.#received.splice(0)) staging.remove();
  }

  /** The leadership is over. */
  stopSending(): void {
    for (const sender of this.#senders.values()) if (sender !== 'begins') sender.stop();
    this.#installs.clear();
  }

  close(): void {
    this.#closed = true;
    this.stopSending();
    this.#staging?.remove();
    this.#staging = undefined;
    this.endTick();
  }

  async #begin(message: Message): Promise<void> {
    const { machine, positionAt, post } = this.#p;
    const { to } = message;
    const state = await machine.exportState(to);
    if (this.#closed) return;
    const snapshot = { ...positionAt(state.index), data: noBytes };
    const sender = new SnapshotSender({
      id: this.#nextId++,
      state,
      last: { ...message, snapshot },
      post,
      failed: () => this.#failed(to),
    });
    this.#senders.set(to, sender);
  }

  #failed(to: number): void {
    if (this.#ended(to) && !this.#closed) this.#p.report(to, false);
  }

  /** False if it had ended. */
  #ended(to: number): boolean {
    if (!this.#senders.delete(to)) return false;
    this.#p.slots.free++;
    return true;
  }
}
