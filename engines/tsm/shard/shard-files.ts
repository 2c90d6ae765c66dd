// Contents of a shard's directory, besides the files of the index:
//
//   manifest        which files count (manifest.ts); `manifest.new` while it is written
//   00000012.tsm    points; numbers are used once

import type { Disk } from '../../../universal-row/environment.ts';

const filePattern = /^\d{8,}\.tsm$/;
export const manifestName = 'manifest';
export const newManifestName = 'manifest.new';

export function fileName(number: number): string {
  return `${String(number).padStart(8, '0')}.tsm`;
}

/** Files of points that are there, by name, whether they count or not. */
export function pointFiles(disk: Disk, directory: string): string[] {
  return disk.list(directory).filter((name) => filePattern.test(name));
}

/** Removes the leftovers of an interrupted process: all files that the manifest does not name. */
export function removeOrphans(disk: Disk, directory: string, kept: ReadonlySet<string>): void {
  const orphans = pointFiles(disk, directory).filter((name) => !kept.has(name));
  if (disk.exists(`${directory}/${newManifestName}`)) orphans.push(newManifestName);
  if (orphans.length === 0) return;
  // That process may have ended before it had synced the manifest's name: the manifest before it names other files.
  disk.syncDirectory(directory);
  for (const name of orphans) removeIfThere(disk, `${directory}/${name}`);
}

/**
 * Removes all files of a shard that is not open, whole or half-written. Interrupted, it is to be called
 * again: half a shard does not open.
 */
export function removeShardFiles(disk: Disk, directory: string): void {
  const names = disk.list(directory);
  for (const name of names) removeIfThere(disk, `${directory}/${name}`);
  if (names.length > 0) disk.syncDirectory(directory);
}

/** As `removeShardFiles`, off the event loop. */
export async function removeShardFilesAsync(disk: Disk, directory: string): Promise<void> {
  const names = disk.list(directory);
  for (const name of names) await disk.removeAsync(`${directory}/${name}`).catch(unlessGone);
  if (names.length > 0) disk.syncDirectory(directory);
}

function removeIfThere(disk: Disk, path: string): void {
  try {
    disk.remove(path);
  } catch (error) {
    unlessGone(error);
  }
}

/** A file that nothing needs may be on its way out already, off the event loop. */
function unlessGone(error: unknown): void {
  if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
}
