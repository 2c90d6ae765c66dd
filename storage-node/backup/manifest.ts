// Files of a backup, and layout of a set of backups:
//
//   <set>/                                  the directory given by --to; any number of chains
//     20261121T170000.123Z-9f3c1a20/        one backup, named by its id
//       manifest.json                       written last: without it there is no backup
//       metadata-000001.chunk  redis-memory-000001.chunk  …
//     20261121T180000.456Z-11d0c37e.partial/   under way, or interrupted: not read
//
// The manifest is JSON and, on the line after it, its own SHA-256. The directory loses `.partial`
// when everything in it has been synced, so a backup is either complete or absent.

import { createHash } from 'node:crypto';
import type { Disk } from '../../universal-row/environment.ts';
import type { ChunkFile } from './chunk-format.ts';
import type { BackupManifest } from './manifest-content.ts';
import { DamagedBackupError } from './damage.ts';
import { checkManifest } from './manifest-check.ts';
import { ShapeError } from './shape.ts';

export const manifestVersion = 1;
export const manifestName = 'manifest.json';
const partialSuffix = '.partial';
const idPattern = /^\d{8}T\d{6}\.\d{3}Z-[0-9a-f]{8}$/;
const maxManifestBytes = 64 * 1024 * 1024;

export function newBackupId(now: number, random: string): string {
  return `${new Date(now).toISOString().replace(/[-:]/g, '')}-${random}`;
}

function isBackupId(name: string): boolean {
  return idPattern.test(name);
}

export function partialPath(set: string, id: string): string {
  return `${set}/${id}${partialSuffix}`;
}

export function filesOf(manifest: BackupManifest): ChunkFile[] {
  return [...manifest.metadata.files, ...manifest.parts.flatMap(({ files }) => files)];
}

/** Ids of the whole backups of a set, oldest first, and of those that were never finished. */
export function listBackups(disk: Disk, set: string): { ids: string[]; partial: string[] } {
  const names = disk.list(set);
  const partial = names
    .filter((name) => name.endsWith(partialSuffix))
    .map((name) => name.slice(0, -partialSuffix.length));
  return { ids: names.filter(isBackupId), partial: partial.filter(isBackupId) };
}

/** Completes the backup: all its other files are synced already. */
export async function publish(disk: Disk, set: string, manifest: BackupManifest): Promise<void> {
  const directory = partialPath(set, manifest.id);
  const text = `${JSON.stringify(manifest)}\n`;
  const bytes = Buffer.from(`${text}${digest(text)}\n`);
  const file = disk.open(`${directory}/${manifestName}`, 'create');
  try {
    await file.writeAsync(bytes, 0, bytes.length, 0);
    await file.sync();
  } finally {
    file.close();
  }
  disk.syncDirectory(directory);
  disk.rename(directory, `${set}/${manifest.id}`);
  disk.syncDirectory(set);
}

/** Throws `DamagedBackupError` for a manifest that is not as it was written. */
export function readManifest(disk: Disk, set: string, id: string): BackupManifest {
  const path = `${set}/${id}/${manifestName}`;
  const damaged = (what: string): never => {
    throw new DamagedBackupError(path, undefined, what);
  };
  if (!disk.exists(path)) damaged('it is missing');
  const text = readText(disk, path);
  const end = text.indexOf('\n') + 1;
  if (end === 0 || text.slice(end) !== `${digest(text.slice(0, end))}\n`) {
    damaged('the checksum in its last line is not that of the rest');
  }
  const manifest = parsed(text.slice(0, end), damaged);
  if (manifest.id !== id) damaged(`it is the manifest of ${manifest.id}`);
  return manifest;
}

function parsed(text: string, damaged: (what: string) => never): BackupManifest {
  try {
    const manifest = JSON.parse(text) as { version?: unknown } | null;
    const version = manifest?.version;
    if (version !== manifestVersion) {
      const shown = Number.isSafeInteger(version) ? `version ${String(version)}` : 'its version';
      damaged(`${shown} is not known to this program, which reads ${manifestVersion}`);
    }
    checkManifest(manifest);
    return manifest;
  } catch (error) {
    if (error instanceof SyntaxError) return damaged('it is not JSON');
    if (error instanceof ShapeError) return damaged(error.message);
    throw error;
  }
}

function readText(disk: Disk, path: string): string {
  const file = disk.open(path, 'read');
  try {
    const size = file.size();
    if (size > maxManifestBytes) throw new DamagedBackupError(path, undefined, 'it is too large');
    const bytes = Buffer.alloc(size);
    file.read(bytes, 0, size, 0);
    return bytes.toString('utf8');
  } finally {
    file.close();
  }
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
