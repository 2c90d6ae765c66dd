// Typed arrays as bytes of a message, and back. Numbers are little-endian, as in the memory of all processors that this
// runs on; another one is refused at the start.

import { WireError, type WireReader, type WireWriter } from './wire.ts';

type Numbers = Float64Array | Uint32Array | Uint8Array | BigInt64Array | BigUint64Array;

const isLittleEndian = new Uint8Array(Uint32Array.of(1).buffer)[0] === 1;
if (!isLittleEndian) throw new Error('this processor is big-endian: that is not supported');

/** The elements `[from, to)`, without their number. */
export function writeNumbers(writer: WireWriter, numbers: Numbers, from: number, to: number): void {
  const { BYTES_PER_ELEMENT: size } = numbers;
  const bytes = (to - from) * size;
  writer.reserve(bytes);
  const view = new Uint8Array(numbers.buffer, numbers.byteOffset + from * size, bytes);
  writer.buf.set(view, writer.pos);
  writer.pos += bytes;
}

/** Copies as many elements as `into` has. */
function fill<T extends Numbers>(reader: WireReader, into: () => T, bytes: number): T {
  // Before anything is allocated: a message cannot take more memory than it has bytes.
  if (bytes > reader.left) throw new WireError('a message ends too early');
  const at = reader.skip(bytes);
  const numbers = into();
  new Uint8Array(numbers.buffer).set(reader.buf.subarray(at, at + bytes));
  return numbers;
}

export function readFloats(reader: WireReader, count: number): Float64Array {
  return fill(reader, () => new Float64Array(count), count * 8);
}

export function readWords(reader: WireReader, count: number): Uint32Array {
  return fill(reader, () => new Uint32Array(count), count * 4);
}

export function readBytes(reader: WireReader, count: number): Uint8Array {
  return fill(reader, () => new Uint8Array(count), count);
}

export function readSigned(reader: WireReader, count: number): BigInt64Array {
  return fill(reader, () => new BigInt64Array(count), count * 8);
}

export function readUnsigned(reader: WireReader, count: number): BigUint64Array {
  return fill(reader, () => new BigUint64Array(count), count * 8);
}
