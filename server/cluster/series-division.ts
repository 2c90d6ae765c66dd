// Into how many partitions the time series of each tenant of a cluster are divided: fixed when the cluster is formed, and
// kept in its metadata.
//
//   series/division   { partitions }; absent where they are undivided

import { join } from 'node:path';
import type { DocumentStore } from '../../control/metadata/document-store.ts';
import { realDisk } from '../../storage-node/disk/real-disk.ts';
import { recordedPartitions } from '../../storage-node/series-partitions.ts';

const place = { collection: 'series', id: 'division' };

/** One where they are undivided. */
export async function seriesDivision(store: Pick<DocumentStore, 'get'>): Promise<number> {
  const found = await store.get(place.collection, place.id);
  return (found?.body as { partitions: number } | undefined)?.partitions ?? 1;
}

/**
 * Number of partitions of a cluster formed from a data directory: as the single server has divided its time series,
 * else `wanted`, or 1 when that is 0. Throws when the directory has a number other than a `wanted` that is not 0.
 */
export function divisionOf(dataDirectory: string, wanted: number): number {
  const directory = join(dataDirectory, 'influx');
  const isThere = realDisk.exists(directory) && realDisk.list(directory).includes('data');
  const found = isThere ? (recordedPartitions(realDisk, directory) ?? 1) : undefined;
  if (found === undefined) return Math.max(1, wanted);
  if (wanted !== 0 && wanted !== found) throw new Error(otherDivision(wanted, directory, found));
  return found;
}

/** Changes nothing where it is recorded already. */
export async function recordDivision(store: DocumentStore, partitions: number): Promise<void> {
  if (partitions === 1 || (await store.get(place.collection, place.id)) !== undefined) return;
  await store.write([{ ...place, body: { partitions }, expected: 0 }]);
}

/** Why a node with that setting cannot be in a cluster of that division; undefined where it can. */
export function divisionProblem(wanted: number, partitions: number): string | undefined {
  if (wanted === 0 || wanted === partitions) return undefined;
  return otherDivision(wanted, 'the cluster', partitions);
}

function otherDivision(wanted: number, whose: string, found: number): string {
  const counted = found === 1 ? 'one partition' : `${found} partitions`;
  return `influx.partitions is ${wanted}, and the time series of ${whose} are in ${counted}: the number is fixed when a data directory or a cluster is made`;
}
