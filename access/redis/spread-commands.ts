// Pipelined commands of one connection on a table of several partitions, sent before earlier answers have arrived.
// Each command goes to the group that has its keys. Commands of one group stay in order, and answers are returned in
// the order of all commands. Groups that this process leads answer at once, other groups in batches through their
// links.

import type { Arguments } from '../../universal-row/arguments.ts';
import { Action, type Command, together } from '../../universal-row/command.ts';
import type { Reply } from '../../universal-row/reply.ts';
import type { RowPricer } from '../../request-units/row-pricer.ts';
import type { GroupExecutor } from '../gateway/pods/group-executor.ts';
import type { RemoteExecutor } from '../gateway/pods/remote-executor.ts';
import type { CommandEntry } from './commands/registry.ts';
import type { AnsweredRun } from './kept-commands.ts';
import type { PlacedPartition } from './partitions/partition-lane.ts';
import { LongAnswer, type RespWriter } from './resp-writer.ts';
import { SentCommands, type SentOwner } from './sent-commands.ts';
import { noLog } from './unsent-answers.ts';

/** At most so many are under way, and answers of one group that wait for others. */
const mostCommands = 1024;
const mostAnswerBytes = 256 * 1024;

/** The connection. */
export interface SpreadOwner extends SentOwner {
  readonly table: number;
  readonly tenant: { readonly number: number };
  readonly noTouch: boolean;
}

/** The commands of one group among them. */
class Share implements SentOwner {
  readonly group: GroupExecutor;
  readonly sent = new SentCommands(this);
  readonly #all: SpreadCommands;
  readonly #owner: SpreadOwner;
  #writer: RespWriter | undefined;
  /** For each answer received: its end in the writer, and the group's hold on it; undefined if its outcome is known. */
  #ends: number[] = [];
  #holds: ((() => void) | undefined)[] = [];
  #taken = 0;

  constructor(all: SpreadCommands, owner: SpreadOwner, group: GroupExecutor) {
    this.#all = all;
    this.#owner = owner;
    this.group = group;
  }

  get id(): number {
    return this.#owner.id;
  }

  get version(): number {
    return this.#owner.version;
  }

  get closed(): boolean {
    return this.#owner.closed;
  }

  get meter(): SentOwner['meter'] {
    return this.#owner.meter;
  }

  get server(): SentOwner['server'] {
    return this.#owner.server;
  }

  get isFull(): boolean {
    return (this.#writer?.pos ?? 0) > mostAnswerBytes;
  }

  answer(): RespWriter {
    if (this.#writer === undefined) {
      this.#writer = this.server.tick.borrowWriter(this.version);
      this.#writer.keeper = this.#owner;
    }
    return this.#writer;
  }

  append(own: RespWriter): void {
    this.answer().rawBytes(own.buf, 0, own.pos);
    this.server.tick.giveBackWriter(own);
  }

  settleSent(
    entry: CommandEntry,
    args: Arguments,
    mark: number,
    hold: (() => void) | undefined,
    writer = this.answer(),
  ): void {
    // A tick begins, if none has: otherwise all the time since the last one would count as this command's.
    this.server.tick.schedule();
    this.#owner.settleSent(entry, args, mark, hold, writer);
    this.#add(writer, hold);
  }

  settleRun(run: AnsweredRun): void {
    this.#owner.settleRun(run, true);
  }

  answered(writer: RespWriter): void {
    this.server.tick.schedule();
    this.#add(writer, undefined);
  }

  #add({ pos }: RespWriter, hold: (() => void) | undefined): void {
    this.#ends.push(pos);
    this.#holds.push(hold);
    this.#all.take();
  }

  sentAreAnswered(): void {
    this.#all.shareIsAnswered();
  }

  /** Moves the next answer to the connection; false while it is not there. */
  takeInto(owner: SpreadOwner): boolean {
    const at = this.#taken;
    if (at === this.#ends.length) return false;
    const start = at === 0 ? 0 : this.#ends[at - 1]!;
    // The answer is sent with this tick, and waits for the state it depends on, like those of the
    // tick.
    const hold = this.#holds[at];
    hold?.();
    const writer = owner.answer();
    const mark = writer.pos;
    writer.rawBytes(this.#writer!.buf, start, this.#ends[at]! - start);
    if (hold === undefined) this.server.tick.evaluated(mark, noLog);
    this.#taken++;
    if (this.#taken === this.#ends.length && !this.sent.isWaiting) this.reset();
    return true;
  }

  reset(): void {
    this.#ends.length = 0;
    this.#holds.length = 0;
    this.#taken = 0;
    if (this.#writer !== undefined) this.server.tick.giveBackWriter(this.#writer);
    this.#writer = undefined;
  }

  countError(text: string): void {
    this.#owner.countError(text);
  }

  keepAnswer(bytes: number): boolean {
    return this.#owner.keepAnswer(bytes);
  }

  keepParts(bytes: number): void {
    this.#owner.keepParts(bytes);
  }

  releaseParts(): void {
    this.#owner.releaseParts();
  }

  fail(error: unknown): void {
    this.#owner.fail(error);
  }
}

export class SpreadCommands {
  readonly #owner: SpreadOwner;
  readonly #shares = new Map<GroupExecutor, Share>();
  /** Answers to send, in the order of the commands; those before `#next` have been sent. */
  readonly #order: Share[] = [];
  #next = 0;
  /** Of the map by which they were sent. */
  #epoch = 0;
  /** A command on a pod of this process answers later. */
  #isHeld = false;
  readonly #command: Command;

  constructor(owner: SpreadOwner, { span }: Pick<Command, 'span'>) {
    this.#owner = owner;
    this.#command = {
      ...{ action: Action.fetch, name: '', grows: false, table: 0, span, client: owner.id },
      transform: () => {},
      args: undefined as unknown as Arguments,
    };
  }

  /** Answers have yet to come. */
  get isWaiting(): boolean {
    return this.#order.length !== 0;
  }

  /** The first of them, which another process has to answer. */
  begin(
    place: PlacedPartition,
    remote: RemoteExecutor,
    pricer: RowPricer | undefined,
    command: Command,
    entry: CommandEntry,
    epoch: number,
  ): void {
    this.#epoch = epoch;
    this.#command.span = command.span;
    this.#sendTo(place, remote, pricer, entry, command.args);
  }

  /**
   * Runs or sends a command before the earlier ones are answered; false when it has to wait for all of these answers. With a
   * new partition map a key may be in another group, where the command could overtake an earlier one on the same key.
   */
  send(
    place: PlacedPartition,
    pricer: RowPricer | undefined,
    entry: CommandEntry,
    args: Arguments,
    epoch: number,
  ): boolean {
    if (epoch !== this.#epoch || this.#isHeld || this.#order.length >= mostCommands) return false;
    const group = place.pod as GroupExecutor;
    const share = this.#shareOf(group);
    if (share.isFull) return false;
    if (group.isHere) {
      if (share.sent.isWaiting) return false;
      this.#runHere(share, place, pricer, entry, args.copy());
      return true;
    }
    const { remote } = group;
    if (remote === undefined) return false;
    const isWaiting = share.sent.isWaiting;
    if (isWaiting && !share.sent.takes(remote, entry, this.#owner.version)) return false;
    this.#sendTo(place, remote, pricer, entry, args);
    return true;
  }

  #shareOf(group: GroupExecutor): Share {
    let share = this.#shares.get(group);
    if (share === undefined) {
      share = new Share(this, this.#owner, group);
      this.#shares.set(group, share);
    }
    return share;
  }

  #about(place: PlacedPartition, entry: CommandEntry, args: Arguments): Command {
    const command = this.#command;
    const owner = this.#owner;
    command.action = entry.action;
    command.name = entry.fullName;
    command.transform = entry.run!;
    command.grows = entry.grows;
    command.table = place.number;
    command.args = args;
    command.usesSpan = false;
    command.isPeeking = entry.isPeeking || owner.noTouch;
    command.tenant = owner.tenant.number;
    command.holds = undefined;
    return command;
  }

  #sendTo(
    place: PlacedPartition,
    remote: RemoteExecutor,
    pricer: RowPricer | undefined,
    entry: CommandEntry,
    args: Arguments,
  ): void {
    const group = place.pod as GroupExecutor;
    const share = this.#shareOf(group);
    if (!share.sent.isWaiting) {
      share.sent.begin(remote, pricer, this.#about(place, entry, args), group);
    }
    this.#order.push(share);
    share.sent.send(entry, args);
  }

  #runHere(
    share: Share,
    place: PlacedPartition,
    pricer: RowPricer | undefined,
    entry: CommandEntry,
    args: Arguments,
  ): void {
    const { meter, server, table } = this.#owner;
    const { metering } = server;
    const begin = () => metering && meter.begin(metering, entry, table, pricer);
    const command = this.#about(place, entry, args);
    command.work = begin();
    this.#order.push(share);
    const writer = share.answer();
    const mark = writer.pos;
    const done = share.group.execute(command, writer);
    if (!(done instanceof Promise)) {
      share.settleSent(entry, args, mark, share.group.hold());
      return;
    }
    this.#isHeld = true;
    const holds = (command.holds ??= []);
    done
      .catch((error: unknown): void => this.#owner.fail(error))
      .then((answer: Reply | void) => {
        this.#isHeld = false;
        const at = share.answer().pos;
        if (answer instanceof LongAnswer) {
          for (const part of answer.take()) share.answer().rawBytes(part, 0, part.length);
          this.#owner.keepParts(answer.kept);
          this.#owner.releaseParts();
        }
        // Others may have been charged meanwhile.
        begin();
        share.settleSent(entry, args, at, together(holds));
        this.shareIsAnswered();
      })
      .catch((error: unknown) => this.#owner.fail(error));
  }

  /** An answer is there. Moves those to the connection for which no earlier one is missing. */
  take(): void {
    const order = this.#order;
    while (this.#next < order.length && order[this.#next]!.takeInto(this.#owner)) this.#next++;
  }

  /** One group has answered all of its commands. Once all groups have, the connection continues. */
  shareIsAnswered(): void {
    const owner = this.#owner;
    if (this.#order.length === 0 || this.#isHeld) return;
    if (owner.closed) {
      for (const { sent } of this.#shares.values()) if (sent.isWaiting) return;
    } else if (this.#next < this.#order.length) return;
    this.#order.length = 0;
    this.#next = 0;
    for (const share of this.#shares.values()) share.reset();
    owner.sentAreAnswered();
  }

  /** The connection is gone. */
  leave(): void {
    for (const { sent } of this.#shares.values()) sent.leave();
  }
}
