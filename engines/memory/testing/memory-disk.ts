// An in-memory disk, for tests of writing and reading back.

import type { Disk, DiskFile } from '../../../universal-row/environment.ts';

export class MemoryDisk implements Disk {
  readonly files = new Map<string, Buffer>();
  /** The next write fails with this. */
  nextFailure: Error | undefined = undefined;

  makeDirectory(): void {}

  list(path: string): string[] {
    const names = [...this.files.keys()].filter((name) => name.startsWith(`${path}/`));
    return names.map((name) => name.slice(path.length + 1)).sort();
  }

  exists(path: string): boolean {
    return this.files.has(path);
  }

  open(path: string, mode: 'read' | 'create' | 'append'): DiskFile {
    if (mode === 'create') this.files.set(path, Buffer.alloc(0));
    return new MemoryFile(this, path);
  }

  rename(from: string, to: string): void {
    this.files.set(to, this.files.get(from)!);
    this.files.delete(from);
  }

  remove(path: string): void {
    this.files.delete(path);
  }

  removeTree(path: string): void {
    for (const name of this.list(path)) this.remove(`${path}/${name}`);
  }

  removeAsync(path: string): Promise<void> {
    this.remove(path);
    return Promise.resolve();
  }

  syncDirectory(): void {}

  freeBytes(): number {
    return Infinity;
  }
}

class MemoryFile implements DiskFile {
  readonly path: string;
  readonly #disk: MemoryDisk;

  constructor(disk: MemoryDisk, path: string) {
    this.#disk = disk;
    this.path = path;
  }

  size(): number {
    return this.#disk.files.get(this.path)!.length;
  }

  read(into: Uint8Array, offset: number, length: number, position: number): number {
    const file = this.#disk.files.get(this.path)!;
    return file.copy(into, offset, position, Math.min(file.length, position + length));
  }

  write(from: Uint8Array, offset: number, length: number, position: number): void {
    const failure = this.#disk.nextFailure;
    this.#disk.nextFailure = undefined;
    if (failure !== undefined) throw failure;
    const file = this.#disk.files.get(this.path)!;
    const written = Buffer.alloc(Math.max(file.length, position + length));
    file.copy(written);
    written.set(from.subarray(offset, offset + length), position);
    this.#disk.files.set(this.path, written);
  }

  async writeAsync(
    from: Uint8Array,
    offset: number,
    length: number,
    position: number,
  ): Promise<void> {
    await Promise.resolve();
    this.write(from, offset, length, position);
  }

  truncate(length: number): void {
    this.#disk.files.set(this.path, this.#disk.files.get(this.path)!.subarray(0, length));
  }

  syncNow(): void {}

  async sync(): Promise<void> {}

  close(): void {}
}
