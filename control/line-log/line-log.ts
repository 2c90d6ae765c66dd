// Records one after the other in small files, each a line of JSON behind its checksum:
//
//   <crc-32 of the rest, 8 hex digits> {"seq":17,...}
//
// A file is called after the number of its first record: audit-000000000017.log. When it is full the next one
// is begun and the oldest goes, so that all of it is bounded. A line torn by a crash is cut off at the next
// start; a line that was damaged otherwise is reported, and left out.
//
// With `owner` the space is shared fairly: the owners with most space lose their oldest records, and an owner with less
// than an equal share loses nothing (max-min fairness). See `fair-share.ts`.

import { crc32 } from 'node:zlib';
import { join } from 'node:path';
import { equalPart } from './fair-share.ts';
import { makeDurableDirectory } from '../../universal-row/durable-names.ts';
import type { Disk, DiskFile } from '../../universal-row/environment.ts';
import { writingAgain } from '../../universal-row/written-again.ts';

export interface LogRecord {
  /** Number of the record. Numbers ascend, but may have gaps. */
  seq: number;
}

interface LineLogOptions<R extends LogRecord> {
  disk: Disk;
  directory: string;
  /** Prefix of the files' names. */
  name: string;
  /** Size at which the next file is begun. */
  fileBytes: number;
  /** Number of files kept, including the current one. */
  files: number;
  /** Whether `append` syncs the record to disk before it resolves; otherwise the operating system decides. */
  sync: boolean;
  report?: (message: string) => void;
  /** Owner of a record, where each owner has a fair share of the space. */
  owner?: (record: R) => string;
}

const newline = 10;
const crcLength = 8;
/** Part of the space that is in use after the oldest records of the largest owners were dropped. */
const keptPart = 0.75;
/** Bytes of records read before other work may use the thread. */
const sliceBytes = 128 * 1024;

interface LogFile {
  path: string;
  first: number;
}

export class LineLog<R extends LogRecord> {
  readonly #options: LineLogOptions<R>;
  #files: LogFile[] = [];
  #current: DiskFile | undefined;
  #length = 0;
  #lastSeq = 0;
  /** Files whose damage has been reported. */
  readonly #reported = new Set<string>();
  #syncing: Promise<void> | undefined;
  /** The last file whose sync failed. */
  #failed: { readonly file: DiskFile; readonly error: Error } | undefined;
  #sharing: Promise<void> | undefined;

  private constructor(options: LineLogOptions<R>) {
    this.#options = options;
  }

  static open<R extends LogRecord>(options: LineLogOptions<R>): LineLog<R> {
    const log = new LineLog<R>(options);
    const { disk, directory, name } = options;
    makeDurableDirectory(disk, directory);
    const pattern = new RegExp(`^${name}-(\\d{12,16})\\.log$`);
    for (const file of disk.list(directory)) {
      const [, first] = pattern.exec(file) ?? [];
      if (first !== undefined) {
        log.#files.push({ path: join(directory, file), first: Number(first) });
      }
    }
    // An earlier process may have ended before it had synced the name of its last file.
    if (log.#files.length > 0) disk.syncDirectory(directory);
    log.#files.sort((a, b) => a.first - b.first);
    log.#goOn();
    return log;
  }

  /** Number of the last record; 0 when there is none. */
  get lastSeq(): number {
    return this.#lastSeq;
  }

  /**
   * Appends a record, whose number must be above that of the last record. Resolves when the record is as durable as
   * `sync` says.
   */
  async append(record: R): Promise<void> {
    if (record.seq <= this.#lastSeq) throw new RangeError(`record ${record.seq} comes too late`);
    const line = encode(record);
    if (this.#current === undefined || this.#length + line.length > this.#options.fileBytes) {
      this.#begin(record.seq);
    }
    this.#current!.write(line, 0, line.length, this.#length);
    this.#length += line.length;
    this.#lastSeq = record.seq;
    if (this.#options.sync) await this.#synced();
  }

  /** Records after a number, in order, at most `limit`; only those whose JSON has `part` in it, if given. */
  read(after: number, limit: number, part?: string): R[] {
    const records: R[] = [];
    // The last file that begins at or before the next record may have it.
    let at = this.#files.findLastIndex((file) => file.first <= after + 1);
    for (at = Math.max(0, at); at < this.#files.length && records.length < limit; at++) {
      const { records: found } = this.#readFile(this.#files[at]!, part);
      for (const record of found) {
        const isNew = record.seq > Math.max(after, records.at(-1)?.seq ?? 0);
        if (isNew && records.length < limit) records.push(record);
      }
    }
    return records;
  }

  /** The last records, in order; only those whose JSON has `part` in it, if given. */
  last(limit: number, part?: string): R[] {
    const newestFirst: R[] = [];
    for (let at = this.#files.length - 1; at >= 0 && newestFirst.length < limit; at--) {
      const oldest = newestFirst.at(-1)?.seq ?? Infinity;
      const { records } = this.#readFile(this.#files[at]!, part);
      for (const record of records.reverse()) if (record.seq < oldest) newestFirst.push(record);
    }
    return newestFirst.slice(0, limit).reverse();
  }

  async close(): Promise<void> {
    await this.#sharing;
    await this.#syncing?.catch(() => {});
    if (this.#current === undefined) return;
    this.#current.syncNow();
    this.#current.close();
    this.#current = undefined;
  }

  /** One sync covers all writes before it began. */
  async #synced(): Promise<void> {
    const written = this.#current!;
    await this.#syncing?.catch(() => {});
    this.#mustBeWhole(written);
    const file = this.#current;
    // The file that was written to was synced when it was full.
    if (file === undefined) return;
    this.#syncing ??= file
      .sync()
      .catch((error: Error) => {
        this.#giveUp(file, error);
        throw error;
      })
      .finally(() => (this.#syncing = undefined));
    await this.#syncing;
    this.#mustBeWhole(written);
  }

  /** Of two syncs of a file that overlap, the disk may report a failure to one. */
  #mustBeWhole(file: DiskFile): void {
    if (this.#failed?.file === file) throw this.#failed.error;
  }

  /** What a failed sync has given up, later ones of the file give up too: the next record begins another. */
  #giveUp(file: DiskFile, error: Error): void {
    this.#failed = { file, error };
    if (this.#current !== file) return;
    this.#current = undefined;
    file.close();
  }

  /** Finds the end of the existing log. */
  #goOn(): void {
    const { disk } = this.#options;
    const last = this.#files.at(-1);
    if (last === undefined) return;
    const { records, length } = this.#readFile(last);
    this.#lastSeq = records.at(-1)?.seq ?? last.first - 1;
    this.#current = disk.open(last.path, 'append');
    if (this.#current.size() > length) this.#current.truncate(length);
    if (this.#options.sync) for (const _ of writingAgain(this.#current, 0));
    this.#length = length;
  }

  #begin(seq: number): void {
    const { disk, directory, name, files, owner, report } = this.#options;
    const full = this.#current;
    if (full !== undefined) {
      try {
        full.syncNow();
      } catch (error) {
        this.#giveUp(full, error as Error);
        throw error;
      }
      void Promise.resolve(this.#syncing?.catch(() => {})).then(() => full.close());
    }
    const path = join(directory, `${name}-${String(seq).padStart(12, '0')}.log`);
    this.#current = disk.open(path, 'create');
    this.#length = 0;
    this.#files.push({ path, first: seq });
    // Should making room fail again and again, the oldest records go after all.
    const most = owner === undefined ? files : 3 * files;
    while (this.#files.length > most) disk.remove(this.#files.shift()!.path);
    if (owner !== undefined && this.#files.length > files) {
      this.#sharing ??= this.#share(owner)
        .catch((error: Error) => report?.(`cannot make room in ${directory}: ${error.message}`))
        .finally(() => (this.#sharing = undefined));
    }
    disk.syncDirectory(directory);
  }

  /** Drops records so that the files that are full have room for others again, by fair parts. */
  async #share(owner: (record: R) => string): Promise<void> {
    const { files, fileBytes } = this.#options;
    const full = this.#files.slice(0, -1);
    const bytesOf = new Map<string, number>();
    for (const file of full) {
      for await (const { record, line } of this.#slices(file)) {
        const name = owner(record);
        bytesOf.set(name, (bytesOf.get(name) ?? 0) + line.length);
      }
    }
    const part = equalPart(bytesOf.values(), keptPart * (files - 1) * fileBytes);
    // From the oldest on: each owner loses its excess over its part.
    const excess = new Map([...bytesOf].map(([name, bytes]) => [name, bytes - part]));
    let kept: Buffer[] = [];
    let keptBytes = 0;
    let group: LogFile[] = [];
    for (const file of full) {
      const lines: Buffer[] = [];
      let bytes = 0;
      for await (const { record, line } of this.#slices(file)) {
        const name = owner(record);
        const over = excess.get(name) ?? 0;
        if (over > 0) excess.set(name, over - line.length);
        else {
          lines.push(line);
          bytes += line.length;
        }
      }
      if (keptBytes + bytes > 2 * fileBytes && group.length > 0) {
        this.#replace(group, kept);
        [group, kept, keptBytes] = [[], [], 0];
      }
      group.push(file);
      // A copy: the lines are views of the whole file.
      kept.push(Buffer.concat(lines));
      keptBytes += bytes;
    }
    this.#replace(group, kept);
  }

  /**
   * Replaces the first of adjacent files by their kept records. After a crash in between, records
   * may be in two files; readers take each once.
   */
  #replace(group: readonly LogFile[], kept: readonly Buffer[]): void {
    const { disk, directory } = this.#options;
    const [first, ...rest] = group;
    if (first === undefined) return;
    const bytes = Buffer.concat(kept);
    const gone = new Set(bytes.length === 0 ? group : rest);
    if (bytes.length > 0) {
      const temporary = `${first.path}.tmp`;
      const file = disk.open(temporary, 'create');
      file.write(bytes, 0, bytes.length, 0);
      file.syncNow();
      file.close();
      disk.rename(temporary, first.path);
      disk.syncDirectory(directory);
    }
    for (const { path } of gone) disk.remove(path);
    this.#files = this.#files.filter((file) => !gone.has(file));
  }

  /** Records of a file with their lines; others may use the thread now and then. */
  async *#slices({ path }: LogFile): AsyncGenerator<{ record: R; line: Buffer }> {
    const bytes = this.#bytesOf(path);
    let slice = 0;
    for (let at = 0, end; (end = bytes.indexOf(newline, at)) >= 0; at = end + 1) {
      const record = decode<R>(bytes.toString('utf8', at, end));
      if (record !== undefined) yield { record, line: bytes.subarray(at, end + 1) };
      slice += end - at;
      if (slice < sliceBytes) continue;
      slice = 0;
      await new Promise(setImmediate);
    }
  }

  /** The records of a file, and where its last whole line ends. */
  #readFile({ path }: LogFile, part = ''): { records: R[]; length: number } {
    const bytes = this.#bytesOf(path);
    const records: R[] = [];
    // Searching for bytes is much faster than parsing JSON.
    if (part !== '' && !bytes.includes(part)) return { records, length: bytes.length };
    let length = 0;
    for (;;) {
      const end = bytes.indexOf(newline, length);
      if (end < 0) return { records, length };
      const line = bytes.toString('utf8', length, end);
      if (line.includes(part)) {
        const record = decode<R>(line);
        if (record === undefined) this.#reportDamage(path, length);
        else records.push(record);
      }
      length = end + 1;
    }
  }

  #reportDamage(path: string, position: number): void {
    if (this.#reported.has(path)) return;
    this.#reported.add(path);
    this.#options.report?.(
      `${path} is damaged at byte ${position}: what cannot be read is left out`,
    );
  }

  #bytesOf(path: string): Buffer {
    const isCurrent = path === this.#current?.path;
    const file = isCurrent ? this.#current! : this.#options.disk.open(path, 'read');
    try {
      const bytes = Buffer.alloc(isCurrent ? this.#length : file.size());
      return bytes.subarray(0, file.read(bytes, 0, bytes.length, 0));
    } finally {
      if (!isCurrent) file.close();
    }
  }
}

function encode(record: object): Buffer {
  const text = JSON.stringify(record);
  return Buffer.from(`${checksum(text)} ${text}\n`);
}

function decode<R>(line: string): R | undefined {
  const text = line.slice(crcLength + 1);
  if (line.slice(0, crcLength) !== checksum(text)) return undefined;
  return JSON.parse(text) as R;
}

function checksum(text: string): string {
  return crc32(text).toString(16).padStart(crcLength, '0');
}
