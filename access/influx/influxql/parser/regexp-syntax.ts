// Regular expressions of RE2's syntax, read into a tree. https://github.com/google/re2/wiki/Syntax
//
// Only whether a text matches is ever asked, so groups leave no trace, and lazy is the same as greedy.

import { classEscapes, foldRanges, invert, isProperty, posixClasses } from './regexp-classes.ts';

export type RegexpNode =
  | { readonly kind: 'chars'; readonly set: CharSet }
  | { readonly kind: 'assert'; readonly what: Assertion }
  | { readonly kind: 'concat' | 'alternate'; readonly parts: readonly RegexpNode[] }
  | {
      readonly kind: 'repeat';
      readonly body: RegexpNode;
      readonly min: number;
      readonly max: number;
    };

/** Start and end of the text; of a line; a word boundary, and none. */
export type Assertion = 'start' | 'end' | 'lineStart' | 'lineEnd' | 'boundary' | 'noBoundary';

export type Range = readonly [first: number, last: number];

export interface CharSet {
  /** Code points. */
  readonly ranges: readonly Range[];
  /** `\p{L}` and `\P{L}`, in JavaScript's syntax. */
  readonly properties: readonly string[];
  readonly negated: boolean;
}

/** The message is that of Go's regexp package. */
export class PatternError extends Error {
  override readonly name = 'PatternError';

  constructor(reason: string, at: string) {
    super(`error parsing regexp: ${reason}: \`${at}\``);
  }
}

export const maxPatternLength = 65_536;
const maxDepth = 200;
const maxRepeat = 1000;

export function parseRegexp(source: string): RegexpNode {
  if (source.length > maxPatternLength) {
    throw new PatternError('expression too large', `${source.slice(0, 32)}...`);
  }
  return new RegexpParser(source).parse();
}

const noNewline: CharSet = { ranges: [[0x0a, 0x0a]], properties: [], negated: true };
const anything: CharSet = { ranges: [], properties: [], negated: true };

interface Flags {
  readonly fold: boolean;
  readonly lines: boolean;
  readonly dotAll: boolean;
}

class RegexpParser {
  readonly #source: string;
  #at = 0;
  #flags: Flags = { fold: false, lines: false, dotAll: false };
  /** Of nodes that repeat: how often what is inside may be repeated by counts. */
  readonly #counts = new WeakMap<RegexpNode, number>();

  constructor(source: string) {
    this.#source = source;
  }

  parse(): RegexpNode {
    const node = this.#alternate(0);
    if (this.#at < this.#source.length) throw this.#error('unexpected )', this.#source);
    return node;
  }

  #error(reason: string, at: string): PatternError {
    return new PatternError(reason, at);
  }

  #take(text: string): boolean {
    if (!this.#source.startsWith(text, this.#at)) return false;
    this.#at += text.length;
    return true;
  }

  #alternate(depth: number): RegexpNode {
    const parts = [this.#concat(depth)];
    while (this.#take('|')) parts.push(this.#concat(depth));
    return parts.length === 1 ? parts[0]! : this.#counted({ kind: 'alternate', parts });
  }

  #concat(depth: number): RegexpNode {
    const parts: RegexpNode[] = [];
    while (this.#at < this.#source.length && !'|)'.includes(this.#source[this.#at]!)) {
      const atoms = this.#atoms(depth);
      const last = atoms.pop();
      parts.push(...atoms);
      // A repetition after flags, (?i)*, has nothing to repeat.
      if (last === undefined) this.#refuseRepetition();
      else parts.push(this.#repeated(last));
    }
    return parts.length === 1 ? parts[0]! : this.#counted({ kind: 'concat', parts });
  }

  #counted(node: RegexpNode & { parts: readonly RegexpNode[] }): RegexpNode {
    let count = 1;
    for (const part of node.parts) count = Math.max(count, this.#counts.get(part) ?? 1);
    if (count > 1) this.#counts.set(node, count);
    return node;
  }

  #repetition(): { min: number; max: number; text: string } | undefined {
    const start = this.#at;
    const match = /[*+?]|\{(\d+)(,(\d*))?\}/y;
    match.lastIndex = start;
    const found = match.exec(this.#source);
    if (found === null) return undefined;
    const [text, least, comma, most] = found;
    this.#at += text.length;
    if (least === undefined) {
      return { min: text === '+' ? 1 : 0, max: text === '?' ? 1 : Number.POSITIVE_INFINITY, text };
    }
    const min = Number(least);
    const max = comma === undefined ? min : most === '' ? Number.POSITIVE_INFINITY : Number(most);
    if (min > maxRepeat || max < min || (max > maxRepeat && Number.isFinite(max))) {
      throw this.#error('invalid repeat count', text);
    }
    return { min, max, text };
  }

  #refuseRepetition(): void {
    const repetition = this.#repetition();
    if (repetition !== undefined) {
      throw this.#error('missing argument to repetition operator', repetition.text);
    }
  }

  #repeated(body: RegexpNode): RegexpNode {
    const opAt = this.#at;
    const repetition = this.#repetition();
    if (repetition === undefined) return body;
    this.#take('?');
    if (this.#repetition() !== undefined) {
      const text = this.#source.slice(opAt, this.#at);
      throw this.#error('invalid nested repetition operator', text);
    }
    const { min, max, text } = repetition;
    const node: RegexpNode = { kind: 'repeat', body, min, max };
    const times = text.startsWith('{') ? Math.max(min, Number.isFinite(max) ? max : 0, 1) : 1;
    const count = times * (this.#counts.get(body) ?? 1);
    if (count > maxRepeat) {
      throw this.#error('invalid repeat count', text);
    }
    if (count > 1) this.#counts.set(node, count);
    return node;
  }

  /** One atom as a rule; \Q...\E is several, flags are none. */
  #atoms(depth: number): RegexpNode[] {
    const c = this.#source[this.#at]!;
    switch (c) {
      case '(':
        return this.#group(depth);
      case '[':
        return [this.#class()];
      case '.':
        this.#at++;
        return [{ kind: 'chars', set: this.#flags.dotAll ? anything : noNewline }];
      case '^':
        this.#at++;
        return [{ kind: 'assert', what: this.#flags.lines ? 'lineStart' : 'start' }];
      case '$':
        this.#at++;
        return [{ kind: 'assert', what: this.#flags.lines ? 'lineEnd' : 'end' }];
      case '\\':
        return this.#escape();
      case '*':
      case '+':
      case '?':
        this.#refuseRepetition();
    }
    // A brace that counts nothing is a character.
    if (c === '{') this.#refuseRepetition();
    const code = this.#source.codePointAt(this.#at)!;
    this.#at += code > 0xffff ? 2 : 1;
    return [this.#literal(code)];
  }

  #literal(code: number): RegexpNode {
    return this.#chars([[code, code]], [], false);
  }

  #chars(ranges: readonly Range[], properties: readonly string[], negated: boolean): RegexpNode {
    const folded = this.#flags.fold ? foldRanges(ranges) : ranges;
    return { kind: 'chars', set: { ranges: folded, properties, negated } };
  }

  #group(depth: number): RegexpNode[] {
    if (depth >= maxDepth) throw this.#error('expression nests too deeply', this.#source);
    const before = this.#flags;
    this.#at++;
    if (this.#take('?')) {
      const closed = this.#groupHead();
      if (closed) return [];
    }
    const inner = this.#alternate(depth + 1);
    if (!this.#take(')')) throw this.#error('missing closing )', this.#source);
    this.#flags = before;
    return [inner];
  }

  /** What follows `(?`. True when it is no group, but sets flags for the rest of the one around it. */
  #groupHead(): boolean {
    const start = this.#at - 2;
    const named = /P?<([^>]*)>/y;
    named.lastIndex = this.#at;
    const name = named.exec(this.#source);
    if (name !== null && /^\w+$/.test(name[1]!)) {
      this.#at += name[0].length;
      return false;
    }
    if (name !== null || this.#source.startsWith('P<', this.#at)) {
      const end = name === null ? this.#source.length : this.#at + name[0].length;
      // `(?<=` and `(?<!` look behind.
      if (!/^<[=!]/.test(this.#source.slice(this.#at, this.#at + 2))) {
        throw this.#error('invalid named capture', this.#source.slice(start, end));
      }
    }
    const flags = /([imsU]*)(-[imsU]+)?([:)])/y;
    flags.lastIndex = this.#at;
    const found = flags.exec(this.#source);
    if (found === null) {
      const bad = /[imsU-]*/y;
      bad.lastIndex = this.#at;
      bad.exec(this.#source);
      const end = Math.max(bad.lastIndex, this.#at) + 1;
      throw this.#error('invalid or unsupported Perl syntax', this.#source.slice(start, end));
    }
    const [text, on = '', off = '', end] = found;
    const has = (flag: string, now: boolean): boolean =>
      !off.includes(flag) && (now || on.includes(flag));
    const { fold, lines, dotAll } = this.#flags;
    this.#flags = { fold: has('i', fold), lines: has('m', lines), dotAll: has('s', dotAll) };
    this.#at += text.length;
    return end === ')';
  }

  #escape(): RegexpNode[] {
    const next = this.#source[this.#at + 1];
    const assertion = next === undefined ? undefined : assertions[next];
    if (assertion !== undefined) {
      this.#at += 2;
      return [{ kind: 'assert', what: assertion }];
    }
    if (next === 'Q') return this.#quoted();
    const group = this.#classEscape();
    if (group !== undefined) return [this.#chars(group.ranges, group.properties, false)];
    return [this.#literal(this.#charEscape())];
  }

  /** \Q...\E, or to the end of the text. */
  #quoted(): RegexpNode[] {
    const start = this.#at + 2;
    const close = this.#source.indexOf('\\E', start);
    const end = close < 0 ? this.#source.length : close;
    this.#at = close < 0 ? end : end + 2;
    const quoted = Array.from(this.#source.slice(start, end));
    return quoted.map((char) => this.#literal(char.codePointAt(0)!));
  }

  /** \d, \W, \pL, \P{Greek} and the like. */
  #classEscape(): { ranges: readonly Range[]; properties: string[] } | undefined {
    const two = this.#source.slice(this.#at, this.#at + 2);
    const ranges = classEscapes.get(two);
    if (ranges !== undefined) {
      this.#at += 2;
      return { ranges, properties: [] };
    }
    if (!/^\\[pP]$/.test(two)) return undefined;
    const property = /\\[pP](?:\{(\^?)([^}]*)\}|([A-Za-z]))/y;
    property.lastIndex = this.#at;
    const found = property.exec(this.#source);
    if (found === null) {
      throw this.#error('invalid character class range', this.#source.slice(this.#at));
    }
    const [text, not, long, short] = found;
    const name = long ?? short!;
    const positive = (two === '\\p') !== (not === '^');
    this.#at += text.length;
    if (name === 'Any') {
      return { ranges: positive ? [[0, 0x10ffff]] : [], properties: [] };
    }
    const inJs = isProperty(name);
    if (inJs === undefined) throw this.#error('invalid character class range', text);
    return { ranges: [], properties: [`\\${positive ? 'p' : 'P'}{${inJs}}`] };
  }

  /** The code point an escape stands for. */
  #charEscape(): number {
    const escape =
      /\\(?:x\{([0-9A-Fa-f]+)\}|x([0-9A-Fa-f]{2})|(0[0-7]{0,2}|[1-7][0-7]{1,2})|(.?))/suy;
    escape.lastIndex = this.#at;
    const found = escape.exec(this.#source)!;
    const [text, long, short, octal, char = ''] = found;
    this.#at += text.length;
    if (long !== undefined || short !== undefined) {
      const code = Number.parseInt((long ?? short)!, 16);
      if (code <= 0x10ffff) return code;
      throw this.#error('invalid escape sequence', text.replace('}', ''));
    }
    if (octal !== undefined) return Number.parseInt(octal, 8);
    if (char === '') throw this.#error('trailing backslash at end of expression', '');
    const control = controls.get(char);
    if (control !== undefined) return control;
    if (char.charCodeAt(0) < 0x80 && !/[A-Za-z0-9]/.test(char)) {
      return char.charCodeAt(0);
    }
    throw this.#error('invalid escape sequence', char === 'x' ? this.#digitsAfter(text) : text);
  }

  /** An escape that lacks digits is shown with what stands in their place. */
  #digitsAfter(text: string): string {
    return text + this.#source.slice(this.#at, this.#at + 2);
  }

  #class(): RegexpNode {
    const start = this.#at;
    this.#at++;
    const negated = this.#take('^');
    const ranges: Range[] = [];
    const properties: string[] = [];
    // A bracket right at the front is a character.
    for (let first = true; first || this.#source[this.#at] !== ']'; first = false) {
      if (this.#at >= this.#source.length) {
        throw this.#error('missing closing ]', this.#source.slice(start));
      }
      const group = this.#posixClass() ?? this.#classEscape();
      if (group === undefined) {
        ranges.push(this.#range());
      } else {
        ranges.push(...group.ranges);
        properties.push(...group.properties);
      }
    }
    this.#at++;
    return this.#chars(ranges, properties, negated);
  }

  #posixClass(): { ranges: readonly Range[]; properties: string[] } | undefined {
    if (!this.#source.startsWith('[:', this.#at)) return undefined;
    const end = this.#source.indexOf(':]', this.#at + 2);
    if (end < 0) return undefined;
    const text = this.#source.slice(this.#at, end + 2);
    const name = text.slice(2, -2);
    const ranges = posixClasses.get(name.replace(/^\^/, ''));
    if (ranges === undefined) throw this.#error('invalid character class range', text);
    this.#at = end + 2;
    return { ranges: name.startsWith('^') ? invert(ranges) : ranges, properties: [] };
  }

  #range(): Range {
    const start = this.#at;
    const first = this.#classChar();
    if (this.#source[this.#at] !== '-' || this.#source[this.#at + 1] === ']') return [first, first];
    if (this.#at + 1 >= this.#source.length) return [first, first];
    this.#at++;
    const last = this.#classChar();
    if (last < first) {
      const text = this.#source.slice(start, this.#at);
      throw this.#error('invalid character class range', text);
    }
    return [first, last];
  }

  #classChar(): number {
    if (this.#source[this.#at] === '\\') return this.#charEscape();
    const code = this.#source.codePointAt(this.#at) ?? 0;
    this.#at += code > 0xffff ? 2 : 1;
    return code;
  }
}

const assertions: Readonly<Record<string, Assertion>> = {
  A: 'start',
  z: 'end',
  b: 'boundary',
  B: 'noBoundary',
};

const controls = new Map([
  ['a', 7],
  ['f', 12],
  ['t', 9],
  ['n', 10],
  ['r', 13],
  ['v', 11],
]);
