// Library functions on large input stop where the instructions of a step are used up.

import { expect, test } from 'vitest';
import { Environment } from './environment.ts';
import { scriptLimits } from './script-state.ts';
import { Program } from './program.ts';
import { Pending } from './values.ts';

/**
 * Result of a program in the stepping form, and the most instructions that one of its steps took.
 */
function inSteps(source: string): { result: unknown; longest: number; steps: number } {
  const environment = new Environment({ isStepping: true, limits: scriptLimits });
  environment.begin(0.5);
  const { machine } = environment;
  const work = environment.main(new Program(source, 'test'))();
  if (!(work instanceof Pending)) throw new Error('the program does not yield');
  let longest = 0;
  let steps = 0;
  for (;;) {
    const before = machine.used;
    const { done, value } = work.next();
    steps++;
    longest = Math.max(longest, machine.used - before);
    if (done === true) return { result: value, longest, steps };
  }
}

// The last operation of a step is counted after it is done.
const most = 8 * scriptLimits.stepBudget;

test.each([
  ['a long list', 'local t = {} for i = 1, 50000 do t[i] = i end return #cjson.encode(t)', 288_895],
  ['a long text', `return #cjson.encode(string.rep('a"', 500000))`, 1_500_002],
  [
    'an object of long texts',
    `local s = string.rep('x', 100000) return #cjson.encode({[s] = {s, s}})`,
    300_012,
  ],
  [
    'many small tables',
    `local t = {} for i = 1, 20000 do t[i] = {} end return #cjson.encode(t)`,
    60_001,
  ],
])('cjson.encode of %s', (_, source, result) => {
  const run = inSteps(source);
  expect(run.result).toBe(result);
  expect(run.steps).toBeGreaterThan(5);
  expect(run.longest).toBeLessThan(most);
});

test.each([
  ['a long list', `return #cjson.decode('[' .. string.rep('12345,', 50000) .. '1]')`, 50_001],
  ['a long text', `return #cjson.decode('"' .. string.rep('a\\\\n', 300000) .. '"')`, 600_000],
  [
    'an object of long texts',
    `local s = string.rep('x', 200000) return #cjson.decode('{"' .. s .. '":"' .. s .. '"}')[s]`,
    200_000,
  ],
  [
    'nested lists',
    `return #cjson.decode('[' .. string.rep('[[1],{"a":2}],', 20000) .. '0]')`,
    20_001,
  ],
])('cjson.decode of %s', (_, source, result) => {
  const run = inSteps(source);
  expect(run.result).toBe(result);
  expect(run.steps).toBeGreaterThan(5);
  expect(run.longest).toBeLessThan(most);
});

test.each([
  ['pack', 'return #cmsgpack.pack(t)', 200_008],
  ['unpack', 'local u = cmsgpack.unpack(cmsgpack.pack(t)) return #u + #u[50001].a', 50_002],
])('cmsgpack.%s', (_, source, result) => {
  const make = `local t = {} for i = 1, 50000 do t[i] = 'abc' end t[50001] = {a = {1}} `;
  const run = inSteps(make + source);
  expect(run.result).toBe(result);
  expect(run.steps).toBeGreaterThan(5);
  expect(run.longest).toBeLessThan(most);
});

test.each([
  ['find', `return (string.find(string.rep('a', 1000000) .. 'b', 'c*b'))`, 1_000_001],
  ['match', `return #string.match(string.rep(' ', 1000000) .. 'xyz', '%a+')`, 3],
  [
    'gmatch',
    `local n = 0 for w in string.gmatch(string.rep('a' .. string.rep(' ', 99), 10000), '%a') do n = n + 1 end return n`,
    10_000,
  ],
])('string.%s on a long text', (_, source, result) => {
  const run = inSteps(source);
  expect(run.result).toBe(result);
  expect(run.steps).toBeGreaterThan(5);
  expect(run.longest).toBeLessThan(most);
});

test.each([
  [
    'matches',
    `local n = 0 for w in string.gmatch(string.rep('a', 100000), 'a') do n = n + 1 end return n`,
    100_000,
  ],
  ['replacements', `return #string.gsub(string.rep('a', 200000), 'a', 'bb')`, 400_000],
  [
    'comparisons',
    `local t = {} for i = 1, 20000 do t[i] = 'x' .. (i * 7919) % 20000 end table.sort(t) return #t`,
    20_000,
  ],
])('many %s count for what they take', (_, source, result) => {
  const run = inSteps(source);
  expect(run.result).toBe(result);
  expect(run.steps).toBeGreaterThan(150);
  expect(run.longest).toBeLessThan(most);
});

test('a match from one place is refused when it takes long, however long the text is', () => {
  expect(() => inSteps(`return string.find(string.rep('a', 4000000), '(.-)x')`)).toThrow();
});

test('a text that is too long for %q is refused', () => {
  expect(() => inSteps(`return string.format('%q', string.rep('"', 200000))`)).toThrow();
  const quoted = inSteps(
    `for i = 1, 1e5 do end return #string.format('%q', string.rep('"', 1000))`,
  );
  expect(quoted.result).toBe(2002);
});

test.each([
  ['upper', `return string.upper(s):sub(-4)`, 'XYZA'],
  ['lower', `return string.lower(s):sub(1, 4)`, 'axyz'],
  [
    'reverse',
    `return s:reverse():sub(1, 8) .. s:reverse():reverse():sub(1, 8)`,
    'azyxazyxaxyzaxyz',
  ],
])('string.%s of a long text', (_, source, result) => {
  const run = inSteps(
    `local s = string.rep('axyz', 200000) .. 'a' s = s:sub(1, -2) .. 'a' ${source}`,
  );
  expect(run.result).toBe(result);
  expect(run.steps).toBeGreaterThan(5);
  expect(run.longest).toBeLessThan(most);
});
