// A command of one connection that waits for a key (BLPOP and its like): until it is served, or its time is up.

import type { Arguments } from '../../universal-row/arguments.ts';
import { type Command, holdAnswer } from '../../universal-row/command.ts';
import { outcomeUnknown } from '../../universal-row/errors.ts';
import type { MaybePromise } from '../../universal-row/maybe-promise.ts';
import type { KeyQueue, Tried, WaitingCommand } from './blocked-clients.ts';
import type { Client } from './client.ts';
import { keyWords } from './commands/key-words.ts';
import type { CommandEntry } from './commands/registry.ts';
import type { ConnectionHost } from './connection-host.ts';
import { copiedBytes } from './copied-arguments.ts';
import { type AnswerKeeper, LongAnswer, minus, type RespWriter } from './resp-writer.ts';

/** Services a blocked command needs from its connection. */
export interface BlockedOwner extends Client, AnswerKeeper {
  readonly server: ConnectionHost<Client>;
  readonly command: Command;
  /** A pod that may keep tables of the read cache has run a command. */
  hasRun(entry: CommandEntry, answer: RespWriter): void;
  /** Copies a separately written reply to the end of the connection's output. */
  append(own: RespWriter): void;
  /** Charges the command for an answer of so many bytes. */
  charge(entry: CommandEntry, args: Arguments, sent: number, failed: boolean): void;
  /** The command waits no more. */
  unblocked(): void;
  goOn(): void;
  /** Reports an error of ours, and closes. */
  fail(error: unknown): void;
}

// Memory overhead of a key that is waited for.
const keyOverheadBytes = 256;
const longestTimerMs = 0x7fffffff;

/** Commands that have begun to wait since the sockets were last read. */
let begun: BlockedCommand[] = [];

/** Resolves once the sockets have been read after this round of the event loop. */
function nextReads(): Promise<void> {
  return new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
}

export class BlockedCommand implements WaitingCommand {
  readonly kind: string;
  readonly isShared: boolean;
  readonly queues = new Set<KeyQueue>();
  isTrying = false;
  readonly #owner: BlockedOwner;
  readonly #entry: CommandEntry;
  /** Counted while it waits. */
  readonly #bytes: number;
  #timer: NodeJS.Timeout | undefined;
  /** The time was up during an attempt. */
  #isOver = false;
  #hasEnded = false;
  /** The sockets have not been read since it began to wait. */
  #isNew = true;

  private constructor(owner: BlockedOwner, entry: CommandEntry, bytes: number) {
    this.#owner = owner;
    this.#entry = entry;
    this.kind = entry.spec.group;
    this.isShared = entry.blocks!.isShared === true;
    this.#bytes = bytes;
  }

  /** Undefined when there is no memory for it. */
  static begin(
    owner: BlockedOwner,
    entry: CommandEntry,
    args: Arguments,
  ): BlockedCommand | undefined {
    const bytes = copiedBytes(args) + keyOverheadBytes * args.count;
    if (!owner.held.reserve('request', bytes)) return undefined;
    const blocked = new BlockedCommand(owner, entry, bytes);
    const keys = keyWords(entry.spec, args).map((word) => Buffer.from(args.bytes(word)));
    owner.server.blocked.add(blocked, owner.table, keys);
    const { timeout, unit } = entry.blocks!;
    const at = typeof timeout === 'number' ? timeout : timeout(args);
    const given = args.float(at < 0 ? args.count + at : at);
    blocked.#start(unit === 'ms' ? given : given * 1000);
    if (begun.push(blocked) === 1) setImmediate(BlockedCommand.#pass);
    return blocked;
  }

  static #pass(this: void): void {
    for (const blocked of begun) blocked.#isNew = false;
    begun = [];
  }

  #start(ms: number): void {
    if (ms > 0) this.#timer = setTimeout(() => this.#timeUp(), Math.min(ms, longestTimerMs));
  }

  /** Ends a wait that has found nothing; if it is just being tried, once that has ended. */
  #timeUp(): void {
    this.#isOver = true;
    if (this.#hasEnded || this.isTrying) return;
    const owner = this.#owner;
    const reply = owner.answer();
    const mark = reply.pos;
    if (this.#entry.blocks!.onTimeout === 'nil') reply.nil();
    else reply.nilArray();
    owner.charge(this.#entry, owner.arguments, reply.pos - mark, false);
    this.end();
    owner.goOn();
  }

  missed(): void {
    if (this.#isOver) this.#timeUp();
  }

  /** Ends the wait from outside (CLIENT UNBLOCK); false when it cannot now. */
  unblockNow(withError: boolean): boolean {
    if (this.isTrying) return false;
    if (!withError) {
      setImmediate(() => this.#timeUp());
      return true;
    }
    this.#owner.answer().error('UNBLOCKED client unblocked via CLIENT UNBLOCK');
    this.end();
    setImmediate(() => this.#owner.goOn());
    return true;
  }

  /** The command no longer waits. */
  end(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    clearTimeout(this.#timer);
    this.#owner.held.release('request', this.#bytes);
    this.#owner.server.blocked.remove(this);
    this.#owner.arguments.hasWaited = false;
    this.#owner.unblocked();
  }

  /** A key it waits for has changed: tries the command again. */
  attempt(): MaybePromise<Tried> {
    const owner = this.#owner;
    // The client may have disconnected right after it sent the command, and the end of its input may not be read yet. An
    // element that the command took would then be lost, so the sockets are read first.
    if (this.#isNew && !this.isShared) {
      return nextReads().then(() => {
        owner.server.tick.schedule();
        return this.attempt();
      });
    }
    // A disconnected client takes no element. Its connection may be cleaned up some ticks later.
    const { server, socket } = owner;
    if (this.#hasEnded || owner.closed || socket.readableEnded || socket.destroyed) return 'failed';
    const route = server.router.to(owner.table);
    const reply = owner.answer();
    const mark = reply.pos;
    const startedAt = performance.now();
    owner.command.args.hasWaited = true;
    owner.command.holds = [];
    const own =
      route.mayWait && route.group?.isHere !== true
        ? server.tick.borrowWriter(owner.version)
        : undefined;
    if (own !== undefined) own.keeper = owner;
    const done = route.executor.execute(owner.command, own ?? reply);
    if (!(done instanceof Promise)) {
      if (own !== undefined) {
        owner.hasRun(this.#entry, own);
        owner.append(own);
      }
      return this.#tried(mark, startedAt);
    }
    return done
      .then((answer): Tried => {
        holdAnswer(owner.command);
        if (own !== undefined) owner.hasRun(this.#entry, own);
        if (owner.closed) {
          if (own !== undefined) server.tick.giveBackWriter(own);
          // The element it took from the key is gone with it.
          return 'served';
        }
        const writer = owner.answer();
        const at = writer.pos;
        if (own !== undefined) owner.append(own);
        if (answer instanceof LongAnswer) {
          for (const part of answer.take()) writer.rawBytes(part, 0, part.length);
          owner.held.release('answer', answer.kept);
        }
        return this.#tried(at, startedAt);
      })
      .catch((error: unknown) => {
        owner.fail(error);
        return 'served';
      });
  }

  #tried(mark: number, startedAt: number): Tried {
    const owner = this.#owner;
    const { writer, slowlogMs } = owner.server;
    if (writer.pos === mark) return 'empty';
    const hasFailed = writer.buf[mark] === minus;
    // The key now holds another type than the client waits for. Errors of a move's target are
    // reported. A command whose outcome is unknown ends too, as it may have taken an element.
    const isReported =
      this.#entry.blocks!.reportsErrors === true ||
      writer.buf.toString('latin1', mark + 1, writer.pos - 2) === outcomeUnknown;
    if (hasFailed && !isReported) {
      writer.pos = mark;
      return 'failed';
    }
    if (hasFailed) this.#entry.failedCalls++;
    owner.charge(this.#entry, owner.arguments, writer.pos - mark, hasFailed);
    // Without the time for which it waited, as in Redis.
    const spent = performance.now() - startedAt;
    if (spent >= slowlogMs) {
      owner.tenant.slowlog.add(owner, this.#entry, owner.arguments, spent, 0);
    }
    this.end();
    owner.server.tick.resume(owner as never);
    return 'served';
  }
}
