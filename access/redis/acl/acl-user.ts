// A user of ACL: its rights, in one or more selectors, and its passwords.

import type { Arguments } from '../../../universal-row/arguments.ts';
import type { UserDefinition } from '../../../contracts/tenancy/definitions.ts';
import type { CommandEntry, CommandRegistry } from '../commands/registry.ts';
import {
  type Denial,
  MatchBudget,
  outranks,
  type RuleError,
  ruleErrors,
  Selector,
} from './selector.ts';

const maxSelectors = 32;
/** Checks are made one after the other. */
const budget = new MatchBudget();

/** Rights of a user. */
export class Permissions {
  root: Selector;
  selectors: Selector[] = [];
  readonly #registry: CommandRegistry;

  constructor(registry: CommandRegistry) {
    this.#registry = registry;
    this.root = new Selector(registry);
  }

  /** Words that mean nothing (any more) allow nothing. */
  static parse(registry: CommandRegistry, rules: string): Permissions {
    const permissions = new Permissions(registry);
    for (const rule of joinSelectors(rules.split(' ').filter(Boolean)) ?? []) {
      permissions.apply(rule);
    }
    return permissions;
  }

  copy(): Permissions {
    const copy = new Permissions(this.#registry);
    copy.root = this.root.copy();
    copy.selectors = this.selectors.map((selector) => selector.copy());
    return copy;
  }

  /** Returns the error of the rule; then nothing has changed. */
  apply(rule: string): RuleError | undefined {
    if (rule.startsWith('(') && rule.endsWith(')')) {
      const selector = new Selector(this.#registry);
      for (const inner of rule.slice(1, -1).split(' ').filter(Boolean)) {
        const wrong = selector.apply(inner);
        if (wrong !== undefined) return wrong;
      }
      if (this.selectors.length >= maxSelectors) return ruleErrors.tooManySelectors;
      this.selectors.push(selector);
      return undefined;
    }
    if (rule.toLowerCase() === 'clearselectors') {
      this.selectors = [];
      return undefined;
    }
    return this.root.apply(rule);
  }

  /** Takes everything away. */
  reset(): void {
    this.root = new Selector(this.#registry);
    this.selectors = [];
  }

  get text(): string {
    return [this.root.text, ...this.selectors.map(({ text }) => `(${text})`)].join(' ');
  }

  get isUnlimited(): boolean {
    return this.root.isUnlimited;
  }

  /** Why the command is refused, if no selector allows it: the reason of the selector that came closest. */
  check(entry: CommandEntry, args: Arguments): Denial | undefined {
    budget.renew();
    let denial = this.root.check(entry, args, budget);
    for (const selector of this.selectors) {
      if (denial === undefined) return undefined;
      const other = selector.check(entry, args, budget);
      if (other === undefined || outranks(other, denial)) denial = other;
    }
    return denial;
  }

  /** Whether one may continue listening there. */
  allowsChannel(name: Buffer, isPattern: boolean): boolean {
    budget.renew();
    return [this.root, ...this.selectors].some((one) => one.allowsChannel(name, isPattern, budget));
  }

  /** Patterns that a channel's name is held against, all selectors together. */
  get channelPatterns(): number {
    let patterns = this.root.channelPatterns;
    for (const selector of this.selectors) patterns += selector.channelPatterns;
    return patterns;
  }

  /**
   * Whether the user may run the command on every existing key, as commands that find keys by
   * patterns need.
   */
  readsAllKeys(entry: CommandEntry, args: Arguments): boolean {
    budget.renew();
    return [this.root, ...this.selectors].some(
      (one) => one.readsAllKeys && one.check(entry, args, budget) === undefined,
    );
  }
}

/** Joins the words from `(` to `)` into one word. Undefined if a parenthesis is not closed. */
export function joinSelectors(words: readonly string[]): string[] | undefined {
  const joined: string[] = [];
  let open: string[] | undefined;
  for (const word of words) {
    if (open === undefined && word.startsWith('(') && !word.endsWith(')')) open = [word];
    else if (open !== undefined) {
      open.push(word);
      if (!word.endsWith(')')) continue;
      joined.push(open.join(' '));
      open = undefined;
    } else joined.push(word);
  }
  return open === undefined ? joined : undefined;
}

/** How one logs in as a user. */
export interface Credentials {
  enabled: boolean;
  open: boolean;
  secrets: readonly string[];
}

/** Password operations of ACL SETUSER; each may be asynchronous. */
export interface PasswordKeeper {
  /**
   * Stored form of a password for a user with these secrets: the same text again for a password
   * that the user has already. Secrets of earlier releases are an exception.
   */
  hash(password: string, secrets: readonly string[]): Promise<string>;
  hashDigest(hex: string, secrets: readonly string[]): Promise<string>;
  /** Which of the stored secrets this is one's password, if any. */
  find(password: string, secrets: readonly string[]): Promise<string | undefined>;
  findDigest(hex: string, secrets: readonly string[]): Promise<string | undefined>;
}

const hexDigest = /^[0-9a-f]{64}$/;

/** Whether the rule concerns passwords and logins rather than rights. */
export function isCredentialRule(rule: string): boolean {
  if (/^[><#!]/.test(rule)) return true;
  return credentialWords.has(rule.toLowerCase());
}

const credentialWords: ReadonlySet<string> = new Set([
  'on',
  'off',
  'nopass',
  'resetpass',
  'sanitize-payload',
  'skip-sanitize-payload',
]);

/** Applies such a rule, or returns its error. */
export async function applyCredentialRule(
  before: Credentials,
  rule: string,
  keeper: PasswordKeeper,
): Promise<Credentials | RuleError> {
  const { secrets } = before;
  const rest = rule.slice(1);
  const with_ = (secret: string): Credentials => ({
    ...before,
    open: false,
    secrets: secrets.includes(secret) ? secrets : [...secrets, secret],
  });
  const without = (secret: string | undefined): Credentials | RuleError =>
    secret === undefined
      ? ruleErrors.noSuchPassword
      : { ...before, secrets: secrets.filter((one) => one !== secret) };
  switch (rule[0]) {
    case '>':
      return with_(await keeper.hash(rest, secrets));
    case '#':
      if (!hexDigest.test(rest)) return ruleErrors.badHash;
      return with_(await keeper.hashDigest(rest, secrets));
    case '<':
      return without(await keeper.find(rest, secrets));
    case '!':
      if (!hexDigest.test(rest)) return ruleErrors.badHash;
      return without(await keeper.findDigest(rest, secrets));
  }
  switch (rule.toLowerCase()) {
    case 'on':
      return { ...before, enabled: true };
    case 'off':
      return { ...before, enabled: false };
    case 'nopass':
      return { ...before, open: true, secrets: [] };
    case 'resetpass':
      return { ...before, open: false, secrets: [] };
    default:
      return before;
  }
}

/** The line by which ACL LIST shows a user; `shown` are its passwords' digests. */
export function describeUser(
  user: UserDefinition,
  permissions: Permissions,
  shown: readonly string[],
): string {
  const words = ['user', user.name, user.enabled ? 'on' : 'off'];
  if (user.open) words.push('nopass');
  for (const digest of shown) words.push(`#${digest}`);
  return [...words, permissions.text].join(' ');
}
