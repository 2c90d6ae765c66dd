import { expect, test } from 'vitest';
import { Script } from './script.ts';

test.each([
  ['too many tokens', 'x=1 '.repeat(30_000), 'user_script:1: chunk has more than 32768 tokens'],
  [
    'too many bytes',
    `--${'x'.repeat(1 << 20)}`,
    'user_script:1: chunk has more than 1048576 bytes',
  ],
])('a script of %s is refused before it is compiled', (_what, source, message) => {
  expect(() => new Script(source)).toThrow(`ERR Error compiling script (new function): ${message}`);
});

test('a long script of few tokens is compiled', () => {
  expect(new Script(`--${'x'.repeat(1 << 19)}\nreturn 1`).sha).toHaveLength(40);
});

test('a first line of quotes that are not closed is refused unread', () => {
  // Read to its end from each of them, it would take a day.
  const line = '\\"'.repeat(1 << 22);
  expect(() => new Script(`#!lua ${line}\nreturn 1`)).toThrow('ERR Invalid script shebang');
});
