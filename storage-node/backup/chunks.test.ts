import { randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { FaultyDisk } from '../disk/faulty-disk.ts';
import { realDisk } from '../disk/real-disk.ts';
import { seededRng } from '../replicator/group/log-fixture.ts';
import { type ChunkFile, frameHeader } from './chunk-format.ts';
import { checkFile, readChunks } from './chunk-reader.ts';
import { ChunkWriter } from './chunk-writer.ts';
import { DamagedBackupError } from './damage.ts';

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'polyrow-chunks-'));
});
afterEach(() => rmSync(directory, { recursive: true }));

const frames = [
  Buffer.from('a'),
  Buffer.alloc(100_000, 'text '),
  randomBytes(70_000),
  Buffer.alloc(3),
];

async function written(): Promise<ChunkFile[]> {
  const writer = new ChunkWriter(realDisk, directory, 'part');
  for (const frame of frames) await writer.add(frame);
  return await writer.finish();
}

async function read(files: readonly ChunkFile[]): Promise<Buffer[]> {
  const found: Buffer[] = [];
  for await (const { bytes } of readChunks(realDisk, directory, files)) found.push(bytes);
  return found;
}

test('frames come back, in order and one by one', async () => {
  const files = await written();
  expect(files).toMatchObject([{ name: 'part-000001.chunk', frames: 4, rawBytes: 170_004 }]);
  expect(await read(files)).toEqual(frames);
  await checkFile(realDisk, directory, files[0]!);
});

test('what is large goes on in further files', async () => {
  const writer = new ChunkWriter(realDisk, directory, 'part', 64 * 1024);
  const large = randomBytes(33 * 1024);
  for (let i = 0; i < 4; i++) await writer.add(large);
  const files = await writer.finish();
  expect(files.map(({ name, frames: count }) => [name, count])).toEqual([
    ['part-000001.chunk', 2],
    ['part-000002.chunk', 2],
  ]);
  for (const file of files) await checkFile(realDisk, directory, file);
});

test('nothing written is no file', async () => {
  const writer = new ChunkWriter(realDisk, directory, 'part');
  await writer.add(Buffer.alloc(0));
  expect(await writer.finish()).toEqual([]);
});

test('every flipped byte is found, by a check and by a reader, with its place', async () => {
  const [file] = await written();
  const path = join(directory, file!.name);
  const whole = readFileSync(path);
  const places = new Set([
    ...Array.from({ length: 60 }, (_, i) => i),
    ...Array.from({ length: 60 }, (_, i) => whole.length - 1 - i),
    ...Array.from({ length: 80 }, (_, i) => Math.floor((whole.length / 80) * i)),
  ]);
  for (const place of places) {
    const damaged = Buffer.from(whole);
    damaged[place]! ^= 1 << (place % 8);
    writeFileSync(path, damaged);
    const failure = await checkFile(realDisk, directory, file!).catch((error: unknown) => error);
    expect(failure, `byte ${place}`).toBeInstanceOf(DamagedBackupError);
    expect((failure as DamagedBackupError).path).toBe(path);
    await expect(read([file!]), `byte ${place}`).rejects.toThrow(`${path} at byte`);
  }
});

test('every truncation is found, and bytes behind the end', async () => {
  const [file] = await written();
  const path = join(directory, file!.name);
  const whole = readFileSync(path);
  for (let i = 0; i < 50; i++) {
    writeFileSync(path, whole.subarray(0, Math.floor((whole.length / 50) * i)));
    await expect(read([file!])).rejects.toThrow(`instead of ${whole.length}`);
    await expect(checkFile(realDisk, directory, file!)).rejects.toThrow(DamagedBackupError);
  }
  writeFileSync(path, Buffer.concat([whole, Buffer.alloc(1)]));
  await expect(read([file!])).rejects.toThrow(DamagedBackupError);
  rmSync(path);
  await expect(checkFile(realDisk, directory, file!)).rejects.toThrow('it is missing');
});

test('a full disk is an error, and leaves no open file', async () => {
  const disk = new FaultyDisk({ rng: seededRng(1), capacityBytes: 50_000 });
  disk.makeDirectory('/b');
  const writer = new ChunkWriter(disk, '/b', 'part');
  await expect(writer.add(randomBytes(80_000))).rejects.toMatchObject({ code: 'ENOSPC' });
  writer.abandon();
});

test('a large frame is unpacked in pieces, and one beyond the limit not at all', async () => {
  const writer = new ChunkWriter(realDisk, directory, 'part');
  const large = Buffer.alloc(9_000_000, 'some text ');
  await writer.add(large);
  const files = await writer.finish();
  const copied: number[] = [];
  const copy = vi.spyOn(Buffer.prototype, 'copy').mockImplementation(function (
    this: Buffer,
    ...args: unknown[]
  ) {
    const [target, at] = args as [Uint8Array, number];
    copied.push(this.length);
    target.set(this, at);
    return this.length;
  });
  try {
    expect((await read(files))[0]!.equals(large)).toBe(true);
  } finally {
    copy.mockRestore();
  }
  expect(copied.reduce((sum, bytes) => sum + bytes, 0)).toBe(large.length);
  expect(Math.max(...copied)).toBeLessThanOrEqual(256 * 1024);
  const limited = readChunks(realDisk, directory, files, large.length - 1);
  await expect(limited.next()).rejects.toThrow('a frame of 9000000 bytes, beyond 8999999');
});

test('a frame that unpacks to more or less than it says is found', async () => {
  for (const told of [1_500_000, 2_500_000]) {
    const writer = new ChunkWriter(realDisk, directory, `part-${told}`);
    await writer.add(Buffer.alloc(2_000_000));
    const [file] = await writer.finish();
    const path = join(directory, file!.name);
    const bytes = readFileSync(path);
    const packed = bytes.subarray(28, 28 + bytes.readUInt32LE(16));
    frameHeader(packed, told).copy(bytes, 16);
    writeFileSync(path, bytes);
    await expect(read([file!])).rejects.toThrow('a frame cannot be unpacked');
  }
});
