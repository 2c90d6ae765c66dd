// Scans InfluxQL tokens. One call scans one token and keeps no state: the parser knows where a regular expression may
// stand.

/**
 * A keyword in capitals, a sign as it is written, or one of: IDENT, NUMBER (with a point), INTEGER,
 * DURATIONVAL, STRING, BOUNDPARAM, REGEX, EOF; BADSTRING, BADESCAPE, BADREGEX, ILLEGAL. The names are
 * InfluxDB's, and appear in its messages.
 */
export type TokenKind = string;

export interface Token {
  readonly kind: TokenKind;
  /** Text without quotes and escapes; '' for keywords and signs. */
  readonly text: string;
  /** Where messages say it is; for strings InfluxDB names the character before. */
  readonly at: number;
  readonly end: number;
  /** Whether white space or a comment came before it. */
  readonly spaced: boolean;
}

const keywordNames =
  'ALL ALTER ANALYZE ANY AS ASC BEGIN BY CARDINALITY CREATE CONTINUOUS DATABASE DATABASES DEFAULT ' +
  'DELETE DESC DESTINATIONS DIAGNOSTICS DISTINCT DROP DURATION END EVERY EXACT EXPLAIN FIELD FOR ' +
  'FROM GRANT GRANTS GROUP GROUPS IN INF INSERT INTO KEY KEYS KILL LIMIT MEASUREMENT MEASUREMENTS ' +
  'NAME OFFSET ON ORDER PASSWORD POLICY POLICIES PRIVILEGES QUERIES QUERY READ REPLICATION RESAMPLE ' +
  'RETENTION REVOKE SELECT SERIES SET SHOW SHARD SHARDS SLIMIT SOFFSET STATS SUBSCRIPTION ' +
  'SUBSCRIPTIONS TAG TO USER USERS VALUES WHERE WITH WRITE AND OR TRUE FALSE';

/** Keywords by their lower-case spelling. */
const keywords = new Map(keywordNames.split(' ').map((name) => [name.toLowerCase(), name]));

const longestKeyword = Math.max(...[...keywords.keys()].map((name) => name.length));

export function isKeyword(word: string): boolean {
  return word.length <= longestKeyword && keywords.has(word.toLowerCase());
}

const nul = 0;
const newline = 0x0a;
const carriageReturn = 0x0d;
const doubleQuote = 0x22;
const dollar = 0x24;
const singleQuote = 0x27;
const dot = 0x2e;
const slash = 0x2f;
const backslash = 0x5c;
const micro = 0xb5;

/** Signs, longer ones first. */
const signs = ['::', '=~', '!=', '!~', '>=', '<=', '<>', ...Array.from('+-*/%&|^=<>(),;:.')];
const signsByFirst = new Map<number, string[]>();
for (const sign of signs) {
  const first = sign.charCodeAt(0);
  signsByFirst.set(first, [...(signsByFirst.get(first) ?? []), sign]);
}

const isSpace = (c: number): boolean =>
  c === 0x20 || c === 0x09 || c === newline || c === carriageReturn;
const isDigit = (c: number): boolean => c >= 0x30 && c <= 0x39;
const isLetter = (c: number): boolean => (c >= 0x61 && c <= 0x7a) || (c >= 0x41 && c <= 0x5a);
const isWordChar = (c: number): boolean => isLetter(c) || isDigit(c) || c === 0x5f;
const isUnitChar = (c: number): boolean => isLetter(c) || c === micro;

/** Past white space and comments. An open comment is left where it is, -1 - its start. */
export function skipSpace(text: string, from: number): number {
  let at = from;
  for (;;) {
    const c = text.charCodeAt(at);
    if (isSpace(c)) at++;
    else if (text.startsWith('--', at)) {
      while (at < text.length && !isNewline(text.charCodeAt(at))) at++;
    } else if (text.startsWith('/*', at)) {
      const end = text.indexOf('*/', at + 2);
      if (end < 0) return -1 - at;
      at = end + 2;
    } else return at;
  }
}

const isNewline = (c: number): boolean => c === newline || c === carriageReturn;

export function scan(text: string, from: number): Token {
  const at = skipSpace(text, from);
  if (at < 0) return token('ILLEGAL', '', -1 - at, text.length, true);
  return scanAt(text, at, at > from);
}

function token(kind: TokenKind, text: string, at: number, end: number, spaced: boolean): Token {
  return { kind, text, at, end, spaced };
}

function scanAt(text: string, at: number, spaced: boolean): Token {
  if (at >= text.length) return token('EOF', '', text.length, text.length, spaced);
  const c = text.charCodeAt(at);
  if (isLetter(c) || c === 0x5f) {
    const end = wordEnd(text, at);
    const word = text.slice(at, end);
    const keyword = word.length <= longestKeyword ? keywords.get(word.toLowerCase()) : undefined;
    return keyword === undefined
      ? token('IDENT', word, at, end, spaced)
      : token(keyword, '', at, end, spaced);
  }
  if (isDigit(c) || (c === dot && isDigit(text.charCodeAt(at + 1)))) {
    return scanNumber(text, at, spaced);
  }
  if (c === doubleQuote) {
    const string = scanString(text, at, spaced);
    return string.kind === 'STRING' ? { ...string, kind: 'IDENT', at } : string;
  }
  if (c === singleQuote) return scanString(text, at, spaced);
  if (c === dollar) return scanParameter(text, at, spaced);
  if (c === nul) return token('ILLEGAL', '', at, at + 1, spaced);
  const sign = signsByFirst.get(c)?.find((each) => text.startsWith(each, at));
  if (sign !== undefined) {
    return token(sign === '<>' ? '!=' : sign, '', at, at + sign.length, spaced);
  }
  const char = String.fromCodePoint(text.codePointAt(at)!);
  return token('ILLEGAL', char, at, at + char.length, spaced);
}

function wordEnd(text: string, from: number): number {
  let end = from;
  while (isWordChar(text.charCodeAt(end))) end++;
  return end;
}

function scanParameter(text: string, at: number, spaced: boolean): Token {
  if (text.charCodeAt(at + 1) === doubleQuote) {
    const string = scanString(text, at + 1, spaced);
    return string.kind === 'STRING' ? { ...string, kind: 'BOUNDPARAM', at } : string;
  }
  const end = wordEnd(text, at + 1);
  return token('BOUNDPARAM', text.slice(at + 1, end), at, end, spaced);
}

/** 1, 1.5, .5, `1.`, and 1h30m: letters after a whole number make it a duration, with any unit. */
function scanNumber(text: string, at: number, spaced: boolean): Token {
  let end = digitsEnd(text, at);
  if (text.charCodeAt(end) === dot) {
    end = digitsEnd(text, end + 1);
    return token('NUMBER', text.slice(at, end), at, end, spaced);
  }
  if (!isUnitChar(text.charCodeAt(end))) {
    return token('INTEGER', text.slice(at, end), at, end, spaced);
  }
  while (isUnitChar(text.charCodeAt(end)) || isDigit(text.charCodeAt(end))) end++;
  return token('DURATIONVAL', text.slice(at, end), at, end, spaced);
}

function digitsEnd(text: string, from: number): number {
  let end = from;
  while (isDigit(text.charCodeAt(end))) end++;
  return end;
}

const escapes: Readonly<Record<string, string>> = { n: '\n', '\\': '\\', '"': '"', "'": "'" };

/** Scans the text between two quotes of a kind, on one line. */
function scanString(text: string, start: number, spaced: boolean): Token {
  const quote = text.charCodeAt(start);
  const before = Math.max(0, start - 1);
  let value = '';
  let copied = start + 1;
  for (let i = start + 1; ; i++) {
    const c = text.charCodeAt(i);
    if (c === quote) {
      return token('STRING', value + text.slice(copied, i), before, i + 1, spaced);
    }
    if (Number.isNaN(c) || isNewline(c)) {
      return token('BADSTRING', value + text.slice(copied, i), before, i, spaced);
    }
    if (c !== backslash) continue;
    const escaped = escapes[text.charAt(i + 1)];
    if (escaped === undefined) {
      return token('BADESCAPE', `\\${text.charAt(i + 1)}`, i + 1, i + 2, spaced);
    }
    value += text.slice(copied, i) + escaped;
    i++;
    copied = i + 1;
  }
}

/** A regular expression, which begins with the slash at `start`. Only `\/` is an escape of ours. */
export function scanRegex(text: string, start: number, spaced: boolean): Token {
  const before = Math.max(0, start - 1);
  let value = '';
  let copied = start + 1;
  for (let i = start + 1; ; i++) {
    const c = text.charCodeAt(i);
    if (c === slash) {
      return token('REGEX', value + text.slice(copied, i), before, i + 1, spaced);
    }
    if (Number.isNaN(c) || isNewline(c)) return token('BADREGEX', '', before, i, spaced);
    if (c === backslash && text.charCodeAt(i + 1) === slash) {
      value += text.slice(copied, i);
      i++;
      copied = i;
    }
  }
}
