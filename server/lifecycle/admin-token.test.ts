import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { openAdminToken } from './admin-token.ts';
import { DataDirectory } from './data-directory.ts';

let data: DataDirectory;
let file: string;

beforeEach(() => {
  data = DataDirectory.open(mkdtempSync(join(tmpdir(), 'polyrow-token-')));
  file = data.file('admin-token');
});
afterEach(() => rmSync(data.path, { recursive: true }));

test('is made once, for the owner of the directory alone', () => {
  const first = openAdminToken(data);
  expect(first).toEqual({ secret: expect.stringMatching(/^[\w-]{43}$/), isNew: true });
  expect(readFileSync(file, 'utf8')).toBe(`${first.secret}\n`);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(openAdminToken(data)).toEqual({ secret: first.secret, isNew: false });
});

test('is made anew once its file is gone', () => {
  const { secret } = openAdminToken(data);
  rmSync(file);
  const again = openAdminToken(data);
  expect([again.isNew, again.secret === secret]).toEqual([true, false]);
});

test('one put there by hand will do, if it is long enough, and is kept from others', () => {
  writeFileSync(file, 'twenty-characters-or-more\n');
  chmodSync(file, 0o644);
  expect(openAdminToken(data)).toEqual({ secret: 'twenty-characters-or-more', isNew: false });
  expect(statSync(file).mode & 0o777).toBe(0o600);
  for (const bad of ['', 'short', 'with a space in the middle of it', '\u0000'.repeat(30)]) {
    writeFileSync(file, bad);
    expect(() => openAdminToken(data)).toThrow('should hold a token');
  }
});
