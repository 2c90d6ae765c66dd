// Changes of rows, told between nodes: a node whose clients want keyspace notifications, or cache
// keys, subscribes to all others for changes at their leaders. They send changes once committed, on
// the links for messages. A node is notified of possible gaps, or detects them when a link or a leader
// changes; then its clients invalidate their caches.
//
//   changes   varint count, and for each: u8 1 by a command, 2 by the one of the change before, varint table, bytes key,
//             varint change; by a command: string name, string detail, varint client (at its own node; 0 of another one)
//   tables    varint count, varint tables: they were emptied, or changed places
//   lost      empty: changes may have been missed

import type { ChangesElsewhere } from '../../access/redis/row-changes.ts';
import { numberAtNode } from '../../universal-row/command.ts';
import type { Outcome } from '../../universal-row/executor.ts';
import { beginFrame, endFrame } from '../../universal-row/protocol/frames.ts';
import { WireError, type WireReader, WireWriter } from '../../universal-row/protocol/wire.ts';
import type { ChangedBy, RowChange } from '../../universal-row/row-change.ts';

/** Types of frames. */
const ChangeFrame = { changes: 81, tables: 82, lost: 83 } as const;

/** Receives changes from other nodes. */
export interface ChangesHeard {
  heard(changes: readonly RowChange[]): void;
  heardOfTables(tables: readonly number[]): void;
  missed(tenant?: number): void;
  /** Other nodes want something else from now on. */
  sync(): void;
}

interface ClusterChangesOptions {
  /**
   * Calls back when the current tick ends; the returned function is called once the tick's writes
   * are settled.
   */
  readonly atEnd: (ended: () => (outcome: Outcome) => void) => void;
  /** Returns false where the node cannot receive the frame now. */
  readonly send: (node: number, frame: Buffer) => boolean;
  /** Sends this node's subscription to all reachable nodes. */
  readonly tell: (isWanted: boolean, wantsMisses: boolean) => Promise<unknown>;
  readonly heard: () => ChangesHeard | undefined;
}

/** Size of keys in one frame; a change of a larger key is reported as lost. */
const frameBytes = 1024 * 1024;
const lostFrame = frameOf(ChangeFrame.lost, () => undefined);

interface Follower {
  wantsMisses: boolean;
  /** The subscriber may have missed changes. */
  hasMissed: boolean;
}

export class ClusterChanges implements ChangesElsewhere {
  readonly #options: ClusterChangesOptions;
  readonly #followers = new Map<number, Follower>();
  /** Whether this node has subscribed. */
  isFollowing = false;
  followsMisses = false;
  wantsMisses = false;
  #pending: (RowChange | readonly number[])[] = [];

  constructor(options: ClusterChangesOptions) {
    this.#options = options;
  }

  get isWanted(): boolean {
    return this.#followers.size > 0;
  }

  follow(isWanted: boolean, wantsMisses: boolean): Promise<unknown> {
    this.isFollowing = isWanted;
    this.followsMisses = wantsMisses;
    return this.#options.tell(isWanted, wantsMisses);
  }

  /** Another node subscribes to changes, or unsubscribes. */
  followedBy(node: number, isWanted: boolean, wantsMisses: boolean): void {
    if (isWanted) this.#followers.set(node, { wantsMisses, hasMissed: false });
    else this.#followers.delete(node);
    this.wantsMisses = [...this.#followers.values()].some((one) => one.wantsMisses);
    this.#options.heard()?.sync();
  }

  // ---- out

  rowsChanged(changes: readonly RowChange[]): void {
    this.#add(changes);
  }

  tablesChanged(tables: readonly number[]): void {
    this.#add([tables]);
  }

  #add(changes: readonly (RowChange | readonly number[])[]): void {
    if (this.#pending.length === 0) {
      this.#options.atEnd(() => {
        const batch = this.#pending;
        this.#pending = [];
        return (outcome) => this.#settled(batch, outcome);
      });
    }
    for (const one of changes) this.#pending.push(one);
  }

  #settled(batch: readonly (RowChange | readonly number[])[], outcome: Outcome): void {
    if (outcome !== 'committed') {
      this.lost();
      return;
    }
    for (const [node, follower] of this.#followers) {
      for (const frame of framesOf(batch, node)) this.#send(node, follower, frame);
    }
  }

  /** This node has become leader, and does not know which changes the old one has reported. */
  lost(): void {
    for (const [node, follower] of this.#followers) this.#send(node, follower, lostFrame);
  }

  #send(node: number, follower: Follower, frame: Buffer): void {
    const { send } = this.#options;
    if (follower.hasMissed) follower.hasMissed = !send(node, lostFrame);
    if (!follower.hasMissed) follower.hasMissed = !send(node, frame);
  }

  /** A node can receive frames again. */
  drained(node: number): void {
    const follower = this.#followers.get(node);
    if (follower?.hasMissed === true) follower.hasMissed = !this.#options.send(node, lostFrame);
  }

  // ---- in

  frame(type: number, reader: WireReader): void {
    const heard = this.#options.heard();
    switch (type) {
      case ChangeFrame.changes:
        heard?.heard(readChanges(reader));
        break;
      case ChangeFrame.tables:
        heard?.heardOfTables(Array.from({ length: checkedCount(reader) }, () => reader.varint()));
        break;
      case ChangeFrame.lost:
        heard?.missed();
        break;
      default:
        throw new WireError(`no message has the type ${type}`);
    }
    reader.done();
  }
}

function frameOf(type: number, write: (writer: WireWriter) => void): Buffer {
  const writer = new WireWriter(256);
  const start = beginFrame(writer, type);
  write(writer);
  endFrame(writer, start);
  return Buffer.from(writer.view());
}

/** Frames of a batch, in order. */
function* framesOf(batch: readonly (RowChange | readonly number[])[], node: number) {
  let changes: RowChange[] = [];
  let bytes = 0;
  const flush = (): Buffer[] => {
    const told = changes;
    changes = [];
    bytes = 0;
    return told.length === 0 ? [] : [changesFrame(told, node)];
  };
  for (const one of batch) {
    if (!('key' in one)) {
      yield* flush();
      yield frameOf(ChangeFrame.tables, (writer) => {
        writer.varint(one.length);
        for (const table of one) writer.varint(table);
      });
    } else if (one.key.length > frameBytes) {
      yield* flush();
      yield lostFrame;
    } else {
      changes.push(one);
      bytes += one.key.length + (one.by?.detail.length ?? 0);
      if (bytes > frameBytes) yield* flush();
    }
  }
  yield* flush();
}

function changesFrame(changes: readonly RowChange[], node: number): Buffer {
  return frameOf(ChangeFrame.changes, (writer) => {
    writer.varint(changes.length);
    let before: ChangedBy | undefined;
    for (const { table, key, change, by } of changes) {
      const isSame = by !== undefined && by === before;
      writer.u8(by === undefined ? 0 : isSame ? 2 : 1);
      writer.varint(table);
      writer.bytes(key);
      writer.varint(change);
      if (by !== undefined && !isSame) {
        writer.string(by.name);
        writer.string(by.detail);
        writer.varint(numberAtNode(by.client, node) ?? 0);
      }
      before = by;
    }
  });
}

function checkedCount(reader: WireReader): number {
  const count = reader.varint();
  if (count > reader.left) throw new WireError('too many changes for a frame');
  return count;
}

function readChanges(reader: WireReader): RowChange[] {
  const changes: RowChange[] = [];
  let by: ChangedBy | undefined;
  for (let left = checkedCount(reader); left > 0; left--) {
    const flags = reader.u8();
    const table = reader.varint();
    const key = Buffer.from(reader.bytes());
    const change = reader.varint();
    if (flags === 0) by = undefined;
    else if (flags === 1) {
      by = { name: reader.string(), detail: reader.string(), client: reader.varint() };
    }
    changes.push({ table, key, change, by });
  }
  return changes;
}
