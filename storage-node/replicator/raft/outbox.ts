// The messages of a replica on their way out: payloads are added, large ones cut, heartbeats get their times.

import { MessageType } from '../engine/frames.ts';
import type { Entry, Message } from '../engine/frames.ts';
import type { EntryApplier } from './entry-applier.ts';
import { marked } from './fence.ts';
import { hasPayload, readReference } from './entry-reference.ts';
import type { Freshness, HeartbeatTimes } from './freshness.ts';
import type { GroupLog } from './group-log.ts';
import type { GroupSnapshots } from './group-snapshots.ts';
import { isPlainHeartbeat, travelsWithOthers } from './heartbeats.ts';
import { splitMessage } from './peer-message.ts';
import type { Proposals } from './proposals.ts';
import type { RaftGroupParts } from './raft-group-parts.ts';

interface OutboxParts {
  group: RaftGroupParts;
  applier: EntryApplier;
  log: GroupLog;
  snapshots: GroupSnapshots;
  proposals: Proposals;
  freshness: Freshness;
  /** This replica may have lost the end of its log. */
  isFenced: () => boolean;
}

const noTimes: HeartbeatTimes = { sent: 0, echo: 0, echoLife: 0, age: 0, commit: 0 };

export class Outbox {
  readonly #p: OutboxParts;
  /** Replicas to which an append of this hand-out of the engine was not taken. */
  readonly #lostTo: number[] = [];

  constructor(parts: OutboxParts) {
    this.#p = parts;
  }

  /** The messages of another hand-out come. */
  begin(): void {
    this.#lostTo.length = 0;
  }

  send(unmarked: Message): void {
    const { group, applier, log, snapshots, freshness, isFenced } = this.#p;
    const message = isFenced() ? marked(unmarked) : unmarked;
    const { to, type } = message;
    if (type === MessageType.timeoutNow) freshness.transferred(message.term);
    if (type === MessageType.snapshot) {
      // After a restart the members of the state's index are known once the engine has told all up to there.
      if (applier.isCaughtUp && !log.isInstalling) snapshots.send(message);
      else group.engine.reportSnapshot(group.handle, to, false);
      return;
    }
    // Messages after a lost one are rejected by the receiver: their payloads need not be read.
    if (type === MessageType.append && this.#lostTo.includes(to)) return;
    // Its entries may have been released since the engine made the message: the follower will be
    // sent a snapshot.
    const first = type === MessageType.append ? message.entries[0] : undefined;
    const isGone = first !== undefined && first.index <= log.begin.index;
    let sent = !isGone;
    for (const part of isGone ? [] : splitMessage(message, group.limits.maxMessageBytes)) {
      const carried = part.entries.filter(hasPayload);
      const payloads = carried.map((entry) => this.#payloadOf(entry));
      sent = this.post(part, payloads);
      if (!sent) break;
    }
    // Else the leader would continue as if these were under way.
    if (sent || type !== MessageType.append) return;
    this.#lostTo.push(to);
    group.engine.reportUnreachable(group.handle, to);
  }

  post(message: Message, payloads: Uint8Array[]): boolean {
    const { group: own, freshness, applier } = this.#p;
    const { group, incarnation } = own;
    let times: HeartbeatTimes | undefined;
    if (isPlainHeartbeat(message)) times = freshness.stamp(message, applier, applier.conf);
    else if (travelsWithOthers(message)) times = noTimes;
    return own.send(message.to, { group, incarnation, message, payloads, times });
  }

  /** A leader sends an entry in the tick of its proposal, before it is written. */
  #payloadOf({ index, term, data }: Entry): Uint8Array {
    const { group, proposals } = this.#p;
    const { replica, incarnation, firstPosition } = readReference(data);
    if (replica === group.replica && incarnation === group.incarnation) {
      const own = proposals.payload(firstPosition);
      if (own) return own;
    }
    return group.payloads.get(index, term, data);
  }
}
