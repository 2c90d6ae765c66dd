// Pods of rows in another process, with the interface of a pod in this thread.

import type { Arguments } from '../../../universal-row/arguments.ts';
import { Action, type Command, isWrite, type NotRun } from '../../../universal-row/command.ts';
import { CommandError } from '../../../universal-row/errors.ts';
import type {
  Executor,
  Outcome,
  Refusable,
  RowObserver,
  TransactionWatch,
} from '../../../universal-row/executor.ts';
import type { MaybePromise } from '../../../universal-row/maybe-promise.ts';
import { noRows } from '../../../universal-row/once-together.ts';
import {
  AnswerFlag,
  CommandFlag,
  CommandHead,
  Refusal,
  replacedText,
  type Session,
} from '../../../universal-row/protocol/row-messages.ts';
import { copyValue, copyValues, ValueWriter } from '../../../universal-row/protocol/values.ts';
import { WireReader } from '../../../universal-row/protocol/wire.ts';
import type { Reply } from '../../../universal-row/reply.ts';
import type { RowWork } from '../../../universal-row/row-work.ts';
import type { PodLink } from './pod-link.ts';
import type { LaneUser, RequestLane } from './request-lane.ts';

export const outcomeUnknown = 'ERR outcome unknown';
const unreachable = 'ERR the pod that has this table cannot be reached';
const linkEnded = 'ERR the link to the pod that has this table ended';

/** There was no link, or a read has no answer that can be relied on. */
export const notReached: NotRun = { why: 'unreachable', leader: 0 };
/** A write that has a number has no answer that can be relied on. */
export const maybeRun: NotRun = { why: 'unknown', leader: 0 };

/** Meaning of a refusal, if the request may be run elsewhere or later. */
export function notRunOf(kind: number, text: string): NotRun | undefined {
  if (kind === Refusal.staleEpoch) {
    return { why: text === replacedText ? 'replaced' : 'moved', leader: 0 };
  }
  if (kind !== Refusal.notLeader) return undefined;
  const leader = Number(text);
  return { why: 'notLeader', leader: Number.isSafeInteger(leader) ? leader : 0 };
}

/** The error for a request that was not run. */
export function refusalText(kind: number, text: string): string {
  switch (kind) {
    case Refusal.refused:
    case Refusal.throttled:
      return text;
    case Refusal.tooLate:
      return 'ERR the command could not begin in time';
    case Refusal.notLeader:
      return 'CLUSTERDOWN The node asked does not lead the partition';
    default:
      return 'ERR the table has moved';
  }
}

function sessionOf({ tenant, table, span, work }: Command, version: number): Session {
  return {
    tenant: tenant ?? 0,
    table,
    first: span.first,
    count: span.count,
    version,
    epoch: 0,
    isMetered: work !== undefined,
  };
}

export class RemoteExecutor implements Executor {
  readonly link: PodLink;
  readonly #refusalOf: (command: Refusable) => string | undefined;

  /** `refusalOf` returns a known reason why a write would be refused. */
  constructor(link: PodLink, refusalOf: (command: Refusable) => string | undefined) {
    this.link = link;
    this.#refusalOf = refusalOf;
  }

  refusal(command: Refusable): string | undefined {
    return this.#refusalOf(command);
  }

  /** Head of a command before its arguments; undefined when the pods do not know the command. */
  headOf(command: Command, session: Session, head = new CommandHead()): CommandHead | undefined {
    const number = this.link.numberOf(command.name);
    if (number === undefined) return undefined;
    head.transform = number;
    head.flags = 0;
    if (command.table !== session.table) {
      head.flags |= CommandFlag.hasTable;
      head.table = command.table;
    }
    if (command.args.hasWaited) head.flags |= CommandFlag.hasWaited;
    if (command.onEmpty === 'nil') head.flags |= CommandFlag.emptyIsNil;
    else if (command.onEmpty === 'nilArray') head.flags |= CommandFlag.emptyIsNilArray;
    if (command.client !== undefined) {
      head.flags |= CommandFlag.hasClient;
      head.client = command.client;
    }
    if (command.rights !== undefined) {
      head.flags |= CommandFlag.hasRights;
      head.rights = command.rights;
    }
    if (command.script !== undefined) this.link.script(session.tenant, command.script);
    return head;
  }

  execute(command: Command, reply: Reply): MaybePromise<Reply | void> {
    const { link } = this;
    if (!link.isUp) {
      reply.error(unreachable);
      command.notRun = notReached;
      return;
    }
    const session = sessionOf(command, reply.version);
    const head = this.headOf(command, session);
    if (head === undefined) {
      reply.error(unknownTransform(command.name));
      return;
    }
    if (command.once !== undefined) {
      head.flags |= CommandFlag.hasSequence;
      head.sequence = command.once;
    }
    return new Promise((resolve) => {
      const lane = link.takeLane();
      const call = new RemoteCall(link, lane, command, reply, resolve);
      link.command(lane, session, head, command.args, call);
    });
  }

  executeAll(
    commands: readonly Command[],
    reply: Reply,
    before: (reply: Reply) => boolean,
    watch?: TransactionWatch,
    isTouched = false,
  ): MaybePromise<Reply | void> {
    const { link } = this;
    if (!link.isUp) {
      reply.error(unreachable);
      if (commands[0] !== undefined) commands[0].notRun = notReached;
      return;
    }
    const inPod = commands.filter((command) => command.isLocal !== true);
    const home = inPod[0] ?? commands[0];
    const session = home === undefined ? noSession : sessionOf(home, reply.version);
    const heads: { head: CommandHead; args: Arguments }[] = [];
    for (const command of inPod) {
      const head = this.headOf(command, session);
      if (head === undefined) {
        reply.error(`EXECABORT Transaction discarded: ${unknownTransform(command.name).slice(4)}`);
        return;
      }
      heads.push({ head, args: command.args });
    }
    const number = commands[0]?.once;
    if (number !== undefined && heads[0] !== undefined) {
      heads[0].head.flags |= CommandFlag.hasSequence;
      heads[0].head.sequence = number;
    }
    return new Promise((resolve) => {
      const lane = link.takeLane();
      const call = new RemoteTransaction(link, lane, commands, reply, before, watch, resolve);
      link.transaction(lane, session, heads, isTouched ? 'touched' : watch, call);
    });
  }

  observe(table: number, key: Buffer, observer: RowObserver): void {
    this.link.observe(table, key, observer);
  }

  unobserve(table: number, key: Buffer, observer: RowObserver): void {
    this.link.unobserve(table, key, observer);
  }

  /** Nodes of a cluster tell each other of changes by another way (server/planes/cluster-changes.ts). */
  follow(): void {}

  /** Sends the requests of the tick. Answers come once they are settled. */
  endTick(): number {
    this.link.flush();
    return -1;
  }

  whenSettled(_position: number, then: (outcome: Outcome) => void): void {
    then('committed');
  }
}

/** Session of a transaction without commands, which only checks its watched rows. */
const noSession: Session = {
  tenant: 0,
  table: 0,
  first: 0,
  count: 1,
  version: 2,
  epoch: 0,
  isMetered: false,
};

function unknownTransform(name: string): string {
  return `ERR the pod that has this table does not know '${name}'`;
}

/** One command that waits for its answer. */
class RemoteCall implements LaneUser {
  protected readonly reply: Reply;
  protected long: Reply | undefined;
  readonly #link: PodLink;
  readonly #lane: RequestLane;
  readonly #command: Command | undefined;
  /** The command whose `notRun` is set if the request was not run. */
  readonly #first: Command | undefined;
  readonly #resolve: (answer: Reply | void) => void;
  /** Whether the rest of a long answer is discarded, because there was no memory for it. */
  #isDropped = false;
  /** Position in the reply at which the values of the answer begin; undefined before they have arrived. */
  #mark: number | undefined;

  constructor(
    link: PodLink,
    lane: RequestLane,
    command: Command | undefined,
    reply: Reply,
    resolve: (answer: Reply | void) => void,
    first = command,
  ) {
    this.#link = link;
    this.#lane = lane;
    this.#command = command;
    this.#first = first;
    this.reply = reply;
    this.#resolve = resolve;
  }

  get work(): RowWork | undefined {
    return this.#command?.work;
  }

  replace(word: number, by: Buffer): void {
    const args = this.#command?.args;
    if (args !== undefined && word < args.count) args.replace(word, by);
  }

  part(values: Buffer): void {
    if (this.#isDropped) return;
    const long = (this.long ??= this.reply.fork(this.reply.mark()));
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
    this.#mark = this.reply.mark();
    if (flags & AnswerFlag.isUnknown) this.unknown();
    else this.take(flags, reader);
  }

  protected take(flags: number, reader: WireReader): void {
    if (flags & (AnswerFlag.isEmpty | AnswerFlag.wasInParts)) return;
    const error = this.copy(reader);
    if (error !== undefined) this.reply.error(error.message);
  }

  /** Copies the next value. Without memory for it, the values copied so far are removed, and the error is returned. */
  protected copy(reader: WireReader): CommandError | undefined {
    const from = reader.pos;
    try {
      copyValue(reader, this.reply);
      return undefined;
    } catch (error) {
      if (!(error instanceof CommandError)) throw error;
      this.takeBack();
      reader.pos = from;
      skipValue(reader);
      return error;
    }
  }

  takeBack(): void {
    if (this.#mark !== undefined) this.reply.rollback(this.#mark);
  }

  done(): void {
    this.#link.giveBack(this.#lane);
    this.#resolve(this.long);
  }

  refused(kind: number, _retryMs: number, text: string): void {
    this.reply.error(refusalText(kind, text));
    this.#notRun(notRunOf(kind, text));
    this.done();
  }

  failed(): void {
    this.unknown(linkEnded);
    this.done();
  }

  /** The outcome is unknown. A command that only reads can be sent again. */
  protected unknown(ofRead = outcomeUnknown): void {
    const { action = Action.fetch } = this.#command ?? {};
    const reply = this.long ?? this.reply;
    this.long?.rollback(0);
    reply.error(isWrite(action) ? outcomeUnknown : ofRead);
    if (!isWrite(action)) this.#notRun(notReached);
    else if (this.#first?.once !== undefined) this.#notRun(maybeRun);
  }

  #notRun(why: NotRun | undefined): void {
    if (this.#first !== undefined) this.#first.notRun = why;
  }
}

/** Commands that are run as one. Those that are about this gateway are run here, in their places. */
class RemoteTransaction extends RemoteCall {
  readonly #commands: readonly Command[];
  readonly #before: (reply: Reply) => boolean;
  readonly #watch: TransactionWatch | undefined;
  readonly #parts: Buffer[] = [];

  constructor(
    link: PodLink,
    lane: RequestLane,
    commands: readonly Command[],
    reply: Reply,
    before: (reply: Reply) => boolean,
    watch: TransactionWatch | undefined,
    resolve: (answer: Reply | void) => void,
  ) {
    const writing = commands.find(({ action }) => isWrite(action)) ?? commands[0];
    super(link, lane, writing, reply, resolve, commands[0]);
    this.#commands = commands;
    this.#before = before;
    this.#watch = watch;
  }

  override part(values: Buffer): void {
    // A value may continue in the next part.
    this.#parts.push(Buffer.from(values));
  }

  protected override take(flags: number, reader: WireReader): void {
    const watch = this.#watch;
    if ((flags & AnswerFlag.isTransaction) === 0) {
      // The transaction did not run: the only value has the reason.
      super.take(flags, reader);
      return;
    }
    const hasRun = (flags & AnswerFlag.notRun) === 0;
    if (watch !== undefined) watch.dirty = !hasRun;
    if (!this.#before(this.reply) || !hasRun) return;
    const isLong = (flags & AnswerFlag.wasInParts) !== 0;
    const from = isLong ? new WireReader(Buffer.concat(this.#parts)) : reader;
    let error: CommandError | undefined;
    for (const command of this.#commands) {
      if (command.isLocal === true) command.transform(noRows, command.args, this.reply);
      else error = this.copy(from) ?? error;
      // The others run to their end; one error is the answer of all.
      if (error !== undefined) this.takeBack();
    }
    if (error !== undefined) this.reply.error(error.message);
  }
}

let skipped: ValueWriter | undefined;

/** Goes behind the next value. */
function skipValue(reader: WireReader): void {
  skipped ??= new ValueWriter(256);
  skipped.reset(false);
  copyValue(reader, skipped);
}
