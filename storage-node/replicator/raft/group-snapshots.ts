// Snapshots of a group in progress: those sent to followers that are too far behind, and the snapshot being received.

import type { Disk } from '../../../universal-row/environment.ts';
import type { Message } from '../engine/frames.ts';
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
  /** Whether the follower got all of it. */
  report: (to: number, ok: boolean) => void;
  /** How many may be under way in the pod: taken and given back. */
  slots: { free: number };
  /** `tick` is to be called. */
  time: () => void;
}

const noBytes = new Uint8Array(0);

export class GroupSnapshots {
  readonly #p: GroupSnapshotsParts;
  readonly #senders = new Map<number, SnapshotSender | 'begins'>();
  #staging: SnapshotStaging | undefined;
  #nextId = 1;
  #closed = false;

  constructor(parts: GroupSnapshotsParts) {
    this.#p = parts;
  }

  get isSending(): boolean {
    return this.#senders.size > 0;
  }

  /** The log after it is needed by a follower that is being sent a snapshot. */
  get oldestIndex(): number {
    let oldest = Infinity;
    for (const sender of this.#senders.values()) {
      oldest = Math.min(oldest, sender === 'begins' ? 0 : sender.index);
    }
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
    this.#p.time();
    this.#begin(message).catch(() => this.#ended(to, false));
  }

  tick(): void {
    for (const sender of this.#senders.values()) if (sender !== 'begins') sender.tick();
  }

  /** A part of a snapshot, or an answer to one. True when it completes one: the message is the engine's then. */
  receive({ message, payloads, incarnation }: PeerMessage): boolean {
    const numbers = decodeNumbers(message.context);
    if (numbers === undefined) return false;
    const { id, number } = numbers;
    if (message.type === SnapshotType.answer) {
      const sender = this.#senders.get(message.from);
      if (sender && sender !== 'begins') sender.answered(id, number, message.reject);
      return false;
    }
    const key = `${message.from} ${incarnation} ${id}`;
    const chunk = message.type === SnapshotType.chunk ? payloads[0] : undefined;
    const isNext = this.#stage(key, number, chunk);
    const staging = this.#staging?.sender === key ? this.#staging : undefined;
    const isWhole = isNext && message.type !== SnapshotType.chunk;
    if (staging && isWhole) staging.next++;
    const context = encodeNumbers(id, staging?.next ?? 0);
    const answer = { ...message, type: SnapshotType.answer, snapshot: undefined, context };
    this.#p.post({ ...answer, to: message.from, from: message.to, reject: !staging }, []);
    return isWhole;
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

  /** The complete snapshot, which the engine has accepted. */
  take(): SnapshotStaging {
    const staging = this.#staging;
    if (staging === undefined) throw new Error('the state of a snapshot is missing');
    this.#staging = undefined;
    return staging;
  }

  /** The leadership is over. */
  stopSending(): void {
    for (const sender of this.#senders.values()) if (sender !== 'begins') sender.stop(false);
  }

  close(): void {
    this.#closed = true;
    this.stopSending();
    this.#staging?.remove();
    this.#staging = undefined;
  }

  async #begin(message: Message): Promise<void> {
    const { machine, positionAt, post } = this.#p;
    const { to } = message;
    const state = await machine.exportState();
    if (this.#closed) return;
    const snapshot = { ...positionAt(state.index), data: noBytes };
    const sender = new SnapshotSender({
      id: this.#nextId++,
      state,
      last: { ...message, snapshot },
      post,
      done: (ok) => this.#ended(to, ok),
    });
    this.#senders.set(to, sender);
  }

  #ended(to: number, ok: boolean): void {
    if (!this.#senders.delete(to)) return;
    this.#p.slots.free++;
    if (!this.#closed) this.#p.report(to, ok);
  }
}
