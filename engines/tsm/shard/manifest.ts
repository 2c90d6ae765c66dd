// The valid files of a shard, and the deletions from them. One file, rewritten for each change
// under another name, synced, and renamed:
//
//   "PolyrowS" | version u32 | length u32 | crc32 u32 | JSON of that length        little-endian
//
// The checksum covers the JSON. A manifest that does not read back is damage, and is reported.

import { crc32 } from 'node:zlib';
import type { Disk } from '../../../universal-row/environment.ts';
import { CorruptFileError } from '../parts.ts';
import { type SlicedWork, syncing, syncingDirectory } from '../sliced-work.ts';
import { manifestName, newManifestName, pointFiles } from './shard-files.ts';
import type { StoredPlace } from './stored-points.ts';
import type { Tombstone } from './tombstones.ts';

const magic = 'PolyrowS';
const version = 1;
const headerBytes = 20;

interface Manifest {
  readonly startSeconds: number;
  /** As the shard has it. */
  readonly persistedIndex: number;
  /** Greater than the number of every file and head so far. */
  readonly nextNumber: number;
  /** By age. */
  readonly files: readonly StoredPlace[];
  readonly lastTombstone: number;
  readonly tombstones: readonly Tombstone[];
}

type StoredTombstone = Omit<Tombstone, 'series'> & { readonly series: readonly number[] };

/** Durable when it returns. When it throws, either manifest may be the one found later. */
export function* writingManifest(disk: Disk, directory: string, manifest: Manifest): SlicedWork {
  const tombstones = manifest.tombstones.map((t) => ({ ...t, series: [...t.series] }));
  const body = Buffer.from(JSON.stringify({ ...manifest, tombstones }));
  const bytes = Buffer.alloc(headerBytes + body.length);
  bytes.write(magic, 'latin1');
  bytes.writeUInt32LE(version, 8);
  bytes.writeUInt32LE(body.length, 12);
  bytes.writeUInt32LE(crc32(body), 16);
  body.copy(bytes, headerBytes);
  const path = `${directory}/${newManifestName}`;
  const file = disk.open(path, 'create');
  try {
    file.write(bytes, 0, bytes.length, 0);
    yield syncing(file);
  } finally {
    file.close();
  }
  disk.rename(path, `${directory}/${manifestName}`);
  yield syncingDirectory(disk, directory);
}

/** Undefined in a directory where no shard has written yet. Throws `CorruptFileError`. */
export function readManifest(disk: Disk, directory: string): Manifest | undefined {
  const path = `${directory}/${manifestName}`;
  if (!disk.exists(path)) {
    if (pointFiles(disk, directory).length > 0) {
      throw new CorruptFileError(`${path} is missing beside files of points`);
    }
    return undefined;
  }
  const file = disk.open(path, 'read');
  let bytes: Buffer;
  try {
    bytes = Buffer.alloc(file.size());
    bytes = bytes.subarray(0, file.read(bytes, 0, bytes.length, 0));
  } finally {
    file.close();
  }
  return parse(bytes, path);
}

function parse(bytes: Buffer, path: string): Manifest {
  const damaged = (what: string): never => {
    throw new CorruptFileError(`${path} is damaged: ${what}`);
  };
  if (bytes.length < headerBytes) damaged('cut short');
  if (bytes.toString('latin1', 0, 8) !== magic) damaged('not a manifest');
  if (bytes.readUInt32LE(8) !== version) damaged(`unknown version ${bytes.readUInt32LE(8)}`);
  const body = bytes.subarray(headerBytes);
  if (bytes.readUInt32LE(12) !== body.length) damaged('wrong length');
  if (bytes.readUInt32LE(16) !== crc32(body)) damaged('wrong checksum');
  const stored = JSON.parse(body.toString()) as Omit<Manifest, 'tombstones'> & {
    readonly tombstones: readonly StoredTombstone[];
  };
  const tombstones = stored.tombstones.map((t) => ({ ...t, series: Uint32Array.from(t.series) }));
  return { ...stored, tombstones };
}
