// Commands, the state that they make, and the state as a stream.

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { DocumentState } from './document-state.ts';
import type { StoredText } from './document-state.ts';
import { decodeState, encodeState } from './state-stream.ts';
import { decodeCommand, encodeCommand } from './write-command.ts';
import type { WriteCommand, WriteResult } from './write-command.ts';

const none = (): void => undefined;

const put = (name: string, since: number, expected = 0): WriteCommand => ({
  id: `write ${name}`,
  since,
  writes: [{ collection: 'things', id: name, expected, text: JSON.stringify(name) }],
});

test('a command comes back from its bytes, wherever they lie', () => {
  const write = fc.record({
    collection: fc.constantFrom('a', 'things'),
    id: fc.string({ minLength: 1, unit: 'grapheme' }),
    expected: fc.nat(),
    body: fc.option(fc.jsonValue(), { nil: undefined }),
  });
  fc.assert(
    fc.property(fc.string(), fc.nat(), fc.array(write), fc.nat(9), (id, since, writes, at) => {
      const texts = writes.map(({ body }) =>
        body === undefined ? undefined : JSON.stringify(body),
      );
      const bytes = encodeCommand(id, since, writes as never, texts);
      const padded = Buffer.concat([Buffer.alloc(at), bytes]);
      expect(decodeCommand(padded.subarray(at))).toEqual({
        id,
        since,
        writes: writes.map(({ collection, id: name, expected }, i) => {
          return { collection, id: name, expected, text: texts[i] };
        }),
      });
      expect(() => decodeCommand(Buffer.concat([bytes, Buffer.of(1)]))).toThrow();
    }),
  );
});

test('a command that comes again is not made again, and ends as it did', () => {
  const state = new DocumentState();
  const first = put('a', 0);
  const conflict = put('a', 0);
  conflict.id = 'another';
  expect(state.apply(first, none)).toEqual({ kind: 'written', first: 1, count: 1 });
  const refused = { kind: 'conflict', collection: 'things', id: 'a', expected: 0, found: 1 };
  expect(state.apply(conflict, none)).toEqual(refused);
  expect(state.apply({ ...put('a', 0, 1), id: 'removal' }, none).kind).toBe('written');
  expect(state.apply(first, none)).toEqual({ kind: 'written', first: 1, count: 1 });
  expect(state.apply(conflict, none)).toEqual(refused);
  expect(state.revision).toBe(2);
});

test('of a command whose first attempt would be forgotten nothing is done', () => {
  const state = new DocumentState();
  const early = put('early', 0);
  state.apply(early, none);
  const late = put('late', 0);
  for (let i = 0; i < 1000; i++) state.apply(put(String(i), state.commands), none);
  // The first one is forgotten by now, and with it whether `late` was among those before it.
  expect(state.apply(early, none)).toEqual({ kind: 'forgotten', commands: 1002 });
  expect(state.apply(late, none).kind).toBe('forgotten');
  expect(state.get('things', 'late')).toBeUndefined();
  expect(state.apply({ ...late, since: 1003 }, none).kind).toBe('written');
});

test('a state that went through a stream goes on as the one it was made of', async () => {
  const ids = fc.constantFrom('a', 'b', 'c', 'ü', '漢');
  const command = fc.record({
    id: fc.constantFrom(...Array.from({ length: 20 }, (_, i) => `w${i}`)),
    since: fc.constant(0),
    writes: fc.uniqueArray(
      fc.record({
        collection: fc.constantFrom('x', 'y'),
        id: ids,
        expected: fc.nat(6),
        text: fc.option(fc.json(), { nil: undefined }),
      }),
      { selector: ({ collection, id }) => `${collection}/${id}`, maxLength: 4 },
    ),
  });
  await fc.assert(
    fc.asyncProperty(
      fc.array(command),
      fc.array(command),
      fc.integer({ min: 1, max: 50 }),
      async (before, after, size) => {
        const state = new DocumentState();
        for (const one of before) state.apply(one, none);
        const copy = await decodeState(cut(encodeState(state.head, state.unordered()), size));
        const run = (of: DocumentState): [WriteResult[], StoredText[], number] => [
          after.map((one) => of.apply(one, none)),
          of.all(),
          of.revision,
        ];
        expect(run(copy)).toEqual(run(state));
      },
    ),
    { numRuns: 50 },
  );
});

test('a stream that ends too early is refused', async () => {
  const state = new DocumentState();
  state.apply(put('a', 0), none);
  const chunks: Uint8Array[] = [];
  for await (const chunk of encodeState(state.head, state.unordered())) chunks.push(chunk);
  const whole = Buffer.concat(chunks);
  for (let length = 0; length < whole.length; length++) {
    const part = cut([whole.subarray(0, length)], 1000);
    await expect(decodeState(part), `${length} bytes`).rejects.toThrow();
  }
});

async function* cut(
  chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  size: number,
): AsyncGenerator<Uint8Array> {
  for await (const chunk of chunks) {
    for (let at = 0; at < chunk.length; at += size) yield chunk.subarray(at, at + size);
  }
}
