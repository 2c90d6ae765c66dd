// ACL rules by the thousand, and changes of them under clients with many subscriptions.

import { afterEach, beforeEach, expect, test } from 'vitest';
import { TenantsServer } from '../redis-tenants/tenants-server.ts';
import type { RespClient } from '../support/resp-client.ts';

let server: TenantsServer;
let client: RespClient;
beforeEach(async () => {
  server = await TenantsServer.start();
  client = await server.client();
});
afterEach(() => server.stop());

/** `ACL SETUSER ann` with the rules, some at a time, up to the first error. */
async function setAll(rules: readonly string[]): Promise<string> {
  for (let i = 0; i < rules.length; i += 1000) {
    const answer = await client.text('ACL', 'SETUSER', 'ann', ...rules.slice(i, i + 1000));
    if (answer !== '+OK') return answer;
  }
  return '+OK';
}

const numbers = Array.from({ length: 1024 }, (_, i) => i);

test.each([
  ['keys', (i: number) => `~k${i}:*`],
  ['channels', (i: number) => `&c${i}:*`],
  ['first arguments', (i: number) => `+get|a${i}`],
])('a selector has a bounded number of %s', async (_, rule) => {
  expect(await setAll(numbers.map(rule))).toBe('+OK');
  expect(await setAll([rule(1024)])).toContain('Too many rules in one selector');
  expect(await setAll([rule(7)])).toMatch(/OK|Too many/);
});

test('the rules of one command are bounded, also within one word', async () => {
  const inner = (words: number) => `(${'+@read '.repeat(words)})`;
  expect(await client.text('ACL', 'SETUSER', 'ann', inner(8000))).toBe('+OK');
  expect(await client.text('ACL', 'SETUSER', 'ann', inner(9000))).toMatch(
    /^-ERR .*at most 8192 rules/,
  );
  const long = numbers.slice(0, 5).map((i) => `~${i}${'k'.repeat(60_000)}`);
  expect(await setAll(long)).toMatch(/^-ERR .*at most 262144 bytes of rules/);
});

test('a user has a bounded number of selectors', async () => {
  expect(await setAll(numbers.slice(0, 32).map((i) => `(~k${i} +get)`))).toBe('+OK');
  expect(await setAll(['(~more +get)'])).toContain('Too many selectors');
});

test('a command of many keys for a user of many patterns is refused, not worked out', async () => {
  await setAll(['on', 'nopass', '+@all', ...numbers.map((i) => `~k${i}:*`)]);
  const ann = await server.client();
  expect(await ann.text('AUTH', 'ann', 'x')).toBe('+OK');
  const keys = (count: number) => Array.from({ length: count }, () => 'k1023:a');
  expect(await ann.text('EXISTS', ...keys(900))).toBe(':0');
  expect(await ann.text('EXISTS', ...keys(1100))).toMatch(/^-NOPERM/);
});

test('a key that patterns would look at for long is refused, not worked out', async () => {
  // Each looks at all of the key: in a set there is no place to begin with.
  const pattern = (i: number) => `~*[a-b]${'[a-z]'.repeat(40)}${i}.*`;
  await setAll(['on', 'nopass', '+@all', ...numbers.slice(0, 200).map(pattern), '~last']);
  const ann = await server.client();
  expect(await ann.text('AUTH', 'ann', 'x')).toBe('+OK');
  expect(await ann.text('GET', `${'a'.repeat(42)}7.`)).toBe('(nil)');
  const longest = `${'a'.repeat(1000)}199.`;
  expect(await ann.text('GET', longest)).toBe('(nil)');
  expect(await ann.text('GET', `${'a'.repeat(100_000)}199.`)).toMatch(/^-NOPERM/);
  expect(await ann.text('GET', 'a'.repeat(300_000))).toMatch(/^-NOPERM/);
  expect(await ann.text('GET', 'last')).toBe('(nil)');
});

test('clients that may no longer listen are cut off, however many names there are', async () => {
  await setAll(['on', 'nopass', '+@all', ...numbers.slice(0, 999).map((i) => `&c${i}:*`)]);
  const listen = async (names: readonly string[]) => {
    const ann = await server.client();
    await ann.command('AUTH', 'ann', 'x');
    const acks = ann.pipeline([['SUBSCRIBE', ...names]]);
    await acks;
    await ann.replies(names.length - 1);
    return ann;
  };
  const kept = await listen(numbers.slice(0, 900).map((i) => `c${i}:x`));
  const lost = await listen([...numbers.slice(0, 900).map((i) => `c${i}:x`), 'c998:x']);
  const few = await listen(['c998:x']);
  expect(await setAll(['resetchannels', ...numbers.slice(0, 950).map((i) => `&c${i}:*`)])).toBe(
    '+OK',
  );
  await Promise.all([lost.ended, few.ended]);
  expect(server.redis.rechecks.slices).toBeGreaterThan(10);
  expect(await client.text('PUBLISH', 'c1:x', 'm')).toBe(':1');
  kept.close();
});
