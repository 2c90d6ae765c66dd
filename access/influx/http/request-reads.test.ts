import { expect, test } from 'vitest';
import { anyAge } from '../../../contracts/table-properties.ts';
import { SeenState } from '../../gateway/session-token.ts';
import { HttpError } from './http-error.ts';
import { requestReads } from './request-reads.ts';

const of = (consistency?: string, session?: string) =>
  requestReads({
    ...(consistency !== undefined && { 'x-polyrow-consistency': consistency }),
    ...(session !== undefined && { 'x-polyrow-session': session }),
  });

test.each([
  ['strong', 'strong'],
  [' Eventual ', anyAge],
  ['bounded; ms=500', { maxStalenessMs: 500, maxLagEntries: 10_000 }],
  ['bounded;entries=3;ms=0', { maxStalenessMs: 0, maxLagEntries: 3 }],
])('%s', (text, reads) => {
  expect(of(text)).toEqual({ reads, session: undefined });
});

test('without headers the database decides', () => {
  expect(of()).toEqual({ reads: undefined, session: undefined });
});

test.each([
  '',
  'lease',
  'strong; ms=5',
  'eventual;',
  'bounded',
  'bounded; entries=5',
  'bounded; ms=-1',
  'bounded; ms=1.5',
  'bounded; ms=5; ms',
  'bounded; ms=99999999999999999',
  'bounded; ms=5; __proto__=3',
  'session; ms=5',
  'strong, eventual',
])('the header %j is refused', (text) => {
  expect(() => of(text)).toThrow(HttpError);
});

test('a session begins with nothing, or goes on from a token', () => {
  const begun = of('session');
  expect(begun.session!.groups).toEqual([]);
  expect(begun.reads).toEqual({ ...anyAge, session: begun.session });
  const seen = new SeenState();
  seen.saw(20, 7);
  for (const consistency of ['session', undefined]) {
    const { reads, session } = of(consistency, seen.token());
    expect(session!.needs(20)).toBe(7);
    expect(reads).toEqual({ ...anyAge, session });
  }
});

test('a token goes along with another consistency', () => {
  const seen = new SeenState();
  seen.saw(20, 7);
  const bounded = of('bounded; ms=5', seen.token());
  expect(bounded.reads).toMatchObject({ maxStalenessMs: 5, session: bounded.session });
  const strong = of('strong', seen.token());
  expect([strong.reads, strong.session!.needs(20)]).toEqual(['strong', 7]);
});

test.each(['', 'x', 'A'.repeat(10_000)])('a token that is none is refused: %s', (token) => {
  expect(() => of('session', token)).toThrow('invalid X-Polyrow-Session header');
});
