// MULTI, EXEC and WATCH of one connection.

import { Arguments } from '../../universal-row/arguments.ts';
import { Action, holdAnswer, isWrite, type Command } from '../../universal-row/command.ts';
import type { TransactionWatch } from '../../universal-row/executor.ts';
import { whenReady, type MaybePromise } from '../../universal-row/maybe-promise.ts';
import type { Reply } from '../../universal-row/reply.ts';
import type { Rows } from '../../universal-row/rows.ts';
import { refusalByNow } from './acl/guard.ts';
import { selected } from './admission/partition-ticket.ts';
import { noSlot } from './cluster.ts';
import { type Client, ClientFlag } from './client.ts';
import { prepareElsewhere } from './client-scripts.ts';
import { librariesChanged } from './node-questions.ts';
import { type CommandEntry, maxHandlerWords } from './commands/registry.ts';
import type { ConnectionHost } from './connection-host.ts';
import { copiedBytes } from './copied-arguments.ts';
import { outOfRequestMemory } from './held-memory.ts';
import { type AnswerKeeper, LongAnswer, minus, RespWriter } from './resp-writer.ts';
import { sharedSlices } from './shared-slices.ts';
import { noLog } from './unsent-answers.ts';

export interface QueuedCommand {
  entry: CommandEntry;
  args: Arguments;
}

interface Transaction {
  readonly queue: QueuedCommand[];
  /** Bytes of the queued commands. */
  bytes: number;
  /** A command could not be queued: EXEC will refuse. */
  broken: boolean;
  /** Slots of its keys, in cluster mode. */
  slots: { only: number };
}

/** Services a transaction needs from its connection. */
export interface TransactionOwner extends Client, AnswerKeeper {
  /** EXEC, while it runs. */
  readonly command: Command;
  readonly server: ConnectionHost<Client>;
  /** Closes the connection because its queued commands are too large. */
  queryTooLong(): void;
  /** The transform of a command that acts for this client. */
  bound(bind: NonNullable<CommandEntry['bind']>): Command['transform'];
  /** Runs a handler for EXEC. */
  handleQueued(entry: CommandEntry, args: Arguments, reply: RespWriter, mark: number): void;
  /** Copies a separately written reply to the end of the connection's output. */
  append(own: RespWriter): void;
}

const queuedBytes = '+QUEUED\r\n'.length;
// EXEC looks at all that is queued before it begins.
const maxQueuedCommands = 65_536;
const handlerAnswerBytes = 256;
const tooManyQueued = `ERR too many commands in a transaction: at most ${maxQueuedCommands}`;
// Memory overhead of a watched key besides its bytes.
const watchOverheadBytes = 256;
const twoModels =
  'EXECABORT Transaction discarded: its databases are of different models, which one transaction cannot change together';

/** Learns whether a watched key was touched. */
class WatchGuard implements TransactionWatch {
  dirty = false;
  /** By table and the key's bytes. */
  readonly keys = new Map<string, { table: number; key: Buffer }>();
  bytes = 0;
  rowChanged(): void {
    this.dirty = true;
  }
}

/** A transaction that EXEC is about to run. */
class PreparedTransaction {
  readonly commands: Command[] = [];
  /** Commands that other pods run as well. */
  readonly elsewhere: Command[] = [];
  /** Executors of commands on rows. */
  readonly executors = new Set<unknown>();
  /** Table of the first of those. */
  home: number | undefined;
  /** The table that the next command is about. */
  table: number;

  constructor(table: number) {
    this.table = table;
  }
}

export class TransactionState {
  readonly #owner: TransactionOwner;
  #transaction: Transaction | undefined;
  #watch: WatchGuard | undefined;

  constructor(owner: TransactionOwner) {
    this.#owner = owner;
  }

  /** Between MULTI and EXEC. */
  get current(): Readonly<Transaction> | undefined {
    return this.#transaction;
  }

  get watchedKeys(): number {
    return this.#watch?.keys.size ?? 0;
  }

  /** A command could not be queued. */
  break(): void {
    if (this.#transaction !== undefined) this.#transaction.broken = true;
  }

  begin(): void {
    this.#set({ queue: [], bytes: 0, broken: false, slots: { only: noSlot } });
  }

  #set(transaction: Transaction | undefined): void {
    this.#transaction = transaction;
    this.#owner.setFlag(ClientFlag.multi, transaction !== undefined);
  }

  /** Drops the transaction and its watched keys. */
  end(): void {
    this.#owner.held.release('transaction', this.#transaction?.bytes ?? 0);
    this.#set(undefined);
    this.unwatch();
  }

  /** Queues a command, or returns the error to answer; undefined too when the connection was closed for its size. */
  queue(entry: CommandEntry, args: Arguments, reply: RespWriter): string | undefined {
    const owner = this.#owner;
    const { server } = owner;
    const transaction = this.#transaction!;
    if (!entry.allowedInMulti) return 'ERR Command not allowed inside a transaction';
    if (isWrite(entry.action)) {
      const { table } = owner;
      const refusal = server.router.to(table).executor.refusal({ table, grows: entry.grows });
      if (refusal !== undefined) return refusal;
    }
    if (entry.run === undefined && args.count > maxHandlerWords) {
      return `ERR too many arguments for '${entry.fullName}' in a transaction`;
    }
    const bytes = copiedBytes(args);
    if (transaction.bytes + bytes > server.limits.queryBytes) {
      // As in redis-server, queued commands count as part of the query.
      owner.queryTooLong();
      return undefined;
    }
    if (transaction.queue.length >= maxQueuedCommands) return tooManyQueued;
    if (!owner.held.reserve('transaction', bytes)) return outOfRequestMemory;
    transaction.bytes += bytes;
    transaction.queue.push({ entry, args: args.copy() });
    const mark = reply.mark();
    reply.simple('QUEUED');
    if (server.router.to(owner.table).mayWait) server.tick.evaluated(mark, noLog);
    if (server.metering !== undefined) owner.meter.queued(entry, args, queuedBytes);
    return undefined;
  }

  // ---- WATCH

  /** False when there is no memory for the keys. Some of them may be watched then, which is harmless. */
  watchKeys(args: Arguments): boolean {
    const { held, server, table } = this.#owner;
    const guard = (this.#watch ??= new WatchGuard());
    const { executor } = server.router.to(table);
    for (let i = 1; i < args.count; i++) {
      const id = `${table} ${args.latin1(i)}`;
      if (guard.keys.has(id)) continue;
      const bytes = watchOverheadBytes + 2 * args.lens[i]!;
      if (!held.reserve('transaction', bytes)) return false;
      guard.bytes += bytes;
      const key = Buffer.from(args.bytes(i));
      guard.keys.set(id, { table, key });
      executor.observe(table, key, guard);
    }
    return true;
  }

  /**
   * For keys in another process, resolves when it observes them, so later changes are not missed. It uses a read, which is
   * answered after the observation has begun.
   */
  watchHasBegun(args: Arguments): Promise<unknown> | undefined {
    const { server, tenant, table } = this.#owner;
    const { executor, group, remote } = server.router.to(table);
    const isHere = remote === undefined && (group === undefined ? !server.elsewhere : group.isHere);
    if (isHere) return undefined;
    const exists = server.registry.get('exists')!;
    const reads: MaybePromise<unknown>[] = [];
    for (let i = 1; i < args.count; i++) {
      const command: Command = {
        ...{ action: exists.action, name: exists.fullName, transform: exists.run!, grows: false },
        ...{ table, span: tenant.span, tenant: tenant.number },
        args: oneKey(Buffer.from(args.bytes(i))),
      };
      const answer = server.tick.borrowWriter(2);
      const done = executor.execute(command, answer);
      reads.push(
        whenReady(done, () => {
          server.tick.giveBackWriter(answer);
        }),
      );
    }
    server.tick.schedule();
    return Promise.all(reads);
  }

  unwatch(): void {
    const guard = this.#watch;
    if (guard === undefined) return;
    const { held, server } = this.#owner;
    held.release('transaction', guard.bytes);
    for (const { table, key } of guard.keys.values()) {
      server.router.to(table).executor.unobserve(table, key, guard);
    }
    this.#watch = undefined;
  }

  /** The connection is gone. */
  drop(): void {
    this.unwatch();
    this.#transaction = undefined;
  }

  // ---- EXEC

  /** Runs all that is queued as one. A long queue is prepared in slices. */
  execute(reply: RespWriter): void | Promise<Reply | void> {
    const { queue } = this.#transaction!;
    const refusal = this.#refusal();
    if (refusal !== undefined) {
      this.end();
      reply.error(`EXECABORT Transaction discarded because of: ${refusal}`);
      return;
    }
    const prepared = new PreparedTransaction(this.#owner.table);
    const slices = this.#prepare(queue, prepared);
    if (slices.next().done === true) return this.#run(prepared, reply);
    return new Promise((resolve) => {
      const next = (): void => {
        if (this.#owner.closed) resolve();
        else if (slices.next().done !== true) sharedSlices.add(next);
        else resolve(this.#run(prepared, this.#owner.answer()));
      };
      sharedSlices.add(next);
    });
  }

  /**
   * Why the queued commands would be refused now, although they were accepted: memory has become
   * full since.
   */
  #refusal(): string | undefined {
    const { server, table } = this.#owner;
    const { queue } = this.#transaction!;
    const first =
      queue.find(({ entry }) => entry.grows) ?? queue.find(({ entry }) => isWrite(entry.action));
    if (first === undefined) return undefined;
    return server.router.to(table).executor.refusal({ table, grows: first.entry.grows });
  }

  /** Promise to wait for before commands that use function libraries may run. */
  #libraries(queue: readonly QueuedCommand[]): Promise<string | undefined> | undefined {
    if (!queue.some(({ entry }) => entry.usesLibraries)) return undefined;
    return this.#owner.tenant.scripts.functions.refresh();
  }

  #run(prepared: PreparedTransaction, reply: RespWriter): void | Promise<Reply | void> {
    const owner = this.#owner;
    const { server, tenant, version } = owner;
    const { queue, bytes } = this.#transaction!;
    const reading = this.#libraries(queue);
    if (reading !== undefined) {
      return reading.then((error) => {
        if (owner.closed) return;
        if (error === undefined) return this.#run(prepared, owner.answer());
        this.end();
        owner.answer().error(error);
      });
    }
    if (prepared.executors.size > 1) {
      this.end();
      reply.error(twoModels);
      return;
    }
    const home = prepared.home ?? owner.table;
    for (const [i, command] of prepared.commands.entries()) {
      if (queue[i]!.entry.run === undefined) command.table = home;
    }
    const { commands, elsewhere } = prepared;
    const route = server.router.to(home);
    const { metering } = server;
    const charged = home === tenant.libraryTable ? owner.table : home;
    const work = metering && owner.meter.beginQueued(metering, owner.entry!, charged, route.pricer);
    for (const command of commands) command.work = work;
    const out =
      route.mayWait && route.group?.isHere !== true ? server.tick.borrowWriter(version) : reply;
    out.keeper = owner;
    const guard = this.#watch;
    let hasRun = false;
    const callsScripts = queue.some(({ entry }) => entry.bind !== undefined);
    const isClean = (answer: Reply): boolean => {
      hasRun = guard === undefined || !guard.dirty;
      if (callsScripts) owner.scripts.beginTransaction();
      if (hasRun) answer.array(commands.length);
      else answer.nilArray();
      return hasRun;
    };
    if (out !== reply && owner.flags & ClientFlag.tracking) {
      const isElsewhere = route.remote !== undefined || route.group !== undefined;
      for (const { entry, args } of queue) {
        server.changes.readsElsewhere(owner, tenant, entry, args, isElsewhere);
      }
    }
    this.#set(undefined);
    const mark = reply.mark();
    owner.readMode?.session?.moved();
    const holds: (() => void)[] = [];
    for (const one of [...commands.slice(0, 1), ...elsewhere]) one.holds = holds;
    const done = route.executor.executeAll(commands, out, isClean, guard);
    const start = out === reply ? mark : 0;
    const finish = (long?: Reply | void): Promise<string | undefined> | undefined => {
      owner.held.release('transaction', bytes);
      // An attempt may have begun, and the one after it was refused.
      const begins = long instanceof LongAnswer ? long.firstByte : out.buf[start];
      if (commands[0]?.isUndone === true || begins === minus) hasRun = false;
      const waiting: Promise<string | undefined | void>[] = [];
      // Only now: a watched key might have changed while rows were read, and then nothing may be done.
      for (const one of hasRun ? elsewhere : []) {
        const others = server.otherPods.run(one, route.executor);
        if (others !== undefined) waiting.push(others);
      }
      if (queue.some(({ entry }) => entry.ofLibraries)) waiting.push(librariesChanged(owner));
      const { cache, changes } = server;
      queue.forEach(({ entry, args }, i) => {
        if (hasRun && owner.flags & ClientFlag.tracking) changes.hasRun(owner, entry, args);
        cache?.wrote(entry, args, commands[i]!.table, tenant.span);
      });
      this.unwatch();
      if (waiting.length === 0) return undefined;
      return Promise.all(waiting).then((all) => all.find((error) => typeof error === 'string'));
    };
    if (!(done instanceof Promise)) {
      const others = finish();
      // What this gateway does by itself is not undone with the rows.
      const isOfRows =
        !callsScripts &&
        elsewhere.length === 0 &&
        commands.every(({ isLocal }) => isLocal !== true);
      if (route.group !== undefined && out === reply && others === undefined && isOfRows) {
        server.tick.evaluated(mark, route.group.lastRun);
      }
      if (others !== undefined && out === reply) {
        const own = reply.fork(mark);
        owner.command.holds = holds;
        return others.then((error) => {
          if (error !== undefined) answerPartial(own, error);
          return own;
        });
      }
      if (others !== undefined) {
        return others.then((error) => {
          if (error !== undefined) answerPartial(out, error);
          holdAnswer({ holds });
          owner.append(out);
        });
      }
      if (out !== reply) owner.append(out);
      return;
    }
    const hasAllHolds = route.group !== undefined && !callsScripts;
    owner.command.holds = holds;
    owner.command.hasAllHolds = hasAllHolds;
    return done.then(async (long) => {
      const error = await finish(long);
      if (error !== undefined) answerPartial(long ?? out, error);
      if (long === undefined) {
        const isKnown = holdAnswer({ holds, hasAllHolds });
        const at = owner.answer().pos;
        owner.append(out);
        if (isKnown) server.tick.evaluated(at, noLog);
      } else if (out !== reply) server.tick.giveBackWriter(out);
      return long;
    });
  }

  /** Makes the commands to run; yields between slices. */
  *#prepare(
    queue: readonly QueuedCommand[],
    prepared: PreparedTransaction,
  ): Generator<void, void, undefined> {
    const { server, tenant, flags } = this.#owner;
    const { span } = tenant;
    const { commands, elsewhere, executors } = prepared;
    // To check the rules of a user again takes longer than all else.
    const perSlice = flags & ClientFlag.restricted ? 64 : 1024;
    for (const { entry, args } of queue) {
      if (commands.length > 0 && commands.length % perSlice === 0) yield;
      const table = entry.ofLibraries ? tenant.libraryTable : prepared.table;
      entry.calls++;
      const { executor } = server.router.to(table);
      let refused = this.#refusedByNow(entry, args);
      const command: Command = {
        action: entry.action,
        name: entry.fullName,
        transform: noTransform,
        grows: entry.grows,
        table,
        span,
        args,
        usesSpan: entry.usesSpan,
        tenant: tenant.number,
        client: this.#owner.id,
      };
      if (entry.bind !== undefined && refused === undefined) {
        refused = this.#prepareElsewhere(entry, command);
      }
      command.transform = refused ?? this.#asTransform(entry);
      if (entry.everyPod && refused === undefined) {
        const other = { ...command, transform: entry.run! };
        const refusal = server.otherPods.refusal(other, executor);
        if (refusal === undefined) elsewhere.push(other);
        else {
          refused = (_rows, _words, answer) => answer.error(refusal);
          command.transform = refused;
        }
      }
      if (entry.run === undefined || refused !== undefined) {
        command.action = Action.fetch;
        command.isLocal = true;
      } else
        command.onEmpty = entry.blocks && (entry.blocks.inTransaction ?? entry.blocks.onTimeout);
      if (entry.run !== undefined) {
        executors.add(executor);
        prepared.home ??= table;
      }
      commands.push(command);
      // The tables of later commands follow from a SELECT before them.
      if (entry.spec.name === 'select') prepared.table = selected(args, span) ?? table;
    }
  }

  /** Its user may have lost a right since the command was queued. */
  #refusedByNow(entry: CommandEntry, args: Arguments): Command['transform'] | undefined {
    if (!(this.#owner.flags & ClientFlag.restricted)) return undefined;
    const refusal = refusalByNow(this.#owner, entry, args);
    return refusal === undefined ? undefined : (_rows, _words, reply) => reply.error(refusal);
  }

  /** Transform for a command that acts for this client and that a remote pod cannot run. */
  #prepareElsewhere(entry: CommandEntry, command: Command): Command['transform'] | undefined {
    const { remote, group } = this.#owner.server.router.to(command.table);
    if (remote === undefined && group === undefined) return undefined;
    prepareElsewhere(this.#owner, entry, command);
    const { onlyHere } = command;
    // A group of replicas may have one here just now.
    if (onlyHere === undefined || group !== undefined) return undefined;
    command.onlyHere = undefined;
    return (_rows, _words, reply) => reply.error(onlyHere);
  }

  #asTransform(entry: CommandEntry): Command['transform'] {
    const { bind, run, blocks } = entry;
    if (bind !== undefined) return this.#owner.bound(bind);
    if (run === undefined) return this.#handlerAsTransform(entry);
    if (blocks === undefined) return run;
    return (rows: Rows, words: Arguments, reply: Reply) => {
      const mark = reply.mark();
      const long = run(rows, words, reply);
      if (long !== undefined || reply.mark() !== mark) return long;
      if ((blocks.inTransaction ?? blocks.onTimeout) === 'nil') reply.nil();
      else reply.nilArray();
    };
  }

  /** A handler has effects outside the rows, so when the transaction runs again it answers as before. */
  #handlerAsTransform(entry: CommandEntry): Command['transform'] {
    let answered: Buffer | undefined;
    return (_rows, words, reply) => {
      const writer = reply as RespWriter;
      if (answered !== undefined) {
        writer.rawBytes(answered, 0, answered.length);
        return;
      }
      // Bytes of a long answer are in several parts.
      const own = writer instanceof LongAnswer ? new RespWriter(handlerAnswerBytes) : writer;
      own.version = writer.version;
      own.keeper = writer.keeper;
      const mark = own.pos;
      this.#owner.handleQueued(entry, words, own, mark);
      answered = Buffer.from(own.buf.subarray(mark, own.pos));
      if (own !== writer) writer.rawBytes(answered, 0, answered.length);
    };
  }
}

/** The transaction is done where its rows are, and a command of it about all databases has failed elsewhere. */
function answerPartial(answer: Reply, error: string): void {
  answer.rollback(0);
  answer.error(`ERR the transaction was done, but not for all databases: ${error}`);
}

/** Words of a command with one key; the name is of no use to its transform. */
function noTransform(): void {
  throw new RangeError('a command without a transform');
}

function oneKey(key: Buffer): Arguments {
  const args = new Arguments(2);
  args.buf = key;
  args.lens[1] = key.length;
  args.count = 2;
  return args;
}
