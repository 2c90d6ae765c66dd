// Commands of one connection that were sent to pods in another process before earlier answers arrived. They are
// answered in the order in which they were sent.

import type { Arguments } from '../../universal-row/arguments.ts';
import { type Command, isWrite, type NotRun, together } from '../../universal-row/command.ts';
import { CommandError } from '../../universal-row/errors.ts';
import {
  AnswerFlag,
  CommandFlag,
  CommandHead,
  type Session,
} from '../../universal-row/protocol/row-messages.ts';
import { copyValue, copyValues, ValueWriter } from '../../universal-row/protocol/values.ts';
import { WireError, WireReader } from '../../universal-row/protocol/wire.ts';
import type { Reply } from '../../universal-row/reply.ts';
import type { RowWork } from '../../universal-row/row-work.ts';
import type { RowPricer } from '../../request-units/row-pricer.ts';
import { type GroupExecutor, noLeader } from '../gateway/pods/group-executor.ts';
import type { PodLink } from '../gateway/pods/pod-link.ts';
import type { LaneUser, RequestLane } from '../gateway/pods/request-lane.ts';
import {
  notReached,
  notRunOf,
  outcomeUnknown,
  refusalText,
  type RemoteExecutor,
} from '../gateway/pods/remote-executor.ts';
import type { Route } from '../gateway/router.ts';
import type { Client } from './client.ts';
import type { CommandEntry } from './commands/registry.ts';
import type { ConnectionHost } from './connection-host.ts';
import { type AnsweredRun, KeptCommands } from './kept-commands.ts';
import type { ConnectionMeter } from './metering.ts';
import { type AnswerKeeper, LongAnswer, minus, type RespWriter } from './resp-writer.ts';

/** Services needed from its connection. */
export interface SentOwner extends AnswerKeeper {
  readonly id: number;
  /** RESP version. */
  readonly version: number;
  readonly closed: boolean;
  readonly meter: ConnectionMeter;
  readonly server: Pick<ConnectionHost<Client>, 'metering' | 'tick'>;
  /** The writer for the connection's next output. */
  answer(): RespWriter;
  /**
   * An answer was written from `mark` on, to `writer` if it was written aside: counts and charges the command. `hold`, to be
   * called in the tick that sends it, makes that wait for a log of this process; undefined if none can lose what it depends on.
   */
  settleSent(
    entry: CommandEntry,
    args: Arguments,
    mark: number,
    hold: (() => void) | undefined,
    writer?: RespWriter,
  ): void;
  /** As `settleSent`, for several without `hold`. */
  settleRun(run: AnsweredRun, isAside?: boolean): void;
  /** An answer was written, to `writer`, that `settleRun` counts later. */
  answered(writer: RespWriter): void;
  /** All have been answered. */
  sentAreAnswered(): void;
  /** Copies a separately written reply to the end of the connection's output. */
  append(own: RespWriter): void;
  /** Reports an error of ours, and closes. */
  fail(error: unknown): void;
  /** Takes over bytes of a long answer that are counted, and sends it by parts. */
  keepParts(bytes: number): void;
  releaseParts(): void;
}

const linkEnded = 'ERR the link to the pod that has this table ended';
/** States of requests waiting for an answer. */
const State = {
  /** Their answers are to come. */
  sent: 0,
  /** A command was refused, so the later ones are refused, too. All are run again once every refusal has arrived. */
  refused: 1,
  /** They run again, one after the other. */
  again: 2,
} as const;
/** Limits of commands in flight, and of their bytes. */
const mostCommands = 1024;
const mostBytes = 256 * 1024;
/** Milliseconds in which commands that run again are started, before other clients get their turn. */
const mostMs = 5;

/** Number of a command's transform at the other end of a link. It is valid for one connection, counted by `connects`. */
interface NamedCommand {
  entry: CommandEntry | undefined;
  link: PodLink | undefined;
  connects: number;
  number: number | undefined;
}

/** A command that runs again. Its answer is written to `own`, unless it resolves to another reply. */
interface CommandAgain {
  readonly command: Command;
  readonly own: RespWriter;
}

export class SentCommands implements LaneUser {
  readonly #owner: SentOwner;
  /** Those under way, and those answered before them. */
  readonly #kept = new KeptCommands();
  /** Index of the request answered next. */
  #next = 0;
  readonly #head = new CommandHead();
  /** Of the command that was sent last. */
  readonly #named: NamedCommand = { entry: undefined, link: undefined, connects: 0, number: 0 };
  #remote: RemoteExecutor | undefined;
  /** Group whose leader `#remote` is; undefined where there is no group. */
  #group: GroupExecutor | undefined;
  #state: (typeof State)[keyof typeof State] = State.sent;
  /** Refused requests already reported. */
  #refused = 0;
  /** All of them can be sent again, regardless of their answers. */
  #runsAgain = false;
  /** Some may have been done. */
  #mayBeDone = false;
  /** Whether the outcome of the current answer is unknown. */
  #isUnknown = false;
  #lane: RequestLane | undefined;
  #session: Session | undefined;
  #pricer: RowPricer | undefined;
  /** Where the current answer was written, if it was, and from where on. */
  #writer: RespWriter | undefined;
  #mark = 0;
  /** Answers before `#next` that are not settled yet. Settling them together costs as much as settling one. */
  #run = 0;
  #runMark = 0;
  #runSent = 0;
  #long: LongAnswer | undefined;
  #isDropped = false;
  #hasLeft = false;

  constructor(owner: SentOwner) {
    this.#owner = owner;
  }

  /** Answers have yet to come. */
  get isWaiting(): boolean {
    return this.#kept.count !== 0;
  }

  /** The first command is about to be sent. */
  begin(
    remote: RemoteExecutor,
    pricer: RowPricer | undefined,
    command: Command,
    group?: GroupExecutor,
  ): void {
    const owner = this.#owner;
    const { span } = command;
    this.#remote = remote;
    this.#group = group;
    this.#pricer = pricer;
    this.#lane = remote.link.takeLane();
    group?.written(remote);
    const isMetered = owner.server.metering !== undefined;
    const old = this.#session;
    if (
      old === undefined ||
      old.table !== command.table ||
      old.tenant !== command.tenant ||
      old.first !== span.first ||
      old.count !== span.count ||
      old.version !== owner.version ||
      old.isMetered !== isMetered
    ) {
      this.#session = {
        tenant: command.tenant ?? 0,
        table: command.table,
        first: span.first,
        count: span.count,
        version: owner.version,
        epoch: 0,
        isMetered,
      };
    }
  }

  /** Whether a command to these pods, on this table, may go behind those that were sent. */
  mayFollow(
    { remote, group }: Route,
    entry: CommandEntry,
    table: number,
    version: number,
  ): boolean {
    const pods = group === undefined ? remote : group.remote;
    return (
      group === this.#group &&
      pods !== undefined &&
      this.#session!.table === table &&
      this.takes(pods, entry, version)
    );
  }

  /**
   * Whether a command to these pods may be sent before the earlier ones are answered, regardless of its table. False for a
   * command that an older node does not know: it waits until the earlier ones are answered.
   */
  takes(remote: RemoteExecutor, entry: CommandEntry, version: number): boolean {
    return (
      remote === this.#remote &&
      this.#state === State.sent &&
      this.#session!.version === version &&
      this.#kept.count < mostCommands &&
      this.#kept.bytes < mostBytes &&
      !remote.link.isFull &&
      this.#numberOf(entry, remote.link) !== undefined
    );
  }

  send(entry: CommandEntry, args: Arguments): void {
    const number = isWrite(entry.action) ? (this.#group?.takeNumber() ?? 0) : 0;
    this.#kept.push(entry, args, number);
    this.#post(entry, args, number);
  }

  /** `once` is its number, 0 for none. */
  #post(entry: CommandEntry, args: Arguments, once: number): void {
    const { link } = this.#remote!;
    const number = link.isUp ? this.#numberOf(entry, link) : undefined;
    if (number === undefined) {
      const refused = link.isUp ? 'ERR the pod does not know the command' : linkEnded;
      // No other one is under way. Its caller may have yet to do something.
      setImmediate(() => this.refused(1, 0, refused));
      return;
    }
    const head = this.#head;
    head.transform = number;
    head.flags = once === 0 ? 0 : CommandFlag.hasSequence;
    head.sequence = once;
    link.command(this.#lane!, this.#session!, head, args, this);
  }

  /** The transform's number there: most commands of a pipeline are alike. */
  #numberOf(entry: CommandEntry, link: PodLink): number | undefined {
    const named = this.#named;
    if (named.entry !== entry || named.link !== link || named.connects !== link.connects) {
      named.number = link.numberOf(entry.fullName);
      named.entry = entry;
      named.link = link;
      named.connects = link.connects;
    }
    return named.number;
  }

  // ---- answers

  get work(): RowWork | undefined {
    return this.#workOf(this.#kept.entry(this.#next));
  }

  #workOf(entry: CommandEntry): RowWork | undefined {
    const owner = this.#owner;
    const { metering } = owner.server;
    if (metering === undefined || owner.closed) return undefined;
    return owner.meter.begin(metering, entry, this.#session!.table, this.#pricer);
  }

  part(values: Buffer): void {
    const owner = this.#owner;
    if (owner.closed || this.#isDropped || this.#state !== State.sent) return;
    if (this.#long === undefined) {
      const writer = owner.answer();
      writer.keeper = owner;
      this.#long = writer.fork(writer.mark());
    }
    const long = this.#long;
    try {
      copyValues(new WireReader(values), long);
    } catch (error) {
      if (!(error instanceof CommandError)) throw error;
      this.#isDropped = true;
      long.rollback(0);
      long.error(error.message);
    }
  }

  values(flags: number, reader: WireReader): void {
    const owner = this.#owner;
    if (this.#state !== State.sent && !this.#runsAgain) {
      // The answer would come after requests that are yet to be run again.
      owner.fail(new WireError('an answer behind a refusal'));
    }
    this.#isUnknown = (flags & AnswerFlag.isUnknown) !== 0;
    if (owner.closed || this.#state !== State.sent) {
      if ((flags & noValues) === 0) copyValue(reader, nowhere());
      return;
    }
    if (this.#run !== 0 && this.#kept.entry(this.#next) !== this.#kept.entry(this.#next - 1)) {
      this.rest();
    }
    const writer = owner.answer();
    this.#writer = writer;
    this.#mark = writer.pos;
    if (this.#isUnknown) {
      this.#dropLong();
      if (!this.#mayRunAgain) writer.error(outcomeUnknown);
    } else if ((flags & noValues) === 0) copyValue(reader, writer);
    else if (this.#long !== undefined) this.#appendLong();
  }

  takeBack(): void {
    if (!this.#owner.closed) this.#writer?.rollback(this.#mark);
  }

  #appendLong(): void {
    const owner = this.#owner;
    const writer = owner.answer();
    for (const part of this.#long!.take()) writer.rawBytes(part, 0, part.length);
    owner.keepParts(this.#long!.kept);
    owner.releaseParts();
    this.#long = undefined;
    this.#isDropped = false;
  }

  done(): void {
    const owner = this.#owner;
    if (this.#state === State.sent && this.#isUnknown && this.#mayRunAgain) {
      this.#runsAgain = true;
      this.#mayBeDone = true;
      this.#isUnknown = false;
      this.#writer = undefined;
      this.#notRun(notReached);
      return;
    }
    if (this.#state !== State.sent) {
      this.#notRun(notReached);
      return;
    }
    const kept = this.#kept;
    if (!owner.closed) this.#settle(this.#writer!);
    this.#answered();
    if (this.#next < kept.count) return;
    this.rest();
    this.#clear();
    owner.sentAreAnswered();
  }

  /** An error is counted by itself. */
  #settle(writer: RespWriter): void {
    const { pos, buf } = writer;
    const mark = this.#mark;
    this.#writer = undefined;
    if (mark < pos && buf[mark] === minus) {
      this.rest();
      const next = this.#next;
      this.#owner.settleSent(this.#kept.entry(next), this.#kept.words(next), mark, undefined);
      return;
    }
    if (this.#run++ === 0) this.#runMark = mark;
    this.#runSent += pos - mark;
    this.#owner.answered(writer);
  }

  rest(): void {
    const count = this.#run;
    if (count === 0) return;
    const sent = this.#runSent;
    const to = this.#next;
    this.#run = 0;
    this.#runSent = 0;
    if (this.#owner.closed) return;
    const kept = this.#kept;
    const entry = kept.entry(to - 1);
    this.#owner.settleRun({ entry, kept, from: to - count, to, mark: this.#runMark, sent });
  }

  #answered(): void {
    const number = this.#kept.number(this.#next++);
    if (number !== 0) this.#group?.releaseNumber(number);
  }

  #clear(): void {
    while (this.#next < this.#kept.count) this.#answered();
    this.#kept.clear();
    this.#mayBeDone = false;
    this.#next = 0;
    this.#state = State.sent;
    this.#giveBack();
  }

  #giveBack(): void {
    if (this.#lane !== undefined) this.#remote!.link.giveBack(this.#lane);
    this.#lane = undefined;
  }

  refused(kind: number, _retryMs: number, text: string): void {
    const notRun = this.#group && notRunOf(kind, text);
    if (notRun === undefined && this.#state === State.sent) this.#error(refusalText(kind, text));
    else this.#notRun(notRun ?? notReached);
  }

  failed(): void {
    const group = this.#group;
    const entry = this.#kept.entry(this.#next);
    // Behind a refusal nothing is run.
    const wasRefused = this.#state === State.refused;
    if (group !== undefined && (wasRefused || this.#mayRunAgain)) {
      if (!wasRefused) this.#mayBeDone = true;
      this.#notRun(notReached);
    } else this.#error(isWrite(entry.action) ? outcomeUnknown : linkEnded);
  }

  /** All can be sent again, without doing anything twice. */
  get #mayRunAgain(): boolean {
    if (this.#group === undefined) return false;
    for (let i = this.#next; i < this.#kept.count; i++) {
      if (this.#kept.number(i) === 0 && isWrite(this.#kept.entry(i).action)) return false;
    }
    return true;
  }

  // ---- those that were not run

  #notRun(why: NotRun): void {
    if (this.#state === State.sent) {
      this.rest();
      this.#state = State.refused;
      this.#refused = 0;
      this.#dropLong();
      this.#group!.refusedBy(this.#remote!, why);
    }
    this.#refused++;
    if (this.#next + this.#refused < this.#kept.count) return;
    this.#state = State.again;
    this.#runsAgain = false;
    this.#giveBack();
    this.#runAgain().catch((error: unknown) => this.#owner.fail(error));
  }

  /**
   * The first of them runs wherever the leader is then, and waits for one. Those behind it are sent to it if it is in
   * another process, one behind the other.
   */
  async #runAgain(): Promise<void> {
    const owner = this.#owner;
    const group = this.#group!;
    while (this.#next < this.#kept.count && !owner.closed) {
      // Commands that no leader can have run before need no number. They do not wait for the log one by one: each answer waits
      // with the tick that sends it.
      const isHere = this.#mayBeDone && group.isHere;
      if (!(await (isHere ? this.#runHere(group) : this.#runOne(group)))) {
        // The request has waited its full time: the others must not wait again.
        while (this.#next < this.#kept.count && !owner.closed) this.#answerNoLeader();
        break;
      }
      const { remote } = group;
      if (this.#next === this.#kept.count || remote === undefined || owner.closed) continue;
      // It may be of another release than the one before.
      if (this.#areKnownTo(remote.link)) {
        this.#sendAgain(remote);
        return;
      }
    }
    this.#clear();
    owner.sentAreAnswered();
  }

  #areKnownTo(link: PodLink): boolean {
    for (let i = this.#next; i < this.#kept.count; i++) {
      if (this.#numberOf(this.#kept.entry(i), link) === undefined) return false;
    }
    return true;
  }

  #sendAgain(remote: RemoteExecutor): void {
    this.#state = State.sent;
    this.#remote = remote;
    this.#lane = remote.link.takeLane();
    this.#group!.written(remote);
    for (let i = this.#next; i < this.#kept.count; i++) {
      const kept = this.#kept;
      this.#post(kept.entry(i), kept.words(i), kept.number(i));
    }
  }

  /** False if there was no leader to run it. */
  async #runOne(group: GroupExecutor): Promise<boolean> {
    const one = this.#newCommand(this.#next);
    const answer = await group.execute(one.command, one.own);
    this.#answer(one, answer);
    return one.command.notRun === undefined;
  }

  /** Runs them on the pod of this process, which then waits for its log once. False as by `#runOne`. */
  async #runHere(group: GroupExecutor): Promise<boolean> {
    const { count } = this.#kept;
    const started: (CommandAgain & { readonly done: Promise<Reply | void> })[] = [];
    const until = performance.now() + mostMs;
    let bytes = 0;
    for (let i = this.#next; i < count && bytes < mostBytes; i++) {
      const one = this.#newCommand(i);
      const { waits, done } = group.startHere(one.command, one.own);
      started.push({ ...one, done });
      if (waits || performance.now() > until) break;
      bytes += one.own.pos;
    }
    const answers = await Promise.all(started.map(({ done }) => done));
    let hasLeader = true;
    for (const [i, one] of started.entries()) {
      const answer = answers[i];
      const { notRun } = one.command;
      if (notRun === undefined) {
        this.#answer(one, answer);
        continue;
      }
      this.#owner.server.tick.giveBackWriter(one.own);
      if (answer instanceof LongAnswer) this.#drop(answer);
      if (this.#owner.closed) this.#answered();
      else if (hasLeader) hasLeader = await this.#runOne(group);
      else this.#answerNoLeader();
    }
    return hasLeader;
  }

  #newCommand(index: number): CommandAgain {
    const owner = this.#owner;
    const session = this.#session!;
    const kept = this.#kept;
    const entry = kept.entry(index);
    const own = owner.server.tick.borrowWriter(owner.version);
    own.keeper = owner;
    const command: Command = {
      action: entry.action,
      name: entry.fullName,
      transform: entry.run!,
      grows: entry.grows,
      table: session.table,
      span: { first: session.first, count: session.count },
      args: kept.words(index).copy(),
      usesSpan: entry.usesSpan,
      tenant: session.tenant,
      client: owner.id,
      work: this.#workOf(entry),
      once: (this.#mayBeDone && kept.number(index)) || undefined,
      holds: [],
    };
    return { command, own };
  }

  /** Writes the answer to the first that has none. */
  #answer({ own, command }: CommandAgain, answer: Reply | void): void {
    const owner = this.#owner;
    const entry = this.#kept.entry(this.#next);
    if (answer instanceof LongAnswer) {
      owner.server.tick.giveBackWriter(own);
      this.#long = answer;
    }
    if (!owner.closed) {
      this.#mark = owner.answer().pos;
      if (answer instanceof LongAnswer) this.#appendLong();
      else owner.append(own);
      // Others may have been charged since it ran.
      void this.#workOf(entry);
      owner.settleSent(entry, this.#kept.words(this.#next), this.#mark, together(command.holds!));
    } else this.#dropLong();
    this.#answered();
  }

  #error(text: string): void {
    this.#dropLong();
    this.#isUnknown = false;
    const owner = this.#owner;
    if (!owner.closed) {
      const writer = owner.answer();
      this.#writer = writer;
      this.#mark = writer.pos;
      writer.error(text);
    }
    this.done();
  }

  #answerNoLeader(): void {
    const mayBeDone = this.#mayBeDone && this.#kept.number(this.#next) !== 0;
    const text = mayBeDone ? outcomeUnknown : noLeader;
    const owner = this.#owner;
    const writer = owner.answer();
    const mark = writer.pos;
    writer.error(text);
    owner.settleSent(this.#kept.entry(this.#next), this.#kept.words(this.#next), mark, undefined);
    this.#answered();
  }

  /** The rest of a partly received answer will not come. */
  #dropLong(): void {
    if (this.#long === undefined) return;
    this.#drop(this.#long);
    this.#long = undefined;
    this.#isDropped = false;
  }

  #drop({ kept }: LongAnswer): void {
    this.#owner.keepParts(kept);
    this.#owner.releaseParts();
  }

  /** The connection is gone. */
  leave(): void {
    if (this.#hasLeft || this.#lane === undefined) return;
    this.#hasLeft = true;
    this.#remote!.link.leave(this.#lane);
  }
}

const noValues = AnswerFlag.isEmpty | AnswerFlag.wasInParts | AnswerFlag.isUnknown;

let discarded: ValueWriter | undefined;

/** A writer for answers that are dropped. */
function nowhere(): ValueWriter {
  discarded ??= new ValueWriter(256);
  discarded.reset(false);
  return discarded;
}
