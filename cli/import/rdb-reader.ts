// Reads an RDB file, or the snapshot that a master sends, key by key. A value is handed out as its bytes: the
// caller decodes its elements.

import { Slice } from '../../universal-row/bytes.ts';
import { Crc64 } from '../../universal-row/transforms/redis/rdb/crc64.ts';
import { RdbCursor } from '../../universal-row/transforms/redis/rdb/cursor.ts';
import { ExitError } from '../../server/lifecycle/exit-error.ts';
import type { ByteSource } from './byte-source.ts';

/** A key with its value: the bytes behind the type, which are good until the next item. */
export interface RdbValue {
  kind: 'value';
  db: number;
  key: Buffer;
  type: number;
  value: Buffer;
  /** Milliseconds since 1970; 0 for never. */
  expireAt: number;
}
type RdbItem =
  | RdbValue
  | { kind: 'function'; code: Buffer }
  /** A value of a module. */
  | { kind: 'module'; db: number; key: Buffer }
  | { kind: 'end' };

const newestVersion = 12;
const headBytes = 9;

const Op = {
  slotInfo: 244,
  function: 245,
  oldFunction: 246,
  moduleAux: 247,
  idle: 248,
  frequency: 249,
  aux: 250,
  resize: 251,
  expireMs: 252,
  expireSeconds: 253,
  select: 254,
  end: 255,
} as const;

const needMore = new Error('more bytes are needed');

/** Steps over parts of the format in bytes that may not all be there; then throws `needMore`. */
class Skipper {
  b: Buffer = Buffer.alloc(0);
  at = 0;
  end = 0;

  take(n: number): number {
    const { at } = this;
    if (n > this.end - at) throw needMore;
    this.at += n;
    return at;
  }

  byte(): number {
    return this.b[this.take(1)]!;
  }

  length(): number {
    const head = this.byte();
    if (head < 0x40) return head;
    if (head < 0x80) return ((head & 63) << 8) | this.byte();
    if (head === 0x80) return this.b.readUInt32BE(this.take(4));
    if (head === 0x81) return Number(this.b.readBigUInt64BE(this.take(8)));
    throw damaged('a length');
  }

  string(): void {
    const head = this.byte();
    if (head < 0xc0) {
      this.at--;
      this.take(this.length());
    } else if (head === 0xc3) {
      const packed = this.length();
      this.length();
      this.take(packed);
    } else if (head <= 0xc2) this.take(2 ** (head & 3));
    else throw damaged('a string');
  }

  strings(n: number): void {
    for (let left = n; left > 0; left--) this.string();
  }

  /** Double of RDB version 2: a length of one byte, or a special number. */
  textDouble(): void {
    const n = this.byte();
    if (n < 253) this.take(n);
  }

  /** Value written by a module: parts with their kinds in front. */
  moduleParts(): void {
    for (;;) {
      const kind = this.length();
      if (kind === 0) return;
      if (kind === 1 || kind === 2) this.length();
      else if (kind === 3) this.take(4);
      else if (kind === 4) this.take(8);
      else if (kind === 5) this.string();
      else throw damaged('the value of a module');
    }
  }

  value(type: number): void {
    switch (type) {
      case 0:
      case 9:
      case 10:
      case 11:
      case 12:
      case 13:
      case 16:
      case 17:
      case 20:
        return this.string();
      case 1:
      case 2:
      case 14:
        return this.strings(this.length());
      case 3:
        for (let left = this.length(); left > 0; left--) {
          this.string();
          this.textDouble();
        }
        return;
      case 4:
        return this.strings(2 * this.length());
      case 5:
        for (let left = this.length(); left > 0; left--) {
          this.string();
          this.take(8);
        }
        return;
      case 18:
        for (let left = this.length(); left > 0; left--) {
          this.length();
          this.string();
        }
        return;
      case 15:
      case 19:
      case 21:
        return this.stream(type);
      case 24:
        this.take(8);
        for (let left = this.length(); left > 0; left--) {
          this.length();
          this.strings(2);
        }
        return;
      case 25:
        this.take(8);
        return this.string();
      case 7:
        this.length();
        return this.moduleParts();
      default:
        throw damaged(`a value of type ${type}`);
    }
  }

  stream(type: number): void {
    this.strings(2 * this.length());
    // Length and last id; since Redis 7 the first id, the greatest one deleted, and entries ever added.
    for (let left = type === 15 ? 3 : 8; left > 0; left--) this.length();
    for (let groups = this.length(); groups > 0; groups--) {
      this.string();
      for (let left = type === 15 ? 2 : 3; left > 0; left--) this.length();
      for (let pending = this.length(); pending > 0; pending--) {
        this.take(24);
        this.length();
      }
      for (let consumers = this.length(); consumers > 0; consumers--) {
        this.string();
        this.take(type === 21 ? 16 : 8);
        this.take(16 * this.length());
      }
    }
  }
}

function damaged(what: string): ExitError {
  return new ExitError(`the RDB data is damaged, or of a newer Redis: ${what} that is not known`);
}

/** Where a reader is: enough to continue from there. */
export interface RdbPlace {
  offset: number;
  db: number;
  version: number;
  /** The checksum so far, in hexadecimal. */
  checksum: string;
}

export class RdbReader {
  readonly #source: ByteSource;
  readonly #skipper = new Skipper();
  readonly #crc = new Crc64();
  #version: number;
  #db: number;
  #expireAt = 0;

  private constructor(source: ByteSource, version: number, db: number) {
    this.#source = source;
    this.#version = version;
    this.#db = db;
  }

  /** Reads from the beginning. */
  static async begin(source: ByteSource): Promise<RdbReader> {
    await source.need(headBytes);
    const head = source.b.toString('latin1', source.at, source.at + headBytes);
    const version = Number(head.slice(5));
    if (!/^REDIS\d{4}$/.test(head))
      throw new ExitError('this is no RDB file: it does not begin with REDIS');
    if (version > newestVersion) {
      throw new ExitError(`the RDB data is of version ${version}; up to ${newestVersion} is read`);
    }
    const reader = new RdbReader(source, version, 0);
    reader.#done(headBytes);
    return reader;
  }

  /** Continues where `place` says; the source begins there. */
  static resume(source: ByteSource, place: RdbPlace): RdbReader {
    const reader = new RdbReader(source, place.version, place.db);
    reader.#crc.load(Buffer.from(place.checksum, 'hex'), 0);
    return reader;
  }

  /** Behind the last item. */
  get place(): RdbPlace {
    const checksum = Buffer.alloc(8);
    this.#crc.write(checksum, 0);
    const { position } = this.#source;
    return {
      offset: position,
      db: this.#db,
      version: this.#version,
      checksum: checksum.toString('hex'),
    };
  }

  /** The next item. Throws `ExitError` for damaged input, `SourceEnded` when it ends too early. */
  async next(): Promise<RdbItem> {
    for (;;) {
      const { b, at, end } = this.#source;
      const skipper = this.#skipper;
      skipper.b = b;
      skipper.at = at;
      skipper.end = end;
      let item: RdbItem | undefined;
      try {
        item = this.#item(skipper);
      } catch (error) {
        if (error !== needMore) throw error;
        if (!(await this.#source.more())) await this.#source.need(this.#source.left + 1);
        continue;
      }
      this.#done(skipper.at - at);
      if (item === undefined) continue;
      if (item.kind === 'end') await this.#checkSum();
      return item;
    }
  }

  #done(n: number): void {
    this.#crc.add(this.#source.b, this.#source.at, n);
    this.#source.take(n);
  }

  async #checkSum(): Promise<void> {
    if (this.#version < 5) return;
    await this.#source.need(8);
    const { b, at } = this.#source;
    // Zeros: it was written without.
    const hasSum = b.readBigUInt64LE(at) !== 0n;
    if (hasSum && !this.#crc.equals(b, at)) {
      throw new ExitError('the RDB data is damaged: its checksum does not fit');
    }
    this.#source.take(8);
  }

  /** The item at the skipper; undefined for items that are not returned. */
  #item(from: Skipper): RdbItem | undefined {
    const op = from.byte();
    switch (op) {
      case Op.select:
        this.#db = from.length();
        return undefined;
      case Op.expireMs: {
        const at = from.take(8);
        this.#expireAt = Number(from.b.readBigInt64LE(at));
        return undefined;
      }
      case Op.expireSeconds: {
        const at = from.take(4);
        this.#expireAt = from.b.readInt32LE(at) * 1000;
        return undefined;
      }
      case Op.idle:
        from.length();
        return undefined;
      case Op.frequency:
        from.byte();
        return undefined;
      case Op.resize:
      case Op.slotInfo:
        for (let left = op === Op.resize ? 2 : 3; left > 0; left--) from.length();
        return undefined;
      case Op.aux:
        from.strings(2);
        return undefined;
      case Op.moduleAux:
        from.length();
        from.length();
        from.length();
        from.moduleParts();
        return undefined;
      case Op.function: {
        const at = from.at;
        from.string();
        return { kind: 'function', code: stringAt(from.b, at, from.at) };
      }
      case Op.end:
        return { kind: 'end' };
      case Op.oldFunction:
        throw damaged('a function of a preview of Redis 7');
      default:
        return this.#value(from, op);
    }
  }

  #value(from: Skipper, type: number): RdbItem {
    const keyAt = from.at;
    from.string();
    const valueAt = from.at;
    from.value(type);
    const key = stringAt(from.b, keyAt, valueAt);
    const expireAt = this.#expireAt;
    this.#expireAt = 0;
    if (type === 7) return { kind: 'module', db: this.#db, key };
    const value = from.b.subarray(valueAt, from.at);
    return { kind: 'value', db: this.#db, key, type, value, expireAt };
  }
}

const text = new Slice();

function stringAt(b: Buffer, start: number, end: number): Buffer {
  const cursor = new RdbCursor(b, start, end - start);
  for (const _ of cursor.string(text));
  return text.copy();
}
