// One set of rules of an ACL user, for commands, keys and channels. A user has one set, and may have more in
// parentheses. One of the sets must allow a command as a whole.
// https://redis.io/docs/latest/operate/oss_and_stack/management/security/acl/

import type { Arguments } from '../../../universal-row/arguments.ts';
import { CommandError } from '../../../universal-row/errors.ts';
import { Glob } from '../../../universal-row/transforms/redis/glob.ts';
import type { CommandEntry, CommandRegistry } from '../commands/registry.ts';
import { isCategory } from './categories.ts';
import { Access, everyKey } from './key-access.ts';

/** Errors of rules, with ACL SETUSER's texts. */
export const ruleErrors = {
  syntax: 'Syntax error',
  unknown: 'Unknown command or category name in ACL',
  afterAllKeys:
    "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does not have any effect. Try 'resetkeys' to start with an empty list of patterns",
  afterAllChannels:
    "Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and does not have any effect. Try 'resetchannels' to start with an empty list of channels",
  argumentOfSubcommand: 'Allowing first-arg of a subcommand is not supported',
  noSuchPassword: 'The password you are trying to remove from the user does not exist',
  tooMany: 'Too many rules in one selector',
  tooManySelectors: 'Too many selectors',
  badHash:
    'The password hash must be exactly 64 characters and contain only lowercase hexadecimal characters',
} as const;

export type RuleError = (typeof ruleErrors)[keyof typeof ruleErrors];

/** Patterns of keys, patterns of channels, and rules about commands: so many of each in a selector. */
const maxRules = 1024;
// Most key and pattern comparisons for one command, which blocks the thread. Beyond it the command
// is refused.
const maxKeyMatches = 1_000_000;
// Names are matched in the same step. Beyond so many positions that patterns look at, all selectors of a user together,
// and for longer names, a command is refused.
const maxPositions = 4 * 1024 * 1024;
const longestName = 256 * 1024;

/** Positions that the check of one command or channel may still compare. */
export class MatchBudget {
  #left = 0;

  renew(): void {
    this.#left = maxPositions;
  }

  /** False where the name does not match, or that would take too long. */
  matches(glob: Glob, b: Buffer, s: number, n: number): boolean {
    if (this.#left < 0 || n > longestName) return false;
    const before = glob.work;
    const fits = glob.matches(b, s, n);
    this.#left -= glob.work - before;
    return fits;
  }
}

/** Why an access is refused, and the index of the refused word of the command. Later words tell more. */
export interface Denial {
  reason: 'command' | 'key' | 'channel';
  word: number;
}

interface KeyPattern {
  text: string;
  glob: Glob;
  access: Access;
}

const denialRank = { command: 0, key: 1, channel: 2 } as const;

/** Whether this denial is more specific than that one. */
export function outranks(one: Denial, other: Denial): boolean {
  const more = denialRank[one.reason] - denialRank[other.reason];
  return more > 0 || (more === 0 && one.word > other.word);
}

export class Selector {
  readonly #registry: CommandRegistry;
  /** By the command's id. */
  #allowed: Uint32Array;
  /** Every command there is, and any there ever will be. */
  allCommands = false;
  /** Rules about commands start from all of them, not from none. */
  #fromAll = false;
  /** Rules by their subject. */
  #commandRules = new Map<string, string>();
  /** Subcommands and first arguments that rules mention, by command. */
  readonly #parts = new Map<string, Set<string>>();
  /** By the command's id: first arguments with which alone it may be run, in lower case. */
  readonly #firstArguments = new Map<number, Set<string>>();
  allKeys = false;
  /** By their texts. */
  #keys = new Map<string, KeyPattern>();
  allChannels = false;
  #channels = new Map<string, Glob>();

  constructor(registry: CommandRegistry) {
    this.#registry = registry;
    this.#allowed = new Uint32Array(Math.ceil(registry.entryCount / 32));
  }

  copy(): Selector {
    const copy = new Selector(this.#registry);
    copy.#allowed = this.#allowed.slice();
    copy.allCommands = this.allCommands;
    copy.#fromAll = this.#fromAll;
    copy.#commandRules = new Map(this.#commandRules);
    for (const [name, parts] of this.#parts) copy.#parts.set(name, new Set(parts));
    for (const [id, words] of this.#firstArguments) copy.#firstArguments.set(id, new Set(words));
    copy.allKeys = this.allKeys;
    for (const [text, pattern] of this.#keys) copy.#keys.set(text, { ...pattern });
    copy.allChannels = this.allChannels;
    copy.#channels = new Map(this.#channels);
    return copy;
  }

  // ---- rules

  /** Returns the error of the rule; then nothing has changed. */
  apply(rule: string): RuleError | undefined {
    const word = rule.toLowerCase();
    if (word === 'allkeys' || word === '~*') {
      this.allKeys = true;
      this.#keys.clear();
    } else if (word === 'resetkeys') {
      this.allKeys = false;
      this.#keys.clear();
    } else if (word === 'allchannels' || word === '&*') {
      this.allChannels = true;
      this.#channels.clear();
    } else if (word === 'resetchannels') {
      this.allChannels = false;
      this.#channels.clear();
    } else if (word === 'allcommands' || word === '+@all') this.#setAll(true);
    else if (word === 'nocommands' || word === '-@all') this.#setAll(false);
    else if (rule.startsWith('~') || rule.startsWith('%')) return this.#addKeys(rule);
    else if (rule.startsWith('&')) return this.#addChannels(rule.slice(1));
    else if (word.startsWith('+@') || word.startsWith('-@')) return this.#setCategory(word);
    else if (word.startsWith('+')) return this.#allow(word.slice(1));
    else if (word.startsWith('-')) return this.#forbid(word.slice(1));
    else return ruleErrors.syntax;
    return undefined;
  }

  #setAll(allowed: boolean): void {
    this.#allowed.fill(allowed ? 0xffffffff : 0);
    this.allCommands = allowed;
    this.#fromAll = allowed;
    this.#commandRules.clear();
    this.#parts.clear();
    this.#firstArguments.clear();
  }

  #addKeys(rule: string): RuleError | undefined {
    if (this.allKeys) return ruleErrors.afterAllKeys;
    const [, letters, text] = /^(?:%([RW]+))?~(.*)$/is.exec(rule) ?? [];
    if (text === undefined || hasSpace(text)) return ruleErrors.syntax;
    let access: Access = Access.both;
    if (letters !== undefined) {
      const upper = letters.toUpperCase();
      const bits =
        (upper.includes('R') ? Access.read : 0) | (upper.includes('W') ? Access.write : 0);
      access = bits as Access;
    }
    const known = this.#keys.get(text);
    if (known !== undefined) {
      known.access = (known.access | access) as Access;
      return undefined;
    }
    const glob = globOf(text);
    if (glob === undefined) return ruleErrors.syntax;
    if (this.#keys.size >= maxRules) return ruleErrors.tooMany;
    this.#keys.set(text, { text, glob, access });
    return undefined;
  }

  #addChannels(text: string): RuleError | undefined {
    if (this.allChannels) return ruleErrors.afterAllChannels;
    if (hasSpace(text)) return ruleErrors.syntax;
    const glob = globOf(text);
    if (glob === undefined) return ruleErrors.syntax;
    if (this.#channels.size >= maxRules && !this.#channels.has(text)) return ruleErrors.tooMany;
    this.#channels.set(text, glob);
    return undefined;
  }

  #setCategory(word: string): RuleError | undefined {
    const category = word.slice(2);
    if (!isCategory(category)) return ruleErrors.unknown;
    const bits = this.#registry.bitsOf(category);
    if (word.startsWith('+')) bits.forEach((set, i) => (this.#allowed[i]! |= set));
    else {
      bits.forEach((set, i) => (this.#allowed[i]! &= ~set));
      this.allCommands = false;
    }
    for (const id of this.#firstArguments.keys()) {
      if ((bits[id >>> 5]! & (1 << (id & 31))) !== 0) this.#firstArguments.delete(id);
    }
    this.#note(word);
    return undefined;
  }

  #allow(name: string): RuleError | undefined {
    const entry = this.#registry.getFull(name);
    if (entry !== undefined) {
      this.#setWithSubcommands(entry, true);
      this.#note(`+${name}`);
      return undefined;
    }
    const bar = name.lastIndexOf('|');
    if (bar < 0) return ruleErrors.unknown;
    const of = this.#registry.getFull(name.slice(0, bar));
    if (of === undefined) return ruleErrors.unknown;
    const argument = name.slice(bar + 1);
    if (of.fullName.includes('|')) return ruleErrors.argumentOfSubcommand;
    if (argument === '') return ruleErrors.syntax;
    if (of.subcommands !== undefined) return ruleErrors.unknown;
    if (this.#commandRules.size >= maxRules) return ruleErrors.tooMany;
    const known = this.#firstArguments.get(of.id);
    if (known === undefined) this.#firstArguments.set(of.id, new Set([argument]));
    else known.add(argument);
    this.#note(`+${name}`);
    return undefined;
  }

  #forbid(name: string): RuleError | undefined {
    const entry = this.#registry.getFull(name);
    if (entry === undefined) return ruleErrors.unknown;
    this.#setWithSubcommands(entry, false);
    this.#note(`-${name}`);
    return undefined;
  }

  #setWithSubcommands(entry: CommandEntry, allowed: boolean): void {
    this.#setOne(entry, allowed);
    for (const sub of entry.subcommands?.values() ?? []) this.#setOne(sub, allowed);
  }

  #setOne({ id }: CommandEntry, allowed: boolean): void {
    const bit = 1 << (id & 31);
    if (allowed) this.#allowed[id >>> 5]! |= bit;
    else {
      this.#allowed[id >>> 5]! &= ~bit;
      this.allCommands = false;
    }
    this.#firstArguments.delete(id);
  }

  #has({ id }: CommandEntry): boolean {
    return (this.#allowed[id >>> 5]! & (1 << (id & 31))) !== 0;
  }

  /** A rule takes the place of those before it about the same command or its subcommands. */
  #note(rule: string): void {
    const about = rule.slice(1);
    for (const part of this.#parts.get(about) ?? []) this.#commandRules.delete(part);
    this.#parts.delete(about);
    this.#commandRules.delete(about);
    this.#commandRules.set(about, rule);
    const bar = about.indexOf('|');
    if (bar < 0) return;
    const name = about.slice(0, bar);
    const parts = this.#parts.get(name);
    if (parts === undefined) this.#parts.set(name, new Set([about]));
    else parts.add(about);
  }

  // ---- description
  //

  get commandText(): string {
    return [this.#fromAll ? '+@all' : '-@all', ...this.#commandRules.values()].join(' ');
  }

  get keyText(): string {
    if (this.allKeys) return '~*';
    const prefix = { 0: '', 1: '%R', 2: '%W', 3: '' } as const;
    return Array.from(this.#keys.values(), ({ text, access }) => `${prefix[access]}~${text}`).join(
      ' ',
    );
  }

  get channelText(): string {
    if (this.allChannels) return '&*';
    return [...this.#channels.keys()].map((text) => `&${text}`).join(' ');
  }

  /** Rules that make an empty selector into this one. */
  get text(): string {
    const channels = this.allChannels ? '&*' : `resetchannels ${this.channelText}`;
    return [this.keyText, channels.trimEnd(), this.commandText].filter(Boolean).join(' ');
  }

  /** Nothing is ever refused. */
  get isUnlimited(): boolean {
    return this.allCommands && this.allKeys && this.allChannels;
  }

  get readsAllKeys(): boolean {
    const all = this.#keys.get('*');
    return this.allKeys || (all !== undefined && (all.access & Access.read) !== 0);
  }

  // ---- checks
  //

  /** Patterns that a channel's name is held against. */
  get channelPatterns(): number {
    return this.allChannels ? 0 : this.#channels.size;
  }

  /** Why the command is refused, if it is. */
  check(entry: CommandEntry, args: Arguments, budget: MatchBudget): Denial | undefined {
    if (!this.allCommands && !entry.noAuth && !this.#has(entry)) {
      const firstArguments = this.#firstArguments.get(entry.id);
      if (firstArguments === undefined) return { reason: 'command', word: 0 };
      const given = args.count > 1 ? args.text(1).toLowerCase() : '';
      if (!firstArguments.has(given)) return { reason: 'command', word: 0 };
    }
    if (!this.allKeys && entry.hasKeys) {
      let refused = 0;
      let matches = maxKeyMatches;
      const allowed = everyKey(entry, args, (word, access) => {
        refused = word;
        matches -= this.#keys.size;
        return (
          matches >= 0 &&
          this.#allowsKey(args.buf, args.starts[word]!, args.lens[word]!, access, budget)
        );
      });
      if (!allowed) return { reason: 'key', word: refused };
    }
    if (!this.allChannels && entry.channels !== undefined) {
      const { first, last, isPattern } = entry.channels;
      const end = last < 0 ? args.count + last : last;
      for (let word = first; word <= end; word++) {
        if (this.allowsChannel(args.bytes(word), isPattern, budget)) continue;
        return { reason: 'channel', word };
      }
    }
    return undefined;
  }

  #allowsKey(b: Buffer, s: number, n: number, access: Access, budget: MatchBudget): boolean {
    for (const { glob, access: has } of this.#keys.values()) {
      if ((has & access) !== access) continue;
      if (budget.matches(glob, b, s, n)) return true;
    }
    return false;
  }

  /** A pattern to listen to must be one of those given, to the letter. */
  allowsChannel(name: Buffer, isPattern: boolean, budget: MatchBudget): boolean {
    if (this.allChannels) return true;
    for (const [text, glob] of this.#channels) {
      const fits = isPattern
        ? name.equals(Buffer.from(text))
        : budget.matches(glob, name, 0, name.length);
      if (fits) return true;
    }
    return false;
  }
}

/** Undefined for a pattern that is too complex to be searched for. */
function globOf(text: string): Glob | undefined {
  const bytes = Buffer.from(text);
  try {
    return new Glob(bytes, 0, bytes.length);
  } catch (error) {
    if (error instanceof CommandError) return undefined;
    throw error;
  }
}

export function hasSpace(text: string): boolean {
  return /[\s\0]/.test(text);
}
