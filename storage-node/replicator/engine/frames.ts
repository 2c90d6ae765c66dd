// Encoding of data across the boundary to the engine, flat and little-endian:
//
//   bytes      = length u32 | bytes
//   entry      = term u64 | index u64 | type u32 | data bytes
//   entries    = count u32 | entry*
//   conf state = (count u32 | id u64*) of voters, learners, outgoing voters, next learners | auto-leave u32
//   snapshot   = index u64 | term u64 | conf state | data bytes
//   hard state = term u64 | vote u64 | commit u64
//   message    = type and bits u32 | to | from | term | log term | index | commit | vote | reject hint (u64 each)
//                | context bytes | entries | [snapshot] | [count u32 | framed message*]
//   framed     = length u32 | message
//   ready      = bits u32 | [lead u64 | role u32] | [hard state] | [snapshot] | entries | committed entries
//                | count u32 | framed* | count u32 | (index u64 | context bytes)*
//
// Numbers are below 2^53 on both sides.

export const MessageType = {
  hup: 0,
  beat: 1,
  propose: 2,
  append: 3,
  appendResponse: 4,
  vote: 5,
  voteResponse: 6,
  snapshot: 7,
  heartbeat: 8,
  heartbeatResponse: 9,
  unreachable: 10,
  snapshotStatus: 11,
  checkQuorum: 12,
  transferLeader: 13,
  timeoutNow: 14,
  readIndex: 15,
  readIndexResponse: 16,
  preVote: 17,
  preVoteResponse: 18,
  storageAppend: 19,
  storageAppendResponse: 20,
  storageApply: 21,
  storageApplyResponse: 22,
  forgetLeader: 23,
} as const;

export const EntryKind = { normal: 0, confChangeV1: 1, confChange: 2 } as const;

/** Where messages to and from a group's own storage go. */
export const appendTask = Number.MAX_SAFE_INTEGER;
export const applyTask = Number.MAX_SAFE_INTEGER - 1;

const bit = { reject: 1 << 8, snapshot: 1 << 9, responses: 1 << 10, hardState: 1 << 11 } as const;
const readyBit = { soft: 1, hard: 2, snapshot: 4, mustSync: 8 } as const;

export interface Entry {
  term: number;
  index: number;
  kind: number;
  data: Uint8Array;
}

export interface ConfState {
  voters: number[];
  learners: number[];
  outgoing: number[];
  nextLearners: number[];
  autoLeave: boolean;
}

export interface Snapshot {
  index: number;
  term: number;
  conf: ConfState;
  data: Uint8Array;
}

export interface HardState {
  term: number;
  vote: number;
  commit: number;
}

export interface Message {
  type: number;
  to: number;
  from: number;
  term: number;
  logTerm: number;
  index: number;
  commit: number;
  vote: number;
  reject: boolean;
  rejectHint: number;
  context: Uint8Array;
  entries: Entry[];
  snapshot: Snapshot | undefined;
  responses: Message[];
  /** For a storage append: whether term, vote and commit must be written. */
  hasHardState: boolean;
}

export interface ReadState {
  index: number;
  context: Uint8Array;
}

export interface Ready {
  soft: { lead: number; role: number } | undefined;
  hard: HardState | undefined;
  snapshot: Snapshot | undefined;
  mustSync: boolean;
  entries: Entry[];
  committed: Entry[];
  messages: Message[];
  reads: ReadState[];
}

export class FrameError extends Error {
  override name = 'FrameError';
}

const emptyBytes = new Uint8Array(0);
/** A Ready holds messages, and a message to storage holds responses. */
const maxDepth = 3;

/** Reads frames; returned bytes are copies, but those of `view`. Throws `FrameError` for invalid contents. */
export class FrameReader {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  at: number;
  readonly end: number;

  constructor(bytes: Uint8Array, at = 0, end = bytes.length) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.at = at;
    this.end = end;
  }

  u32(): number {
    const at = this.#take(4);
    return this.#view.getUint32(at, true);
  }

  u64(): number {
    const at = this.#take(8);
    const value =
      this.#view.getUint32(at, true) + this.#view.getUint32(at + 4, true) * 0x1_0000_0000;
    if (!Number.isSafeInteger(value)) throw new FrameError(`${value} is not below 2^53`);
    return value;
  }

  bytes(): Uint8Array {
    const length = this.u32();
    if (length === 0) return emptyBytes;
    const at = this.#take(length);
    // Not `slice`, which of a Buffer is a view.
    return Uint8Array.prototype.slice.call(this.#bytes, at, at + length);
  }

  /** As `bytes`, without a copy. */
  view(): Uint8Array {
    const length = this.u32();
    const at = this.#take(length);
    return this.#bytes.subarray(at, at + length);
  }

  /** A count of things of at least so many bytes. */
  count(each: number): number {
    const count = this.u32();
    if (count * each > this.end - this.at) throw new FrameError(`a count of ${count} is too large`);
    return count;
  }

  entry(): Entry {
    return { term: this.u64(), index: this.u64(), kind: this.u32(), data: this.bytes() };
  }

  entries(): Entry[] {
    const entries: Entry[] = [];
    for (let left = this.count(24); left > 0; left--) entries.push(this.entry());
    return entries;
  }

  confState(): ConfState {
    return {
      voters: this.ids(),
      learners: this.ids(),
      outgoing: this.ids(),
      nextLearners: this.ids(),
      autoLeave: this.u32() !== 0,
    };
  }

  ids(): number[] {
    const ids: number[] = [];
    for (let left = this.count(8); left > 0; left--) ids.push(this.u64());
    return ids;
  }

  snapshot(): Snapshot {
    return { index: this.u64(), term: this.u64(), conf: this.confState(), data: this.bytes() };
  }

  hardState(): HardState {
    return { term: this.u64(), vote: this.u64(), commit: this.u64() };
  }

  framed(depth = 0): Message {
    const end = this.u32() + this.at;
    if (end > this.end || depth === maxDepth) throw new FrameError('a message is cut short');
    const message = this.message(depth);
    if (this.at !== end) throw new FrameError('a message is longer than its length');
    return message;
  }

  message(depth = 0): Message {
    const first = this.u32();
    return {
      type: first & 0xff,
      reject: (first & bit.reject) !== 0,
      hasHardState: (first & bit.hardState) !== 0,
      to: this.u64(),
      from: this.u64(),
      term: this.u64(),
      logTerm: this.u64(),
      index: this.u64(),
      commit: this.u64(),
      vote: this.u64(),
      rejectHint: this.u64(),
      context: this.bytes(),
      entries: this.entries(),
      snapshot: first & bit.snapshot ? this.snapshot() : undefined,
      responses: first & bit.responses ? this.messages(depth) : [],
    };
  }

  messages(depth = 0): Message[] {
    const messages: Message[] = [];
    for (let left = this.count(4); left > 0; left--) messages.push(this.framed(depth + 1));
    return messages;
  }

  ready(): Ready {
    const bits = this.u32();
    return {
      mustSync: (bits & readyBit.mustSync) !== 0,
      soft: bits & readyBit.soft ? { lead: this.u64(), role: this.u32() } : undefined,
      hard: bits & readyBit.hard ? this.hardState() : undefined,
      snapshot: bits & readyBit.snapshot ? this.snapshot() : undefined,
      entries: this.entries(),
      committed: this.entries(),
      messages: this.messages(),
      reads: this.reads(),
    };
  }

  reads(): ReadState[] {
    const reads: ReadState[] = [];
    for (let left = this.count(12); left > 0; left--) {
      reads.push({ index: this.u64(), context: this.bytes() });
    }
    return reads;
  }

  #take(length: number): number {
    const { at } = this;
    if (length > this.end - at) throw new FrameError('a frame is cut short');
    this.at = at + length;
    return at;
  }
}

/** Writes frames into a buffer that grows and is used again. */
export class FrameWriter {
  #bytes = new Uint8Array(1024);
  #view = new DataView(this.#bytes.buffer);
  length = 0;

  reset(): this {
    this.length = 0;
    if (this.#bytes.length > 1 << 20) this.#resize(1024);
    return this;
  }

  /** Valid until the next write. */
  done(): Uint8Array {
    return this.#bytes.subarray(0, this.length);
  }

  u32(value: number): this {
    // The view is another one once there is room.
    const at = this.#room(4);
    this.#view.setUint32(at, value, true);
    return this;
  }

  u64(value: number): this {
    if (!Number.isSafeInteger(value) || value < 0) {
      throw new FrameError(`${value} is not a whole number below 2^53`);
    }
    const at = this.#room(8);
    this.#view.setUint32(at, value >>> 0, true);
    this.#view.setUint32(at + 4, Math.floor(value / 0x1_0000_0000), true);
    return this;
  }

  raw(bytes: Uint8Array): this {
    const at = this.#room(bytes.length);
    this.#bytes.set(bytes, at);
    return this;
  }

  bytes(bytes: Uint8Array): this {
    return this.u32(bytes.length).raw(bytes);
  }

  ids(ids: readonly number[]): this {
    this.u32(ids.length);
    for (const id of ids) this.u64(id);
    return this;
  }

  confState(conf: ConfState): this {
    this.ids(conf.voters).ids(conf.learners).ids(conf.outgoing).ids(conf.nextLearners);
    return this.u32(conf.autoLeave ? 1 : 0);
  }

  snapshot(snapshot: Snapshot): this {
    return this.u64(snapshot.index)
      .u64(snapshot.term)
      .confState(snapshot.conf)
      .bytes(snapshot.data);
  }

  hardState(hard: HardState): this {
    return this.u64(hard.term).u64(hard.vote).u64(hard.commit);
  }

  entries(entries: readonly Entry[]): this {
    this.u32(entries.length);
    for (const { term, index, kind, data } of entries) {
      this.u64(term).u64(index).u32(kind).bytes(data);
    }
    return this;
  }

  /** Responses are not encoded: no message with responses is stepped. */
  framed(m: Message): this {
    const at = this.#room(4);
    const first =
      m.type | (m.reject ? bit.reject : 0) | (m.snapshot === undefined ? 0 : bit.snapshot);
    this.u32(first).u64(m.to).u64(m.from).u64(m.term).u64(m.logTerm).u64(m.index);
    this.u64(m.commit).u64(m.vote).u64(m.rejectHint).bytes(m.context).entries(m.entries);
    if (m.snapshot !== undefined) this.snapshot(m.snapshot);
    this.#view.setUint32(at, this.length - at - 4, true);
    return this;
  }

  #room(length: number): number {
    const at = this.length;
    if (at + length > this.#bytes.length) this.#resize((at + length) * 2);
    this.length = at + length;
    return at;
  }

  #resize(length: number): void {
    const bytes = new Uint8Array(length);
    bytes.set(this.#bytes.subarray(0, Math.min(length, this.length)));
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer);
  }
}

export const emptyConf: ConfState = {
  voters: [],
  learners: [],
  outgoing: [],
  nextLearners: [],
  autoLeave: false,
};
