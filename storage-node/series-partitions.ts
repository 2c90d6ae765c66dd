// Time series divided into partitions on one server, each with a pod, an engine and a log of its own. The number of
// partitions is fixed when the data directory is created, and recorded in it.
//
//   influx/data influx/wal                     the first partition, which is where undivided time series are
//   influx/partitions/2/data …/wal             the second one, and so on
//   influx/divided                             how many; absent where they are undivided

import { randomUUID } from 'node:crypto';
import { mostSeriesPartitions } from '../universal-row/series/series-partition.ts';
import type { Disk } from '../universal-row/environment.ts';
import type { CatalogChange, Database, RetentionPolicy } from '../contracts/series-store.ts';
import type { MaybePromise } from '../universal-row/maybe-promise.ts';
import { isShadowDatabase } from './backup/shadow.ts';
import type { SeriesPod } from './series-pod.ts';

const recordName = 'divided';

interface CountOptions {
  disk: Disk;
  /** Of all time series: `influx` in the data directory. */
  directory: string;
  /** 0: as the directory has it, 1 in a new one. */
  wanted: number;
}

/** How many partitions the directory has, which this records if it is new. Throws if it has another number than wanted. */
export function seriesPartitionsOf({ disk, directory, wanted }: CountOptions): number {
  const undivided = disk.list(directory).includes('data') ? 1 : undefined;
  const recorded = recordedPartitions(disk, directory) ?? undivided;
  if (recorded !== undefined) {
    // An earlier process may have ended before it had synced the record's name.
    disk.syncDirectory(directory);
    if (wanted === 0 || wanted === recorded) return recorded;
    throw new Error(
      `influx.partitions is ${wanted}, and the time series of ${directory} are in ${counted(recorded)}: the number is fixed when a data directory is made`,
    );
  }
  const count = Math.max(1, wanted);
  if (count > 1) record(disk, directory, count);
  return count;
}

function counted(partitions: number): string {
  return partitions === 1 ? 'one partition' : `${partitions} partitions`;
}

/** Undefined where they are undivided. */
export function recordedPartitions(disk: Disk, directory: string): number | undefined {
  const path = `${directory}/${recordName}`;
  if (!disk.exists(path)) return undefined;
  const file = disk.open(path, 'read');
  try {
    const text = Buffer.alloc(file.size());
    const length = file.read(text, 0, text.length, 0);
    const count = Number(/^(\d{1,4})\n$/.exec(text.toString('latin1', 0, length))?.[1]);
    if (count >= 2 && count <= mostSeriesPartitions) return count;
    throw new Error(`${path} is damaged: it does not say how many partitions there are`);
  } finally {
    file.close();
  }
}

/** Whole or not at all. */
function record(disk: Disk, directory: string, count: number): void {
  const path = `${directory}/${recordName}.${randomUUID()}`;
  const bytes = Buffer.from(`${count}\n`);
  const file = disk.open(path, 'create');
  try {
    file.write(bytes, 0, bytes.length, 0);
    file.syncNow();
  } finally {
    file.close();
  }
  disk.rename(path, `${directory}/${recordName}`);
  disk.syncDirectory(directory);
}

/** Directory of a partition, by its number from 0 on. */
export function seriesPartitionDirectory(directory: string, partition: number): string {
  return partition === 0 ? directory : `${directory}/partitions/${partition + 1}`;
}

/** Limits are those of all partitions together. */
export function shareLimits(pods: readonly SeriesPod[]): void {
  for (const { parts } of pods) {
    const { engine } = parts;
    engine.siblings = pods.map((pod) => pod.parts.engine).filter((other) => other !== engine);
  }
}

/** A partition, as its databases and policies are made equal to another's. */
export interface AlignedPartition {
  /** As they are kept, without the properties in force. */
  keptDatabases(): MaybePromise<readonly Database[]>;
  administer(change: CatalogChange): MaybePromise<void>;
  endTick(): number;
}

/**
 * Gives all partitions the databases and policies of the first one. They differ after a crash or a failure in the middle
 * of a change; databases that the first does not have are on their way out. `keeps`: the first may have lost some, which
 * it gets back.
 */
export async function alignCatalogs(
  partitions: readonly AlignedPartition[],
  keeps = false,
): Promise<void> {
  const [first, ...others] = partitions;
  for (const other of keeps ? others : []) {
    const known = new Set((await databasesOf(first!)).map(({ name }) => name));
    const lost = (await databasesOf(other)).filter(({ name }) => !known.has(name));
    for (const change of differences(lost, [])) await make(first!, change);
  }
  for (const other of others) {
    const changes = differences(await databasesOf(first!), await databasesOf(other));
    for (const change of changes) await make(other, change);
  }
}

/** In a tick of its own. */
async function make(partition: AlignedPartition, change: CatalogChange): Promise<void> {
  const made = partition.administer(change);
  partition.endTick();
  await made;
}

/** Databases that a restore fills are its own. */
async function databasesOf(partition: AlignedPartition): Promise<readonly Database[]> {
  return (await partition.keptDatabases()).filter(({ name }) => !isShadowDatabase(name));
}

/** Changes that make `found` databases as the `wanted`. */
function* differences(
  wanted: readonly Database[],
  found: readonly Database[],
): Generator<CatalogChange, void, void> {
  const names = new Set(wanted.map(({ name }) => name));
  for (const { name } of found)
    if (!names.has(name)) yield { kind: 'dropDatabase', database: name };
  const known = new Map(found.map((database) => [database.name, database]));
  for (const database of wanted) yield* policyDifferences(database, known.get(database.name));
}

function* policyDifferences(
  wanted: Database,
  known: Database | undefined,
): Generator<CatalogChange, void, void> {
  const { name: database, defaultRetentionPolicy, retentionPolicies } = wanted;
  let found = known?.retentionPolicies ?? [];
  if (known === undefined) {
    const [made] = retentionPolicies;
    // With some policy: of its policies it may have lost all.
    const policy = made && { name: made.name, ...termsOf(made) };
    yield { kind: 'createDatabase', database, ...(policy && { policy }) };
    found = made === undefined ? [automatic] : [made];
  }
  for (const policy of retentionPolicies) {
    const before = found.find(({ name }) => name === policy.name);
    const isDefault = policy.name === defaultRetentionPolicy;
    const wasDefault =
      known === undefined ? before !== undefined : known.defaultRetentionPolicy === policy.name;
    const isSame = before !== undefined && sameTerms(before, policy);
    if (isSame && (!isDefault || wasDefault)) continue;
    const kind = before === undefined ? 'createRetentionPolicy' : 'alterRetentionPolicy';
    const terms = { ...termsOf(policy), ...(isDefault && { makeDefault: true }) };
    yield { kind, database, name: policy.name, policy: terms };
  }
  for (const { name } of found) {
    if (retentionPolicies.some((policy) => policy.name === name)) continue;
    yield { kind: 'dropRetentionPolicy', database, name };
  }
}

/** The policy of a database that is made without one; only its name is looked at. */
const automatic: RetentionPolicy = {
  name: 'autogen',
  duration: 0n,
  shardGroupDuration: 0n,
  replicaN: 1,
};

function termsOf({ duration, shardGroupDuration, replicaN }: RetentionPolicy) {
  return { duration, shardGroupDuration, replicaN };
}

function sameTerms(a: RetentionPolicy, b: RetentionPolicy): boolean {
  return (
    a.duration === b.duration &&
    a.shardGroupDuration === b.shardGroupDuration &&
    a.replicaN === b.replicaN
  );
}
