// One restore: the backup is checked as a whole, missing tenants are created and stay suspended,
// the planes load the data beside the existing data and compare it with the backup, and then it
// takes effect.

import type { RestoreRequest, RunningJob } from '../../control/backup/backup-jobs.ts';
import { TableError } from '../../control/metadata/table-catalog.ts';
import type { TableChange } from '../../control/metadata/table-definition.ts';
import type { TableModel } from '../../control/metadata/table-definition.ts';
import { TenantError } from '../../control/tenants/tenant-error.ts';
import { podsOf, type PlacedPart, partsOf } from '../../storage-node/backup/chain.ts';
import { checkFile } from '../../storage-node/backup/chunk-reader.ts';
import { filesOf } from '../../storage-node/backup/manifest.ts';
import type { TableMove } from '../../storage-node/backup/row-places.ts';
import type {
  RestoreScope,
  RestoreStart,
  RestoreStatus,
} from '../../storage-node/backup/plane-restores.ts';
import {
  type RestoredShard,
  type RestoredTable,
  RestoreMismatchError,
} from '../../storage-node/backup/restore-report.ts';
import { ownerOf } from '../../storage-node/backup/shadow.ts';
import { defaultTenant, type TenantDefinition } from '../../contracts/tenancy/definitions.ts';
import { ContentSum } from '../../universal-row/content-sum.ts';
import { libraryTable } from '../../contracts/tenancy/library-tables.ts';
import type { BackupContext } from './backup-run.ts';
import { type BackupPlane, untilAll } from './plane-orders.ts';
import { partitionMoves, restoreShares, scopeOf } from './partition-moves.ts';
import { inGroups, planRestore, type RestorePlan, type TenantRestore } from './restore-plan.ts';
import type { Catalogs, TenantDocument } from './tenant-documents.ts';

export interface RestoredTenant {
  name: string;
  /** Name of the tenant in the backup. */
  from: string;
  /** Created by this restore, with its users and tokens. */
  created: boolean;
  state: TenantDefinition['state'];
  /** `restored`: the tenant has the users of the backup. `kept`: it has its earlier users. */
  users: 'restored' | 'kept';
  tables: (Omit<RestoredTable, 'table'> & { database: number })[];
  shards: RestoredShard[];
  /** Points older than their policies keep. */
  expiredShards: number;
}

export interface RestoreResult {
  backup: string;
  tenants: RestoredTenant[];
}

/** A tenant here, and where its data comes from. */
interface Target {
  restore: TenantRestore;
  tenant: TenantDefinition;
  created: boolean;
  /** Tables and partitions of the backup, and where they go. */
  partitions: (TableMove & { database: number })[];
}

export async function runRestore(
  context: BackupContext,
  id: string,
  request: RestoreRequest,
  job: RunningJob,
): Promise<RestoreResult> {
  const plan = await planRestore(context.disk, request);
  await checkFiles(context, request.directory, plan, job);
  const tenants: RestoredTenant[] = [];
  // Users and tokens that were dropped or revoked since the backup are not restored by default. A server that never had
  // a password or a token has dropped none.
  const { checksCredentials } = context.catalogs.tenants;
  const restoresUsers = request.users === true || !checksCredentials;
  for (const group of inGroups(plan.tenants)) {
    job.signal.throwIfAborted();
    tenants.push(
      ...(await restoreGroup(context, id, { ...request, users: restoresUsers }, plan, group, job)),
    );
  }
  return { backup: plan.chain.at(-1)!.id, tenants };
}

/** Checks all required files before anything is changed. */
async function checkFiles(
  { disk }: BackupContext,
  set: string,
  { chain }: RestorePlan,
  job: RunningJob,
): Promise<void> {
  const files = chain.flatMap((manifest) =>
    filesOf(manifest).map((file) => ({ file, directory: `${set}/${manifest.id}` })),
  );
  const total = files.reduce((sum, { file }) => sum + file.bytes, 0);
  let bytes = 0;
  job.report({ phase: 'checking' });
  for (const { file, directory } of files) {
    job.signal.throwIfAborted();
    await checkFile(disk, directory, file);
    bytes += file.bytes;
    job.report({ bytes, fraction: 0.2 * (bytes / total) });
  }
}

async function restoreGroup(
  context: BackupContext,
  id: string,
  request: RestoreRequest,
  plan: RestorePlan,
  group: readonly TenantRestore[],
  job: RunningJob,
): Promise<RestoredTenant[]> {
  const targets: Target[] = [];
  const start = { id, replace: request.replace === true };
  let committed = false;
  let restored: RestoreScope | undefined;
  const opened = plan.chain.map((one) => context.planes.open(`${request.directory}/${one.id}`));
  try {
    for (const restore of group) {
      targets.push(await prepare(context, plan, restore, request.users === true));
    }
    for (const target of targets) refuseLostTables(plan, target);
    job.report({ phase: 'loading' });
    const moves = movesOf(request, plan, targets);
    const shares = await restoreShares(context.planes, moves, job.signal);
    const planes = [...shares.keys()];
    await eachPlane(planes, (plane) =>
      plane.restore({ action: 'start', ...start, ...moves, ...shares.get(plane)! }),
    );
    const loaded = await loading(planes, id, job);
    compareTotals(plan, targets, loaded);
    job.report({ phase: 'finishing' });
    job.signal.throwIfAborted();
    restored = scopeOf(moves);
    await eachPlane(planes, (plane) => plane.restore({ action: 'commit', id }));
    committed = true;
    return await finished(context, targets, loaded, request.users === true);
  } finally {
    const end = { action: 'end', id, restored } as const;
    await eachPlane(context.planes.all(), (plane) => plane.restore(end)).catch(() => {});
    for (const close of opened) close();
    if (!committed) await dropCreated(context, targets);
  }
}

/** The tenant that is to have the data, with the tables it will be in. */
async function prepare(
  { catalogs }: BackupContext,
  plan: RestorePlan,
  restore: TenantRestore,
  users: boolean,
): Promise<Target> {
  const { document, name } = restore;
  const { tenants, tables, seriesTables } = catalogs;
  const found = tenants.owner(name);
  const made = found === undefined;
  const tenant = found ?? (await tenants.adoptTenant(name, membersOf(catalogs, restore, users)));
  if (tenant.state === 'dropping')
    throw new TenantError('conflict', `tenant ${name} is being dropped`);
  const target: Target = { restore, tenant, created: made, partitions: [] };
  const change = async (database: number, properties: TableChange): Promise<boolean> => {
    if (database >= tenant.databases) return true;
    try {
      await tables.adopt(String(database), properties, name);
      return true;
    } catch (error) {
      if (error instanceof TableError) return false;
      throw error;
    }
  };
  for (const { database, explicit, ...properties } of document.tables) {
    if (!explicit || (await change(database, properties))) continue;
    // The table holds rows that will be replaced: the restored ones use its engine.
    const { model: _model, ...others } = properties;
    await change(database, others);
  }
  for (const { name: database, ...properties } of document.seriesTables ?? []) {
    await seriesTables.adopt(name, database, properties);
  }
  for (const { database, model } of heldTables(plan, document)) {
    const isOther = database < tenant.databases && modelOf(catalogs, name, database) !== model;
    if (isOther) await change(database, { model });
  }
  target.partitions = await partitionMoves(tables, target);
  return target;
}

/**
 * Members of a copy of a tenant that still exists here: without users dropped since, and without
 * tokens, as tokens removed since were revoked.
 */
function membersOf(
  { tenants }: Catalogs,
  { document, name }: TenantRestore,
  users: boolean,
): TenantDocument {
  const original = document.tenant.name;
  if (users || name === original || tenants.owner(original) === undefined) return document;
  const here = new Set(tenants.users(original).map((user) => user.name));
  return { ...document, users: document.users.filter((user) => here.has(user.name)), tokens: [] };
}

/** Databases that held rows, and the engine that held them. */
function heldTables(
  { chain }: RestorePlan,
  { tenant: { firstTable, databases } }: TenantDocument,
): { database: number; model: TableModel }[] {
  return chain.at(-1)!.parts.flatMap(({ model, tables = [] }) =>
    tables
      .filter(({ table, rows }) => rows > 0 && table >= firstTable)
      .map(({ table }) => ({ database: table - firstTable, model: model as TableModel }))
      .filter(({ database }) => database < databases),
  );
}

function modelOf({ tables }: Catalogs, tenant: string, database: number): TableModel {
  return tables.find(String(database), tenant).model;
}

/** Rows of databases that the tenant here does not have would be out of reach. */
function refuseLostTables({ chain }: RestorePlan, { restore, tenant }: Target): void {
  const from = restore.document.tenant;
  const beyond = from.firstTable + tenant.databases;
  for (const { tables = [] } of chain.at(-1)!.parts) {
    const lost = tables.find(
      ({ table, rows }) => rows > 0 && table >= beyond && table < from.firstTable + from.databases,
    );
    if (lost === undefined) continue;
    const where =
      tenant.name === defaultTenant ? 'raise redis.databases' : `make it with ${from.databases}`;
    throw new Error(
      `database ${lost.table - from.firstTable} of ${from.name} holds rows, and ${tenant.name} has only ${tenant.databases} databases: ${where}`,
    );
  }
}

function movesOf(
  { directory }: RestoreRequest,
  { chain }: RestorePlan,
  targets: readonly Target[],
): Pick<RestoreStart, 'sources' | 'tables' | 'tenants'> {
  const sources: PlacedPart[][] = podsOf(chain).map((pod) => partsOf(chain, pod, directory));
  const tables = targets.flatMap(({ restore, tenant, partitions }) => {
    const moves: TableMove[] = partitions.map(({ database: _database, ...move }) => move);
    const from = libraryTable(restore.document.tenant.number);
    return [...moves, { from, to: libraryTable(tenant.number) }];
  });
  const tenants = targets.map(({ restore, tenant }) => {
    return { from: restore.document.tenant.number, to: tenant.number };
  });
  return { sources, tables, tenants };
}

/** Compares the totals of tables whose partitions differ from those of the backup. Each pod knows only a part of the rows. */
function compareTotals(
  { chain }: RestorePlan,
  targets: readonly Target[],
  loaded: readonly RestoreStatus[],
): void {
  const held = chain.at(-1)!.parts.flatMap(({ tables = [] }) => tables);
  const found = loaded.flatMap(({ tables }) => tables);
  for (const { restore, partitions } of targets) {
    for (const database of new Set(partitions.map((one) => one.database))) {
      const moves = partitions.filter((one) => one.database === database);
      const wanted = held.filter(({ table }) => moves.some(({ from }) => from === table));
      const restored = found.filter(({ table }) => moves.some(({ to }) => to === table));
      const rowsOf = (of: readonly { rows: number }[]): number =>
        of.reduce((sum, { rows }) => sum + rows, 0);
      const sums = wanted.filter(({ rows }) => rows > 0).map(({ checksum }) => checksum);
      const isSame =
        sums.includes(undefined) || sumOf(sums) === sumOf(restored.map((one) => one.checksum));
      if (rowsOf(wanted) === rowsOf(restored) && isSame) continue;
      throw new RestoreMismatchError(
        `of database ${database} of ${restore.document.tenant.name} ${rowsOf(restored)} rows were restored, and the backup has ${rowsOf(wanted)}`,
      );
    }
  }
}

function sumOf(checksums: readonly (string | undefined)[]): string {
  const sum = new ContentSum();
  for (const checksum of checksums) if (checksum !== undefined) sum.addSum(checksum);
  return sum.text;
}

async function loading(
  planes: readonly BackupPlane[],
  id: string,
  job: RunningJob,
): Promise<RestoreStatus[]> {
  const statuses = await untilAll(
    planes,
    job.signal,
    (plane) => plane.restore({ action: 'status', id }),
    ({ state }) => state !== 'loading',
    (seen) => {
      const done = seen.reduce((sum, status) => sum + Math.min(status.done, status.total), 0);
      const total = seen.reduce((sum, status) => sum + status.total, 0);
      job.report({ fraction: 0.2 + 0.75 * (total === 0 ? 1 : done / total) });
    },
  );
  const failed = statuses.find(({ state }) => state === 'failed');
  if (failed === undefined) return statuses;
  const hint = failed.errorName === 'NotEmptyError' ? '; say --replace to have it replaced' : '';
  throw new Error(`${failed.error}${hint}`);
}

async function finished(
  { catalogs }: BackupContext,
  targets: readonly Target[],
  loaded: readonly RestoreStatus[],
  restoresUsers: boolean,
): Promise<RestoredTenant[]> {
  const restored: RestoredTenant[] = [];
  for (const { restore, tenant, created, partitions } of targets) {
    const { document, name } = restore;
    const wanted = document.tenant.state;
    const resumes = created && wanted === 'active';
    const now = resumes ? await catalogs.tenants.alterTenant(name, { state: 'active' }) : tenant;
    const adoptsUsers = !created && restoresUsers && name === document.tenant.name;
    if (adoptsUsers) {
      await catalogs.tenants.adoptMembers(name, document);
    }
    const { firstTable, databases, number } = tenant;
    restored.push({
      name,
      from: document.tenant.name,
      created,
      state: now.state,
      users: created || adoptsUsers ? 'restored' : 'kept',
      tables: byDatabase(
        loaded.flatMap(({ tables }) => tables),
        ({ table }) => {
          const isOwn = table >= firstTable && table < firstTable + databases;
          return isOwn ? table - firstTable : partitions.find(({ to }) => to === table)?.database;
        },
      ),
      shards: loaded
        .flatMap(({ shards }) => shards)
        .filter(({ database }) => ownerOf(database).tenant === number)
        .map((shard) => ({ ...shard, database: ownerOf(shard.database).name })),
      expiredShards: loaded.reduce((sum, { expiredShards }) => sum + expiredShards, 0),
    });
  }
  return restored;
}

/** The partitions of a table together. */
function byDatabase(
  tables: readonly RestoredTable[],
  databaseOf: (table: RestoredTable) => number | undefined,
): RestoredTenant['tables'] {
  const found = new Map<number, RestoredTable[]>();
  for (const table of tables) {
    const database = databaseOf(table);
    if (database !== undefined) found.set(database, [...(found.get(database) ?? []), table]);
  }
  const sum = (parts: RestoredTable[], of: 'rows' | 'expiring' | 'due'): number =>
    parts.reduce((all, part) => all + part[of], 0);
  const byNumber = [...found].sort(([a], [b]) => a - b);
  return byNumber.map(([database, parts]) => {
    return {
      database,
      rows: sum(parts, 'rows'),
      expiring: sum(parts, 'expiring'),
      due: sum(parts, 'due'),
      checksum: sumOf(parts.map((part) => part.checksum)),
      checksumCompared: parts.every((part) => part.checksumCompared),
    };
  });
}

/** A tenant without its data is none. */
async function dropCreated({ catalogs }: BackupContext, targets: readonly Target[]): Promise<void> {
  for (const { tenant, created } of targets) {
    if (created) await catalogs.tenants.dropTenant(tenant.name).catch(() => {});
  }
}

/** The first that refuses is thrown once all have answered. */
async function eachPlane(
  planes: readonly BackupPlane[],
  ask: (plane: BackupPlane) => Promise<RestoreStatus>,
): Promise<void> {
  const outcomes = await Promise.allSettled(planes.map(ask));
  for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason;
}
