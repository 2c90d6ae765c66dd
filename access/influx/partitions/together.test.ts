import { expect, test } from 'vitest';
import { inOneGo, type Slices, whenFinished } from '../../../universal-row/slices.ts';
import { together } from './together.ts';

/** Notes when it begins, ends and is ended. */
function* work(name: string, steps: number, log: string[], fails = false): Slices<string> {
  let ended = false;
  log.push(`${name} begins`);
  try {
    for (let step = 0; step < steps; step++) yield;
    if (fails) throw new Error(`${name} fails`);
    ended = true;
    log.push(`${name} ends`);
    return name;
  } finally {
    if (!ended) log.push(`${name} is ended`);
  }
}

test('all begin before the first goes on, and results are in order', () => {
  const log: string[] = [];
  const slices = together([work('a', 2, log), work('b', 0, log), work('c', 1, log)]);
  slices.next();
  expect(log).toEqual(['a begins', 'b begins', 'b ends', 'c begins']);
  expect(inOneGo(slices)).toEqual(['a', 'b', 'c']);
});

test('promises are waited for', async () => {
  function* waiting(): Slices<string> {
    yield Promise.resolve();
    return 'waited';
  }
  expect(await whenFinished(together([waiting(), waiting()]))).toEqual(['waited', 'waited']);
});

test('a failure ends the others, and releases what there is', () => {
  for (const steps of [0, 1, 3]) {
    const log: string[] = [];
    const released: string[] = [];
    const all = [
      work('a', 0, log),
      work('b', steps, log, true),
      work('c', 0, log),
      work('d', 9, log),
    ];
    expect(() => inOneGo(together(all, (result) => released.push(result)))).toThrow('b fails');
    // Of a failure in the first step the later ones had not begun.
    expect(released).toEqual(steps === 0 ? ['a'] : ['a', 'c']);
    expect(log).toContain('b is ended');
    expect(log.includes('d is ended')).toBe(steps > 0);
  }
});

test('so does a caller that gives up', () => {
  const log: string[] = [];
  const released: string[] = [];
  const slices = together([work('a', 0, log), work('b', 5, log)], (one) => released.push(one));
  slices.next();
  slices.return([]);
  expect(released).toEqual(['a']);
  expect(log).toContain('b is ended');
});
