// Plan of a restore: the backups it needs, the tenants it restores, and their new names.

import type { RestoreRequest } from '../../control/backup/backup-jobs.ts';
import { chainOf } from '../../storage-node/backup/chain.ts';
import { listBackups, readManifest } from '../../storage-node/backup/manifest.ts';
import type { BackupManifest } from '../../storage-node/backup/manifest-content.ts';
import { shadowTables } from '../../storage-node/backup/shadow.ts';
import type { Disk } from '../../universal-row/environment.ts';
import { readDocuments, type TenantDocument } from './tenant-documents.ts';

/** A tenant of the backup and its name after the restore. */
export interface TenantRestore {
  readonly document: TenantDocument;
  readonly name: string;
}

export interface RestorePlan {
  /** From the full backup on. */
  readonly chain: readonly BackupManifest[];
  readonly tenants: readonly TenantRestore[];
}

export async function planRestore(disk: Disk, request: RestoreRequest): Promise<RestorePlan> {
  const set = request.directory;
  const id = request.backup ?? newest(disk, set, request.tenant);
  const chain = chainOf(id, (one) => readManifest(disk, set, one));
  const last = chain.at(-1)!;
  const all = await readDocuments(disk, `${set}/${id}`, last.metadata.files);
  return { chain, tenants: chosen(all, request) };
}

function newest(disk: Disk, set: string, tenant: string | undefined): string {
  const { ids } = listBackups(disk, set);
  for (const id of ids.toReversed()) {
    const { scope } = readManifest(disk, set, id);
    if (tenant === undefined || scope.tenant === undefined || scope.tenant.name === tenant) {
      return id;
    }
  }
  throw new Error(`there is no backup${tenant === undefined ? '' : ` of ${tenant}`} in ${set}`);
}

function chosen(
  documents: readonly TenantDocument[],
  { tenant, as }: RestoreRequest,
): TenantRestore[] {
  const wanted = documents.filter(
    ({ tenant: { name } }) => tenant === undefined || name === tenant,
  );
  if (wanted.length === 0) throw new Error(`tenant ${tenant} is not in the backup`);
  if (as !== undefined && wanted.length > 1) {
    throw new Error('the backup is of several tenants: say which one is to get another name');
  }
  return wanted.map((document) => ({ document, name: as ?? document.tenant.name }));
}

/** As many at a time as there are tables to load them into before they take their places. */
export function inGroups(tenants: readonly TenantRestore[]): TenantRestore[][] {
  const groups: TenantRestore[][] = [];
  let tables = Infinity;
  for (const tenant of tenants) {
    // With the one of its function libraries.
    const count = tenant.document.tenant.databases + 1;
    if (tables + count > shadowTables.count) {
      groups.push([]);
      tables = 0;
    }
    groups.at(-1)!.push(tenant);
    tables += count;
  }
  return groups;
}
