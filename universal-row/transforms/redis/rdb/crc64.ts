// The checksum of DUMP payloads and RDB files: CRC-64 with the polynomial of Jones, bits reflected, from 0.

const polynomial = 0x95ac9329ac4bc9b5n;
const highTable = new Int32Array(256);
const lowTable = new Int32Array(256);
for (let byte = 0; byte < 256; byte++) {
  let crc = BigInt(byte);
  for (let bit = 0; bit < 8; bit++) crc = (crc >> 1n) ^ ((crc & 1n) === 1n ? polynomial : 0n);
  highTable[byte] = Number(crc >> 32n) | 0;
  lowTable[byte] = Number(crc & 0xffffffffn) | 0;
}

/** Adds bytes up, part by part. */
export class Crc64 {
  #high = 0;
  #low = 0;

  add(b: Uint8Array, s: number, n: number): void {
    let high = this.#high;
    let low = this.#low;
    const end = s + n;
    for (let i = s; i < end; i++) {
      const at = (low ^ b[i]!) & 255;
      low = ((low >>> 8) | (high << 24)) ^ lowTable[at]!;
      high = (high >>> 8) ^ highTable[at]!;
    }
    this.#high = high;
    this.#low = low;
  }

  /** Whether the sum equals these 8 bytes, the lowest first. */
  equals(b: Buffer, at: number): boolean {
    return b.readInt32LE(at) === this.#low && b.readInt32LE(at + 4) === this.#high;
  }

  /** Continues from a sum that `write` wrote. */
  load(b: Buffer, at: number): void {
    this.#low = b.readInt32LE(at);
    this.#high = b.readInt32LE(at + 4);
  }

  /** Writes the sum into 8 bytes, the lowest first. */
  write(to: Buffer, at: number): void {
    to.writeInt32LE(this.#low, at);
    to.writeInt32LE(this.#high, at + 4);
  }
}
