// The gateway's end of the link to pods of rows in another process. The link reconnects by itself; the outcome of requests
// that were in flight is then unknown.

import { LastingLink, type LastingLinkTarget } from '../../../cluster-links/lasting-link.ts';
import type { Arguments } from '../../../universal-row/arguments.ts';
import type { RowObserver } from '../../../universal-row/executor.ts';
import {
  beginFrame,
  endFrame,
  frameHeaderBytes,
  writeFrame,
} from '../../../universal-row/protocol/frames.ts';
import {
  Answer,
  AnswerFlag,
  type CommandHead,
  readReplacedWords,
  readWork,
  Request,
  RowFrame,
  type Session,
  writeCommand,
  writeSession,
} from '../../../universal-row/protocol/row-messages.ts';
import { WireError, WireReader, WireWriter } from '../../../universal-row/protocol/wire.ts';
import { RowWork } from '../../../universal-row/row-work.ts';
import { RequestLane, type LaneUser } from './request-lane.ts';

interface PodLinkOptions extends LastingLinkTarget {
  /** Called when the link is up, also after a reconnect. */
  opened?: ((link: PodLink) => void) | undefined;
}

/** Requests larger than this go in parts of as much. */
const partBytes = 1024 * 1024;
/** Largest total of answers in parts. */
const maxPartsBytes = 1024 * 1024 * 1024;
/** Id of no row. The pod treats it as a watched row that was touched. */
const unobservedId = 0;

/** A row that an observer wants to hear of. */
interface Observed {
  readonly id: number;
  readonly table: number;
  readonly key: Buffer;
  readonly observer: RowObserver;
}

interface Asked {
  resolve: (value: unknown) => void;
  reject: (error: Error) => void;
}

export class PodLink {
  readonly #options: PodLinkOptions;
  readonly #link: LastingLink;
  readonly #out = new WireWriter(16 * 1024);
  readonly #reader = new WireReader();
  readonly #lanes: RequestLane[] = [];
  readonly #free: RequestLane[] = [];
  readonly #numbers = new Map<string, number>();
  readonly #observed = new Map<number, Observed>();
  /** The same observed rows, by their observer. */
  readonly #observedBy = new Map<RowObserver, Observed[]>();
  readonly #asked = new Map<number, Asked>();
  readonly #unmetered = new RowWork();
  /** Scripts already sent to the pods. */
  #scripts = new WeakSet<object>();
  #answeredLast: LaneUser | undefined;
  #nextId = 1;
  #isScheduled = false;
  #parts: Buffer[] = [];
  #partsBytes = 0;
  /** Times that it was up. */
  connects = 0;
  /** Commands and transactions that were sent. */
  sent = 0;

  constructor(options: PodLinkOptions) {
    this.#options = options;
    this.#link = new LastingLink(options, {
      purpose: 'pods',
      peer: 'the pods',
      // It is up when the pods have told their names.
      opened: () => {},
      frame: (type, id, buf, start, end) => this.#frame(type, id, buf, start, end),
      ended: () => this.#ended(),
    });
  }

  /** Connects. Resolves when the link is up. */
  start(): Promise<void> {
    return this.#link.start();
  }

  get isUp(): boolean {
    return this.#link.isUp;
  }

  /** Resolves when the link is up; stays pending as long as the other process cannot be reached. */
  get ready(): Promise<void> {
    return this.#link.ready;
  }

  /** The number of a transform there; undefined when the pods have none of that name. */
  numberOf(name: string): number | undefined {
    return this.#numbers.get(name);
  }

  // ---- the link

  /** The node has a new address. The link is closed, and opened again at that address. */
  setPlace(place: { host: string; port: number }): void {
    this.#link.setPlace(place);
  }

  /** Another node leads in place of this one: if this one is silent, requests in flight are not answered any more. */
  suspect(): void {
    this.#link.suspect();
  }

  #ended(): void {
    this.#out.reset(true);
    this.#parts = [];
    this.#partsBytes = 0;
    for (const { reject } of this.#asked.values()) reject(new Error('the link to the pods ended'));
    this.#asked.clear();
    // The pods may have changed these rows while there was no link.
    for (const { table, key, observer } of [...this.#observed.values()]) {
      observer.rowChanged(table, key);
    }
    for (const lane of this.#lanes) lane.failed();
  }

  #opened(reader: WireReader): void {
    this.#numbers.clear();
    const count = reader.varint();
    for (let i = 0; i < count; i++) this.#numbers.set(reader.string(), i);
    reader.done();
    for (const lane of this.#lanes) lane.session = undefined;
    this.#scripts = new WeakSet();
    this.connects++;
    this.#link.up();
    for (const one of this.#observed.values()) this.#sendObserve(one);
    this.#options.opened?.(this);
  }

  close(): void {
    this.#link.close();
  }

  // ---- out

  /** Whether so many bytes are unsent that no more requests are accepted. */
  get isFull(): boolean {
    return this.#link.isFull;
  }

  /** Calls back once it takes more, or is down. */
  whenDrained(then: () => void): void {
    this.#link.whenDrained(then);
  }

  #begin(): WireWriter {
    const out = this.#out;
    if (out.pos === 0) beginFrame(out, RowFrame.requests);
    this.#schedule();
    return out;
  }

  /** Requests that no tick flushes are sent after this round of the event loop. */
  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      this.flush();
    });
  }

  /** Sends the data written since the last call. */
  flush(): void {
    const out = this.#out;
    if (out.pos === 0) return;
    let isFree = true;
    if (out.pos <= partBytes + frameHeaderBytes) {
      endFrame(out, 0);
      isFree = this.#link.link!.send(out.view());
    } else this.#sendParts(Buffer.from(out.buf.subarray(frameHeaderBytes, out.pos)));
    out.reset(!isFree);
  }

  #sendParts(payload: Buffer): void {
    for (let at = 0; at < payload.length; at += partBytes) {
      const isLast = at + partBytes >= payload.length;
      const part = payload.subarray(at, at + partBytes);
      const frame = new WireWriter(part.length + 64);
      writeFrame(frame, isLast ? RowFrame.lastPart : RowFrame.part, RowFrame.requests, part);
      this.#link.link!.send(frame.view());
    }
  }

  /** A lane for requests that are to run in order; `giveBack` it once all are answered. */
  takeLane(): RequestLane {
    const free = this.#free.pop();
    if (free !== undefined) return free;
    const lane = new RequestLane(this.#lanes.length);
    this.#lanes.push(lane);
    return lane;
  }

  giveBack(lane: RequestLane): void {
    this.#free.push(lane);
  }

  #session(out: WireWriter, lane: RequestLane, session: Session): void {
    if (lane.session === session) return;
    if (lane.session === undefined || !isSame(lane.session, session)) {
      writeSession(out, lane.id, session);
    }
    lane.session = session;
  }

  /** Sends a command; `user` hears of its answer. The session must not change afterwards: another one is another object. */
  command(
    lane: RequestLane,
    session: Session,
    head: CommandHead,
    args: Arguments,
    user: LaneUser,
  ): void {
    const out = this.#begin();
    this.#session(out, lane, session);
    this.sent++;
    out.u8(Request.command);
    out.varint(lane.id);
    writeCommand(out, head, args);
    lane.users.push(user);
  }

  /**
   * As `command`, for commands that are run as one unless a row that `watch` observes was touched; `touched` where that is
   * known.
   */
  transaction(
    lane: RequestLane,
    session: Session,
    commands: readonly { head: CommandHead; args: Arguments }[],
    watch: RowObserver | 'touched' | undefined,
    user: LaneUser,
  ): void {
    const out = this.#begin();
    this.#session(out, lane, session);
    this.sent++;
    out.u8(Request.transaction);
    out.varint(lane.id);
    const watched =
      watch === undefined ? [] : watch === 'touched' ? [unobservedId] : this.#idsOf(watch);
    out.varint(watched.length);
    for (const id of watched) out.varint(id);
    out.varint(commands.length);
    for (const { head, args } of commands) writeCommand(out, head, args);
    lane.users.push(user);
  }

  /** The pods are notified of a script of a tenant, if they have not been. */
  script(tenant: number, script: { readonly source: string }): void {
    if (!this.isUp || this.#scripts.has(script)) return;
    this.#scripts.add(script);
    const out = this.#begin();
    out.u8(Request.script);
    out.varint(tenant);
    out.bytes(Buffer.from(script.source, 'latin1'));
  }

  /** Called when the client of a lane has disconnected: answers to its requests are dropped. */
  leave(lane: RequestLane): void {
    if (!this.isUp) return;
    const out = this.#begin();
    out.u8(Request.leave);
    out.varint(lane.id);
  }

  // ---- observed rows

  #idsOf(observer: RowObserver): number[] {
    return this.#observedBy.get(observer)?.map(({ id }) => id) ?? [];
  }

  observe(table: number, key: Buffer, observer: RowObserver): void {
    const one = { id: this.#nextId++, table, key, observer };
    this.#observed.set(one.id, one);
    const others = this.#observedBy.get(observer);
    if (others === undefined) this.#observedBy.set(observer, [one]);
    else others.push(one);
    if (this.isUp) this.#sendObserve(one);
  }

  #sendObserve({ id, table, key }: Observed): void {
    const out = this.#begin();
    out.u8(Request.observe);
    out.varint(id);
    out.varint(table);
    out.bytes(key);
  }

  unobserve(table: number, key: Buffer, observer: RowObserver): void {
    const all = this.#observedBy.get(observer);
    if (all === undefined) return;
    const at = all.findIndex((one) => one.table === table && one.key.equals(key));
    if (at === -1) return;
    const [one] = all.splice(at, 1);
    if (all.length === 0) this.#observedBy.delete(observer);
    this.#observed.delete(one!.id);
    if (!this.isUp) return;
    const out = this.#begin();
    out.u8(Request.unobserve);
    out.varint(one!.id);
  }

  // ---- questions

  /** Asks about the pods as a whole. */
  ask(question: unknown): Promise<unknown> {
    if (!this.isUp) return Promise.reject(new Error('the pods cannot be reached'));
    const id = this.#nextId++;
    const payload = Buffer.from(JSON.stringify(question));
    const frame = new WireWriter(payload.length + 64);
    writeFrame(frame, RowFrame.question, id, payload);
    // In the order of the requests.
    this.flush();
    this.#link.link!.send(frame.view());
    return new Promise((resolve, reject) => this.#asked.set(id, { resolve, reject }));
  }

  // ---- in

  #frame(type: number, stream: number, buf: Buffer, start: number, end: number): void {
    switch (type) {
      case RowFrame.answers:
        this.#answers(buf, start, end);
        break;
      case RowFrame.part:
      case RowFrame.lastPart:
        this.#takePart(type, buf, start, end);
        break;
      case RowFrame.names:
        this.#opened(new WireReader(buf, start, end));
        break;
      case RowFrame.reply:
        this.#replied(stream, buf.toString('utf8', start, end));
        break;
      default:
        throw new WireError(`pods send no frame of type ${type}`);
    }
  }

  #takePart(type: number, buf: Buffer, start: number, end: number): void {
    this.#partsBytes += end - start;
    if (this.#partsBytes > maxPartsBytes) throw new WireError('an answer is too large');
    this.#parts.push(Buffer.from(buf.subarray(start, end)));
    if (type === RowFrame.part) return;
    const whole = Buffer.concat(this.#parts);
    this.#parts = [];
    this.#partsBytes = 0;
    this.#answers(whole, 0, whole.length);
  }

  #replied(id: number, text: string): void {
    const asked = this.#asked.get(id);
    this.#asked.delete(id);
    const { value, error } = JSON.parse(text) as { value?: unknown; error?: string };
    if (error === undefined) asked?.resolve(value);
    else asked?.reject(new Error(error));
  }

  #answers(buf: Buffer, start: number, end: number): void {
    const reader = this.#reader;
    reader.set(buf, start, end);
    while (reader.pos < end) {
      const kind = reader.u8();
      const number = reader.varint();
      if (kind === Answer.values) this.#answered(this.#laneOf(number), reader);
      else {
        this.#rest(undefined);
        this.#other(kind, number, reader);
      }
    }
    this.#rest(undefined);
  }

  /** Answers to this user come next. */
  #rest(next: LaneUser | undefined): void {
    const last = this.#answeredLast;
    this.#answeredLast = next;
    last?.rest?.();
  }

  #laneOf(number: number): RequestLane {
    const lane = this.#lanes[number];
    if (lane === undefined) throw new WireError('an answer to nothing');
    return lane;
  }

  #answered(lane: RequestLane, reader: WireReader): void {
    const flags = reader.u8();
    const user = lane.users.first;
    if (user === undefined) throw new WireError('an answer to nothing');
    if (user !== this.#answeredLast) this.#rest(user);
    try {
      if (flags & AnswerFlag.hasWords) {
        readReplacedWords(reader, (word, by) => user.replace?.(word, by));
      }
      user.values(flags, reader);
      if (flags & AnswerFlag.hasWork) readWork(reader, user.work ?? this.#unmetered);
    } catch (error) {
      // The link ends, of which the lane tells all users that it still has: this one too.
      user.takeBack?.();
      throw error;
    }
    lane.users.take();
    user.done();
  }

  #other(kind: number, number: number, reader: WireReader): void {
    switch (kind) {
      case Answer.part: {
        const bytes = reader.bytes();
        this.#laneOf(number).users.first?.part(bytes);
        break;
      }
      case Answer.refusal: {
        const lane = this.#laneOf(number);
        const user = lane.users.take();
        // The pods refuse all that is under way in the lane, until they are told a session again.
        lane.session = undefined;
        const why = reader.u8();
        const waitMs = reader.varint();
        const text = reader.string();
        if (user === undefined) throw new WireError('an answer to nothing');
        user.refused(why, waitMs, text);
        break;
      }
      case Answer.changed:
      case Answer.lost: {
        const one = this.#observed.get(number);
        one?.observer.rowChanged(one.table, one.key);
        break;
      }
      default:
        throw new WireError(`no answer is of kind ${kind}`);
    }
  }
}

function isSame(a: Session, b: Session): boolean {
  return (
    a.table === b.table &&
    a.tenant === b.tenant &&
    a.first === b.first &&
    a.count === b.count &&
    a.version === b.version &&
    a.epoch === b.epoch &&
    a.isMetered === b.isMetered
  );
}
