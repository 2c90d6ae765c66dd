// Which partitions the rows of a backup go to, and which planes have them.

import { partitionMapOf } from '../../control/metadata/table-definition.ts';
import type { TableCatalog } from '../../control/metadata/table-catalog.ts';
import type { TenantDefinition } from '../../contracts/tenancy/definitions.ts';
import { lastSlot } from '../../contracts/partition-map.ts';
import type {
  LedScope,
  RestoreScope,
  RestoreStart,
} from '../../storage-node/backup/plane-restores.ts';
import type { TableMove } from '../../storage-node/backup/row-places.ts';
import type { BackupPlane, BackupPlanes } from './plane-orders.ts';
import type { TenantRestore } from './restore-plan.ts';

/** How long a cluster has to make the groups of new tenants and partitions, and to elect their leaders. */
const leaderWaitMs = 30_000;
const pollMs = 100;

/** Tables are divided as they were in the backup, but for those that are divided here or hold rows. */
export async function partitionMoves(
  tables: TableCatalog,
  { restore, tenant }: { restore: TenantRestore; tenant: TenantDefinition },
): Promise<(TableMove & { database: number })[]> {
  const { document, name } = restore;
  const { firstTable, databases } = document.tenant;
  const moves: (TableMove & { database: number })[] = [];
  for (let database = 0; database < Math.min(databases, tenant.databases); database++) {
    const reference = String(database);
    const found = document.tables.find((one) => one.database === database);
    const whole = { number: firstTable + database, first: 0, last: lastSlot };
    const from = found?.placement?.partitions ?? [whole];
    const to =
      found === undefined
        ? partitionMapOf(tables.find(reference, name)).partitions
        : await tables.divide(reference, found.placement?.partitions, name);
    for (const source of from) {
      for (const target of to) {
        const first = Math.max(source.first, target.first);
        const last = Math.min(source.last, target.last);
        if (first > last) continue;
        const isAll = first === source.first && last === source.last;
        const slots = isAll ? {} : { first, last };
        moves.push({ database, from: source.number, to: target.number, ...slots });
      }
    }
  }
  return moves;
}

export function scopeOf({
  tables,
  tenants,
}: Pick<RestoreStart, 'tables' | 'tenants'>): RestoreScope {
  return {
    tables: [...new Set(tables.map(({ to }) => to))],
    tenants: [...new Set(tenants.map(({ to }) => to))],
  };
}

/**
 * Shares of a restore by plane: the tables and tenants that it leads. Waits until all of them have
 * a leader.
 */
export async function restoreShares(
  planes: BackupPlanes,
  { tables, tenants }: Pick<RestoreStart, 'tables' | 'tenants'>,
  signal: AbortSignal,
): Promise<Map<BackupPlane, Pick<RestoreStart, 'tables' | 'tenants'>>> {
  const scope = scopeOf({ tables, tenants });
  const until = performance.now() + leaderWaitMs;
  for (;;) {
    signal.throwIfAborted();
    const all = planes.all();
    const answers = await Promise.allSettled(all.map((plane) => plane.leads(scope)));
    const led = answers.map((one) => (one.status === 'fulfilled' ? one.value : noScope));
    const lacks = (kind: keyof RestoreScope): number | undefined =>
      scope[kind].find((number) => {
        const holders = led.filter((one) => one[kind].includes(number)).length;
        return holders !== 1 && !(kind === 'tenants' && holders === 0 && isCovered(led, number));
      });
    const table = lacks('tables');
    const tenant = lacks('tenants');
    if (table === undefined && tenant === undefined) {
      const shares = new Map<BackupPlane, Pick<RestoreStart, 'tables' | 'tenants'>>();
      for (const [i, plane] of all.entries()) {
        const { tables: own, tenants: whose, divided = [] } = led[i]!;
        if (own.length + whose.length + divided.length === 0) continue;
        const parts = tenants.flatMap((move) => {
          const found = divided.find((one) => one.tenant === move.to);
          return found === undefined ? [] : [{ ...move, partitions: found.partitions }];
        });
        shares.set(plane, {
          tables: tables.filter(({ to }) => own.includes(to)),
          tenants: [...tenants.filter(({ to }) => whose.includes(to)), ...parts],
        });
      }
      return shares;
    }
    if (performance.now() > until) {
      const what = table === undefined ? `the time series of tenant ${tenant}` : `table ${table}`;
      throw new Error(`no node leads ${what}`);
    }
    await new Promise((resolve) => setTimeout(resolve, pollMs));
  }
}

const noScope: LedScope = { tables: [], tenants: [] };

/** Whether each partition of the tenant's time series has one plane that leads it. */
function isCovered(led: readonly LedScope[], tenant: number): boolean {
  const shares = led.flatMap(({ divided = [] }) => divided).filter((one) => one.tenant === tenant);
  const found = shares.flatMap(({ partitions }) => partitions);
  const of = shares[0]?.of;
  return of !== undefined && found.length === of && new Set(found).size === of;
}
