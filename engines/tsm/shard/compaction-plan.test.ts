import { expect, test } from 'vitest';
import type { TsmFile } from '../parts.ts';
import { fullGroup, levelGroup } from './compaction-plan.ts';

/** Files as `level:bytes`. */
function filesOf(text: string): { level: number; file: TsmFile; name: string }[] {
  return text.split(' ').map((name) => {
    const [level, bytes] = name.split(':').map(Number);
    return { name, level: level!, file: { bytes: bytes! } as TsmFile };
  });
}

const names = (group: readonly { name: string }[]): string =>
  group.map(({ name }) => name).join(' ');

test('four neighbours of a level and more are merged, the oldest first', () => {
  const check = (files: string, expected: string) =>
    expect(names(levelGroup(filesOf(files), 100)), files).toBe(expected);
  check('0:1 0:2 0:3', '');
  check('0:1 0:2 0:3 0:4', '0:1 0:2 0:3 0:4');
  check('2:9 0:1 0:2 0:3 0:4 0:5', '0:1 0:2 0:3 0:4 0:5');
  check('1:9 1:8 1:7 1:6 0:1 0:2 0:3 0:4', '1:9 1:8 1:7 1:6');
  check('1:9 1:8 1:7 0:1 0:2 0:3', '');
  // Together they would be too much.
  check('1:40 1:40 1:40 1:40', '');
  check('1:90 1:40 1:20 1:20 1:10 1:5', '1:40 1:20 1:20 1:10 1:5');
});

test('all are made as few as the size allows', () => {
  const check = (files: string, expected: string, rewritten: readonly string[] = []) =>
    expect(names(fullGroup(filesOf(files), 100, ({ name }) => rewritten.includes(name)))).toBe(
      expected,
    );
  check('0:1', '');
  check('0:1', '0:1', ['0:1']);
  check('3:50 1:20 0:1', '3:50 1:20 0:1');
  check('3:90 1:20 0:1', '1:20 0:1');
  check('3:200 3:90', '');
  check('3:200 3:90', '3:90', ['3:90']);
});
