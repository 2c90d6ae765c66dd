// The data planes as the control plane's parts want to see them.

import type { PlaneAccess } from '../../control/admin/plane-access.ts';
import type {
  SeriesTableCatalog,
  SeriesTableHolder,
} from '../../control/metadata/series-table-catalog.ts';
import type { PartitionHolder } from '../../control/metadata/partition-catalog.ts';
import type { TableCatalog, TableHolders } from '../../control/metadata/table-catalog.ts';
import type { UsageHistory } from '../../control/monitor/usage-history.ts';
import type { TenantHolders } from '../../control/tenants/tenant-catalog.ts';
import type { PlaneHost, Planes } from './plane-host.ts';

const callTimeoutMs = 10_000;
/** Long enough for a drop of any size. */
const dropTimeoutMs = 3_600_000;
const usageTimeoutMs = 2000;

/** `wide`: of a node of a cluster. */
export function tableHolders(
  { redis }: Planes,
  wide: Pick<TableHolders, 'rowCount'> | undefined,
): TableHolders {
  return {
    isCluster: wide !== undefined,
    rowCount: (table, partitions) =>
      wide?.rowCount(table, partitions) ?? redis.call('rowCount', table, callTimeoutMs),
    setTables: (tables) => redis.call('tables', tables, callTimeoutMs),
    undefinedTables: () => redis.call('undefinedTables', undefined, callTimeoutMs),
    setDefaultModel: (model) => redis.call('defaultModel', model, callTimeoutMs),
  };
}

export function partitionHolder(
  { redis }: Planes,
  wide: Pick<PartitionHolder, 'sizes'> | undefined,
): PartitionHolder {
  return {
    begin: (definition) => redis.call('changePartitions', definition, callTimeoutMs),
    status: (table) => redis.call('partitionChange', table, callTimeoutMs),
    cancel: (table) => redis.call('cancelPartitionChange', table, callTimeoutMs),
    sizes: (table) => wide?.sizes(table) ?? redis.call('partitionSizes', table, callTimeoutMs),
  };
}

export function seriesTableHolder({ influx }: Planes): SeriesTableHolder {
  return {
    databases: async (tenant) => {
      const databases = await influx.call('databases', tenant, callTimeoutMs);
      return databases.map(({ name }) => String(name));
    },
    createDatabase: (tenant, name) =>
      influx.call('createDatabase', { tenant, name }, callTimeoutMs),
    partitions: (tenant, name) => influx.call('seriesPartitions', { tenant, name }, callTimeoutMs),
    setTables: (tables) => influx.call('seriesTables', tables, callTimeoutMs),
  };
}

export function tenantHolders(
  planes: Planes,
  tables: TableCatalog,
  seriesTables: SeriesTableCatalog,
  usage: UsageCollector,
): TenantHolders {
  return {
    tenancy: (update) => all(planes, (plane) => plane.call('tenancy', update, callTimeoutMs)),
    dropData: async ({ name, number }) => {
      await usage.refresh();
      await all(planes, (plane) => plane.call('dropTenant', number, dropTimeoutMs));
      await tables.forgetTenant(name);
      await seriesTables.forgetTenant({ number });
      usage.history.forget(number);
    },
  };
}

export function planeAccess(planes: Planes): PlaneAccess[] {
  return (['redis', 'influx'] as const).map((name) => {
    const plane = planes[name];
    return {
      name,
      admission: (query) => plane.call('admission', query, callTimeoutMs),
      top: (query) => plane.call('top', query, callTimeoutMs),
      slowlog: (query) => plane.call('slowlog', query, callTimeoutMs),
      steps: (query) => plane.call('steps', query, callTimeoutMs),
      databases: (tenant) => plane.call('databases', tenant, callTimeoutMs),
      createDatabase: (database) => plane.call('createDatabase', database, callTimeoutMs),
      dropDatabase: (database) => plane.call('dropDatabase', database, callTimeoutMs),
    };
  });
}

/** Side by side; waits for all of them, then fails if one did. */
async function all(planes: Planes, what: (plane: PlaneHost) => Promise<void>): Promise<void> {
  const outcomes = await Promise.allSettled(Object.values(planes).map(what));
  for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason;
}

const collectEveryMs = 5000;
const writeEveryMs = 60_000;

/** Fetches usage from the planes periodically. */
export class UsageCollector {
  readonly history: UsageHistory;
  readonly #planes: Planes;
  readonly #report: (message: string) => void;
  readonly #timers: NodeJS.Timeout[] = [];
  #refreshing: Promise<void> | undefined;

  constructor(planes: Planes, history: UsageHistory, report: (message: string) => void) {
    this.#planes = planes;
    this.history = history;
    this.#report = report;
  }

  start(): void {
    const write = (): void => {
      this.history.write().catch((error: Error) => {
        this.#report(`usage cannot be saved: ${error.message}`);
      });
    };
    this.#timers.push(
      setInterval(() => void this.refresh(), collectEveryMs).unref(),
      setInterval(write, writeEveryMs).unref(),
    );
  }

  /** Brings the history up to now, as far as the planes answer. */
  async refresh(): Promise<void> {
    this.#refreshing ??= this.#refresh().finally(() => (this.#refreshing = undefined));
    await this.#refreshing;
  }

  async #refresh(): Promise<void> {
    const { history } = this;
    const asked = Object.values(this.#planes).map(async (plane: PlaneHost) => {
      if (!plane.isUp) return;
      const since = history.sequenceOf(plane.name);
      history.add(await plane.call('usage', since, usageTimeoutMs));
    });
    // A plane that is too busy to answer reports its usage next time.
    await Promise.allSettled(asked);
  }

  async close(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer);
    await this.#refreshing;
    await this.history.close();
  }
}
