// A script's answer of any size is written in steps, and is the same as one written in one go.

import { expect, test } from 'vitest';
import { RespWriter } from '../../access/redis/resp-writer.ts';
import { Environment } from '../../universal-row/scripting/environment.ts';
import { LuaTable, type Value } from '../../universal-row/scripting/values.ts';
import { answerInSteps, answerWith } from '../../universal-row/transforms/redis/scripts/answer.ts';

const { machine } = new Environment({ isStepping: true });
const form = { version: 2, machine };

function writer(): RespWriter {
  return new RespWriter(1024);
}

function withField(name: string, value: Value): LuaTable {
  const table = new LuaTable();
  table.set(name, value);
  return table;
}

const numbers = (count: number): Value[] => Array.from({ length: count }, (_, n) => n);
const nested = (depth: number): Value =>
  depth === 0 ? 'leaf' : new LuaTable([depth, nested(depth - 1)]);

test.each<[string, Value, number]>([
  ['many numbers', new LuaTable(numbers(20_000)), 39],
  ['long strings', new LuaTable(numbers(40).map(() => 's'.repeat(64 * 1024))), 19],
  ['many lists of few', new LuaTable(numbers(5000).map((n) => new LuaTable([n, 'v']))), 25],
  ['a long list within a list', new LuaTable(['a', new LuaTable(numbers(5000))]), 9],
  ['few elements', new LuaTable(numbers(100)), 0],
  ['an error', withField('err', 'ERR it fails'), 0],
  ['statuses in a list', new LuaTable(numbers(2000).map(() => withField('ok', 'FINE'))), 3],
  ['lists within lists', nested(50), 0],
  ['a string', 'text', 0],
])('%s', (_what, value, leastSteps) => {
  const whole = writer();
  answerWith(whole, value, form);
  const inSteps = writer();
  let steps = 0;
  let most = 0;
  let from = 0;
  for (const _ of answerInSteps(inSteps, value, form)) {
    steps++;
    most = Math.max(most, inSteps.pos - from);
    from = inSteps.pos;
  }
  expect(inSteps.buf.subarray(0, inSteps.pos).equals(whole.buf.subarray(0, whole.pos))).toBe(true);
  expect(steps).toBeGreaterThanOrEqual(leastSteps);
  expect(most).toBeLessThan(256 * 1024);
});

test('lists that are too deep are refused as in one go', () => {
  const deep = nested(150);
  const message = 'ERR reached lua stack limit';
  expect(() => answerWith(writer(), deep, form)).toThrow(message);
  expect(() => [...answerInSteps(writer(), deep, form)]).toThrow(message);
});
