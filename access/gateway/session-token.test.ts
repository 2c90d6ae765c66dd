import { expect, test } from 'vitest';
import { SeenState } from './session-token.ts';

test('what was seen of a group is known until a leader has done something', () => {
  const state = new SeenState();
  expect(state.needs(20)).toBe(0);
  state.moved();
  expect(state.needs(20)).toBe(Infinity);
  state.saw(20, 7);
  expect(state.needs(20)).toBe(7);
  state.saw(20, 5);
  expect(state.needs(20)).toBe(7);
  expect(state.needs(21)).toBe(Infinity);
});

test('a token carries it on', () => {
  const state = new SeenState();
  state.saw(20, 7);
  state.saw(300, 2 ** 40);
  const next = SeenState.parse(state.token())!;
  expect([next.needs(20), next.needs(300), next.needs(21)]).toEqual([7, 2 ** 40, 0]);
  expect(next.groups).toEqual([20, 300]);
});

test.each(['', 'x', '!!!', 'AQ', 'Ag', 'ARQ', 'A'.repeat(100_000), 'Af____________'])(
  'a token that is none is refused, or says nothing: %s',
  (text) => {
    expect(SeenState.parse(text)?.groups).toEqual(text === 'AQ' ? [] : undefined);
  },
);
