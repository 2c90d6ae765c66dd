// The data directory holds password hashes, token digests and all data: no other user of the
// machine may read it. New files and directories get these permissions from the umask; this module
// handles existing ones, made by an earlier release or by a person.

import { chmodSync, lstatSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { ExitError } from './exit-error.ts';

/** New files are readable by their owner only. */
export function makeFilesPrivate(): void {
  process.umask(0o077);
}

const bitsOfOthers = 0o077;

/** Names of the server's files in its data directory. */
const ownNames =
  /^(lock|version|unclean|admin-endpoint|admin-token|admin-certificate|metadata|metadata-copy.*|cluster|cluster-secret|audit|usage|redis|influx|lost\+found|.*\.tmp)$/;

/**
 * Removes other users' access to a data directory. Returns the changes and failures, in sentences
 * for the log. Throws `ExitError` where others could read or replace secrets and it cannot be
 * mended. Directories with other contents (a home, /tmp) keep their own mode.
 */
export function closeToOthers(directory: string): string[] {
  // Windows has no such modes.
  if (process.getuid === undefined) return [];
  const remarks: string[] = [];
  const names = readdirSync(directory);
  const mended = names
    .filter((name) => ownNames.test(name) && name !== 'lost+found')
    .map((name) => mendTree(join(directory, name)))
    .reduce((sum, count) => sum + count, 0);
  if (mended > 0) {
    remarks.push(
      `other users could open ${mended} files and directories in the data directory ${directory}: they have the modes 0600 and 0700 now`,
    );
  }
  const mode = statSync(directory).mode & 0o7777;
  if ((mode & bitsOfOthers) === 0) return remarks;
  const shown = mode.toString(8).padStart(4, '0');
  const isShared = !names.every((name) => ownNames.test(name));
  if (!isShared && mend(directory, 0o700)) {
    remarks.push(`the mode of the data directory ${directory} was ${shown}: it is 0700 now`);
    return remarks;
  }
  const isSticky = (mode & 0o1000) !== 0;
  if ((mode & 0o002) !== 0 && !isSticky) {
    throw new ExitError(
      `everyone may write to the data directory ${directory} (mode ${shown}), and so replace its files: chmod 0700 it, or choose another --data-dir`,
    );
  }
  const why = isShared ? 'holds other files as well' : 'belongs to another user';
  remarks.push(
    `the data directory ${directory} has the mode ${shown}, and keeps it, as it ${why}: others may list it, but not open what the server made`,
  );
  return remarks;
}

/**
 * Closes it and all below it; returns the number of open entries. The contents of a directory that
 * is closed already are out of reach, and are not visited; so a directory is closed last, and an
 * interrupted mending is repeated. Links are not followed.
 */
function mendTree(path: string): number {
  const stats = lstatSync(path);
  const isDirectory = stats.isDirectory();
  const isOpen = (stats.mode & bitsOfOthers) !== 0;
  if (!isOpen || (!isDirectory && !stats.isFile())) return 0;
  let mended = 0;
  if (isDirectory) for (const name of readdirSync(path)) mended += mendTree(join(path, name));
  if (!mend(path, isDirectory ? 0o700 : 0o600)) {
    throw new ExitError(
      `other users may open ${path}, which belongs to another user: chown it to the user of the server, or chmod it`,
    );
  }
  return mended + 1;
}

/** False when it is not ours to change. */
function mend(path: string, mode: number): boolean {
  try {
    chmodSync(path, mode);
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EPERM' || code === 'EROFS') return false;
    throw error;
  }
}
