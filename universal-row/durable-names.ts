// Names in directories that survive a power cut. A process that ends between a change of a name and the sync of its directory leaves
// a name that the next process sees and that a power cut still takes: what is found at a start is synced before anything relies on it.

import { dirname } from 'node:path';
import type { Disk } from './environment.ts';

/** Makes a directory, and those above it that are missing; returns once its name is durable. */
export function makeDurableDirectory(disk: Disk, path: string): void {
  const above = dirname(path);
  if (disk.exists(path)) {
    syncIfOurs(disk, above);
    return;
  }
  if (above !== path) makeDurableDirectory(disk, above);
  disk.makeDirectory(path);
  syncIfOurs(disk, above);
}

/** As `Disk.syncDirectory`, off the event loop. */
export async function syncDirectoryAsync(disk: Disk, path: string): Promise<void> {
  const directory = disk.open(path, 'read');
  try {
    await directory.sync();
  } finally {
    directory.close();
  }
}

/** A directory above our own may be one that we may not read, or of a file system that syncs no directories. */
function syncIfOurs(disk: Disk, path: string): void {
  try {
    disk.syncDirectory(path);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (!['EACCES', 'EPERM', 'EINVAL', 'EROFS'].includes(code ?? '')) throw error;
  }
}
