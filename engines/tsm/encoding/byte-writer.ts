// Bytes one after another in a buffer that grows. Numbers are little-endian.
//
//   uvarint   7 bits a byte, lowest first, bit 7 set in all but the last; below 2^53
//   svarint   the first byte has the sign in bit 0 and 6 bits of the magnitude, the rest is as above

export class ByteWriter {
  buffer: Buffer;
  length = 0;

  constructor(capacity = 4096) {
    this.buffer = Buffer.allocUnsafe(capacity);
  }

  clear(): void {
    this.length = 0;
  }

  reserve(more: number): void {
    const needed = this.length + more;
    if (needed <= this.buffer.length) return;
    const larger = Buffer.allocUnsafe(Math.max(needed, this.buffer.length * 2));
    this.buffer.copy(larger, 0, 0, this.length);
    this.buffer = larger;
  }

  u8(value: number): void {
    this.reserve(1);
    this.buffer[this.length++] = value;
  }

  u32(value: number): void {
    this.reserve(4);
    this.length = this.buffer.writeUInt32LE(value >>> 0, this.length);
  }

  f64(value: number): void {
    this.reserve(8);
    this.length = this.buffer.writeDoubleLE(value, this.length);
  }

  /** Signed or unsigned, as 8 bytes of two's complement. */
  i64(value: bigint): void {
    this.reserve(8);
    this.length = this.buffer.writeBigInt64LE(BigInt.asIntN(64, value), this.length);
  }

  uvarint(value: number): void {
    this.reserve(8);
    const b = this.buffer;
    let p = this.length;
    let v = value;
    while (v > 0x7fffffff) {
      b[p++] = (v % 128) | 0x80;
      v = Math.floor(v / 128);
    }
    while (v > 0x7f) {
      b[p++] = (v & 0x7f) | 0x80;
      v >>>= 7;
    }
    b[p++] = v;
    this.length = p;
  }

  svarint(value: number): void {
    const sign = value < 0 ? 1 : 0;
    const magnitude = Math.abs(value);
    const first = ((magnitude % 64) << 1) | sign;
    if (magnitude < 64) {
      this.u8(first);
      return;
    }
    this.u8(first | 0x80);
    this.uvarint(Math.floor(magnitude / 64));
  }

  bytes(from: Uint8Array, start = 0, end = from.length): void {
    this.reserve(end - start);
    this.buffer.set(
      start === 0 && end === from.length ? from : from.subarray(start, end),
      this.length,
    );
    this.length += end - start;
  }

  /** Text with its length in bytes before it. */
  text(value: string): void {
    const bytes = Buffer.byteLength(value);
    this.uvarint(bytes);
    this.reserve(bytes);
    this.length += this.buffer.write(value, this.length, 'utf8');
  }

  view(): Buffer {
    return this.buffer.subarray(0, this.length);
  }
}

export function uvarintBytes(value: number): number {
  let n = 1;
  for (let v = value; v > 0x7f; v = Math.floor(v / 128)) n++;
  return n;
}
