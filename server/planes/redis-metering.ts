// Charges of the Redis plane to tenants: commands where they are answered, and pods' background
// work.

import { firstTenant, type MeteredTenant, RedisMetering } from '../../access/redis/metering.ts';
import type { CostTableData } from '../../request-units/cost-table.ts';
import type { TenantAccount } from '../../request-units/meter.ts';
import { RowPricer } from '../../request-units/row-pricer.ts';
import type { BackgroundWork, CopiedRows } from '../../storage-node/background-work.ts';
import { PlaneMeter } from './plane-meter.ts';

type RowModel = 'memory' | 'kv';

export class RedisPlaneMeter {
  readonly plane: PlaneMeter;
  readonly metering: RedisMetering;
  /** Nothing is charged while it is off. */
  enabled = true;
  readonly #pricers: Readonly<Record<RowModel, RowPricer>>;
  readonly #ownerOf: (table: number) => MeteredTenant | undefined;

  /** `ownerOf` returns a table's owner; undefined for a table without one. */
  constructor(table: CostTableData, ownerOf: (table: number) => MeteredTenant | undefined) {
    this.#ownerOf = ownerOf;
    this.#pricers = {
      memory: new RowPricer({ costs: table.models.memory, isCached: false }),
      kv: new RowPricer({ costs: table.models.kv, isCached: true }),
    };
    this.plane = new PlaneMeter(
      'redis',
      (accounts) => this.#chargeMerging(accounts),
      () => this.metering.flushAll(),
    );
    const { meter, hot } = this.plane;
    this.metering = new RedisMetering({ meter, hot, pricer: this.#pricers.memory });
  }

  pricerOf(model: RowModel): RowPricer {
    return this.#pricers[model];
  }

  /** Receives reports of the background work of a model's pods. */
  backgroundOf(model: RowModel): BackgroundWork {
    const pricer = this.#pricers[model];
    const charge = (tables: readonly CopiedRows[], isRestore: boolean): void => {
      if (!this.enabled) return;
      for (const { table, rows, bytes } of tables) {
        if (bytes === 0) continue;
        const owner = this.#owner(table);
        const account = this.#accountOf(owner);
        const database = table - owner.firstTable;
        // Rows on disk are read and written as merging does it, rows in memory as a checkpoint does it.
        if (model === 'kv') pricer.chargeModule(account, database, 'compact', 1, bytes);
        else pricer.chargeModule(account, database, 'checkpoint', Math.max(1, rows), bytes);
        if (!isRestore) continue;
        pricer.chargeModule(account, database, 'log', 1, bytes);
        if (model === 'kv') account.unmergedBytes += bytes;
      }
    };
    return {
      copied: (tables) => charge(tables, false),
      restored: (tables) => charge(tables, true),
      expired: (table, rows, logBytes) => {
        if (!this.enabled) return;
        const owner = this.#owner(table);
        const account = this.#accountOf(owner);
        const database = table - owner.firstTable;
        pricer.chargeModule(account, database, 'expire', rows, 0);
        pricer.chargeModule(account, database, 'log', 1, logBytes);
      },
      // A checkpoint serves all tables at once: each bears the share that its rows have in it.
      checkpointed: (tables, bytes) => {
        const all = tables.reduce((sum, { rows }) => sum + rows, 0);
        if (!this.enabled || all === 0) return;
        for (const { table, rows } of tables) {
          if (rows === 0) continue;
          const owner = this.#owner(table);
          const share = (bytes * rows) / all;
          const database = table - owner.firstTable;
          pricer.chargeModule(this.#accountOf(owner), database, 'checkpoint', rows, share);
        }
      },
    };
  }

  /** The tenant is no more. */
  forget(tenant: number): void {
    this.metering.forget(tenant);
    this.plane.forget(tenant);
  }

  #owner(table: number): MeteredTenant {
    return this.#ownerOf(table) ?? firstTenant;
  }

  #accountOf(owner: MeteredTenant): TenantAccount {
    return this.plane.meter.account(owner.number);
  }

  /** Written data is merged repeatedly on disk: charged to the tenants that wrote it. */
  #chargeMerging(accounts: Iterable<TenantAccount>): void {
    for (const account of accounts) {
      const bytes = account.unmergedBytes;
      if (bytes === 0) continue;
      account.unmergedBytes = 0;
      this.#pricers.kv.chargeModule(account, 0, 'compact', 1, bytes);
    }
  }
}
