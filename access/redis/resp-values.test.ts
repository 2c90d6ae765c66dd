import fc from 'fast-check';
import { expect, test } from 'vitest';
import { copyValues } from '../../universal-row/protocol/values.ts';
import { WireReader } from '../../universal-row/protocol/wire.ts';
import { RespWriter } from './resp-writer.ts';
import { valuesOf } from './resp-values.ts';

type Write = (to: RespWriter) => void;

const oneLine = fc
  .string({ unit: 'grapheme', maxLength: 40 })
  .map((text) => text.replace(/[\r\n]/g, ' '));

const anyLeaf: fc.Arbitrary<Write> = fc.oneof(
  fc.constantFrom<Write>(
    (to) => to.ok(),
    (to) => to.nil(),
    (to) => to.nilArray(),
  ),
  oneLine.map(
    (text): Write =>
      (to) =>
        to.simple(text),
  ),
  oneLine.map(
    (text): Write =>
      (to) =>
        to.error(text),
  ),
  fc.maxSafeInteger().map(
    (value): Write =>
      (to) =>
        to.integer(value),
  ),
  fc.bigInt({ min: -(2n ** 70n), max: 2n ** 70n }).map(
    (value): Write =>
      (to) =>
        to.bigInteger(value),
  ),
  fc.uint8Array({ maxLength: 300 }).map(
    (bytes): Write =>
      (to) =>
        to.bulk(Buffer.from(bytes), 0, bytes.length),
  ),
  fc.string({ unit: 'grapheme', maxLength: 200 }).map(
    (text): Write =>
      (to) =>
        to.verbatim(text),
  ),
  fc.double().map(
    (value): Write =>
      (to) =>
        to.double(value),
  ),
  fc.boolean().map(
    (value): Write =>
      (to) =>
        to.boolean(value),
  ),
);

const { value: anyValue } = fc.letrec<{ value: Write }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    anyLeaf,
    fc.tuple(fc.constantFrom('array', 'set', 'map'), fc.array(tie('value'), { maxLength: 3 })).map(
      ([kind, items]): Write =>
        (to) => {
          to[kind](items.length);
          for (const item of kind === 'map' ? [...items, ...items] : items) item(to);
        },
    ),
  ),
}));

test.each([2, 3])('answers in RESP%i are the same bytes again', (version) => {
  fc.assert(
    fc.property(fc.array(anyValue, { maxLength: 4 }), (writes) => {
      const before = new RespWriter(64);
      before.version = version;
      before.raw('+earlier\r\n');
      const from = before.pos;
      for (const write of writes) write(before);
      const values = valuesOf(before.buf, from, before.pos)!;
      const after = new RespWriter(64);
      after.version = version;
      copyValues(new WireReader(Buffer.from(values)), after);
      expect(after.buf.toString('latin1', 0, after.pos)).toBe(
        before.buf.toString('latin1', from, before.pos),
      );
    }),
  );
});

test('messages are no answers, and neither is a part of one', () => {
  for (const text of ['>1\r\n+a\r\n', '+OK', '$4\r\nabc\r\n', '*1\r\n>1\r\n:1\r\n']) {
    const bytes = Buffer.from(text);
    expect([text, valuesOf(bytes, 0, bytes.length)]).toEqual([text, undefined]);
  }
});
