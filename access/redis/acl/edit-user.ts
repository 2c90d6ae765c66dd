// ACL SETUSER: applies rules to a user's definition.

import { CommandError } from '../../../universal-row/errors.ts';
import type { UserDefinition } from '../../../contracts/tenancy/definitions.ts';
import type { CommandRegistry } from '../commands/registry.ts';
import type { ClientServer } from '../client.ts';
import {
  applyCredentialRule,
  type Credentials,
  isCredentialRule,
  joinSelectors,
  type PasswordKeeper,
  Permissions,
} from './acl-user.ts';
import { passwordKeeper } from './passwords.ts';
import { hasSpace } from './selector.ts';

const maxPasswords = 16;
// Each of `>`, `<`, `#` and `!` takes a hash, which is slow on purpose.
const maxPasswordRules = 16;
// They are read in one step.
const maxWords = 8192;
const maxRuleBytes = 256 * 1024;

/** Changes of one user run one after the other: each begins with the result of the one before. */
const underWay = new Map<string, Promise<unknown>>();

/** Resolves when the change is in force. Rejects with a `CommandError` for invalid rules. */
export async function editUser(
  server: ClientServer,
  tenant: string,
  name: string,
  rules: readonly string[],
): Promise<void> {
  if (hasSpace(name)) {
    throw new CommandError("ERR Usernames can't contain spaces or null characters");
  }
  const key = `${name}@${tenant}`;
  const before = underWay.get(key) ?? Promise.resolve();
  const change = before
    .catch(() => {})
    .then(async () => {
      if (server.users === undefined) throw new Error('users cannot be changed here');
      const user = server.principals.user(tenant, name);
      const edited = await applyRules(server.registry, user, rules, passwordKeeper(tenant));
      await server.users.setUser(tenant, name, edited);
    });
  underWay.set(key, change);
  try {
    await change;
  } finally {
    if (underWay.get(key) === change) underWay.delete(key);
  }
}

/** As ACL SETUSER applies the rules to the user, or to a new one. */
export async function applyRules(
  registry: CommandRegistry,
  user: UserDefinition | undefined,
  words: readonly string[],
  keeper: PasswordKeeper,
): Promise<Credentials & { rules: string }> {
  checkLength(words);
  const rules = joinSelectors(words);
  if (rules === undefined) {
    const open = words.findLast((word) => word.startsWith('('));
    throw new CommandError(`ERR Unmatched parenthesis in acl selector starting at '${open}'.`);
  }
  if (rules.filter((rule) => /^[><#!]/.test(rule)).length > maxPasswordRules) {
    throw new CommandError(
      `ERR ACL SETUSER takes at most ${maxPasswordRules} rules about passwords at a time`,
    );
  }
  // Once without passwords, which take their time, to see whether all of it makes sense.
  checkRules(registry, user, rules);
  const permissions = Permissions.parse(registry, user?.rules ?? '');
  let credentials: Credentials = {
    enabled: user?.enabled ?? false,
    open: user?.open ?? false,
    secrets: user?.secrets ?? [],
  };
  for (const rule of rules) {
    if (rule.toLowerCase() === 'reset') {
      permissions.reset();
      credentials = { enabled: false, open: false, secrets: [] };
    } else if (isCredentialRule(rule)) {
      const changed = await applyCredentialRule(credentials, rule, keeper);
      if (typeof changed === 'string') throw wrongRule(rule, changed);
      if (changed.secrets.length > maxPasswords) {
        throw new CommandError(`ERR a user has at most ${maxPasswords} passwords`);
      }
      credentials = changed;
    } else permissions.apply(rule);
  }
  return { ...credentials, rules: permissions.text };
}

function checkLength(words: readonly string[]): void {
  let bytes = 0;
  for (const word of words) bytes += word.length;
  if (bytes > maxRuleBytes) {
    throw new CommandError(
      `ERR ACL SETUSER takes at most ${maxRuleBytes} bytes of rules at a time`,
    );
  }
  // Those in one selector may be one word.
  if (words.reduce((count, word) => count + word.split(' ').length, 0) <= maxWords) return;
  throw new CommandError(`ERR ACL SETUSER takes at most ${maxWords} rules at a time`);
}

function checkRules(
  registry: CommandRegistry,
  user: UserDefinition | undefined,
  rules: readonly string[],
): void {
  const trial = Permissions.parse(registry, user?.rules ?? '');
  for (const rule of rules) {
    if (rule.toLowerCase() === 'reset') trial.reset();
    if (rule.toLowerCase() === 'reset' || isCredentialRule(rule)) continue;
    const wrong = trial.apply(rule);
    if (wrong !== undefined) throw wrongRule(rule, wrong);
  }
}

function wrongRule(rule: string, why: string): CommandError {
  // The text after `>` or `#` is a secret and must not appear in errors.
  const shown = /^[><#!]/.test(rule) ? `${rule[0]}(redacted)` : rule;
  return new CommandError(`ERR Error in ACL SETUSER modifier '${shown}': ${why}`);
}
