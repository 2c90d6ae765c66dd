import { text } from 'node:stream/consumers';
import { setImmediate as nextTick } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { itemsAtOnce, longList } from './long-lists.ts';

const list = (count: number) => ({
  tokens: Array.from({ length: count }, (_, id) => ({ id, description: `"token" ${id}` })),
});

test('a long list is written in pieces, between which others are served', async () => {
  const answer = list(20 * itemsAtOnce + 1);
  let written = 0;
  const counted = answer.tokens.map((token) => ({ ...token, toJSON: () => (written++, token) }));
  const stream = longList({ tokens: counted })!;
  let ended = false;
  let most = 0;
  const others = (async () => {
    while (!ended) {
      const before = written;
      await nextTick();
      most = Math.max(most, written - before);
    }
  })();
  expect(await text(stream)).toBe(JSON.stringify(answer));
  ended = true;
  await others;
  expect(written).toBe(answer.tokens.length);
  // A turn may come between two of the other's.
  expect(most).toBeLessThanOrEqual(2 * itemsAtOnce);
});

test('other answers are left as they are', () => {
  for (const answer of [undefined, null, 'text', {}, list(itemsAtOnce), { n: 1 }]) {
    expect(longList(answer)).toBeUndefined();
  }
  expect(longList({ ...list(itemsAtOnce + 1), more: true })).toBeUndefined();
});
