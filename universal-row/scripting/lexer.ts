// Tokens of Lua 5.1. The source is a string of bytes (one character for each), and so are the strings in it.

import { parseNumber } from './numbers.ts';

type TokenKind = 'name' | 'string' | 'number' | 'symbol' | 'keyword' | 'eof';

const keywords = new Set(
  'and break do else elseif end false for function if in local nil not or repeat return then true until while'.split(
    ' ',
  ),
);

/** The source is not a Lua program; the text names the line, as Lua's own does. */
export class LuaSyntaxError extends Error {
  override readonly name = 'LuaSyntaxError';
}

/** A program is compiled in one step, which takes longer with each token. Lua has no such limits. */
const maxSourceBytes = 1024 * 1024;
const maxTokens = 32_768;

const escapes: Record<string, string> = {
  a: '\x07',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
};

function isDigit(c: number): boolean {
  return c >= 48 && c <= 57;
}

function isNameStart(c: number): boolean {
  return (c >= 97 && c <= 122) || (c >= 65 && c <= 90) || c === 95;
}

export class Lexer {
  kind: TokenKind = 'eof';
  /** The name, keyword or symbol; the value of a string. */
  text = '';
  number = 0;
  line = 1;
  /** Line of the token before this one. */
  lastLine = 1;

  readonly #source: string;
  readonly #chunkName: string;
  #at = 0;
  #start = 0;
  #ahead:
    | { kind: TokenKind; text: string; number: number; line: number; start: number }
    | undefined;
  #end = 0;
  #tokens = 0;

  /** Throws `LuaSyntaxError` where the source is too long. */
  constructor(source: string, chunkName: string) {
    this.#source = source;
    this.#chunkName = chunkName;
    if (source.length > maxSourceBytes) {
      this.fail(`chunk has more than ${maxSourceBytes} bytes`, false);
    }
    // A first line that begins with # is for a shell.
    if (source.charCodeAt(0) === 35) this.#skipLine();
  }

  fail(message: string, near = true): never {
    throw this.#error(message, near ? this.#shown() : undefined);
  }

  #error(message: string, near: string | undefined, line = this.line): LuaSyntaxError {
    const at = near === undefined ? '' : ` near '${near.slice(0, 80)}'`;
    return new LuaSyntaxError(`${this.#chunkName}:${line}: ${message}${at}`);
  }

  #shown(): string {
    return this.kind === 'eof' ? '<eof>' : this.#source.slice(this.#start, this.#end);
  }

  is(text: string): boolean {
    return (this.kind === 'symbol' || this.kind === 'keyword') && this.text === text;
  }

  /** Whether the token after this one is that symbol. */
  isAhead(symbol: string): boolean {
    const { kind, text, number, line, lastLine } = this;
    const start = this.#start;
    const end = this.#end;
    this.next();
    const found = this.is(symbol);
    this.#ahead = {
      kind: this.kind,
      text: this.text,
      number: this.number,
      line: this.line,
      start: this.#start,
    };
    Object.assign(this, { kind, text, number, line, lastLine });
    this.#start = start;
    this.#end = end;
    return found;
  }

  next(): void {
    if (++this.#tokens > maxTokens) this.fail(`chunk has more than ${maxTokens} tokens`, false);
    this.lastLine = this.line;
    const ahead = this.#ahead;
    if (ahead !== undefined) {
      this.#ahead = undefined;
      this.kind = ahead.kind;
      this.text = ahead.text;
      this.number = ahead.number;
      this.line = ahead.line;
      this.#start = ahead.start;
      this.#end = this.#at;
      return;
    }
    this.#skipBlanks();
    this.#start = this.#at;
    this.#read();
    this.#end = this.#at;
  }

  #read(): void {
    const source = this.#source;
    if (this.#at >= source.length) {
      this.kind = 'eof';
      this.text = '<eof>';
      return;
    }
    const c = source.charCodeAt(this.#at);
    if (isNameStart(c)) {
      let end = this.#at + 1;
      while (isNameStart(source.charCodeAt(end)) || isDigit(source.charCodeAt(end))) end++;
      this.text = source.slice(this.#at, end);
      this.kind = keywords.has(this.text) ? 'keyword' : 'name';
      this.#at = end;
    } else if (isDigit(c) || (c === 46 && isDigit(source.charCodeAt(this.#at + 1)))) {
      this.#readNumber();
    } else if (c === 34 || c === 39) this.#readString(c);
    else if (c === 91 && this.#longLevel() >= 0) {
      this.text = this.#readLong(this.#longLevel(), 'string');
      this.kind = 'string';
    } else this.#readSymbol();
  }

  #readNumber(): void {
    const source = this.#source;
    let end = this.#at;
    for (;;) {
      const c = source.charCodeAt(end);
      const isSign = (c === 43 || c === 45) && /[eE]/.test(source[end - 1]!) && end > this.#at;
      if (!isSign && !isDigit(c) && c !== 46 && !isNameStart(c)) break;
      end++;
    }
    const text = source.slice(this.#at, end);
    this.#at = end;
    const value = /^[\d.]|^0[xX]/.test(text) ? parseNumber(text) : undefined;
    if (value === undefined) throw this.#error('malformed number', text);
    this.kind = 'number';
    this.number = value;
  }

  #readString(quote: number): void {
    const source = this.#source;
    let value = '';
    let from = ++this.#at;
    for (;;) {
      const c = source.charCodeAt(this.#at);
      if (c === quote) break;
      if (Number.isNaN(c)) throw this.#error('unfinished string', '<eof>');
      if (c === 10 || c === 13) {
        throw this.#error('unfinished string', source.slice(this.#start, this.#at));
      }
      if (c !== 92) {
        this.#at++;
        continue;
      }
      value += source.slice(from, this.#at);
      this.#at++;
      value += this.#readEscape();
      from = this.#at;
    }
    this.text = value + source.slice(from, this.#at);
    this.kind = 'string';
    this.#at++;
  }

  #readEscape(): string {
    const source = this.#source;
    const c = source.charCodeAt(this.#at);
    if (isDigit(c)) {
      const digits = /^\d{1,3}/.exec(source.slice(this.#at, this.#at + 3))![0];
      this.#at += digits.length;
      if (Number(digits) > 255) {
        throw this.#error('escape sequence too large', source.slice(this.#start, this.#at));
      }
      return String.fromCharCode(Number(digits));
    }
    if (c === 10 || c === 13) {
      this.#newLine();
      return '\n';
    }
    if (Number.isNaN(c)) throw this.#error('unfinished string', '<eof>');
    const letter = source[this.#at++]!;
    return Object.hasOwn(escapes, letter) ? escapes[letter]! : letter;
  }

  /** The number of `=` in the `[==[` here, or -1 when it is none. */
  #longLevel(): number {
    let at = this.#at + 1;
    while (this.#source.charCodeAt(at) === 61) at++;
    return this.#source.charCodeAt(at) === 91 ? at - this.#at - 1 : -1;
  }

  #readLong(level: number, what: string): string {
    const source = this.#source;
    const first = this.line;
    this.#at += level + 2;
    if (source[this.#at] === '\n' || source[this.#at] === '\r') this.#newLine();
    const close = `]${'='.repeat(level)}]`;
    const end = source.indexOf(close, this.#at);
    if (end < 0) throw this.#error(`unfinished long ${what}`, '<eof>', first);
    let value = '';
    let from = this.#at;
    while (this.#at < end) {
      const c = source.charCodeAt(this.#at);
      if (c !== 10 && c !== 13) {
        this.#at++;
        continue;
      }
      value += `${source.slice(from, this.#at)}\n`;
      this.#newLine();
      from = this.#at;
    }
    value += source.slice(from, end);
    this.#at = end + close.length;
    return value;
  }

  /** Passes one line break, which may be of two characters. */
  #newLine(): void {
    const c = this.#source.charCodeAt(this.#at++);
    const d = this.#source.charCodeAt(this.#at);
    if ((d === 10 || d === 13) && d !== c) this.#at++;
    this.line++;
  }

  #readSymbol(): void {
    const source = this.#source;
    this.kind = 'symbol';
    if (source.startsWith('...', this.#at)) this.text = '...';
    else {
      const two = source.slice(this.#at, this.#at + 2);
      this.text = ['==', '~=', '<=', '>=', '..'].includes(two) ? two : two[0]!;
    }
    this.#at += this.text.length;
  }

  #skipLine(): void {
    const source = this.#source;
    while (this.#at < source.length && source[this.#at] !== '\n' && source[this.#at] !== '\r') {
      this.#at++;
    }
  }

  #skipBlanks(): void {
    const source = this.#source;
    for (;;) {
      const c = source.charCodeAt(this.#at);
      if (c === 10 || c === 13) this.#newLine();
      else if (c === 32 || c === 9 || c === 11 || c === 12) this.#at++;
      else if (c === 45 && source.charCodeAt(this.#at + 1) === 45) {
        this.#at += 2;
        const level = source.charCodeAt(this.#at) === 91 ? this.#longLevel() : -1;
        if (level >= 0) this.#readLong(level, 'comment');
        else this.#skipLine();
      } else return;
    }
  }
}
