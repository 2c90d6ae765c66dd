import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { allCommands } from '../../access/redis/commands/all.ts';
import { commandRows, commandsDocs } from './redis-commands.ts';
import { differences, missingCommands } from './redis-differences.ts';

const file = new URL('../../docs/commands.md', import.meta.url);

test('docs/commands.md is what the command table says (polyrow commands docs)', () => {
  expect(readFileSync(file, 'utf8')).toBe(commandsDocs());
});

describe('docs/commands.md', () => {
  const docs = commandsDocs();
  const lines = docs.split('\n');

  test('has a row for every command, its subcommands included, and no row twice', () => {
    for (const { name, subcommands } of allCommands.flat()) {
      const names = subcommands?.map((sub) => `${name} ${sub.name}`) ?? [name];
      for (const shown of names) {
        const rows = lines.filter((line) => line.startsWith(`| \`${shown.toUpperCase()}\` |`));
        expect(rows, shown).toHaveLength(1);
      }
    }
  });

  test('has seven cells in every row', () => {
    const rows = lines.filter((line) => line.startsWith('| `'));
    expect(rows).toHaveLength(commandRows().length);
    for (const row of rows) expect(row.match(/(?<!\\)\|/g), row).toHaveLength(8);
  });

  test('says how a command runs', () => {
    const row = (name: string) => lines.find((line) => line.startsWith(`| \`${name}\` |`));
    expect(row('SET')).toContain('| -3 | put `set` | write denyoom | 1.0.0 |');
    expect(row('CLIENT TRACKING')).toContain('| connection |');
    expect(row('CLIENT TRACKING')).toContain('The limit of tracked keys');
    expect(row('BLPOP')).toContain('may wait');
  });
});

describe('what is said of differences', () => {
  const known = new Set(
    allCommands
      .flat()
      .flatMap(({ name, subcommands = [] }) => [
        name,
        ...subcommands.map((sub) => `${name}|${sub.name}`),
      ]),
  );

  test('is about commands that have a row to show it in', () => {
    const rows = new Set(commandRows().map(({ fullName }) => fullName));
    const strangers = differences.flatMap(({ commands }) => commands.filter((c) => !rows.has(c)));
    expect(strangers).toEqual([]);
  });

  test('calls nothing missing that is there', () => {
    const there = missingCommands.flatMap(({ commands }) => commands.filter((c) => known.has(c)));
    expect(there).toEqual([]);
  });
});
