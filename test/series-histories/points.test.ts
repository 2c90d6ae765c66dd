// The judge of histories of time series must tell answers that one copy could give from those that none could.

import { expect, test } from 'vitest';
import { Points } from './points.ts';

/** Steps of clients: `w1` calls a write of 1, `w1.` is its answer, `w1?` says that there is none; `r`, `r.1` the same of a read of 1. */
function judge(steps: string): void {
  const points = new Points();
  const calls = new Map<string, number>();
  for (const step of steps.split(' ')) {
    const [, kind, id, end, value] = /^([wr])(\d*)([.?]?)(\d*)$/.exec(step)!;
    const name = `${kind}${id}`;
    if (end === '') calls.set(name, points.tick());
    else if (kind === 'w') points.wrote('p', id!, calls.get(name)!, end === '.');
    else points.read('p', value || undefined, calls.get(name)!);
  }
  points.check();
}

test.each([
  ['a read of what was written', 'w1 w1. r r.1'],
  ['a read during a write, of either value', 'w1 w1. w2 r r.1 r r.2 w2.'],
  ['a write without an answer that is never seen', 'w1 w1. w2 w2? r r.1'],
  ['a write without an answer that is seen late', 'w1 w1. w2 w2? r r.1 r r.2'],
  ['nothing before the first write', 'r r. w1 w1. r r.1'],
  ['two writes at once, in either order', 'w1 w2 w1. w2. r r.1'],
  ['reads at once that see one and the next', 'w1 w1. w2 r5 r6 r6.2 r5.1 w2.'],
])('%s', (_, steps) => judge(steps));

test.each([
  ['a stale read', 'w1 w1. w2 w2. r r.1'],
  ['an acknowledged write that is lost', 'w1 w1. r r.'],
  ['a value that goes back', 'w1 w1. w2 r r.2 r r.1 w2.'],
  ['a write without an answer that comes back', 'w1 w1. w2 w2? r r.2 w3 w3. r r.3 r r.2'],
  ['a write sent again over a later one', 'w1 w2 w1. w2. r r.2 r r.1'],
  ['a value before its write', 'r r.1 w1 w1.'],
])('not %s', (_, steps) => expect(() => judge(steps)).toThrow());

function listed(deletion: 'before' | 'during' | 'after' | 'none', found: string[]): void {
  const points = new Points();
  if (deletion === 'before') points.deleting('all').done();
  const under = deletion === 'during' ? points.deleting('all') : undefined;
  points.added('e', ['all'], points.tick(), true);
  if (deletion === 'after') points.deleting('all').done();
  points.listed('all', new Set(found), points.tick());
  under?.done();
}

test.each([
  ['none', ['e']],
  ['before', ['e']],
  ['during', ['e']],
  ['during', []],
  ['after', []],
] as const)('with a deletion %s, %j may be listed', (deletion, found) =>
  listed(deletion, [...found]),
);

test.each([
  ['none', []],
  ['before', []],
  ['after', ['e']],
] as const)('with a deletion %s, %j may not be listed', (deletion, found) =>
  expect(() => listed(deletion, [...found])).toThrow(),
);

function missing(drop: 'before' | 'during' | 'after' | 'none'): void {
  const points = new Points();
  if (drop === 'before') points.changing('d', false).done();
  points.changing('d', true).done();
  const call = points.tick();
  const under = drop === 'during' ? points.changing('d', false) : undefined;
  if (drop === 'after') points.changing('d', false).done();
  points.missing('d', call);
  under?.done();
}

test.each(['during', 'after'] as const)(
  'a database with a drop %s its making may be missing',
  (drop) => missing(drop),
);

test.each(['none', 'before'] as const)('a database with a drop %s may not be missing', (drop) =>
  expect(() => missing(drop)).toThrow(),
);
