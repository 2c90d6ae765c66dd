import { expect, test } from 'vitest';
import { card, grid } from './grid.ts';

interface Row {
  name: string;
  size: number;
}

const columns = [
  { title: 'name', value: ({ name }: Row) => name },
  { title: 'size', value: ({ size }: Row) => size, right: true },
];

test('columns stand under their titles, numbers to the right', async () => {
  const rows = [
    { name: 'a', size: 1 },
    { name: 'longer', size: 10000 },
  ];
  expect(await grid(columns, rows)).toBe('name     size\na           1\nlonger  10000');
});

test('an empty list is said to be one', async () => {
  expect(await grid(columns, [])).toBe('none');
  expect(await grid(columns, [], 'no users')).toBe('no users');
});

test('what a name holds does not reach the terminal', async () => {
  const text = await grid(columns, [{ name: '\u001b[31mred', size: 1 }]);
  expect(text).not.toContain('\u001b');
});

test('a card has a line for each property', () => {
  expect(
    card([
      ['state', 'active'],
      ['databases', 16],
    ]),
  ).toBe('state      active\ndatabases  16');
});
