// Runs the requests of one gateway in order, lane by lane, and writes their answers.

import { Arguments } from '../../universal-row/arguments.ts';
import type { LocalPod } from '../../contracts/local-pod.ts';
import { type Command, isWrite, type NotRun } from '../../universal-row/command.ts';
import { type NumberedWrite, once } from '../../universal-row/once.ts';
import { executeTogether } from '../../universal-row/once-together.ts';
import {
  Answer,
  AnswerFlag,
  CommandFlag,
  CommandHead,
  readCommand,
  readSession,
  Refusal,
  replacedText,
  Request,
  type Session,
  writeReplacedWords,
  writeWork,
} from '../../universal-row/protocol/row-messages.ts';
import { ValueWriter } from '../../universal-row/protocol/values.ts';
import { WireError, WireReader } from '../../universal-row/protocol/wire.ts';
import type { Reply } from '../../universal-row/reply.ts';
import { type AnswerSink, Answers } from './answers.ts';
import { Lane } from './lane.ts';
import { LateAnswers, type RequestsLink } from './late-answers.ts';
import { Observations } from './observations.ts';
import type { PodTicks, ServedPod } from './served-pods.ts';
import { fillCommand } from './request-commands.ts';
import { answeringEmpty, watchesOf } from './transaction-requests.ts';

const maxLanes = 1_000_000;
/** Answers of one tick, beyond which requests wait. */
const maxTickBytes = 8 * 1024 * 1024;
const maxTransaction = 65_536;
const emptyFlags = CommandFlag.emptyIsNil | CommandFlag.emptyIsNilArray;

export class GatewayRequests {
  /** Bytes of answers that were written in this tick. */
  tickBytes = 0;
  readonly #ticks: PodTicks;
  readonly #link: RequestsLink;
  readonly #sink: AnswerSink;
  readonly #gateway: Pick<NumberedWrite, 'node' | 'incarnation'>;
  /** Refusals, and notices of changed rows: they wait for no log. */
  readonly #notices: Answers;
  readonly #answers = new WeakMap<LocalPod, Answers>();
  #lastPod: LocalPod | undefined;
  #lastAnswers: Answers | undefined;
  /** The table asked for last, and the pod that has it: valid while no other code runs in between. */
  #servedTable = -1;
  #served: ServedPod | undefined;
  readonly #lanes: (Lane | undefined)[] = [];
  readonly #head = new CommandHead();
  readonly #args = new Arguments();
  /** For an answer that may come later; the last one that came at once has left it. */
  #own: ValueWriter | undefined;
  readonly #late: LateAnswers;
  readonly #observations: Observations;
  /** Observed rows that were touched in this tick. */
  readonly #changed = new Set<number>();

  constructor(
    ticks: PodTicks,
    link: RequestsLink,
    sink: AnswerSink,
    gateway: Pick<NumberedWrite, 'node' | 'incarnation'>,
  ) {
    this.#ticks = ticks;
    this.#gateway = gateway;
    this.#link = link;
    this.#sink = sink;
    this.#notices = new Answers(sink);
    this.#late = new LateAnswers(ticks, link, {
      answersOf: (pod) => this.#answersOf(pod),
      end: ({ lane, flags, command, words }, answers, flagsAt, from) => {
        this.#end(lane, answers, flagsAt, from, flags, command.args, words);
        this.tickBytes += answers.writer.pos - flagsAt;
      },
      refuse: (lane, answers, notRun) => this.#refuseInOrder(lane, answers, notRun),
      free: (lane) => this.#free(lane),
    });
    this.#observations = new Observations((id) => {
      // An answer may be partly written.
      this.#changed.add(id);
      ticks.beginTick();
      ticks.schedule();
    });
  }

  /** More requests would make the answers of this tick too large. */
  get isFull(): boolean {
    return this.tickBytes > maxTickBytes;
  }

  #answersOf(pod: LocalPod): Answers {
    if (pod === this.#lastPod) return this.#lastAnswers!;
    let answers = this.#answers.get(pod);
    if (answers === undefined) this.#answers.set(pod, (answers = new Answers(this.#sink)));
    this.#lastPod = pod;
    this.#lastAnswers = answers;
    return answers;
  }

  #notice(kind: number, number: number): ValueWriter {
    this.#ticks.answered(this.#notices, undefined, 0);
    return this.#notices.item(kind, number);
  }

  /** The tick is about to end. */
  tickEnds(): void {
    this.tickBytes = 0;
    if (this.#changed.size === 0) return;
    for (const id of this.#changed) this.#notice(Answer.changed, id);
    this.#changed.clear();
  }

  /** The link is closed. */
  close(): void {
    this.#observations.clear();
    for (const lane of this.#lanes) {
      if (lane === undefined) continue;
      lane.waiting.length = 0;
      if (lane.underWay !== undefined) lane.underWay.isAbandoned = true;
      this.#ticks.options.admission?.leave(lane.request);
    }
  }

  // ---- in

  /** Requests are about to run in one go. */
  begin(): void {
    this.#servedTable = -1;
  }

  /** Runs the next request, which came at `cameAt`, or leaves it for when its lane is free. */
  run(reader: WireReader, cameAt: number): void {
    const at = reader.pos;
    const kind = reader.u8();
    const number = reader.varint();
    if (kind === Request.command) {
      readCommand(reader, this.#head, this.#args);
      const lane = this.#laneOf(number);
      if (!this.#mustWait(lane, reader, at, cameAt)) this.#execute(lane, reader, at, cameAt);
      return;
    }
    switch (kind) {
      case Request.session:
        this.#session(this.#laneOf(number), reader, at, cameAt);
        break;
      case Request.transaction:
        this.#transaction(reader, at, this.#laneOf(number), cameAt);
        break;
      case Request.leave: {
        const { underWay } = this.#laneOf(number);
        if (underWay !== undefined) underWay.isAbandoned = true;
        break;
      }
      case Request.observe:
        this.#observe(number, reader);
        break;
      case Request.script:
        this.#ticks.scripts.learn(number, reader.bytes().toString('latin1'));
        break;
      case Request.unobserve:
        this.#observations.remove(number);
        break;
      default:
        throw new WireError(`no request is of kind ${kind}`);
    }
  }

  #session(lane: Lane, reader: WireReader, at: number, cameAt: number): void {
    if (lane.isBusy) {
      readSession(reader, {} as Session);
      lane.wait(reader, at, cameAt);
      return;
    }
    readSession(reader, lane.session);
    lane.refusal = undefined;
    lane.sessionChanged();
  }

  #observe(id: number, reader: WireReader): void {
    const table = reader.varint();
    const key = Buffer.from(reader.bytes());
    const pod = this.#ticks.options.podOf(table);
    const isObserved = pod !== undefined && this.#observations.add(id, table, key, pod.executor);
    this.#notice(isObserved ? Answer.changed : Answer.lost, id);
  }

  // ---- lanes

  #laneOf(id: number): Lane {
    const lane = this.#lanes[id];
    if (lane !== undefined) return lane;
    if (id > maxLanes) throw new WireError('too many lanes');
    return (this.#lanes[id] = new Lane(id, (one) => this.#resume(one)));
  }

  /** Whether a request must wait for earlier requests of its lane, or for admission. */
  #mustWait(lane: Lane, reader: WireReader, at: number, cameAt: number): boolean {
    if (!lane.isBusy) {
      const { admission } = this.#ticks.options;
      if (admission === undefined || lane.admittedIn === this.#ticks.tick) return false;
      lane.admittedIn = this.#ticks.tick;
      if (admission.admit(lane.request, performance.now()) === 'admitted') return false;
      lane.isBusy = true;
    }
    lane.wait(reader, at, cameAt);
    return true;
  }

  /**
   * Whether the request has to wait until all answers of its lane have left, as its own does so by another way and would
   * overtake them.
   */
  #mustFollow(
    lane: Lane,
    answers: Answers,
    reader: WireReader,
    at: number,
    cameAt: number,
  ): boolean {
    const last = lane.answers;
    if (last === answers || last === undefined) return false;
    if (last.isIdle) {
      lane.answers = undefined;
      return false;
    }
    lane.isBusy = true;
    lane.waiting.unshift({ bytes: Buffer.from(reader.buf.subarray(at, reader.pos)), cameAt });
    last.whenIdle(() => setImmediate(() => this.#resume(lane)));
    return true;
  }

  /** Continues a lane whose tenant was scheduled, or whose wait is over. */
  #resume(lane: Lane): void {
    if (this.#link.isClosed) return;
    this.#ticks.beginTick();
    lane.admittedIn = this.#ticks.tick;
    this.#free(lane);
  }

  #free(lane: Lane): void {
    lane.isBusy = false;
    this.#runWaiting(lane);
    this.#ticks.schedule();
  }

  /** Runs requests that waited for the lane to be free. */
  #runWaiting(lane: Lane): void {
    this.begin();
    while (!lane.isBusy && lane.waiting.length > 0) {
      const { bytes, cameAt } = lane.waiting.shift()!;
      try {
        this.run(new WireReader(bytes), cameAt);
      } catch (error) {
        this.#link.fail(error as Error);
        return;
      }
    }
  }

  // ---- refusals

  #podOf(table: number): ServedPod | undefined {
    if (table !== this.#servedTable) {
      this.#served = this.#ticks.options.podOf(table);
      this.#servedTable = table;
    }
    return this.#served;
  }

  /** The pod to run a request of the lane on; undefined when it is refused, or waits. */
  #podFor(
    lane: Lane,
    table: number,
    reader: WireReader,
    at: number,
    cameAt: number,
  ): ServedPod | undefined {
    const pod = lane.refusal === undefined ? this.#podOf(table) : undefined;
    const { flags, deadlineMs } = this.#head;
    const isLate =
      (flags & CommandFlag.hasDeadline) !== 0 && performance.now() > cameAt + deadlineMs;
    if (pod !== undefined && !isLate) {
      const waits = this.#mustFollow(lane, this.#answersOf(pod.executor), reader, at, cameAt);
      return waits ? undefined : pod;
    }
    if (this.#mustFollow(lane, this.#notices, reader, at, cameAt)) return undefined;
    if (pod !== undefined) this.#refuse(lane, Refusal.tooLate, '');
    else {
      lane.refusal ??= { why: 'moved', leader: 0 };
      this.#notRun(lane, lane.refusal);
    }
    return undefined;
  }

  #refuse(lane: Lane, kind: number, text: string): void {
    lane.answers = this.#notices;
    const writer = this.#notice(Answer.refusal, lane.id);
    writer.u8(kind);
    writer.varint(0);
    writer.string(text);
  }

  /**
   * The request was not run, so later ones are not run either: they would overtake it when it is
   * sent elsewhere.
   */
  #notRun(lane: Lane, notRun: NotRun): void {
    lane.refusal = notRun;
    if (notRun.why === 'notLeader') this.#refuse(lane, Refusal.notLeader, String(notRun.leader));
    else this.#refuse(lane, Refusal.staleEpoch, notRun.why === 'replaced' ? replacedText : '');
  }

  /** As `#notRun`, once all answers of the lane have left. */
  #refuseInOrder(lane: Lane, answers: Answers, notRun: NotRun): void {
    lane.isBusy = true;
    const refuse = (): void => {
      if (this.#link.isClosed) return;
      this.#ticks.beginTick();
      this.#notRun(lane, notRun);
      this.#free(lane);
    };
    if (answers.isIdle) refuse();
    else answers.whenIdle(() => setImmediate(refuse));
  }

  // ---- commands

  #execute(lane: Lane, reader: WireReader, at: number, cameAt: number): void {
    const head = this.#head;
    const { session, command, work } = lane;
    fillCommand(command, lane, head, this.#ticks, this.#link.node);
    const pod = this.#podFor(lane, command.table, reader, at, cameAt);
    if (pod === undefined) return;
    if (head.flags & CommandFlag.hasSequence && isWrite(command.action)) {
      const write = { ...this.#gateway, number: head.sequence, first: session.first };
      command.transform = once(command.transform, write);
    }
    const { executor } = pod;
    const { losses } = executor;
    work.reset();
    command.args = this.#args;
    command.notRun = undefined;
    const answers = this.#answersOf(executor);
    const { writer } = answers;
    const start = writer.pos;
    const flagsAt = answers.open(lane.id);
    const from = writer.pos;
    writer.version = session.version;
    const own = pod.mayWait ? this.#ownWriter(session) : undefined;
    const done = executor.execute(command, own ?? writer);
    if (done instanceof Promise) {
      answers.takeBack(start);
      const args = this.#args.copy();
      command.args = args;
      this.#ticks.ran(executor);
      const { flags } = head;
      const words = args.buf;
      this.#late.wait({ lane, command, pod, losses, flags, words, own, bits: noBits }, done);
    } else if (command.notRun !== undefined) {
      answers.takeBack(start);
      this.#refuseInOrder(lane, answers, command.notRun);
    } else {
      if (own !== undefined) this.#copyOwn(own, writer);
      this.#end(lane, answers, flagsAt, from, head.flags, this.#args, reader.buf);
      this.#ticks.answered(answers, executor, losses);
      this.tickBytes += writer.pos - start;
    }
  }

  #ownWriter({ version }: Session): ValueWriter {
    const own = this.#own ?? new ValueWriter(256);
    this.#own = undefined;
    own.version = version;
    own.keep = this.#sink.keep;
    return own;
  }

  /** The answer came at once. */
  #copyOwn(own: ValueWriter, to: ValueWriter): void {
    to.raw(own.buf, 0, own.pos);
    own.reset(false);
    this.#own = own;
  }

  /** Ends an answer whose values are there, and began at `from`. The command's words came in `words`. */
  #end(
    lane: Lane,
    answers: Answers,
    flagsAt: number,
    from: number,
    flags: number,
    args: Arguments,
    words: Buffer,
  ): void {
    const { writer } = answers;
    lane.answers = answers;
    let bits = 0;
    if (writer.pos === from) {
      if ((flags & emptyFlags) === 0) {
        bits |= AnswerFlag.isEmpty;
        if (args.buf !== words) {
          bits |= AnswerFlag.hasWords;
          writeReplacedWords(writer, args, words.length);
        } else answers.waits();
      } else if (flags & CommandFlag.emptyIsNil) writer.nil();
      else writer.nilArray();
    }
    if (lane.session.isMetered) {
      bits |= AnswerFlag.hasWork;
      writeWork(writer, lane.work);
    }
    writer.buf[flagsAt] = bits;
    if (lane.scripts.length > 0) this.#publish(lane, answers);
  }

  /** Messages of its scripts are sent together with their answer. */
  #publish(lane: Lane, answers: Answers): void {
    const { publish } = this.#ticks.options;
    const { tenant } = lane.session;
    const messages = lane.takeMessages();
    if (messages.length === 0) return;
    answers.whenSettled((outcome) => {
      if (outcome === 'committed') for (const message of messages) publish!(tenant, message);
    });
  }

  // ---- transactions

  #transaction(reader: WireReader, at: number, lane: Lane, cameAt: number): void {
    const watches = watchesOf(reader);
    const count = reader.varint();
    if (count > maxTransaction) throw new WireError('a transaction is too large');
    const from = reader.pos;
    for (let i = 0; i < count; i++) readCommand(reader, this.#head, this.#args);
    if (this.#mustWait(lane, reader, at, cameAt)) return;
    const copy = new WireReader(Buffer.from(reader.buf.subarray(from, reader.pos)));
    const commands: Command[] = [];
    // The first command carries the number of all of them.
    let number = 0;
    for (let i = 0; i < count; i++) {
      commands.push(this.#queued(copy, lane));
      if (i === 0 && this.#head.flags & CommandFlag.hasSequence) number = this.#head.sequence;
    }
    const { table } = commands[0] ?? lane.session;
    const pod = this.#podFor(lane, table, reader, at, cameAt);
    if (pod === undefined) return;
    const { podOf } = this.#ticks.options;
    if (commands.every((one) => podOf(one.table)?.executor === pod.executor)) {
      this.#runAll(lane, pod, commands, watches, number);
    } else {
      this.#refuseInOrder(lane, this.#answersOf(pod.executor), { why: 'moved', leader: 0 });
    }
  }

  #queued(reader: WireReader, lane: Lane): Command {
    const head = this.#head;
    const args = new Arguments(4);
    readCommand(reader, head, args);
    const command: Command = { ...lane.command, args, notRun: undefined };
    fillCommand(command, lane, head, this.#ticks, this.#link.node);
    if (head.flags & emptyFlags) {
      const isNil = (head.flags & CommandFlag.emptyIsNil) !== 0;
      command.transform = answeringEmpty(command.transform, isNil);
    }
    return command;
  }

  #runAll(
    lane: Lane,
    pod: ServedPod,
    commands: Command[],
    watches: readonly number[],
    number: number,
  ): void {
    const { session, work } = lane;
    const { executor } = pod;
    const { losses } = executor;
    work.reset();
    const answers = this.#answersOf(executor);
    const { writer } = answers;
    const start = writer.pos;
    const flagsAt = answers.open(lane.id);
    writer.version = session.version;
    const own = pod.mayWait ? this.#ownWriter(session) : undefined;
    // Until it is asked whether it may run, all that is answered is why it did not.
    let bits = 0;
    const begin = (_reply: Reply, hasRun: boolean): void => {
      bits = AnswerFlag.isTransaction | (hasRun ? 0 : AnswerFlag.notRun);
    };
    const isClean = (): boolean => !this.#observations.isTouched(watches);
    const before = (reply: Reply): boolean => {
      const hasRun = isClean();
      begin(reply, hasRun);
      return hasRun;
    };
    const command = commands[0] ?? lane.command;
    command.notRun = undefined;
    command.isUndone = false;
    const bitsNow = (): number => (command.isUndone === true ? 0 : bits);
    const to = own ?? writer;
    const write = { ...this.#gateway, number, first: session.first };
    const done =
      number === 0
        ? executor.executeAll(commands, to, before)
        : executeTogether(executor, commands, to, write, { isClean, begin });
    if (done instanceof Promise) {
      answers.takeBack(start);
      this.#ticks.ran(executor);
      const words = command.args.buf;
      this.#late.wait({ lane, command, pod, losses, flags: 0, words, own, bits: bitsNow }, done);
    } else if (command.notRun !== undefined) {
      answers.takeBack(start);
      this.#refuseInOrder(lane, answers, command.notRun);
    } else {
      if (own !== undefined) this.#copyOwn(own, writer);
      this.#end(lane, answers, flagsAt, -1, 0, command.args, command.args.buf);
      writer.buf[flagsAt]! |= bitsNow();
      this.#ticks.answered(answers, executor, losses);
      this.tickBytes += writer.pos - start;
    }
  }
}

const noBits = (): number => 0;
