// One backup: the planes write their parts in parallel, the control plane writes the metadata, and the manifest is
// written last. A backup without a manifest does not count.

import { mkdirSync, rmSync } from 'node:fs';
import type { BackupRequest, RunningJob } from '../../control/backup/backup-jobs.ts';
import { DamagedBackupError } from '../../storage-node/backup/damage.ts';
import {
  filesOf,
  listBackups,
  manifestVersion,
  partialPath,
  publish,
  readManifest,
} from '../../storage-node/backup/manifest.ts';
import type {
  BackupManifest,
  BackupScope,
  PodPart,
} from '../../storage-node/backup/manifest-content.ts';
import type { BackupStatus } from '../../storage-node/backup/plane-backups.ts';
import { makeDurableDirectory } from '../../universal-row/durable-names.ts';
import type { Disk } from '../../universal-row/environment.ts';
import type { TenantDefinition } from '../../contracts/tenancy/definitions.ts';
import { type BackupPlane, type BackupPlanes, type BackupShare, untilAll } from './plane-orders.ts';
import { type Catalogs, tenantDocuments, writeDocuments } from './tenant-documents.ts';

export interface BackupContext {
  disk: Disk;
  planes: BackupPlanes;
  catalogs: Catalogs;
  /** Revision of the metadata. */
  revision: () => number;
  program: string;
}

export interface BackupResult {
  id: string;
  kind: 'full' | 'incremental';
  /** The backup that an incremental one continues. */
  parent?: string;
  directory: string;
  bytes: number;
  parts: readonly BackupResultPart[];
  /** Backups in the directory that were never finished. */
  interrupted: readonly string[];
}

interface BackupResultPart {
  model: string;
  /** In a cluster: the group of the replicas. */
  group?: number;
  kind: PodPart['kind'];
  /** The part has every entry of the pod's log up to this index. */
  index: number;
  at: string;
  rows?: number;
  shards?: number;
  /** Why it is everything although less was asked for. */
  reason?: string;
}

export async function runBackup(
  context: BackupContext,
  id: string,
  request: BackupRequest,
  job: RunningJob,
): Promise<BackupResult> {
  const { disk, catalogs } = context;
  const set = request.directory;
  const tenant = request.tenant === undefined ? undefined : catalogs.tenants.find(request.tenant);
  makeDurableDirectory(disk, set);
  const { interrupted, parent } = lookAround(disk, set, request, tenant);
  const directory = partialPath(set, id);
  mkdirSync(directory, { mode: 0o700 });
  const startedAt = new Date().toISOString();
  const shares = await context.planes.shares(tenant?.number);
  const planes = shares.map(({ plane }) => plane);
  const close = context.planes.open(directory);
  try {
    job.report({ phase: 'writing' });
    await startPlanes(shares, { id, directory, tenant, parent });
    const revision = context.revision();
    const documents = tenantDocuments(catalogs, request.tenant);
    const metadata = { revision, files: await writeDocuments(disk, directory, documents) };
    const parts = await finishedParts(planes, id, job);
    const goesOn = parent !== undefined && parts.some(({ kind }) => kind !== 'all');
    const manifest: BackupManifest = {
      version: manifestVersion,
      id,
      chain: goesOn ? parent.chain : id,
      ...(goesOn ? { parent: parent.id } : {}),
      scope: scopeOf(tenant),
      program: context.program,
      startedAt,
      finishedAt: new Date().toISOString(),
      metadata,
      parts: request.incremental === true && parent === undefined ? asFirst(parts) : parts,
    };
    job.report({ phase: 'finishing' });
    job.signal.throwIfAborted();
    await publish(disk, set, manifest);
    const instead = goesOn ? undefined : parent?.chain;
    // The backup is complete now. If that cannot be recorded, the next incremental backup will be a
    // full one.
    const points = parts.map(({ model, group, point }) => ({
      model,
      ...(group && { group }),
      point,
    }));
    const kept = { action: 'keep', id, chain: manifest.chain, points, instead } as const;
    await order(context.planes.all(), kept).catch(() =>
      order(planes, { action: 'forget', id }).catch(() => {}),
    );
    return { ...resultOf(manifest), directory: `${set}/${id}`, interrupted };
  } catch (error) {
    await order(planes, { action: 'forget', id }).catch(() => {});
    rmSync(directory, { recursive: true, force: true });
    throw error;
  } finally {
    close();
  }
}

/** Backups of the set, and the one that the next backup of this scope continues. */
function lookAround(
  disk: Disk,
  set: string,
  { incremental }: BackupRequest,
  tenant: TenantDefinition | undefined,
): { interrupted: string[]; parent: BackupManifest | undefined } {
  const { ids, partial } = listBackups(disk, set);
  if (incremental !== true) return { interrupted: partial, parent: undefined };
  for (const id of ids.toReversed()) {
    const manifest = readable(disk, set, id);
    if (manifest !== undefined && manifest.scope.tenant?.number === tenant?.number) {
      return { interrupted: partial, parent: manifest };
    }
  }
  return { interrupted: partial, parent: undefined };
}

/** A damaged one is no reason to be without a new one. */
function readable(disk: Disk, set: string, id: string): BackupManifest | undefined {
  try {
    return readManifest(disk, set, id);
  } catch (error) {
    if (error instanceof DamagedBackupError) return undefined;
    throw error;
  }
}

function asFirst(parts: readonly PodPart[]): PodPart[] {
  const reason = 'there is no earlier backup of this kind in the directory';
  return parts.map((part) => ({ ...part, reason }));
}

function scopeOf(tenant: TenantDefinition | undefined): BackupScope {
  if (tenant === undefined) return {};
  return { tenant: { name: tenant.name, number: tenant.number } };
}

async function startPlanes(
  shares: readonly BackupShare[],
  start: {
    id: string;
    directory: string;
    tenant: TenantDefinition | undefined;
    parent: BackupManifest | undefined;
  },
): Promise<void> {
  const { id, directory, tenant, parent } = start;
  const after = parent && { chain: parent.chain, backup: parent.id };
  const span = tenant && {
    number: tenant.number,
    firstTable: tenant.firstTable,
    databases: tenant.databases,
  };
  const common = { action: 'start', id, directory, tenant: span, after } as const;
  const begun = shares.map(({ plane, groups }) => plane.backup({ ...common, groups }));
  await allOf(begun);
}

async function finishedParts(
  planes: readonly BackupPlane[],
  id: string,
  job: RunningJob,
): Promise<PodPart[]> {
  const statuses = await untilAll(
    planes,
    job.signal,
    (plane) => plane.backup({ action: 'status', id }),
    ({ state }) => state !== 'running',
    (seen) => job.report(progressOf(seen)),
  );
  const failed = statuses.find(({ state }) => state !== 'done');
  if (failed !== undefined) throw new Error(failed.error ?? failed.state);
  return statuses.flatMap(({ parts = [] }) => parts);
}

/** All pods' parts count equally, because their durations are unknown. */
function progressOf(statuses: readonly BackupStatus[]): { fraction: number; bytes: number } {
  const parts = statuses.flatMap(({ progress }) => progress);
  const ended = statuses.every(({ state }) => state === 'done');
  const sum = parts.reduce((all, { done, total }) => all + (total === 0 ? 1 : done / total), 0);
  return {
    fraction: ended || parts.length === 0 ? 1 : Math.min(0.99, sum / parts.length),
    bytes: statuses.reduce((all, { bytes }) => all + bytes, 0),
  };
}

/** Gives all planes an order; the first that refuses is thrown once all have answered. */
async function order(
  planes: readonly BackupPlane[],
  what: Parameters<BackupPlane['backup']>[0],
): Promise<void> {
  await allOf(planes.map((plane) => plane.backup(what)));
}

async function allOf(asked: readonly Promise<unknown>[]): Promise<void> {
  const outcomes = await Promise.allSettled(asked);
  for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason;
}

export function resultOf(
  manifest: BackupManifest,
): Omit<BackupResult, 'directory' | 'interrupted'> {
  const { id, parent, parts } = manifest;
  const bytes = filesOf(manifest).reduce((sum, file) => sum + file.bytes, 0);
  return {
    id,
    kind: parent === undefined ? 'full' : 'incremental',
    ...(parent === undefined ? {} : { parent }),
    bytes,
    parts: parts.map(({ model, group, kind, point, at, reason, tables, shards }) => ({
      model,
      ...(group === undefined ? {} : { group }),
      kind,
      index: point.index,
      at: new Date(at).toISOString(),
      ...(tables === undefined ? {} : { rows: tables.reduce((sum, { rows }) => sum + rows, 0) }),
      ...(shards === undefined ? {} : { shards: shards.filter((one) => one.included).length }),
      ...(reason === undefined ? {} : { reason }),
    })),
  };
}
