import { describe, expect, test } from 'vitest';
import { Arguments } from '../../../universal-row/arguments.ts';
import type { UserDefinition } from '../../../contracts/tenancy/definitions.ts';
import { allCommands } from '../commands/all.ts';
import { CommandRegistry } from '../commands/registry.ts';
import { type PasswordKeeper, Permissions } from './acl-user.ts';
import { applyRules } from './edit-user.ts';

const registry = new CommandRegistry(allCommands);

/** Keeps passwords as they are, in brackets. */
const keeper: PasswordKeeper = {
  hash: async (password) => `[${password}]`,
  hashDigest: async (hex) => `{${hex}}`,
  find: async (password, secrets) => secrets.find((one) => one === `[${password}]`),
  findDigest: async (hex, secrets) => secrets.find((one) => one === `{${hex}}`),
};

const nobody: UserDefinition = {
  tenant: 'red',
  name: 'ann',
  enabled: false,
  open: false,
  secrets: [],
  rules: '',
  influxAdmin: false,
  grants: {},
};

/** The user after the rules, step by step if there are several lines. */
async function after(...lines: string[]): Promise<string> {
  let user = nobody;
  for (const line of lines) {
    user = { ...user, ...(await applyRules(registry, user, line.split(' '), keeper)) };
  }
  const { enabled, open, secrets, rules } = user;
  return [enabled ? 'on' : 'off', open ? 'nopass' : '', ...secrets, rules]
    .filter(Boolean)
    .join(' ');
}

describe('rules', () => {
  const check = (lines: string[], expected: string) =>
    test(lines.join(' / '), async () => expect(await after(...lines)).toBe(expected));

  check(['on'], 'on resetchannels -@all');
  check(['on nopass ~* &* +@all'], 'on nopass ~* &* +@all');
  check(['+@all -get', '+get'], 'off resetchannels +@all +get');
  check(['+config|get +config'], 'off resetchannels -@all +config');
  check(['+config|get -config|set'], 'off resetchannels -@all +config|get -config|set');
  check(['+@READ +GET +Select|0'], 'off resetchannels -@all +@read +get +select|0');
  check(['~a %R~b %W~b %W~c &d'], 'off ~a ~b %W~c resetchannels &d -@all');
  check(
    ['(~a +get) (%R~b +@read)'],
    'off resetchannels -@all (~a resetchannels -@all +get) (%R~b resetchannels -@all +@read)',
  );
  check(['(~a +get)', 'clearselectors'], 'off resetchannels -@all');
  check(['>one >two >one', '<one'], 'off [two] resetchannels -@all');
  check(['>one nopass'], 'off nopass resetchannels -@all');
  check(['nopass >one'], 'off [one] resetchannels -@all');
  check([`#${'a'.repeat(64)} >b`, `!${'a'.repeat(64)}`], 'off [b] resetchannels -@all');
  check(['on nopass ~* +@all (+get)', 'reset'], 'off resetchannels -@all');
});

describe('what is wrong', () => {
  const check = (line: string, expected: string) =>
    test(line, async () => {
      await expect(after('on ~* >kept', line)).rejects.toThrow(expected);
    });
  check('+nothing', "ERR Error in ACL SETUSER modifier '+nothing': Unknown command or category");
  check('~a', "ERR Error in ACL SETUSER modifier '~a': Adding a pattern after the * pattern");
  check('<secret', "ERR Error in ACL SETUSER modifier '<(redacted)': The password you are trying");
  check('#abc', "ERR Error in ACL SETUSER modifier '#(redacted)': The password hash must be");
  check('on (~a +get', "ERR Unmatched parenthesis in acl selector starting at '(~a'.");
  const passwords = (count: number) => Array.from({ length: count }, (_, i) => `>${i}`).join(' ');
  check(passwords(16), 'a user has at most 16 passwords');
  check(passwords(17), 'takes at most 16 rules about passwords at a time');
  check(`${passwords(8)} resetpass ${passwords(9)}`, 'takes at most 16 rules about passwords');
});

describe('what is allowed', () => {
  function refusal(rules: string, line: string): string {
    const args = new Arguments();
    const words = line.split(' ');
    args.reserve(words.length);
    args.buf = Buffer.from(line);
    let at = 0;
    for (const word of words) {
      args.starts[args.count] = at;
      args.lens[args.count++] = word.length;
      at += word.length + 1;
    }
    const found = registry.lookup(args)!;
    const entry = found.subcommands?.get(words[1]!.toLowerCase()) ?? found;
    const denial = Permissions.parse(registry, rules).check(entry, args);
    return denial === undefined ? 'allowed' : `${denial.reason} ${args.text(denial.word)}`;
  }
  const check = (rules: string, line: string, expected: string) =>
    test(`${rules}: ${line}`, () => expect(refusal(rules, line)).toBe(expected));

  check('+@all ~* &*', 'GET a', 'allowed');
  check('-@all ~* &*', 'GET a', 'command GET');
  check('-@all', 'AUTH a b', 'allowed');
  check('~a* +@all', 'MGET a1 b a2', 'key b');
  check('~a* +@all', 'PING', 'allowed');
  check('%R~a %W~b +@all', 'GET a', 'allowed');
  check('%R~a %W~b +@all', 'SET a 1', 'key a');
  check('%R~a %W~b +@all', 'SET b 1', 'allowed');
  check('%R~a %W~b +@all', 'SET b 1 GET', 'key b');
  check('%R~a %W~b +@all', 'GET b', 'key b');
  check('%R~a %W~b +@all', 'EXISTS a b', 'allowed');
  check('%R~a %W~b +@all', 'COPY a b', 'allowed');
  check('%R~a %W~b +@all', 'COPY b a', 'key b');
  check('%R~a %W~b +@all', 'ZUNIONSTORE b 1 a', 'allowed');
  check('%R~a %W~b +@all', 'ZUNIONSTORE a 1 b', 'key a');
  check('~* +select|0', 'SELECT 0', 'allowed');
  check('~* +select|0', 'SELECT 1', 'command SELECT');
  check('+@all &a*', 'SUBSCRIBE ab b', 'channel b');
  check('+@all &a*', 'PSUBSCRIBE a*', 'allowed');
  check('+@all &a*', 'PSUBSCRIBE ab*', 'channel ab*');
  check('+@all &a*', 'UNSUBSCRIBE b', 'allowed');
  check('+@all &a*', 'SPUBLISH b x', 'channel b');
  // The selector that comes closest says what is missing; all of it must be allowed by one of them.
  check('~a +get (~b +set)', 'SET b 1', 'allowed');
  check('~a +get (~b +set)', 'SET a 1', 'key a');
  check('~a +get (~b +set)', 'DEL b', 'command DEL');
  // Unknown names allow nothing.
  check('+@all -@nonsense +bogus ~a', 'GET a', 'allowed');
  check('nonsense (', 'GET a', 'command GET');
});

test('rules mean the same when they are read again', async () => {
  const rules = '%R~a* ~b &c* +@read -get +config|get +select|3 (~d resetchannels -@all +@write)';
  const { rules: once } = await applyRules(registry, nobody, rules.split(' '), keeper);
  const { rules: twice } = await applyRules(registry, { ...nobody, rules: once }, [], keeper);
  expect(twice).toBe(once);
});
