import { expect, test } from 'vitest';
import { Arguments } from '../../universal-row/arguments.ts';
import { allCommands } from './commands/all.ts';
import { CommandRegistry } from './commands/registry.ts';
import { KeptCommands } from './kept-commands.ts';

const registry = new CommandRegistry(allCommands);

/** Words somewhere within a buffer, with other bytes between them. */
function argumentsOf(words: readonly string[]): Arguments {
  const args = new Arguments(words.length);
  args.buf = Buffer.from(`before ${words.map((word) => `${word}\r\n$9\r\n`).join('')}`);
  let at = 7;
  for (const [i, word] of words.entries()) {
    args.starts[i] = at;
    args.lens[i] = word.length;
    at += word.length + 6;
  }
  args.count = words.length;
  return args;
}

test('commands are kept with their words until all are cleared, of any number and size', () => {
  const kept = new KeptCommands();
  for (const sizes of [[3], [1, 500, 40], [200_000, 2], [5, 5, 5, 5]]) {
    const commands = sizes.map((size, i) => [
      'mset',
      ...Array.from({ length: 1 + (size % 300) }, (_, k) => `${i}.${k}`),
      'v'.repeat(size),
    ]);
    for (const [i, words] of commands.entries()) {
      const args = argumentsOf(words);
      kept.push(registry.lookup(args)!, args, i * 65_536);
      args.buf.fill(0);
    }
    expect(kept.count).toBe(sizes.length);
    for (const [i, words] of commands.entries()) {
      const args = kept.words(i);
      expect(Array.from(words, (_, k) => args.latin1(k))).toEqual(words);
      expect(args.count).toBe(words.length);
      expect(kept.entry(i).fullName).toBe('mset');
      expect(kept.number(i)).toBe(i * 65_536);
    }
    kept.clear();
    expect([kept.count, kept.bytes]).toEqual([0, 0]);
  }
});
