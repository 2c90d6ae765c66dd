// Upstream's printed forms (raft/util.go, raft/tracker/progress.go) of the engine's output.

import { appendTask, applyTask, EntryKind, MessageType } from '../frames.ts';
import type { ConfState, Entry, HardState, Message, Ready, Snapshot } from '../frames.ts';
import type { PeerProgress, RaftEngine } from '../raft-engine.ts';

export const roleNames = ['StateFollower', 'StateCandidate', 'StateLeader', 'StatePreCandidate'];
const progressNames = ['StateProbe', 'StateReplicate', 'StateSnapshot'];
const entryNames = ['EntryNormal', 'EntryConfChange', 'EntryConfChangeV2'];
const changeLetters = ['v', 'r', 'u', 'l'];

/** Names as upstream's, by number. */
export const messageNames = new Map<number, string>(
  Object.entries(MessageType).map(([name, type]) => {
    const upstream =
      { propose: 'Prop', append: 'App', appendResponse: 'AppResp', snapshot: 'Snap' }[name] ??
      name.replace(/^snapshotStatus$/, 'SnapStatus').replace(/Response$/, 'Resp');
    return [type, `Msg${upstream[0]!.toUpperCase()}${upstream.slice(1)}`];
  }),
);

export class Describer {
  readonly #engine: RaftEngine;

  constructor(engine: RaftEngine) {
    this.#engine = engine;
  }

  ready(ready: Ready | undefined): string {
    if (ready === undefined) return '<empty Ready>';
    const { soft, hard, snapshot } = ready;
    let text = `Ready MustSync=${ready.mustSync}:\n`;
    if (soft) text += `Lead:${soft.lead} State:${roleNames[soft.role]}\n`;
    if (hard) text += `HardState ${hardState(hard)}\n`;
    if (ready.entries.length > 0) text += `Entries:\n${this.entries(ready.entries)}`;
    if (snapshot) text += `Snapshot ${snapshotText(snapshot)}\n`;
    if (ready.committed.length > 0) {
      text += `CommittedEntries:\n${this.entries(ready.committed)}`;
    }
    if (ready.messages.length > 0) text += 'Messages:\n';
    for (const message of ready.messages) text += `${this.message(message)}\n`;
    return text;
  }

  message(m: Message, indent = ''): string {
    let text = `${indent}${target(m.from)}->${target(m.to)} ${messageNames.get(m.type)}`;
    text += ` Term:${m.term} Log:${m.logTerm}/${m.index}`;
    if (m.reject) text += ` Rejected (Hint: ${m.rejectHint})`;
    if (m.commit !== 0) text += ` Commit:${m.commit}`;
    if (m.vote !== 0) text += ` Vote:${m.vote}`;
    if (m.entries.length === 1) text += ` Entries:[${this.entry(m.entries[0]!)}]`;
    if (m.entries.length > 1) {
      const lines = m.entries.map((entry) => `\n${indent}  ${this.entry(entry)}`);
      text += ` Entries:[${lines.join('')}\n${indent}]`;
    }
    if (m.snapshot && m.snapshot.index !== 0) {
      text += `\n${indent}  Snapshot: ${snapshotText(m.snapshot)}`;
    }
    if (m.responses.length > 0) {
      const lines = m.responses.map((response) => `\n${this.message(response, `${indent}  `)}`);
      text += ` Responses:[${lines.join('')}\n${indent}]`;
    }
    return text;
  }

  entries(entries: readonly Entry[]): string {
    return entries.map((entry) => `${this.entry(entry)}\n`).join('');
  }

  entry(entry: Entry): string {
    const content = entry.kind === EntryKind.normal ? quote(entry.data) : this.#confChange(entry);
    const suffix = content === '' ? '' : ` ${content}`;
    return `${entry.term}/${entry.index} ${entryNames[entry.kind]}${suffix}`;
  }

  #confChange(entry: Entry): string {
    const { changes } = this.#engine.decodeConfChange(entry);
    return changes.map(({ type, id }) => `${changeLetters[type]}${id}`).join(' ');
  }
}

export function progressText(p: PeerProgress): string {
  let text = `${p.id}: ${progressNames[p.state]} match=${p.match} next=${p.next}`;
  if (p.learner) text += ' learner';
  if (p.paused) text += ' paused';
  if (p.pendingSnapshot > 0) text += ` pendingSnap=${p.pendingSnapshot}`;
  if (!p.recentlyActive) text += ' inactive';
  if (p.inflight > 0) text += ` inflight=${p.inflight}${p.inflightFull ? '[full]' : ''}`;
  return `${text}\n`;
}

function hardState({ term, vote, commit }: HardState): string {
  return `Term:${term}${vote === 0 ? '' : ` Vote:${vote}`} Commit:${commit}`;
}

function snapshotText({ index, term, conf }: Snapshot): string {
  return `Index:${index} Term:${term} ConfState:${confText(conf)}`;
}

function confText(c: ConfState): string {
  const list = (ids: number[]): string => `[${ids.join(' ')}]`;
  return (
    `Voters:${list(c.voters)} VotersOutgoing:${list(c.outgoing)} Learners:${list(c.learners)}` +
    ` LearnersNext:${list(c.nextLearners)} AutoLeave:${c.autoLeave}`
  );
}

function target(id: number): string {
  if (id === 0) return 'None';
  if (id === appendTask) return 'AppendThread';
  return id === applyTask ? 'ApplyThread' : id.toString(16);
}

function quote(data: Uint8Array): string {
  return JSON.stringify(Buffer.from(data).toString());
}
