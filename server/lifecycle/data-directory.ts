// The data directory: its owner, its format, and whether the last stop was clean.
//
//   lock       pid and start time of the server that has it open
//   version    number of the format of everything below
//   unclean    there from a start to a clean stop
//   metadata/  tenants and tables
//   cluster/   of a node of a cluster: which one it is, its copy of the metadata
//   audit/     audit trail of the admin API
//   usage/     units spent by tenants
//   admin-token     secret of an operator, made at the first start
//   admin-endpoint  URL of the running server's admin API
//   admin-certificate  its certificate, if it uses HTTPS

import {
  closeSync,
  existsSync,
  fsyncSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { realDisk } from '../../storage-node/disk/real-disk.ts';
import { makeDurableDirectory } from '../../universal-row/durable-names.ts';
import { ExitError } from './exit-error.ts';
import { closeToOthers } from './private-files.ts';

/** Incremented when older programs could no longer read the files. */
export const formatVersion = 1;

interface LockOwner {
  pid: number;
  /** Tells a process from a later one with the same pid; '' where the system does not say. */
  started: string;
}

export class DataDirectory {
  readonly path: string;
  readonly #owner: LockOwner;
  readonly #wasUnclean: boolean;
  /** Permissions of other users that were removed: sentences for the log. */
  readonly remarks: readonly string[];

  private constructor(path: string, owner: LockOwner, remarks: readonly string[]) {
    this.path = path;
    this.remarks = remarks;
    this.#owner = owner;
    this.#wasUnclean = existsSync(this.file('unclean'));
  }

  /** Makes the directory if need be and locks it. Throws `ExitError` when it cannot be ours. */
  static open(path: string): DataDirectory {
    try {
      makeDurableDirectory(realDisk, path);
      // The names in it may be those of a process that ended before it had synced them.
      realDisk.syncDirectory(path);
    } catch (error) {
      throw new ExitError(`cannot make the data directory: ${messageOf(error)} (--data-dir)`);
    }
    checkVersion(path);
    const remarks = closeToOthers(path);
    const owner = lock(path);
    const directory = new DataDirectory(path, owner, remarks);
    if (!existsSync(directory.file('version'))) {
      directory.write('version', `${formatVersion}\n`);
    }
    return directory;
  }

  file(name: string): string {
    return join(this.path, name);
  }

  /** The last server on it did not stop cleanly. */
  get wasUnclean(): boolean {
    return this.#wasUnclean;
  }

  markUnclean(): void {
    this.write('unclean', `${this.#owner.pid}\n`);
  }

  markClean(): void {
    rmSync(this.file('unclean'), { force: true });
    realDisk.syncDirectory(this.path);
  }

  /** Writes a small file so that after a crash it is there whole or not at all. */
  write(name: string, text: string): void {
    writeDurably(this.path, name, text);
  }

  remove(name: string): void {
    rmSync(this.file(name), { force: true });
  }

  unlock(): void {
    const holder = readOwner(this.file('lock'));
    if (holder?.pid === this.#owner.pid) this.remove('lock');
  }
}

/** The process that has a data directory open, if it is alive. */
export function lockHolder(path: string): number | undefined {
  const owner = readOwner(join(path, 'lock'));
  return owner !== undefined && isAlive(owner) ? owner.pid : undefined;
}

function checkVersion(path: string): void {
  const text = readIfThere(join(path, 'version'))?.trim();
  if (text === undefined) return;
  const version = /^\d+$/.test(text) ? Number(text) : NaN;
  if (version <= formatVersion) return;
  if (Number.isNaN(version)) {
    throw new ExitError(`${join(path, 'version')} is damaged: it should hold a number`);
  }
  throw new ExitError(
    `the data directory ${path} was written by a newer Polyrow (format ${version}; this one reads up to ${formatVersion}): start that version, or choose another --data-dir`,
  );
}

function lock(path: string): LockOwner {
  const file = join(path, 'lock');
  const owner: LockOwner = { pid: process.pid, started: startTime(process.pid) };
  const holder = readOwner(file);
  if (holder !== undefined && holder.pid !== process.pid && isAlive(holder)) {
    throw new ExitError(
      `the data directory ${path} is in use by process ${holder.pid}: stop it, or choose another --data-dir`,
    );
  }
  // Two servers that take over the same stale lock at once are distinguished by the lock the operating
  // system keeps on the metadata store.
  try {
    writeDurably(path, 'lock', `${JSON.stringify(owner)}\n`);
  } catch (error) {
    throw new ExitError(`cannot write to the data directory: ${messageOf(error)} (--data-dir)`);
  }
  return owner;
}

function readOwner(file: string): LockOwner | undefined {
  const text = readIfThere(file);
  if (text === undefined) return undefined;
  try {
    const owner = JSON.parse(text) as LockOwner;
    return Number.isSafeInteger(owner.pid) && owner.pid > 0 ? owner : undefined;
  } catch {
    return undefined;
  }
}

function isAlive({ pid, started }: LockOwner): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    // Not ours to signal, but there.
    if ((error as NodeJS.ErrnoException).code !== 'EPERM') return false;
  }
  const startedNow = startTime(pid);
  return started === '' || startedNow === '' || started === startedNow;
}

/** Linux tells when a process began, in clock ticks since the boot. */
function startTime(pid: number): string {
  const status = readIfThere(`/proc/${pid}/stat`);
  // The name in parentheses may hold spaces; the start time is the 20th field after it.
  return status?.slice(status.lastIndexOf(')') + 2).split(' ')[19] ?? '';
}

function readIfThere(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code === 'ENOENT' || code === 'ESRCH') return undefined;
    throw error;
  }
}

export function writeDurably(directory: string, name: string, text: string): void {
  const temporary = join(directory, `${name}.${process.pid}.tmp`);
  const fd = openSync(temporary, 'w', 0o600);
  try {
    writeSync(fd, text);
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
  renameSync(temporary, join(directory, name));
  realDisk.syncDirectory(directory);
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
