// Records one after the other in small files, each a line of JSON behind its checksum:
//
//   <crc-32 of the rest, 8 hex digits> {"seq":17,...}
//
// A file is called after the number of its first record: audit-000000000017.log. When it is full the next one
// is begun and the oldest goes, so that all of it is bounded. A line torn by a crash is cut off at the next
// start; a line that was damaged otherwise is reported, and left out.

import { crc32 } from 'node:zlib';
import { join } from 'node:path';
import type { Disk, DiskFile } from '../../universal-row/environment.ts';

export interface LogRecord {
  /** Ascending, not necessarily by one. */
  seq: number;
}

export interface LineLogOptions {
  disk: Disk;
  directory: string;
  /** What the files' names begin with. */
  name: string;
  /** Size at which the next file is begun. */
  fileBytes: number;
  /** Kept, the one that is written included. */
  files: number;
  /** Whether a record is on disk when `append` resolves; otherwise the operating system decides. */
  sync: boolean;
  report?: (message: string) => void;
}

const newline = 10;
const crcLength = 8;

interface LogFile {
  path: string;
  first: number;
}

export class LineLog<R extends LogRecord> {
  readonly #options: LineLogOptions;
  #files: LogFile[] = [];
  #current: DiskFile | undefined;
  #length = 0;
  #lastSeq = 0;
  /** Files whose damage has been reported. */
  readonly #reported = new Set<string>();
  #syncing: Promise<void> | undefined;

  private constructor(options: LineLogOptions) {
    this.#options = options;
  }

  static open<R extends LogRecord>(options: LineLogOptions): LineLog<R> {
    const log = new LineLog<R>(options);
    const { disk, directory, name } = options;
    disk.makeDirectory(directory);
    const pattern = new RegExp(`^${name}-(\\d{12,16})\\.log$`);
    for (const file of disk.list(directory)) {
      const [, first] = pattern.exec(file) ?? [];
      if (first !== undefined) {
        log.#files.push({ path: join(directory, file), first: Number(first) });
      }
    }
    log.#files.sort((a, b) => a.first - b.first);
    log.#goOn();
    return log;
  }

  /** Number of the last record; 0 when there is none. */
  get lastSeq(): number {
    return this.#lastSeq;
  }

  /** Its number must be above that of the last one. Resolves when it is as safe as was asked for. */
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
        if (record.seq > after && records.length < limit) records.push(record);
      }
    }
    return records;
  }

  /** The last records, in order; only those whose JSON has `part` in it, if given. */
  last(limit: number, part?: string): R[] {
    const newestFirst: R[] = [];
    for (let at = this.#files.length - 1; at >= 0 && newestFirst.length < limit; at--) {
      newestFirst.push(...this.#readFile(this.#files[at]!, part).records.reverse());
    }
    return newestFirst.slice(0, limit).reverse();
  }

  async close(): Promise<void> {
    await this.#syncing?.catch(() => {});
    if (this.#current === undefined) return;
    this.#current.syncNow();
    this.#current.close();
    this.#current = undefined;
  }

  /** One sync serves all who wrote before it began. */
  async #synced(): Promise<void> {
    const running = this.#syncing;
    if (running !== undefined) await running.catch(() => {});
    this.#syncing ??= this.#current!.sync().finally(() => (this.#syncing = undefined));
    await this.#syncing;
  }

  /** Finds the end of what is there. */
  #goOn(): void {
    const { disk } = this.#options;
    const last = this.#files.at(-1);
    if (last === undefined) return;
    const { records, length } = this.#readFile(last);
    this.#lastSeq = records.at(-1)?.seq ?? last.first - 1;
    this.#current = disk.open(last.path, 'append');
    if (this.#current.size() > length) this.#current.truncate(length);
    this.#length = length;
  }

  #begin(seq: number): void {
    const { disk, directory, name, files } = this.#options;
    const full = this.#current;
    if (full !== undefined) {
      full.syncNow();
      void Promise.resolve(this.#syncing?.catch(() => {})).then(() => full.close());
    }
    const path = join(directory, `${name}-${String(seq).padStart(12, '0')}.log`);
    this.#current = disk.open(path, 'create');
    this.#length = 0;
    this.#files.push({ path, first: seq });
    while (this.#files.length > files) disk.remove(this.#files.shift()!.path);
    disk.syncDirectory(directory);
  }

  /** The records of a file, and where its last whole line ends. */
  #readFile({ path }: LogFile, part = ''): { records: R[]; length: number } {
    const bytes = this.#bytesOf(path);
    const records: R[] = [];
    // To look for bytes takes a small part of the time it takes to read JSON.
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
