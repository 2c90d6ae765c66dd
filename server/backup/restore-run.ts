// One restore: the backup is checked as a whole, tenants that are not there are made and stay suspended, the
// planes load their data beside what is there and compare it with the backup, and then it takes effect.

import type { RestoreRequest, RunningJob } from '../../control/backup/backup-jobs.ts';
import { TableError } from '../../control/metadata/table-catalog.ts';
import type { TableChange } from '../../control/metadata/table-definition.ts';
import type { TableModel } from '../../control/metadata/table-definition.ts';
import { TenantError } from '../../control/tenants/tenant-error.ts';
import { modelsOf, type PlacedPart, partsOf } from '../../storage-node/backup/chain.ts';
import { checkFile } from '../../storage-node/backup/chunk-reader.ts';
import { filesOf } from '../../storage-node/backup/manifest.ts';
import type { TableMove } from '../../storage-node/backup/row-restore.ts';
import type { RestoreStart, RestoreStatus } from '../../storage-node/backup/plane-restores.ts';
import type { RestoredShard, RestoredTable } from '../../storage-node/backup/restore-report.ts';
import { ownerOf } from '../../storage-node/backup/shadow.ts';
import { defaultTenant, type TenantDefinition } from '../../contracts/tenancy/definitions.ts';
import { ContentSum } from '../../universal-row/content-sum.ts';
import { libraryTable } from '../../contracts/tenancy/library-tables.ts';
import type { BackupContext } from './backup-run.ts';
import { type BackupPlane, untilAll } from './plane-orders.ts';
import { inGroups, planRestore, type RestorePlan, type TenantRestore } from './restore-plan.ts';
import type { Catalogs, TenantDocument } from './tenant-documents.ts';

export interface RestoredTenant {
  name: string;
  /** Its name in the backup. */
  from: string;
  /** Made by this, with its users and tokens. */
  created: boolean;
  state: TenantDefinition['state'];
  /** `restored`: it has those of the backup. `kept`: it has those it had before. */
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
  /** Partitions of the backup, and where they go. */
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

/** Nothing is touched before every byte that is needed is known to be right. */
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
  const { planes } = context;
  const targets: Target[] = [];
  const start = { id, replace: request.replace === true };
  let committed = false;
  try {
    for (const restore of group) {
      targets.push(await prepare(context, plan, restore, request.users === true));
    }
    for (const target of targets) refuseLostTables(plan, target);
    job.report({ phase: 'loading' });
    await eachPlane(planes, (plane) =>
      plane.restore({ action: 'start', ...start, ...movesOf(request, plan, targets) }),
    );
    const loaded = await loading(planes, id, job);
    job.report({ phase: 'finishing' });
    job.signal.throwIfAborted();
    await eachPlane(planes, (plane) => plane.restore({ action: 'commit', id }));
    committed = true;
    return await finished(context, targets, loaded, request.users === true);
  } finally {
    await eachPlane(planes, (plane) => plane.restore({ action: 'end', id })).catch(() => {});
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
  for (const { database, placement } of document.tables) {
    if (database >= tenant.databases) continue;
    const to = await tables.divide(String(database), placement?.partitions, name);
    const undividedTable = [{ number: document.tenant.firstTable + database }];
    const from = placement?.partitions ?? undividedTable;
    const moves = to.map(({ number }, i) => ({ from: from[i]!.number, to: number, database }));
    target.partitions.push(...moves);
  }
  return target;
}

/**
 * What a copy of a tenant that is here still is made of: not of users that it has dropped since, and of no token, for
 * those that are not its own any more were revoked.
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
  const sources: PlacedPart[][] = modelsOf(chain).map((model) => partsOf(chain, model, directory));
  const tables = targets.flatMap(({ restore, tenant, partitions }) => {
    const from = restore.document.tenant;
    const count = Math.min(from.databases, tenant.databases);
    const moves: TableMove[] = partitions.map(({ from: number, to }) => ({ from: number, to }));
    for (let n = 0; n < count; n++) {
      if (partitions.some(({ database }) => database === n)) continue;
      moves.push({ from: from.firstTable + n, to: tenant.firstTable + n });
    }
    moves.push({ from: libraryTable(from.number), to: libraryTable(tenant.number) });
    return moves;
  });
  const tenants = targets.map(({ restore, tenant }) => {
    return { from: restore.document.tenant.number, to: tenant.number };
  });
  return { sources, tables, tenants };
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
  return Array.from(found, ([database, parts]) => {
    const checksum = new ContentSum();
    for (const part of parts) checksum.addSum(part.checksum);
    return {
      database,
      rows: sum(parts, 'rows'),
      expiring: sum(parts, 'expiring'),
      due: sum(parts, 'due'),
      checksum: checksum.text,
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
