// A file can hold bytes that are read back but are not on the disk. When a sync fails, Linux drops the bytes that it could not
// write from its list of unwritten pages: programs go on reading them, and later syncs succeed without writing them. A process
// that has just started does not know whether all earlier syncs of a file succeeded. It writes the doubtful part once more
// before it syncs (Rebello et al., "Can Applications Recover from fsync Failures?", ATC 2020).

import type { DiskFile } from './environment.ts';

const bytesAtOnce = 1024 * 1024;

/** What was given up may leave memory, too: the file no longer has what was read of it before. */
export function lostBytes({ path }: DiskFile, offset: number, reason: string): Error {
  return new Error(
    `${path} lost bytes at offset ${offset} while it was read (${reason}), as an earlier sync had failed. ` +
      'They were never on disk; the next start does without them',
  );
}

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
