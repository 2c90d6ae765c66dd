// The blocks of entries: key and value of each lie in one block of the arena, found by the entry's id.
//
//   address  by id, the entry's block; 0 for an id not in use
//
//   block    kind u8 | key length u8 | value length u16 | key | value              most entries
//            kind u8 (bit 7) | 0 u24 | key length u32 | value length u32 | key | value

import { copyBytes, emptyBytes } from '../../universal-row/bytes.ts';
import type { Arena } from './arena.ts';
import { IntColumn } from './long-column.ts';

const wide = 0x80;
const narrowHeader = 4;
const wideHeader = 12;

/**
 * Observer of entries while a snapshot is taken. It is called before an entry changes, moves to another id or is
 * removed.
 */
export interface EntryWatch {
  /** An entry is about to be made under this id. */
  created(id: number): void;
  beforeChange(id: number): void;
  /** The entry at `from` is about to take over the id `to`, whose entry is gone. */
  moved(from: number, to: number): void;
}

export class EntryBlocks {
  readonly arena: Arena;
  /** Bytes of all blocks. */
  blockBytes = 0;
  readonly address = new IntColumn();
  watch: EntryWatch | undefined = undefined;

  // Result of `locate`.
  b: Buffer = emptyBytes;
  kind = 0;
  keyAt = 0;
  keyLength = 0;
  valueAt = 0;
  valueLength = 0;

  constructor(arena: Arena) {
    this.arena = arena;
  }

  protected isKey(id: number, b: Buffer, s: number, n: number): boolean {
    const address = this.address.at(id);
    const block = this.arena.buffer(address);
    const o = this.arena.offset(address);
    let at = o + narrowHeader;
    if ((block[o]! & wide) === 0) {
      if (block[o + 1] !== n) return false;
    } else {
      if (readUint32(block, o + 4) !== n) return false;
      at = o + wideHeader;
    }
    for (let i = 0; i < n; i++) if (block[at + i] !== b[s + i]) return false;
    return true;
  }

  /** Finds the block of an entry and sets `b`, `kind`, `keyAt` and so on, valid until the next write. */
  locate(id: number): void {
    const address = this.address.at(id);
    const block = this.arena.buffer(address);
    const o = this.arena.offset(address);
    const kind = block[o]!;
    this.b = block;
    if ((kind & wide) === 0) {
      const keyLength = block[o + 1]!;
      this.kind = kind;
      this.keyAt = o + narrowHeader;
      this.keyLength = keyLength;
      this.valueAt = o + narrowHeader + keyLength;
      this.valueLength = block[o + 2]! | (block[o + 3]! << 8);
    } else {
      const keyLength = readUint32(block, o + 4);
      this.kind = kind ^ wide;
      this.keyAt = o + wideHeader;
      this.keyLength = keyLength;
      this.valueAt = o + wideHeader + keyLength;
      this.valueLength = readUint32(block, o + 8);
    }
  }

  kindOf(id: number): number {
    const address = this.address.at(id);
    return this.arena.buffer(address)[this.arena.offset(address)]! & ~wide;
  }

  setKind(id: number, kind: number): void {
    const address = this.address.at(id);
    const block = this.arena.buffer(address);
    const o = this.arena.offset(address);
    block[o] = (block[o]! & wide) | kind;
  }

  blockCapacity(id: number): number {
    return this.arena.capacity(this.address.at(id));
  }

  /** Replaces kind and value. */
  setValue(id: number, kind: number, vb: Buffer, vs: number, vn: number): void {
    if (this.watch !== undefined) this.watch.beforeChange(id);
    const address = this.address.at(id);
    const block = this.arena.buffer(address);
    const o = this.arena.offset(address);
    if ((block[o]! & wide) === 0) {
      const keyLength = block[o + 1]!;
      if (vn <= 0xffff && this.arena.fits(address, narrowHeader + keyLength + vn)) {
        block[o] = kind;
        block[o + 2] = vn;
        block[o + 3] = vn >>> 8;
        copyBytes(block, o + narrowHeader + keyLength, vb, vs, vn);
        return;
      }
    } else {
      const keyLength = readUint32(block, o + 4);
      if (
        (vn > 0xffff || keyLength > 0xff) &&
        this.arena.fits(address, wideHeader + keyLength + vn)
      ) {
        block[o] = kind | wide;
        writeUint32(block, o + 8, vn);
        copyBytes(block, o + wideHeader + keyLength, vb, vs, vn);
        return;
      }
    }
    this.#replaceBlock(id, kind, vb, vs, vn);
  }

  #replaceBlock(id: number, kind: number, vb: Buffer, vs: number, vn: number): void {
    this.locate(id);
    const old = this.address.at(id);
    this.address.set(id, this.newBlock(kind, this.b, this.keyAt, this.keyLength, vb, vs, vn));
    this.freeBlock(old);
  }

  /**
   * Replaces `removed` bytes of the value at `at` by `added` bytes for the caller to fill, and
   * locates the entry. The bytes behind are moved. A growing large block gets slack.
   */
  splice(id: number, at: number, removed: number, added: number): void {
    if (this.watch !== undefined) this.watch.beforeChange(id);
    this.locate(id);
    const length = this.valueLength + added - removed;
    const old = this.address.at(id);
    const header = headerBytes(this.keyLength, length);
    const from = this.valueAt + at + removed;
    const tail = this.valueAt + this.valueLength;
    if (
      header === this.keyAt - this.arena.offset(old) &&
      this.arena.fits(old, header + this.keyLength + length)
    ) {
      if (added !== removed && from < tail) {
        this.b.copyWithin(this.valueAt + at + added, from, tail);
      }
      setValueLength(this.b, this.arena.offset(old), length);
      this.valueLength = length;
      return;
    }
    const keyLength = this.keyLength;
    const total = header + keyLength + length;
    const growing = added > removed;
    const address = growing ? this.arena.allocateGrowing(total) : this.arena.allocate(total);
    this.blockBytes += this.arena.capacity(address);
    const block = this.arena.buffer(address);
    const o = this.arena.offset(address);
    writeHeader(block, o, this.kind, keyLength, length);
    copyBytes(block, o + header, this.b, this.keyAt, keyLength);
    const valueAt = o + header + keyLength;
    copyBytes(block, valueAt, this.b, this.valueAt, at);
    copyBytes(block, valueAt + at + added, this.b, from, tail - from);
    this.address.set(id, address);
    this.freeBlock(old);
    this.b = block;
    this.keyAt = o + header;
    this.valueAt = valueAt;
    this.valueLength = length;
  }

  protected newBlock(
    kind: number,
    b: Buffer,
    s: number,
    n: number,
    vb: Buffer,
    vs: number,
    vn: number,
  ): number {
    const header = headerBytes(n, vn);
    const address = this.arena.allocate(header + n + vn);
    this.blockBytes += this.arena.capacity(address);
    const block = this.arena.buffer(address);
    const o = this.arena.offset(address);
    writeHeader(block, o, kind, n, vn);
    copyBytes(block, o + header, b, s, n);
    copyBytes(block, o + header + n, vb, vs, vn);
    return address;
  }

  protected freeBlock(address: number): void {
    this.blockBytes -= this.arena.capacity(address);
    this.arena.free(address);
  }
}

function headerBytes(keyLength: number, valueLength: number): number {
  return keyLength <= 0xff && valueLength <= 0xffff ? narrowHeader : wideHeader;
}

function writeHeader(b: Buffer, o: number, kind: number, keyLength: number, valueLength: number) {
  if (keyLength <= 0xff && valueLength <= 0xffff) {
    b[o] = kind;
    b[o + 1] = keyLength;
    b[o + 2] = valueLength;
    b[o + 3] = valueLength >>> 8;
  } else {
    b[o] = kind | wide;
    writeUint32(b, o + 4, keyLength);
    writeUint32(b, o + 8, valueLength);
  }
}

function setValueLength(b: Buffer, o: number, valueLength: number): void {
  if ((b[o]! & wide) === 0) {
    b[o + 2] = valueLength;
    b[o + 3] = valueLength >>> 8;
  } else {
    writeUint32(b, o + 8, valueLength);
  }
}

function readUint32(b: Buffer, o: number): number {
  return (b[o]! | (b[o + 1]! << 8) | (b[o + 2]! << 16) | (b[o + 3]! << 24)) >>> 0;
}

function writeUint32(b: Buffer, o: number, value: number): void {
  b[o] = value;
  b[o + 1] = value >>> 8;
  b[o + 2] = value >>> 16;
  b[o + 3] = value >>> 24;
}
