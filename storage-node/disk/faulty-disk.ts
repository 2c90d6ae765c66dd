// A disk in memory that fails as real ones do, for tests. Unsynced writes are uncertain:
//
//   - each 512-byte sector of a file is, after a power cut, as it was at its last sync or after any
//     one of the later writes to it; each sector by itself, in no order; the file's length likewise
//   - each name made, changed or removed in a directory since its last sync is kept or forgotten, that of a directory
//     with all that is in it
//   - writes can meet a full disk (`capacityBytes`), leaving a part of the bytes behind
//   - any call can fail on demand (`fault`), and syncs can be held up (`stallSyncs`)
//   - a sync that failed has given up what it was to write: later syncs succeed without it, programs go on reading it until
//     `evict`, and a power cut may undo it, unless it is written once more. So does Linux: its page cache takes such pages as
//     clean, and drops them when it needs memory
//   - a failure of a sync is reported once to each of those who have the file open: where two syncs of one of them overlap,
//     either may get the report, and the other succeeds
//
// All random numbers come from the given generator, so a seed repeats a crash bit by bit.

import { dirname } from 'node:path';
import type { Disk, DiskFile, Rng } from '../../universal-row/environment.ts';

type DiskOperation =
  | 'open'
  | 'create'
  | 'read'
  | 'write'
  | 'truncate'
  | 'sync'
  | 'rename'
  | 'remove'
  | 'syncDirectory';

/** Asked before each call; an error code such as 'EIO' makes the call fail with it. */
type Fault = (operation: DiskOperation, path: string) => string | undefined;

interface FaultyDiskOptions {
  rng: Rng;
  capacityBytes?: number;
  /** Duration of a sync; a few event-loop ticks by default. */
  syncTime?: () => Promise<void>;
}

const sectorBytes = 512;

/** A write, or a change of length that clears the removed bytes. */
type Change =
  | { kind: 'write'; position: number; bytes: Buffer }
  | { kind: 'truncate'; length: number };

class Contents {
  bytes = Buffer.alloc(0);
  length = 0;

  apply(change: Change, survives: (sector: number) => boolean = () => true): void {
    if (change.kind === 'truncate') {
      this.#reserve(change.length);
      this.#clear(change.length, survives);
      this.length = change.length;
      return;
    }
    const end = change.position + change.bytes.length;
    this.#reserve(end);
    for (let at = change.position; at < end; ) {
      const sector = Math.floor(at / sectorBytes);
      const next = Math.min(end, (sector + 1) * sectorBytes);
      if (survives(sector)) {
        change.bytes.copy(this.bytes, at, at - change.position, next - change.position);
      }
      at = next;
    }
    this.length = Math.max(this.length, end);
  }

  /** Puts back what a sector had, up to the present length. */
  restore(sector: number, old: Buffer): void {
    const position = sector * sectorBytes;
    if (position < this.length) old.copy(this.bytes, position, 0, this.length - position);
  }

  copy(): Contents {
    const copy = new Contents();
    copy.bytes = Buffer.from(this.bytes.subarray(0, this.length));
    copy.length = this.length;
    return copy;
  }

  #clear(from: number, survives: (sector: number) => boolean): void {
    for (let at = from; at < this.bytes.length; ) {
      const sector = Math.floor(at / sectorBytes);
      const next = Math.min(this.bytes.length, (sector + 1) * sectorBytes);
      if (survives(sector)) this.bytes.fill(0, at, next);
      at = next;
    }
  }

  #reserve(length: number): void {
    if (length <= this.bytes.length) return;
    const larger = Buffer.alloc(Math.max(length, this.bytes.length * 2));
    this.bytes.copy(larger);
    this.bytes = larger;
  }
}

class Inode {
  /** As programs see it. */
  current = new Contents();
  /** Contents as of the last sync. */
  synced = new Contents();
  /** Changes since the last sync. */
  unsynced: Change[] = [];
  /** Of the last sync that failed. */
  failure: unknown;
  /** Sectors that a failed sync has given up, as they still are on the disk, by number; and the length there. */
  #givenUp = new Map<number, Buffer>();
  #lengthGivenUp: number | undefined;

  change(change: Change): void {
    this.current.apply(change);
    this.unsynced.push(change);
  }

  replace(bytes: Buffer): void {
    this.current = new Contents();
    this.current.apply({ kind: 'write', position: 0, bytes });
    this.synced = this.current.copy();
    this.unsynced = [];
    this.#givenUp.clear();
    this.#lengthGivenUp = undefined;
  }

  settle(changes: number): void {
    for (const change of this.unsynced.splice(0, changes)) {
      this.synced.apply(change);
      for (const sector of this.#sectorsOf(change)) this.#givenUp.delete(sector);
      const end = change.kind === 'truncate' ? Infinity : change.position + change.bytes.length;
      if (this.#lengthGivenUp === undefined || end <= this.#lengthGivenUp) continue;
      this.#lengthGivenUp = end < this.synced.length ? end : undefined;
    }
  }

  syncFailed(error: unknown): void {
    this.failure = error;
    const { length } = this.synced;
    for (const change of this.unsynced.splice(0)) {
      for (const sector of this.#sectorsOf(change)) {
        if (this.#givenUp.has(sector)) continue;
        const old = Buffer.alloc(sectorBytes);
        const { bytes } = this.synced;
        bytes.subarray(sector * sectorBytes, (sector + 1) * sectorBytes).copy(old);
        this.#givenUp.set(sector, old);
      }
      this.synced.apply(change);
    }
    if (this.synced.length > length) this.#lengthGivenUp ??= length;
  }

  /** Those that a write touches, or that a change of length clears. */
  *#sectorsOf(change: Change): Iterable<number> {
    const isWrite = change.kind === 'write';
    const from = isWrite ? change.position : change.length;
    const to = isWrite ? from + change.bytes.length : this.synced.bytes.length;
    for (let at = Math.floor(from / sectorBytes); at * sectorBytes < to; at++) yield at;
  }

  get hasGivenUp(): boolean {
    return this.#givenUp.size > 0;
  }

  /** Some of what was given up leaves memory: programs read what the disk has there. */
  evict(rng: Rng): void {
    const unsynced = new Set(this.unsynced.flatMap((change) => [...this.#sectorsOf(change)]));
    for (const [sector, old] of this.#givenUp) {
      if (unsynced.has(sector) || pick(rng, 2) !== 0) continue;
      this.current.restore(sector, old);
      this.synced.restore(sector, old);
      this.#givenUp.delete(sector);
    }
  }

  #undoGivenUp(contents: Contents, rng: Rng): void {
    for (const [sector, old] of this.#givenUp) {
      if (pick(rng, 2) === 0) contents.restore(sector, old);
    }
    if (this.#lengthGivenUp !== undefined && pick(rng, 2) === 0) {
      contents.apply({ kind: 'truncate', length: this.#lengthGivenUp });
    }
  }

  /** Contents after a power cut. */
  afterCrash(rng: Rng): Inode {
    const contents = this.synced.copy();
    this.#undoGivenUp(contents, rng);
    const survivors = new Map<number, number>();
    const survives = (at: number) => (sector: number) => {
      let count = survivors.get(sector);
      if (count === undefined) {
        count = pick(rng, this.unsynced.length + 1);
        survivors.set(sector, count);
      }
      return at < count;
    };
    let { length } = contents;
    const lengths = [length];
    for (const [at, change] of this.unsynced.entries()) {
      contents.apply(change, survives(at));
      length =
        change.kind === 'truncate'
          ? change.length
          : Math.max(length, change.position + change.bytes.length);
      lengths.push(length);
    }
    contents.apply({ kind: 'truncate', length: lengths[pick(rng, lengths.length)]! });
    const inode = new Inode();
    inode.current = contents;
    inode.synced = contents.copy();
    return inode;
  }
}

type NameChange =
  | { kind: 'directory'; path: string }
  | { kind: 'link'; path: string; inode: Inode }
  | { kind: 'rename'; from: string; to: string }
  | { kind: 'unlink'; path: string };

/** A sync of this directory makes it durable. */
function directoryOf(change: NameChange): string {
  return dirname(change.kind === 'rename' ? change.to : change.path);
}

function applyName(names: Map<string, Inode>, change: NameChange): void {
  switch (change.kind) {
    case 'directory':
      break;
    case 'link':
      names.set(change.path, change.inode);
      break;
    case 'rename': {
      const inode = names.get(change.from);
      // Its creation was forgotten: then there is nothing to rename.
      if (inode === undefined) break;
      names.delete(change.from);
      names.set(change.to, inode);
      break;
    }
    case 'unlink':
      names.delete(change.path);
      break;
  }
}

export class FaultyDisk implements Disk {
  readonly rng: Rng;
  capacityBytes: number;
  fault: Fault = () => undefined;
  /** Calls so far, by kind. */
  readonly calls = new Map<DiskOperation, number>();

  #names = new Map<string, Inode>();
  #syncedNames = new Map<string, Inode>();
  #unsyncedNames: NameChange[] = [];
  #directories = new Set<string>();
  #stalled: Promise<void> | undefined;
  #resume: (() => void) | undefined;
  #off = false;
  readonly #syncTime: (() => Promise<void>) | undefined;

  constructor(options: FaultyDiskOptions) {
    this.rng = options.rng;
    this.#syncTime = options.syncTime;
    this.capacityBytes = options.capacityBytes ?? Infinity;
  }

  /** The disk after a power cut at this moment. Users of this object get EIO. */
  crash(): FaultyDisk {
    return this.#successor((next, directories) => {
      const names = new Map(this.#syncedNames);
      const lost: string[] = [];
      for (const change of this.#unsyncedNames) {
        if (pick(this.rng, 2) === 0) applyName(names, change);
        else if (change.kind === 'directory') lost.push(change.path);
      }
      const isLost = (path: string): boolean =>
        lost.some((directory) => path === directory || path.startsWith(`${directory}/`));
      for (const directory of directories) if (isLost(directory)) directories.delete(directory);
      for (const [path, inode] of names) {
        if (isLost(path)) continue;
        next.set(path, inode.afterCrash(this.rng));
        for (let at = dirname(path); !directories.has(at); at = dirname(at)) directories.add(at);
      }
    });
  }

  /** The disk after the end of the process: all written data remains, synced or not. */
  kill(): FaultyDisk {
    const disk = this.#successor((next) => {
      for (const [path, inode] of this.#names) next.set(path, inode);
    });
    disk.#syncedNames = this.#syncedNames;
    disk.#unsyncedNames = this.#unsyncedNames;
    return disk;
  }

  /** What failed syncs have given up may leave memory. Returns this disk. */
  evict(): this {
    const inodes = [...this.#names.values()].filter((inode) => inode.hasGivenUp);
    if (inodes.length === 0 || pick(this.rng, 2) !== 0) return this;
    for (const inode of inodes) inode.evict(this.rng);
    return this;
  }

  stallSyncs(): void {
    this.#stalled ??= new Promise((resolve) => {
      this.#resume = resolve;
    });
  }

  resumeSyncs(): void {
    this.#resume?.();
    this.#stalled = undefined;
  }

  /** Changes bytes of a file durably, without the knowledge of its users. */
  corrupt(path: string, change: (bytes: Buffer) => Buffer | void): void {
    const inode = this.#inode(path);
    const bytes = inode.current.copy().bytes;
    const changed = change(bytes) ?? bytes;
    inode.replace(changed);
  }

  contents(path: string): Buffer {
    return this.#inode(path).current.copy().bytes;
  }

  usedBytes(): number {
    let used = 0;
    for (const inode of this.#names.values()) used += inode.current.length;
    return used;
  }

  makeDirectory(path: string): void {
    for (let at = path; !this.#directories.has(at); at = dirname(at)) {
      this.#directories.add(at);
      if (at !== dirname(at)) this.#unsyncedNames.push({ kind: 'directory', path: at });
    }
  }

  list(path: string): string[] {
    const prefix = `${path}/`;
    const names = new Set<string>();
    for (const name of this.#names.keys()) {
      if (name.startsWith(prefix)) names.add(name.slice(prefix.length).split('/', 1)[0]!);
    }
    return [...names].sort();
  }

  exists(path: string): boolean {
    return this.#names.has(path) || this.#directories.has(path);
  }

  open(path: string, mode: 'read' | 'create' | 'append'): DiskFile {
    this.check('open', path);
    let inode = this.#names.get(path);
    if (inode === undefined && mode === 'read') {
      if (!this.#directories.has(path)) throw diskError('ENOENT', 'open', path);
      return new FaultyFile(this, path, new Inode(), () => this.#settleNames(path));
    }
    if (inode === undefined) {
      this.check('create', path);
      inode = new Inode();
      this.#changeName({ kind: 'link', path, inode });
    } else if (mode === 'create') {
      inode.change({ kind: 'truncate', length: 0 });
    }
    return new FaultyFile(this, path, inode);
  }

  rename(from: string, to: string): void {
    this.check('rename', from);
    this.#inode(from);
    this.#changeName({ kind: 'rename', from, to });
  }

  remove(path: string): void {
    this.check('remove', path);
    this.#inode(path);
    this.#changeName({ kind: 'unlink', path });
  }

  removeTree(path: string): void {
    for (const name of [...this.#names.keys()]) {
      if (name.startsWith(`${path}/`)) this.remove(name);
    }
    for (const name of this.#directories) {
      if (name === path || name.startsWith(`${path}/`)) this.#directories.delete(name);
    }
  }

  async removeAsync(path: string): Promise<void> {
    await new Promise(setImmediate);
    this.remove(path);
  }

  syncDirectory(path: string): void {
    this.check('syncDirectory', path);
    this.#settleNames(path)();
  }

  freeBytes(): number {
    return Math.max(0, this.capacityBytes - this.usedBytes());
  }

  /** Another disk has taken its place. */
  get isOff(): boolean {
    return this.#off;
  }

  /** For the files of this disk: counts the call, and fails it if a fault says so. */
  check(operation: DiskOperation, path: string): void {
    this.calls.set(operation, (this.calls.get(operation) ?? 0) + 1);
    this.failIfDue(operation, path);
  }

  failIfDue(operation: DiskOperation, path: string): void {
    if (this.#off) throw diskError('EIO', operation, path);
    const code = this.fault(operation, path);
    if (code !== undefined) throw diskError(code, operation, path);
  }

  /** For the files of this disk: when a sync that begins now may end. */
  async syncTime(path: string): Promise<void> {
    await this.#stalled;
    if (this.#syncTime) await this.#syncTime();
    else for (let turns = pick(this.rng, 3); turns > 0; turns--) await new Promise(setImmediate);
    if (this.#off) throw diskError('EIO', 'sync', path);
  }

  #successor(fill: (names: Map<string, Inode>, directories: Set<string>) => void): FaultyDisk {
    const { rng, capacityBytes } = this;
    const syncTime = this.#syncTime;
    const disk = new FaultyDisk({ rng, capacityBytes, ...(syncTime && { syncTime }) });
    disk.#directories = new Set(this.#directories);
    fill(disk.#names, disk.#directories);
    disk.#syncedNames = new Map(disk.#names);
    this.#off = true;
    this.resumeSyncs();
    return disk;
  }

  /** Takes in the names there are now in a directory; the answer makes them durable. */
  #settleNames(directory: string): () => void {
    const changes = new Set(
      this.#unsyncedNames.filter((change) => directoryOf(change) === directory),
    );
    return () => {
      this.#unsyncedNames = this.#unsyncedNames.filter((change) => {
        // A blocking sync may have overtaken this one, and dealt with it.
        if (!changes.has(change)) return true;
        applyName(this.#syncedNames, change);
        return false;
      });
    };
  }

  #changeName(change: NameChange): void {
    applyName(this.#names, change);
    this.#unsyncedNames.push(change);
  }

  #inode(path: string): Inode {
    const inode = this.#names.get(path);
    if (inode === undefined) throw diskError('ENOENT', 'open', path);
    return inode;
  }
}

class FaultyFile implements DiskFile {
  readonly path: string;
  readonly #disk: FaultyDisk;
  readonly #inode: Inode;
  /** Set for a directory. */
  readonly #settleNames: (() => () => void) | undefined;
  #closed = false;
  #syncsUnderWay = 0;
  /** Last failure of the file that was reported here. */
  #reported: unknown;

  constructor(disk: FaultyDisk, path: string, inode: Inode, settleNames?: () => () => void) {
    this.#disk = disk;
    this.path = path;
    this.#inode = inode;
    this.#reported = inode.failure;
    this.#settleNames = settleNames;
  }

  size(): number {
    this.#check('read');
    return this.#inode.current.length;
  }

  read(into: Uint8Array, offset: number, length: number, position: number): number {
    this.#check('read');
    const { bytes, length: size } = this.#inode.current;
    return bytes.copy(into, offset, position, Math.min(size, position + length));
  }

  write(from: Uint8Array, offset: number, length: number, position: number): void {
    const bytes = Buffer.from(from.subarray(offset, offset + length));
    try {
      this.#check('write');
      const growth = position + length - this.#inode.current.length;
      if (growth > 0 && growth > this.#disk.freeBytes()) {
        throw diskError('ENOSPC', 'write', this.path);
      }
    } catch (error) {
      this.#writePart(bytes, position);
      throw error;
    }
    this.#inode.change({ kind: 'write', position, bytes });
  }

  async writeAsync(
    from: Uint8Array,
    offset: number,
    length: number,
    position: number,
  ): Promise<void> {
    await new Promise(setImmediate);
    this.write(from, offset, length, position);
  }

  truncate(length: number): void {
    this.#check('truncate');
    this.#inode.change({ kind: 'truncate', length });
  }

  syncNow(): void {
    if (this.#checkSync()) this.#reportFailure();
    this.#inode.settle(this.#inode.unsynced.length);
  }

  async sync(): Promise<void> {
    if (this.#settleNames) this.#check('syncDirectory');
    else if (this.#checkSync()) this.#reportFailure();
    const changes = this.#inode.unsynced.slice();
    const settleNames = this.#settleNames?.();
    this.#syncsUnderWay++;
    try {
      await this.#disk.syncTime(this.path);
    } finally {
      this.#syncsUnderWay--;
    }
    // It may fail late, too, and then gives up what was written meanwhile.
    const isReported =
      this.#settleNames !== undefined ||
      this.#failSync(() => this.#disk.failIfDue('sync', this.path));
    if (isReported) this.#reportFailure();
    settleNames?.();
    // A blocking sync may have overtaken this one.
    const left = changes.filter((change) => this.#inode.unsynced.includes(change));
    this.#inode.settle(left.length);
  }

  close(): void {
    this.#closed = true;
  }

  #checkSync(): boolean {
    return this.#failSync(() => this.#check('sync'));
  }

  /** Fails the sync if it is due to fail; false when another one gets the report. */
  #failSync(check: () => void): boolean {
    try {
      check();
      return true;
    } catch (error) {
      if (isClosed(error) || this.#disk.isOff) throw error;
      this.#inode.syncFailed(error);
      return this.#syncsUnderWay === 0 || pick(this.#disk.rng, 2) === 0;
    }
  }

  #reportFailure(): void {
    const { failure } = this.#inode;
    if (this.#reported === failure) return;
    this.#reported = failure;
    throw failure;
  }

  #check(operation: DiskOperation): void {
    if (this.#closed) throw diskError('EBADF', operation, this.path);
    this.#disk.check(operation, this.path);
  }

  /** Leaves a failed write partly done. */
  #writePart(bytes: Buffer, position: number): void {
    // The files may belong to a restarted process by now.
    if (this.#disk.isOff) return;
    const room = Math.max(0, this.#disk.freeBytes());
    const n = Math.min(pick(this.#disk.rng, bytes.length + 1), room);
    if (n > 0 && !this.#closed) {
      this.#inode.change({ kind: 'write', position, bytes: bytes.subarray(0, n) });
    }
  }
}

function isClosed(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'EBADF';
}

function pick(rng: Rng, count: number): number {
  return Math.floor(rng.next() * count);
}

export function diskError(code: string, syscall: string, path: string): NodeJS.ErrnoException {
  return Object.assign(new Error(`${code}: ${syscall} '${path}'`), { code, syscall, path });
}
