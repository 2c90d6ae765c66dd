import fc from 'fast-check';
import { expect, test } from 'vitest';
import { FrameReader, frameHeaderBytes, writeFrame } from './frames.ts';
import { WireError, WireReader, WireWriter } from './wire.ts';

interface Frame {
  type: number;
  stream: number;
  payload: Buffer;
}

function collecting(maxBytes?: number): { frames: Frame[]; reader: FrameReader } {
  const frames: Frame[] = [];
  const reader = new FrameReader((type, stream, buf, start, end) => {
    frames.push({ type, stream, payload: Buffer.from(buf.subarray(start, end)) });
  }, maxBytes);
  return { frames, reader };
}

function encoded(frames: readonly Frame[]): Buffer {
  const writer = new WireWriter(64);
  for (const { type, stream, payload } of frames) writeFrame(writer, type, stream, payload);
  return writer.view();
}

const anyFrame = fc.record({
  type: fc.integer({ min: 0, max: 255 }),
  stream: fc.integer({ min: 0, max: 0xffffffff }),
  payload: fc.uint8Array({ maxLength: 5000 }).map((bytes) => Buffer.from(bytes)),
});

test('frames come as they were sent, however the socket cuts them', () => {
  fc.assert(
    fc.property(
      fc.array(anyFrame, { maxLength: 8 }),
      fc.infiniteStream(fc.integer({ min: 1, max: 3000 })),
      (sent, sizes) => {
        const bytes = encoded(sent);
        const { frames, reader } = collecting();
        for (let at = 0; at < bytes.length; ) {
          const size = Math.min(sizes.next().value as number, bytes.length - at);
          // The socket's memory is used again: what is kept must be a copy.
          const chunk = Buffer.from(bytes.subarray(at, at + size));
          reader.push(chunk);
          chunk.fill(0xee);
          at += size;
        }
        expect(frames).toEqual(sent);
        expect(reader.pending).toBe(0);
      },
    ),
  );
});

test('a changed byte is noticed, wherever it is', () => {
  const bytes = encoded([
    { type: 16, stream: 77, payload: Buffer.from('a payload of some bytes') },
  ]);
  for (let at = 0; at < bytes.length; at++) {
    for (const bit of [1, 0x80]) {
      const { frames, reader } = collecting(1024);
      const damaged = Buffer.from(bytes);
      damaged[at]! ^= bit;
      let error: unknown;
      try {
        reader.push(damaged);
      } catch (thrown) {
        error = thrown;
      }
      // A length that is too large may leave the reader waiting for more.
      if (at < 4 && error === undefined) expect(reader.pending).toBe(bytes.length);
      else expect(error).toBeInstanceOf(WireError);
      expect(frames).toEqual([]);
    }
  }
});

test('a frame that is larger than allowed is refused by its header', () => {
  const { reader } = collecting(100);
  const writer = new WireWriter();
  writeFrame(writer, 1, 0, Buffer.alloc(101));
  expect(() => reader.push(writer.view().subarray(0, frameHeaderBytes))).toThrow(WireError);
});

test('random bytes are never taken for a frame', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      const { frames, reader } = collecting();
      try {
        reader.push(Buffer.from(bytes));
      } catch (error) {
        expect(error).toBeInstanceOf(WireError);
      }
      expect(frames).toEqual([]);
    }),
  );
});

test('numbers and bytes are read as they were written', () => {
  const anyPart = fc.oneof(
    fc.maxSafeNat().map((value) => ({ kind: 'varint' as const, value })),
    fc
      .integer({ min: -(2 ** 52), max: 2 ** 52 - 1 })
      .map((value) => ({ kind: 'signed' as const, value })),
    fc.double({ noNaN: true }).map((value) => ({ kind: 'f64' as const, value })),
    fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map((value) => ({
      kind: 'i64' as const,
      value,
    })),
    fc.string({ unit: 'grapheme' }).map((value) => ({ kind: 'string' as const, value })),
    fc.nat(0xffff).map((value) => ({ kind: 'u16' as const, value })),
    fc.nat(0xffffffff).map((value) => ({ kind: 'u32' as const, value })),
  );
  fc.assert(
    fc.property(fc.array(anyPart), (parts) => {
      const writer = new WireWriter(16);
      for (const { kind, value } of parts) writer[kind](value as never);
      const reader = new WireReader(writer.view());
      for (const { kind, value } of parts) expect(reader[kind]()).toBe(value);
      reader.done();
      // Nothing is read past the end, whatever it is.
      for (const { kind } of parts) expect(() => reader[kind]()).toThrow(WireError);
    }),
  );
});
