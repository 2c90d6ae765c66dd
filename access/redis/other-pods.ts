// Work of a gateway on pods other than the answering one: commands on all databases, and reads for the read cache.

import { Arguments } from '../../universal-row/arguments.ts';
import { Action, type Command } from '../../universal-row/command.ts';
import type { RowCommands } from '../../universal-row/executor.ts';
import type { Reply } from '../../universal-row/reply.ts';
import { RowWork } from '../../universal-row/row-work.ts';
import type { Router } from '../gateway/router.ts';
import type { CommandTick } from './command-tick.ts';
import type { RedisMetering } from './metering.ts';
import { LongAnswer, minus, type RespWriter } from './resp-writer.ts';
import type { Load, ReadCache, RememberedTable } from './read-cache.ts';

/** Services needed from the server; both may change. */
interface PodHost {
  readonly metering: RedisMetering | undefined;
  readonly cache: ReadCache | undefined;
  report(level: 'error', message: string, fields?: object): void;
}

export class OtherPods {
  readonly #host: PodHost;
  readonly #router: Router;
  readonly #tick: Pick<CommandTick, 'borrowWriter' | 'giveBackWriter' | 'schedule'>;

  constructor(
    host: PodHost,
    router: Router,
    tick: Pick<CommandTick, 'borrowWriter' | 'giveBackWriter' | 'schedule'>,
  ) {
    this.#host = host;
    this.#router = router;
    this.#tick = tick;
  }

  /** Why a command about all databases may not run on the executors other than `home`, if it may not. */
  refusal({ span, grows }: Command, home: RowCommands): string | undefined {
    for (let table = span.first; table < span.first + span.count; table++) {
      const { executor } = this.#router.to(table);
      const refusal = executor === home ? undefined : executor.refusal({ table, grows });
      if (refusal !== undefined) return refusal;
    }
    return undefined;
  }

  /**
   * Runs a command on all databases on the executors other than the answering one. If they answer asynchronously,
   * resolves when all have answered: to the first error, if there was one.
   */
  run(command: Command, home: RowCommands): Promise<string | undefined> | undefined {
    const { first, count } = command.span;
    const done = new Set<RowCommands>([home]);
    const waiting: Promise<string | undefined>[] = [];
    for (let table = first; table < first + count; table++) {
      const { executor } = this.#router.to(table);
      if (done.has(executor)) continue;
      done.add(executor);
      const writer = this.#tick.borrowWriter(2);
      const own = { ...command, table, args: command.args.copy() };
      const waits = executor.execute(own, writer);
      if (waits instanceof Promise) waiting.push(this.#answered(own, waits, writer));
      else {
        const error = errorOf(writer.buf.subarray(0, writer.pos));
        if (error !== undefined) waiting.push(Promise.resolve(error));
        this.#tick.giveBackWriter(writer);
      }
    }
    this.#host.cache?.forgetAll(command.span);
    if (waiting.length === 0) return undefined;
    return Promise.all(waiting).then((errors) => errors.find((error) => error !== undefined));
  }

  async #answered(
    command: Command,
    waits: Promise<Reply | void>,
    writer: RespWriter,
  ): Promise<string | undefined> {
    try {
      const answer = (await waits) ?? writer;
      return errorOf(
        answer instanceof LongAnswer ? answer.take()[0] : writer.buf.subarray(0, writer.pos),
      );
    } catch (error) {
      this.#host.report('error', `command ${command.name} failed`, { err: error });
      return 'ERR internal error';
    } finally {
      this.#host.cache?.forgetAll(command.span);
    }
  }

  /** Runs a GET for the read cache, in the background: its tenant is charged for it. */
  reload({ table, tenant, span }: RememberedTable, key: Buffer, load: Load): void {
    const { executor, pricer } = this.#router.to(table);
    const writer = this.#tick.borrowWriter(2);
    const work = new RowWork();
    const args = new Arguments();
    args.buf = key;
    args.lens[1] = key.length;
    args.count = 2;
    // A row that it finds to have expired goes into the log.
    this.#tick.schedule();
    const done = (): void => {
      load.answered(writer, performance.now());
      const account = this.#host.metering?.meter.account(tenant);
      if (account !== undefined) pricer?.chargeUnasked(account, table - span.first, work);
      this.#tick.giveBackWriter(writer);
    };
    const { transform } = load;
    const command = { action: Action.fetch, name: 'get', transform, grows: false, table, span };
    const waits = executor.execute({ ...command, args, work }, writer);
    if (!(waits instanceof Promise)) {
      done();
      return;
    }
    waits
      .catch((error: unknown) => {
        this.#host.report('error', 'reading again for the read cache failed', { err: error });
      })
      .finally(done);
  }
}

/** The text of an answer that is an error. */
function errorOf(answer: Buffer | undefined): string | undefined {
  return answer?.[0] === minus ? answer.toString('latin1', 1, answer.length - 2) : undefined;
}
