// Work of a gateway on pods beside the one that answers: commands about all databases, and reads for the read cache.

import { Arguments } from '../../universal-row/arguments.ts';
import { Action, type Command } from '../../universal-row/command.ts';
import type { Executor } from '../../universal-row/executor.ts';
import { RowWork } from '../../universal-row/row-work.ts';
import type { Router } from '../gateway/router.ts';
import type { CommandTick } from './command-tick.ts';
import type { RedisMetering } from './metering.ts';
import type { Load, ReadCache, RememberedTable } from './read-cache.ts';

/** What it has of the server; both may change. */
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
  refusal({ span, grows }: Command, home: Executor): string | undefined {
    for (let table = span.first; table < span.first + span.count; table++) {
      const { executor } = this.#router.to(table);
      const refusal = executor === home ? undefined : executor.refusal({ table, grows });
      if (refusal !== undefined) return refusal;
    }
    return undefined;
  }

  /** Runs a command about all databases on the executors other than the one that answers. */
  run(command: Command, home: Executor): void {
    const { first, count } = command.span;
    const done = new Set([home]);
    for (let table = first; table < first + count; table++) {
      const { executor } = this.#router.to(table);
      if (done.has(executor)) continue;
      done.add(executor);
      const writer = this.#tick.borrowWriter(2);
      const waits = executor.execute({ ...command, table }, writer);
      if (waits instanceof Promise) {
        waits
          .catch((error: unknown) => {
            this.#host.report('error', `command ${command.name} failed`, { err: error });
          })
          .finally(() => this.#host.cache?.forgetAll(command.span));
      } else this.#tick.giveBackWriter(writer);
    }
    this.#host.cache?.forgetAll(command.span);
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
