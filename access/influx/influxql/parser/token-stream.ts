// The tokens of a query with a look ahead of one, and the messages for unexpected ones.

import type { Slices } from '../../../../universal-row/slices.ts';
import type { Pattern } from '../ast.ts';
import { ParseError } from '../result.ts';
import { scan, scanRegex, skipSpace, type Token, type TokenKind } from './lexer.ts';
import { bindParameter } from './parameters.ts';
import { PatternCompiler, PatternError } from './regexp.ts';

/** Levels of parentheses, calls and subqueries. */
const maxNesting = 250;

/** Tokens of one statement: it is parsed, planned and checked in one go. */
const maxStatementTokens = 32_768;

export interface ParseOptions {
  /** The request's time, nanoseconds since 1970. */
  readonly now: bigint;
  /** Values for `$name`. */
  readonly params?: Readonly<Record<string, unknown>> | undefined;
}

export class TokenStream {
  readonly options: ParseOptions;
  readonly #text: string;
  readonly #patterns = new PatternCompiler();
  /** End of the last token taken. */
  #at = 0;
  #ahead: Token | undefined;
  #nesting = 0;
  #tokens = 0;
  #deferred: string | undefined;
  /** InfluxDB counts the end as one character further on once its scanner has run into it. */
  #ranIntoEnd = false;

  constructor(text: string, options: ParseOptions) {
    this.#text = text.trim();
    this.options = options;
  }

  peek(): Token {
    this.#ahead ??= this.#scan();
    return this.#ahead;
  }

  next(): Token {
    const token = this.peek();
    this.#at = token.end;
    // A word's end is found by reading on.
    if (token.end === this.#text.length && isBareWord(this.#text, token)) this.#ranIntoEnd = true;
    this.#ahead = undefined;
    return token;
  }

  beginStatement(): void {
    this.#tokens = 0;
  }

  #scan(): Token {
    const token = scan(this.#text, this.#at);
    if (++this.#tokens > maxStatementTokens && token.kind !== ';') {
      this.fail(`statement of more than ${maxStatementTokens} tokens`, token);
    }
    if (token.kind === 'EOF' && token.spaced) this.#ranIntoEnd = true;
    if (token.kind !== 'BOUNDPARAM') return token;
    return bindParameter(token, this.options.params ?? {});
  }

  is(kind: TokenKind): boolean {
    return this.peek().kind === kind;
  }

  /** Whether it comes next with nothing in between. */
  isAdjacent(kind: TokenKind): boolean {
    const token = this.peek();
    return token.kind === kind && !token.spaced;
  }

  /** Takes the next token if it is of that kind. */
  take(kind: TokenKind): boolean {
    if (!this.is(kind)) return false;
    this.next();
    return true;
  }

  expect(kind: TokenKind, expected: readonly string[] = [kind]): Token {
    const token = this.next();
    if (token.kind !== kind) this.unexpected(token, expected);
    return token;
  }

  expectAll(...kinds: readonly TokenKind[]): void {
    for (const kind of kinds) this.expect(kind);
  }

  identifier(): string {
    return this.expect('IDENT', ['identifier']).text;
  }

  string(): string {
    return this.expect('STRING', ['string']).text;
  }

  /** A regular expression, if one comes next. */
  pattern(): Pattern | undefined {
    const past = skipSpace(this.#text, this.#at);
    // An apparent open comment may be an expression that begins with an asterisk.
    const at = past < 0 ? -1 - past : past;
    const char = this.#text.charAt(at);
    if (char === '' && this.#ahead === undefined) this.#ranIntoEnd = true;
    if (char !== '/' && !(char === '$' && this.is('REGEX'))) return undefined;
    const token = char === '/' ? scanRegex(this.#text, at, at > this.#at) : this.peek();
    this.#at = token.end;
    this.#ahead = undefined;
    if (token.kind === 'BADREGEX') this.fail('bad regex: ', token);
    return this.compile(token);
  }

  compile(token: Token): Pattern {
    try {
      return this.#patterns.compile(token.text);
    } catch (error) {
      if (error instanceof PatternError) this.fail(error.message, token);
      throw error;
    }
  }

  /** Runs `parse` one level further down. */
  nested<T>(parse: () => T): T {
    if (++this.#nesting > maxNesting) this.fail('nested too deeply', this.peek());
    const result = parse();
    this.#nesting--;
    return result;
  }

  /** As `nested`. */
  *nestedInSlices<T>(parse: () => Slices<T>): Slices<T> {
    if (++this.#nesting > maxNesting) this.fail('nested too deeply', this.peek());
    const result = yield* parse();
    this.#nesting--;
    return result;
  }

  /** Notes that the statement, though well-formed, cannot be run. */
  defer(error: string): void {
    this.#deferred ??= error;
  }

  takeDeferred(): string | undefined {
    const error = this.#deferred;
    this.#deferred = undefined;
    return error;
  }

  /** The character after the last token, '' at the end. */
  nextChar(): string {
    if (this.#at >= this.#text.length && this.#ahead === undefined) this.#ranIntoEnd = true;
    return this.#text.charAt(this.#at);
  }

  /** Where the next token begins. */
  position(): number {
    const at = skipSpace(this.#text, this.#at);
    return at < 0 ? -1 - at : at;
  }

  /** The text since a `position`. */
  textSince(position: number): string {
    return this.#text.slice(position, this.#at);
  }

  unexpected(found: Token, expected: readonly string[]): never {
    const text = found.text === '' ? found.kind : found.text;
    return this.fail(`found ${text}, expected ${expected.join(', ')}`, found);
  }

  fail(message: string, token: Token): never {
    throw new ParseError(`error parsing query: ${message} at ${this.describe(token)}`);
  }

  /** `line 1, char 17` */
  describe(token: Token): string {
    const before = this.#text.slice(0, token.at).replaceAll('\r\n', '\n').replaceAll('\r', '\n');
    const lineStart = before.lastIndexOf('\n') + 1;
    const line = before.split('\n').length;
    let char = Array.from(before.slice(lineStart)).length + 1;
    if (token.kind === 'EOF' && this.#ranIntoEnd) char++;
    return `line ${line}, char ${char}`;
  }
}

/** Messages that name no position. */
export function refuse(message: string): never {
  throw new ParseError(`error parsing query: ${message}`);
}

function isBareWord(text: string, token: Token): boolean {
  if (token.kind === 'IDENT') return text.charAt(token.end - 1) !== '"';
  return token.text === '' && token.kind !== 'EOF' && /\w/.test(text.charAt(token.end - 1));
}
