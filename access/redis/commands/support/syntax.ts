// The syntax of a command's arguments as one line, `key value [NX | XX] [EX seconds]`, read into the tree
// that COMMAND DOCS shows. redis-cli makes its help and its hints while typing from that tree.
//
// A word in capitals is a token, sent as it stands; any other word is a placeholder, whose type
// follows from its name, or is given after it: `increment:double`. `[...]` may be left out, `<...>`
// only groups, `|` separates alternatives. Repeatable parts are written twice: `key [key ...]`,
// `[GET pattern [GET pattern ...]]`.

import type { RespWriter } from '../../resp-writer.ts';

type ArgumentType =
  | 'key'
  | 'string'
  | 'integer'
  | 'double'
  | 'pattern'
  | 'unix-time'
  | 'pure-token'
  | 'oneof'
  | 'block';

export interface Argument {
  name: string;
  type: ArgumentType;
  /** The word to send before the argument, or all there is of it. */
  token?: string;
  /** Which of the command's key specifications finds it. */
  keySpec?: number;
  optional: boolean;
  multiple: boolean;
  /** Each repetition starts with the token again. */
  repeatsToken: boolean;
  /** The parts of a block, the alternatives of a oneof. */
  parts: Argument[];
}

const typeOfName = new Map<string, ArgumentType>();
const named: [ArgumentType, string][] = [
  ['key', 'key key1 key2 newkey source destination src dst destkey sourcekey'],
  [
    'integer',
    'client-id count cursor db destination-db index index1 index2 len limit milliseconds',
  ],
  [
    'integer',
    'decrement end increment num-matches numkeys numreplicas offset protover rank seconds',
  ],
  ['integer', 'start stop version weight'],
  ['double', 'max min score timeout'],
  ['pattern', 'pattern'],
  ['unix-time', 'unix-time-milliseconds unix-time-seconds'],
];
for (const [type, names] of named) for (const name of names.split(' ')) typeOfName.set(name, type);

/** The types that may be said after a name; `key-pattern` is a pattern that makes names of keys. */
const saidTypes: ReadonlyMap<string, ArgumentType> = new Map([
  ['string', 'string'],
  ['integer', 'integer'],
  ['double', 'double'],
  ['key-pattern', 'pattern'],
]);

/** Reads a line of syntax; throws a RangeError for one that is wrong. */
export function parseSyntax(syntax: string): Argument[] {
  return new Parser(syntax).parse();
}

class Parser {
  readonly #syntax: string;
  readonly #words: string[];
  #at = 0;
  /** The key specification of each kind of key, in the order of the first key of each. */
  readonly #keySpecs = new Map<string, number>();

  constructor(syntax: string) {
    this.#syntax = syntax;
    this.#words = syntax.match(/[[\]<>|]|[^[\]<>|\s]+/g) ?? [];
  }

  parse(): Argument[] {
    const sequence = this.#sequence();
    if (this.#at < this.#words.length) throw this.#wrong();
    return sequence;
  }

  /** Parses up to the end, a closing bracket, `|` or the dots of a repetition. */
  #sequence(): Argument[] {
    const sequence: Argument[] = [];
    for (;;) {
      const word = this.#words[this.#at];
      if (word === undefined || word === ']' || word === '>' || word === '|' || word === '...') {
        return sequence;
      }
      if (word === '[') this.#bracket(sequence);
      else sequence.push(this.#item());
    }
  }

  /** An optional argument, which is appended to the sequence, or a repetition of its last one. */
  #bracket(sequence: Argument[]): void {
    this.#expect('[');
    const inside = this.#alternatives();
    if (this.#words[this.#at] === '...') {
      this.#at++;
      this.#repeat(sequence, inside);
    } else {
      const argument = asOne(inside);
      if (argument === undefined) throw this.#wrong();
      argument.optional = true;
      sequence.push(argument);
    }
    this.#expect(']');
  }

  #item(): Argument {
    const word = this.#words[this.#at++]!;
    if (word === '<') {
      const argument = asOne(this.#alternatives());
      if (argument === undefined) throw this.#wrong();
      this.#expect('>');
      return argument;
    }
    if (!isToken(word)) return this.#placeholder(word);
    const next = this.#words[this.#at];
    const takesNext = next !== undefined && (next === '<' || /^[a-z]/.test(next)) && !isToken(next);
    if (!takesNext) return argumentOf(word.toLowerCase(), 'pure-token', { token: word });
    const argument = this.#item();
    argument.token = word;
    if (argument.type === 'oneof') argument.name = word.toLowerCase();
    return argument;
  }

  #placeholder(word: string): Argument {
    const colon = word.lastIndexOf(':');
    const said = colon < 0 ? undefined : saidTypes.get(word.slice(colon + 1));
    const name = said === undefined ? word : word.slice(0, colon);
    const argument = argumentOf(name, said ?? typeOfName.get(name) ?? 'string');
    const namesKeys = argument.type === 'key' || word.endsWith(':key-pattern');
    // One specification finds `key1` and `key2`.
    if (namesKeys) argument.keySpec = this.#keySpec(word.replace(/\d+$/, ''));
    return argument;
  }

  #keySpec(kind: string): number {
    const known = this.#keySpecs.get(kind) ?? this.#keySpecs.size;
    this.#keySpecs.set(kind, known);
    return known;
  }

  /** The sequence of each alternative. */
  #alternatives(): Argument[][] {
    const all = [this.#sequence()];
    while (this.#words[this.#at] === '|') {
      this.#at++;
      all.push(this.#sequence());
    }
    return all;
  }

  #repeat(sequence: Argument[], inside: Argument[][]): void {
    const [repeated] = inside;
    if (inside.length > 1 || repeated === undefined || repeated.length === 0) throw this.#wrong();
    const originals = sequence.splice(-repeated.length);
    const same =
      originals.length === repeated.length &&
      repeated.every(({ name }, i) => originals[i]!.name === name);
    if (!same) throw this.#wrong();
    const argument = originals.length === 1 ? originals[0]! : blockOf(originals);
    argument.multiple = true;
    argument.repeatsToken = repeated.length === 1 && repeated[0]!.token !== undefined;
    sequence.push(argument);
  }

  #expect(word: string): void {
    if (this.#words[this.#at++] !== word) throw this.#wrong();
  }

  #wrong(): RangeError {
    return new RangeError(`wrong syntax near word ${this.#at + 1} of: ${this.#syntax}`);
  }
}

function isToken(word: string): boolean {
  return /^[A-Z][A-Z0-9-]*$/.test(word);
}

function argumentOf(name: string, type: ArgumentType, rest: Partial<Argument> = {}): Argument {
  return { name, type, optional: false, multiple: false, repeatsToken: false, parts: [], ...rest };
}

function joinedName(parts: readonly Argument[]): string {
  return parts.map(({ name }) => name).join('_');
}

/** Joins several arguments into one. In `LIMIT offset count` the token belongs to the whole. */
function blockOf(parts: Argument[]): Argument {
  const block = argumentOf(joinedName(parts), 'block', { parts });
  const [first, ...others] = parts;
  const leads = others.every(({ token, optional }) => token === undefined && !optional);
  if (first?.token !== undefined && !first.optional && first.type !== 'pure-token' && leads) {
    block.token = first.token;
    delete first.token;
  }
  return block;
}

/** Undefined when an alternative is empty. */
function asOne(alternatives: Argument[][]): Argument | undefined {
  const parts: Argument[] = [];
  for (const sequence of alternatives) {
    if (sequence.length === 0) return undefined;
    parts.push(sequence.length === 1 ? sequence[0]! : blockOf(sequence));
  }
  return parts.length === 1 ? parts[0]! : argumentOf(joinedName(parts), 'oneof', { parts });
}

/** Writes the `arguments` of COMMAND DOCS. */
export function writeArguments(args: readonly Argument[], reply: RespWriter): void {
  reply.array(args.length);
  for (const argument of args) writeArgument(argument, reply);
}

function writeArgument(argument: Argument, reply: RespWriter): void {
  const { name, type, token, keySpec, parts } = argument;
  const flags: string[] = [];
  if (argument.optional) flags.push('optional');
  if (argument.multiple) flags.push('multiple');
  if (argument.repeatsToken) flags.push('multiple_token');
  const present = [keySpec !== undefined, token !== undefined, flags.length > 0, parts.length > 0];
  reply.map(2 + present.filter(Boolean).length);
  reply.text('name');
  reply.text(name);
  reply.text('type');
  reply.text(type);
  if (keySpec !== undefined) {
    reply.text('key_spec_index');
    reply.integer(keySpec);
  }
  if (token !== undefined) {
    reply.text('token');
    reply.text(token);
  }
  if (flags.length > 0) {
    reply.text('flags');
    reply.set(flags.length);
    for (const flag of flags) reply.simple(flag);
  }
  if (parts.length > 0) {
    reply.text('arguments');
    writeArguments(parts, reply);
  }
}
