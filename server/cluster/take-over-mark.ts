// Mark in a data directory whose rows and points of a single server are not yet taken over by the cluster (take-over.ts).

import { existsSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { realDisk } from '../../storage-node/disk/real-disk.ts';
import { writeDurably } from '../lifecycle/data-directory.ts';
import { clusterDirectory } from './node-identity.ts';

const markerName = 'take-over';

function markerPath(directory: string): string {
  return join(clusterDirectory(directory), markerName);
}

/** Path of the backup of the single server's data. */
export function carriedPath(directory: string): string {
  return join(clusterDirectory(directory), 'carried');
}

/** Rows and points of a single server. */
const oldNames = [
  ...['redis/memory', 'redis/kv'],
  ...['influx/wal', 'influx/data', 'influx/backup-pins', 'influx/divided', 'influx/partitions'],
];

function oldPaths(directory: string): string[] {
  return oldNames.map((name) => join(directory, name)).filter((path) => existsSync(path));
}

/** A single server has used it. */
export function hasDataOfServer(directory: string): boolean {
  return oldPaths(directory).length > 0;
}

/** Before a cluster is formed of the directory. */
export function noteTakeOver(directory: string): void {
  if (!hasDataOfServer(directory)) return;
  mkdirSync(clusterDirectory(directory), { recursive: true, mode: 0o700 });
  writeDurably(clusterDirectory(directory), markerName, '\n');
}

export function mustTakeOver(directory: string): boolean {
  return existsSync(markerPath(directory));
}

/** Removes the mark once the take-over is done. */
export function forgetTakeOver(directory: string): void {
  realDisk.remove(markerPath(directory));
  realDisk.syncDirectory(clusterDirectory(directory));
}

/** Deletes the leftovers of a completed take-over. */
export function cleanAfterTakeOver(directory: string): void {
  if (mustTakeOver(directory) || !existsSync(carriedPath(directory))) return;
  for (const path of oldPaths(directory)) rmSync(path, { recursive: true, force: true });
  rmSync(carriedPath(directory), { recursive: true, force: true });
}
