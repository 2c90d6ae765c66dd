// Which files to make one.

import type { StoredFile } from './stored-points.ts';

/** So many neighbours of a level make one of the next. */
const fewestMerged = 4;

type Sized = Pick<StoredFile, 'level' | 'file'>;

/** The first neighbours of one level that are worth merging. Files are in the order of their ages. */
export function levelGroup<F extends Sized>(files: readonly F[], maxBytes: number): F[] {
  for (let start = 0; start < files.length; ) {
    const group = neighbours(files, start, maxBytes, (file) => file.level === files[start]!.level);
    if (group.length >= fewestMerged) return group;
    start += group.length;
  }
  return [];
}

/** The first files to merge, or to write anew, on the way to as few as possible. */
export function fullGroup<F extends Sized>(
  files: readonly F[],
  maxBytes: number,
  needsRewriting: (file: F) => boolean,
): F[] {
  for (let start = 0; start < files.length; ) {
    const group = neighbours(files, start, maxBytes, () => true);
    if (group.length > 1 || needsRewriting(group[0]!)) return group;
    start += group.length;
  }
  return [];
}

/** At least the one at `start`. */
function neighbours<F extends Sized>(
  files: readonly F[],
  start: number,
  maxBytes: number,
  belongs: (file: F) => boolean,
): F[] {
  const group: F[] = [];
  let bytes = 0;
  for (let i = start; i < files.length; i++) {
    const file = files[i]!;
    bytes += file.file.bytes;
    if (group.length > 0 && (!belongs(file) || bytes > maxBytes)) break;
    group.push(file);
  }
  return group;
}

export function bytesOf(files: readonly Sized[]): number {
  return files.reduce((sum, { file }) => sum + file.bytes, 0);
}
