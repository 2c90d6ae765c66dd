// What can be read need not be on disk, and a sync alone does not put it there: a sync that failed has given up what it was
// to write, Linux takes that as written, shows it to readers, and later syncs succeed without it. Whoever cannot know that
// all syncs of a file have succeeded, as after a start, writes the doubtful part once more before the sync (Rebello et al.,
// "Can Applications Recover from fsync Failures?", ATC 2020).

import type { DiskFile } from './environment.ts';

const bytesAtOnce = 1024 * 1024;

/** Writes what the file has from `offset` on once more, as it is; a step a MB. */
export function* writingAgain(file: DiskFile, offset: number): Generator<undefined, void, void> {
  const size = file.size();
  if (offset >= size) return;
  const chunk = Buffer.allocUnsafe(Math.min(bytesAtOnce, size - offset));
  for (let at = offset; at < size; ) {
    const length = file.read(chunk, 0, Math.min(chunk.length, size - at), at);
    if (length === 0) throw new Error(`${file.path} became shorter while it was read`);
    file.write(chunk, 0, length, at);
    at += length;
    yield;
  }
}
