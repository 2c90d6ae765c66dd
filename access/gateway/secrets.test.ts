import { createHash, scryptSync } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { findSecret, findSecretByDigest, hashDigest, hashPassword, hashQueue } from './secrets.ts';

const request = { kind: 'login', tenant: 'a', address: '' } as const;
const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');

/** A secret of an earlier release: a salt of its own, and a hash of the password itself. */
function legacy(password: string, salt = 'salt', n = 16): string {
  const hash = scryptSync(password, salt, 32, { N: n, r: 8, p: 1 });
  return `scrypt$${n}$8$1$${Buffer.from(salt).toString('base64')}$${hash.toString('base64')}`;
}

/** Hashes that it took. */
async function work(what: () => Promise<unknown>): Promise<number> {
  const before = hashQueue.started.login + hashQueue.started.change;
  await what();
  return hashQueue.started.login + hashQueue.started.change - before;
}

const find = (password: string, secrets: readonly string[]) =>
  findSecret(Buffer.from(password), secrets, request);

async function secretsOf(...passwords: string[]): Promise<string[]> {
  const secrets: string[] = [];
  for (const one of passwords) secrets.push(await hashPassword(Buffer.from(one), 'a', secrets));
  return secrets;
}

describe('a check', () => {
  test('takes the same work whatever passwords the user has, and none at all', async () => {
    const many = await secretsOf('one', 'two', 'three');
    const [single] = await secretsOf('one');
    for (const secrets of [[], ['damaged'], ['scrypt$3$x$1$AA$AA'], [single!], many]) {
      for (const password of ['one', 'three', 'wrong']) {
        expect(await work(() => find(password, secrets)), password).toBe(1);
      }
    }
    expect(await find('three', many)).toBe(many[2]);
    expect(await find('wrong', many)).toBeUndefined();
  });

  test('of secrets of an earlier release takes one for each salt, whichever matches', async () => {
    const secrets = [legacy('one', 'salt'), legacy('two', 'pepper')];
    expect(await find('two', secrets)).toBe(secrets[1]);
    for (const password of ['one', 'two', 'no']) {
      expect(await work(() => find(password, secrets))).toBe(2);
    }
  });

  test('is made by the SHA-256 as well, but for secrets of an earlier release', async () => {
    const [secret] = await secretsOf('one');
    const byDigest = (text: string, secrets: string[]) =>
      findSecretByDigest(sha256(text), secrets, request);
    expect(await byDigest('one', [secret!])).toBe(secret);
    expect(await byDigest('two', [secret!])).toBeUndefined();
    expect(await byDigest('one', [legacy('one')])).toBeUndefined();
  });

  test('of a secret that would take too much work is not made', async () => {
    const rest = `$${'A'.repeat(22)}==$${'A'.repeat(43)}=`;
    for (const costs of [
      '1048576$8$1',
      '16384$8$8',
      '16384$8$0.5',
      '65536$1$1',
      '1$8$1',
      '5$8$1',
    ]) {
      expect(await work(() => find('x', [`scrypt$${costs}${rest}`]))).toBe(1);
    }
  });
});

test('a password that the user has is stored as the same text again', async () => {
  const secrets = await secretsOf('one', 'two');
  expect(await hashPassword(Buffer.from('two'), 'a', secrets)).toBe(secrets[1]);
  expect(await hashDigest(sha256('one').toUpperCase(), 'a', secrets)).toBe(secrets[0]);
  expect(await hashPassword(Buffer.from('one'), 'a')).not.toBe(secrets[0]);
  expect(await work(() => hashPassword(Buffer.from('three'), 'a', secrets))).toBe(1);
});
