import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Reply } from '../reply.ts';
import { copyValue, copyValues, LongValues, ValueWriter } from './values.ts';
import { WireError, WireReader } from './wire.ts';

/** A value as calls of `Reply`. */
type Call = readonly [method: string, ...args: unknown[]];

const anyLeaf: fc.Arbitrary<Call[]> = fc.oneof(
  fc.constantFrom<Call[]>([['ok']], [['nil']], [['nilArray']]),
  fc.string({ maxLength: 40 }).map((text): Call[] => [['simple', text]]),
  fc.string({ unit: 'grapheme', maxLength: 40 }).map((text): Call[] => [['error', text]]),
  fc.maxSafeInteger().map((value): Call[] => [['integer', value]]),
  fc.bigInt({ min: -(2n ** 64n), max: 2n ** 64n }).map((value): Call[] => [['bigInteger', value]]),
  fc.uint8Array({ maxLength: 300 }).map((bytes): Call[] => {
    const b = Buffer.from(bytes);
    return [['bulk', b, 0, b.length]];
  }),
  fc.string({ unit: 'grapheme', maxLength: 200 }).map((text): Call[] => [['text', text]]),
  fc.string({ unit: 'grapheme', maxLength: 200 }).map((text): Call[] => [['verbatim', text]]),
  fc.double().map((value): Call[] => [['double', value]]),
  fc.double().map((value): Call[] => [['double', value, String(value)]]),
  fc.boolean().map((value): Call[] => [['boolean', value]]),
);

const { value: anyValue } = fc.letrec<{ value: Call[] }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    anyLeaf,
    fc
      .tuple(fc.constantFrom('array', 'set', 'map'), fc.array(tie('value'), { maxLength: 6 }))
      .map(([kind, items]) => {
        const whole = kind === 'map' ? items.slice(0, items.length & ~1) : items;
        const count = kind === 'map' ? whole.length / 2 : whole.length;
        return [[kind, count] as Call, ...whole.flat()];
      }),
  ),
}));

function play(calls: readonly Call[], reply: Reply): void {
  const methods = reply as unknown as Record<string, (...args: unknown[]) => void>;
  for (const [method, ...args] of calls) methods[method]!.apply(reply, args);
}

/** Calls made on a reply, with bytes copied and equivalent forms made equal. */
function recording(): { calls: unknown[]; reply: Reply } {
  const calls: unknown[] = [];
  const reply = new Proxy({} as Reply, {
    get:
      (_target, method: string) =>
      (...args: unknown[]) => {
        if (method === 'bulk') {
          const [b, s, n] = args as [Buffer, number, number];
          calls.push(['bulk', b.toString('latin1', s, s + n)]);
        } else if (method === 'text') {
          calls.push(['bulk', Buffer.from(args[0] as string).toString('latin1')]);
        } else if (method === 'integer' || method === 'bigInteger') {
          calls.push(['integer', String(args[0])]);
        } else if (method === 'double') {
          calls.push(['double', ...args.filter((one) => one !== undefined)]);
        } else calls.push([method, ...args]);
      },
  });
  return { calls, reply };
}

function told(calls: readonly Call[]): unknown[] {
  const { calls: heard, reply } = recording();
  play(calls, reply);
  return heard;
}

test('values arrive as they were answered', () => {
  fc.assert(
    fc.property(fc.array(anyValue, { maxLength: 5 }), (values) => {
      const writer = new ValueWriter(16);
      for (const calls of values) play(calls, writer);
      const all = recording();
      copyValues(new WireReader(writer.view()), all.reply);
      expect(all.calls).toEqual(values.flatMap(told));

      // One by one, as EXEC needs them.
      const reader = new WireReader(writer.view());
      for (const calls of values) {
        const one = recording();
        copyValue(reader, one.reply);
        expect(one.calls).toEqual(told(calls));
      }
      reader.done();
    }),
  );
});

test('a long answer has no value in two parts, and is what the values are', () => {
  fc.assert(
    fc.property(fc.array(anyValue, { maxLength: 5 }), fc.nat(3), (values, big) => {
      const whole = values.flat();
      const block = Buffer.alloc(200_000, 'x');
      const calls: Call[] = whole.flatMap((call, i): Call[] =>
        i % 4 === big ? [call, ['bulk', block, 0, block.length]] : [call],
      );
      const writer = new ValueWriter(16);
      play(calls, writer);
      const long = new LongValues(undefined);
      play(calls, long);
      const parts = long.take();
      expect(Buffer.concat(parts).equals(writer.view())).toBe(true);
      const { calls: heard, reply } = recording();
      for (const part of parts) copyValues(new WireReader(part), reply);
      expect(heard).toEqual(told(calls));
    }),
    { numRuns: 30 },
  );
});

test('a collection whose count is known last, and an answer that is taken back', () => {
  for (const writer of [new ValueWriter(16), new LongValues(undefined)]) {
    writer.integer(1);
    const mark = writer.open();
    for (let i = 0; i < 300; i++) writer.text('x'.repeat(2000));
    writer.close(mark, 'array', 300);
    const end = writer.mark();
    for (let i = 0; i < 300; i++) writer.text('y'.repeat(2000));
    writer.rollback(end);
    writer.ok();
    const { calls, reply } = recording();
    const parts = writer instanceof LongValues ? writer.take() : [writer.view()];
    for (const part of parts) copyValues(new WireReader(part), reply);
    expect(calls.slice(0, 3)).toEqual([
      ['integer', '1'],
      ['array', 300],
      ['bulk', 'x'.repeat(2000)],
    ]);
    expect(calls.length).toBe(303);
    expect(calls.at(-1)).toEqual(['ok']);
  }
});

test('what was answered so far goes on as a long answer', () => {
  const writer = new ValueWriter(64);
  writer.text('before');
  const mark = writer.mark();
  writer.text('begun');
  const long = writer.fork(mark);
  long.text('ended');
  const { calls, reply } = recording();
  copyValues(new WireReader(writer.view()), reply);
  for (const part of long.take()) copyValues(new WireReader(part), reply);
  expect(calls).toEqual([
    ['bulk', 'before'],
    ['bulk', 'begun'],
    ['bulk', 'ended'],
  ]);
});

test('a long answer can be divided, and both parts go on', () => {
  for (const split of [0, 1, 2, 3]) {
    const long = new LongValues(undefined);
    const marks = [0];
    for (const text of ['a', 'b', 'c']) {
      long.text(text.repeat(3000));
      marks.push(long.mark());
    }
    const rest = long.fork(marks[split]!);
    long.text('x');
    rest.text('y');
    const told = (one: LongValues): string[] => {
      const { calls, reply } = recording();
      for (const part of one.take()) copyValues(new WireReader(part), reply);
      return calls.map((call) => (call as string[])[1]!.slice(0, 1));
    };
    const all = ['a', 'b', 'c'];
    expect([told(long), told(rest)]).toEqual([
      [...all.slice(0, split), 'x'],
      [...all.slice(split), 'y'],
    ]);
  }
});

test('bytes that are no values are refused, and nothing is read past their end', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      const { reply } = recording();
      for (const copy of [copyValue, copyValues]) {
        try {
          copy(new WireReader(Buffer.from(bytes)), reply);
        } catch (error) {
          expect(error).toBeInstanceOf(WireError);
        }
      }
    }),
  );
});

test('values within one another are bounded', () => {
  const bytes = Buffer.alloc(2000, 0);
  for (let i = 0; i < bytes.length; i += 2) bytes.set([13, 1], i);
  expect(() => copyValue(new WireReader(bytes), recording().reply)).toThrow(WireError);
});
