// Regular expressions in RE2's syntax, as Go's and thus InfluxDB's are. A pattern that is only a
// name or a list of names, like most patterns of dashboards, is compared as text; others use RE2's
// automata, which are linear in the text. All patterns of one query share resource limits.

import { RE2JS, RE2JSException } from 're2js';
import type { Pattern } from '../ast.ts';
import { Automaton } from './automaton.ts';
import { literalMatcher } from './literal-patterns.ts';

/** The message is that of Go's regexp package. */
export class PatternError extends Error {
  override readonly name = 'PatternError';
}

/** Characters of all patterns of a query. */
export const maxPatternLength = 65_536;
/** Instructions that all patterns of a query may come to once their repetitions are written out. */
const maxProgramSize = 16_384;
/** Memory for states that all automata of a query may keep. */
const maxStateBytes = 32 * 1024 * 1024;

/** Compiles the patterns of one query. */
export class PatternCompiler {
  #length = 0;
  #programSize = 0;
  #stateBytes = 0;

  /** Throws `PatternError`, also when the patterns so far come to too much. */
  compile(source: string): Pattern {
    this.#length += source.length;
    if (this.#length > maxPatternLength) throw tooLarge(source);
    const literal = literalMatcher(source);
    if (literal !== undefined) return { source, regexp: literal };
    this.#programSize += estimatedSize(source);
    if (this.#programSize > maxProgramSize) throw tooLarge(source);
    try {
      const automaton = new Automaton(RE2JS.compile(source));
      this.#stateBytes += automaton.maxBytes;
      if (this.#stateBytes > maxStateBytes) throw tooLarge(source);
      return { source, regexp: automaton };
    } catch (error) {
      if (error instanceof RE2JSException) throw new PatternError(shortened(error.message));
      throw error;
    }
  }
}

function tooLarge(source: string): PatternError {
  return new PatternError(
    `error parsing regexp: expression too large: \`${source.slice(0, 32)}${source.length > 32 ? '...' : ''}\``,
  );
}

function shortened(message: string): string {
  return message.length > 256 ? `${message.slice(0, 256)}...` : message;
}

// Assumed size of parts of a pattern, in instructions or in compile time.
const propertySize = 700;
const sizeOfClassCharacter = 1 / 4;
/** Case folding goes over each character of a range. */
const foldedRangeSize = 5_000;

/**
 * Upper bound of the instructions that a pattern compiles to: the compiler expands repetitions, so
 * its work must be bounded before. Classes are weighed by the work of building them. For a
 * malformed pattern the result is arbitrary; the parser stops at the error.
 */
export function estimatedSize(source: string): number {
  const folds = /\(\?[a-zA-Z-]*i/.test(source);
  // For each open group: its size so far, and its last atom, which a repetition repeats.
  const sums: number[] = [];
  let sum = 1;
  let last = 0;
  let at = 0;
  const add = (size: number): void => {
    sum += size;
    last = size;
  };
  while (at < source.length) {
    const c = source[at]!;
    if (c === '(') {
      sums.push(sum);
      // Its two captures, and the instruction for an empty text.
      sum = 3;
      last = 0;
      at++;
    } else if (c === ')') {
      const inner = sum;
      sum = sums.pop() ?? 1;
      add(inner);
      at++;
    } else if (c === '[') {
      const end = classEnd(source, at);
      add(classSize(source.slice(at, end), folds));
      at = end;
    } else if (c === '{') {
      const count = repetition(source, at);
      if (count === undefined) add(1);
      else sum += last * Math.max(0, count.most - 1) + count.most;
      last *= count?.most ?? 1;
      at += count?.length ?? 1;
    } else if (c === '\\') {
      const end = escapeEnd(source, at);
      const kind = source[at + 1];
      add(kind === 'p' || kind === 'P' ? propertySize : 2);
      // Only the last character of a quoted text is repeated.
      if (kind === 'Q') sum += end - at;
      at = end;
    } else {
      // A star over a possibly empty text is an optional plus; a bar may have an empty side.
      add('.*|'.includes(c) ? 2 : folds ? 3 : 1);
      at++;
    }
  }
  while (sums.length > 0) sum += sums.pop()!;
  return sum;
}

/** Behind `\\d`, `\\pL`, `\\p{Greek}`, `\\x{41}`, `\\Q...\\E`. */
function escapeEnd(source: string, at: number): number {
  const kind = source[at + 1] ?? '';
  if (kind === 'Q') {
    const close = source.indexOf('\\E', at + 2);
    return close < 0 ? source.length : close + 2;
  }
  if (!'pPx'.includes(kind) || kind === '') return at + 2;
  const close = source[at + 2] === '{' ? source.indexOf('}', at + 3) : at + 2;
  return close < 0 ? source.length : close + 1;
}

/** Behind the closing bracket. */
function classEnd(source: string, start: number): number {
  let at = start + 1;
  if (source[at] === '^') at++;
  // A bracket right at the front is a character.
  if (source[at] === ']') at++;
  while (at < source.length && source[at] !== ']') {
    const named = source.startsWith('[:', at) ? source.indexOf(':]', at + 2) : -1;
    if (named >= 0 && named - at <= longestClassName) at = named + 2;
    else at += source[at] === '\\' ? 2 : 1;
  }
  return at + 1;
}

/** `[:^xdigit:` */
const longestClassName = 12;

function classSize(text: string, folds: boolean): number {
  let size = 1;
  for (let i = 0; i < text.length; i++) {
    const isProperty = text[i] === '\\' && (text[i + 1] === 'p' || text[i + 1] === 'P');
    const next = text[i + 1];
    if (isProperty) size += propertySize;
    else if (folds && text[i] === '-' && (next === '\\' || (next ?? '') > '\x7f')) {
      size += foldedRangeSize;
    } else size += sizeOfClassCharacter;
  }
  return Math.ceil(size);
}

function repetition(source: string, at: number): { most: number; length: number } | undefined {
  const pattern = /\{(\d{1,5})(?:,(\d{0,5}))?\}/y;
  pattern.lastIndex = at;
  const found = pattern.exec(source);
  if (found === null) return undefined;
  const most = Math.max(Number(found[1]) + 1, Number(found[2] ?? 0));
  return { most, length: found[0].length };
}
