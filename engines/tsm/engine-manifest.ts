// State of the engine as a whole: the file `manifest` in its directory, little-endian:
//
//   "PolyrowT" | version u32 | length u32 | crc32 u32 of the text | text, JSON
//
// It is written under another name, synced and renamed, so a file of this name is complete unless
// the disk damaged it. Shards that it does not list are leftovers.

import { crc32 } from 'node:zlib';
import { syncDirectoryAsync } from '../../universal-row/durable-names.ts';
import type { Disk } from '../../universal-row/environment.ts';
import type { CatalogState } from './catalog.ts';
import { CorruptFileError } from './parts.ts';

export interface EngineState {
  /** Log entries up to this one are in here and in the shards listed. */
  appliedIndex: number;
  /** Counts the imports: shards of another life are in other directories. */
  era: number;
  catalog: CatalogState;
}

const magic = 'PolyrowT';
const version = 1;
const headerBytes = 20;
const fileName = 'manifest';
const newFileName = 'manifest.new';

/** Undefined when the directory has none. Throws `CorruptFileError`. */
export function readEngineManifest(disk: Disk, directory: string): EngineState | undefined {
  const path = `${directory}/${fileName}`;
  if (!disk.exists(path)) return undefined;
  const file = disk.open(path, 'read');
  try {
    const damaged = (what: string): never => {
      throw new CorruptFileError(`${path} is damaged: ${what}`);
    };
    const size = file.size();
    const buf = Buffer.alloc(size);
    if (size < headerBytes || file.read(buf, 0, size, 0) < size) damaged('cut short');
    if (buf.toString('latin1', 0, 8) !== magic) damaged('it is something else');
    if (buf.readUInt32LE(8) !== version) damaged(`version ${buf.readUInt32LE(8)} is not known`);
    const text = buf.subarray(headerBytes);
    if (buf.readUInt32LE(12) !== text.length) damaged('wrong length');
    if (buf.readUInt32LE(16) !== crc32(text)) damaged('wrong checksum');
    return JSON.parse(text.toString('utf8')) as EngineState;
  } finally {
    file.close();
  }
}

export async function writeEngineManifest(
  disk: Disk,
  directory: string,
  state: EngineState,
): Promise<void> {
  const text = Buffer.from(JSON.stringify(state));
  const buf = Buffer.alloc(headerBytes + text.length);
  buf.write(magic, 'latin1');
  buf.writeUInt32LE(version, 8);
  buf.writeUInt32LE(text.length, 12);
  buf.writeUInt32LE(crc32(text), 16);
  text.copy(buf, headerBytes);
  const path = `${directory}/${newFileName}`;
  const file = disk.open(path, 'create');
  try {
    await file.writeAsync(buf, 0, buf.length, 0);
    await file.sync();
  } finally {
    file.close();
  }
  // The shards that it lists are there before it is.
  await syncDirectoryAsync(disk, directory);
  disk.rename(path, `${directory}/${fileName}`);
  await syncDirectoryAsync(disk, directory);
}
