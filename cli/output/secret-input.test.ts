import { Readable } from 'node:stream';
import { expect, test } from 'vitest';
import { generatePassword, readSecretLine, wantedPassword } from './secret-input.ts';

test('a password on standard input is its first line', async () => {
  const check = async (chunks: string[], expected: string) =>
    expect(await readSecretLine(Readable.from(chunks))).toBe(expected);
  await check(['secret'], 'secret');
  await check(['secret\n'], 'secret');
  await check(['sec', 'ret\r\nmore\n'], 'secret');
  await check([' spaces stay \n'], ' spaces stay ');
});

test('nothing, or far too much, is no password', async () => {
  await expect(readSecretLine(Readable.from(['\n']))).rejects.toThrow('holds no password');
  await expect(readSecretLine(Readable.from([]))).rejects.toThrow('holds no password');
  await expect(readSecretLine(Readable.from(['x'.repeat(5000)]))).rejects.toThrow('too long');
});

test('passwords made up are long, plain and never the same', async () => {
  const all = new Set(Array.from({ length: 1000 }, generatePassword));
  expect(all.size).toBe(1000);
  for (const password of all) expect(password).toMatch(/^[a-zA-Z2-9]{24}$/);
  const made = await wantedPassword({}, 'ann', 'generate');
  expect(made).toMatchObject({ isGenerated: true, password: expect.stringMatching(/^\w{24}$/) });
});

test('two ways to come by a password are one too many', async () => {
  const flags = { passwordStdin: true, generatePassword: true } as const;
  await expect(wantedPassword(flags, 'ann', 'prompt')).rejects.toThrow('only one flag');
});
