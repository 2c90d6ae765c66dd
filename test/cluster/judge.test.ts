// The judge of histories: what no single copy could have given is found, and operations of unknown outcome, however
// many, leave no history undecided.

import { expect, test } from 'vitest';
import { judge, judgeTool, type Operation } from './linearizability/workload.ts';

const tool = await judgeTool();

function verdict(history: readonly Operation[]): Promise<string> {
  return judge((tool as { path: string }).path, history);
}

type Outcome = Pick<Operation, 'result' | 'expected' | 'return'>;

function write(value: string, call: number, outcome: Outcome = {}): Operation {
  return { client: 1, key: 'r', op: 'set', value, call, ...outcome };
}

function read(result: string, call: number): Operation {
  return { client: 2, key: 'r', op: 'get', result, call, return: call + 1 };
}

function swap(expected: string, value: string, call: number, outcome: Outcome = {}): Operation {
  return { client: 3, key: 'r', op: 'cas', expected, value, call, ...outcome };
}

function append(value: string, call: number, outcome: Outcome = {}): Operation {
  return { client: 1, key: 'l', op: 'append', value, call, ...outcome };
}

function list(result: string, call: number): Operation {
  return { client: 2, key: 'l', op: 'list', result, call, return: call + 1 };
}

function add(value: string, call: number, outcome: Outcome = {}): Operation {
  return { client: 1, key: 's', op: 'add', value, call, ...outcome };
}

function members(result: string, call: number): Operation {
  return { client: 2, key: 's', op: 'members', result, call, return: call + 1 };
}

const added = { result: '1', return: 2 };
const done = { result: '', return: 2 };

test.skipIf('missing' in tool).each<[string, string, Operation[]]>([
  ['a write, then its value', 'ok', [write('a', 1, done), read('a', 3)]],
  ['a write, then the value before it', 'illegal r', [write('a', 1, done), read('', 3)]],
  ['an unknown write that is seen late', 'ok', [write('a', 1), read('', 3), read('a', 5)]],
  ['one that is seen and then undone', 'illegal r', [write('a', 1), read('a', 3), read('', 5)]],
  ['a value that nobody wrote', 'illegal r', [write('a', 1), read('b', 3)]],
  ['a value before it was written', 'illegal r', [read('a', 1), write('a', 5)]],
  [
    'a swap of unknown outcome, of a value that it proves',
    'ok',
    [write('a', 1), swap('a', 'b', 3), read('b', 5)],
  ],
  [
    'two swaps of the same value',
    'illegal r',
    [swap('', 'a', 1, { result: '1', return: 2 }), swap('', 'b', 3, { result: '1', return: 4 })],
  ],
  [
    'two swaps of the same value, their outcomes unknown, both seen',
    'illegal r',
    [swap('', 'a', 1), swap('', 'b', 1), read('a', 3), read('b', 5)],
  ],
  ['an append that a list lacks', 'illegal l', [append('1', 1, done), list('', 3)]],
  ['an unknown append before a list without it', 'ok', [append('1', 1), list('', 3)]],
  ['an element twice', 'illegal l', [append('1', 1), list('1,1', 3)]],
  [
    'an unknown append that only a length tells of',
    'ok',
    [append('1', 1), append('2', 3, { result: '2', return: 4 }), list('1,2', 5)],
  ],
  [
    'members in an order of their own',
    'ok',
    [add('10', 1, added), add('9', 3), members('9,10', 5)],
  ],
  ['a member that is missing', 'illegal s', [add('1', 1, added), members('', 3)]],
  ['an unknown member that is not there', 'ok', [add('1', 1), members('', 3)]],
  ['one that is there and then not', 'illegal s', [add('1', 1), members('1', 3), members('', 5)]],
  ['a member that nobody added', 'illegal s', [add('1', 1, added), members('1,2', 3)]],
  ['a member twice', 'illegal s', [add('1', 1, added), members('1,1', 3)]],
  ['a new member that was there before', 'illegal s', [add('1', 1, { result: '0', return: 2 })]],
])('%s is %s', async (_, expected, history) => {
  expect(await verdict(history)).toBe(expected);
});

test.skipIf('missing' in tool)('a thousand writes of unknown outcome are judged', async () => {
  const writes = Array.from({ length: 1000 }, (_, i) => write(`w${i}`, i));
  const swaps = Array.from({ length: 1000 }, (_, i) => swap(`w${i}`, `s${i}`, i));
  const appends = Array.from({ length: 1000 }, (_, i) => append(`a${i}`, i));
  const seen = [read('w10', 2000), read('s10', 2002), read('w900', 2004)];
  const lists = [list('a5,a999,a7', 3000), append('b', 3002, { result: '4', return: 3003 })];
  const last = list('a5,a999,a7,b', 4000);
  const history = [...writes, ...swaps, ...seen, ...appends, ...lists, last];
  expect(await verdict(history)).toBe('ok');
  expect(await verdict([...history, read('w10', 5000)])).toBe('illegal r');
  expect(await verdict([...history, list('a5,a999,b', 5000)])).toBe('illegal l');
});
