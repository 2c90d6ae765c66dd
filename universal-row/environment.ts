// Interfaces to the outside world, so that tests can replace it: a clock that jumps, a random generator with a seed, a
// disk that loses unsynced bytes.

export interface Clock {
  /** Wall-clock time, milliseconds since 1970. May jump. */
  now(): number;
  /** Milliseconds since an arbitrary start. Never goes back. */
  monotonic(): number;
}

export interface Rng {
  /** Uniform in [0, 1). */
  next(): number;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
};

export const systemRng: Rng = { next: () => Math.random() };

/**
 * The one door through which our own files reach the disk (LevelDB opens its own). Paths are absolute
 * or relative to the process. Every failure is a `NodeJS.ErrnoException` with its `code`.
 */
export interface Disk {
  /** With those above it that are missing. Its name is durable once the directory above is synced. */
  makeDirectory(path: string): void;
  /** File names in a directory, sorted; [] when it does not exist. */
  list(path: string): string[];
  exists(path: string): boolean;
  open(path: string, mode: 'read' | 'create' | 'append'): DiskFile;
  rename(from: string, to: string): void;
  remove(path: string): void;
  /** Removes a directory with all that is in it; nothing where there is none. */
  removeTree(path: string): void;
  /** As `remove`, off the event loop: to give back a large file takes a millisecond for every few megabytes. */
  removeAsync(path: string): Promise<void>;
  /** Makes names created, renamed or removed in `path` survive a power cut. */
  syncDirectory(path: string): void;
  /** Bytes a writer could still add, or Infinity when unknown. */
  freeBytes(path: string): number;
}

export interface DiskFile {
  readonly path: string;
  size(): number;
  /** Bytes read, less than asked for only at the end of the file. */
  read(into: Uint8Array, offset: number, length: number, position: number): number;
  /**
   * Writes all bytes at `position`, or throws; the bytes written before a failure are undefined.
   */
  write(from: Uint8Array, offset: number, length: number, position: number): void;
  /** As `write`, off the event loop. */
  writeAsync(from: Uint8Array, offset: number, length: number, position: number): Promise<void>;
  truncate(length: number): void;
  syncNow(): void;
  sync(): Promise<void>;
  close(): void;
}
