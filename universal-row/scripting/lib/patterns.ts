// Lua's patterns over strings of bytes, matched by backtracking with a bound on its steps.

import type { Machine } from '../machine.ts';
import type { Value } from '../values.ts';

const maxCaptures = 32;
const maxNesting = 200;
/** Limit of a match from one position, which is one step of the script. */
const mostSteps = 2_000_000;
/** Instructions that an attempt from one position counts as, and a capture. */
const attemptUnits = 16;
const captureUnits = 48;

const isPosition = -2;
const isOpen = -1;

type ClassTest = (c: number) => boolean;

const isLower: ClassTest = (c) => c >= 97 && c <= 122;
const isUpper: ClassTest = (c) => c >= 65 && c <= 90;
const isDigit: ClassTest = (c) => c >= 48 && c <= 57;
const isAlpha: ClassTest = (c) => isLower(c) || isUpper(c);
const isControl: ClassTest = (c) => c < 32 || c === 127;
const isSpace: ClassTest = (c) => c === 32 || (c >= 9 && c <= 13);
const isAlnum: ClassTest = (c) => isAlpha(c) || isDigit(c);
const isPunctuation: ClassTest = (c) => c > 32 && c < 127 && !isAlnum(c);
const isHex: ClassTest = (c) => isDigit(c) || (c >= 97 && c <= 102) || (c >= 65 && c <= 70);

const classes = new Map<number, ClassTest>(
  Object.entries({
    a: isAlpha,
    c: isControl,
    d: isDigit,
    l: isLower,
    p: isPunctuation,
    s: isSpace,
    u: isUpper,
    w: isAlnum,
    x: isHex,
    z: (c: number) => c === 0,
  }).map(([letter, test]) => [letter.charCodeAt(0), test]),
);

const percent = 37;

export class Matcher {
  readonly #m: Machine;
  readonly #source: string;
  readonly #pattern: string;
  #level = 0;
  readonly #starts: number[] = [];
  readonly #lengths: number[] = [];
  #steps = 0;
  #nesting = 0;

  constructor(m: Machine, source: string, pattern: string) {
    this.#m = m;
    this.#source = source;
    this.#pattern = pattern;
  }

  /** Where a match that begins at `start` ends, or -1; `from` skips a `^`. */
  matchAt(start: number, from: number): number {
    this.#level = 0;
    this.#nesting = 0;
    this.#steps = 0;
    const end = this.#match(start, from);
    this.#m.charge(attemptUnits + (this.#steps >>> 2));
    return end;
  }

  whole(start: number, end: number): string {
    return this.#source.slice(start, end);
  }

  /** The `index`th capture, or the whole match if there are none. */
  capture(index: number, start: number, end: number): Value {
    if (index >= this.#level) {
      if (index !== 0) throw this.#m.error('invalid capture index');
      return this.#source.slice(start, end);
    }
    const length = this.#lengths[index]!;
    if (length === isOpen) throw this.#m.error('unfinished capture');
    const at = this.#starts[index]!;
    return length === isPosition ? at + 1 : this.#source.slice(at, at + length);
  }

  captures(start: number, end: number, whole: boolean): Value[] {
    const count = this.#level === 0 && whole ? 1 : this.#level;
    this.#m.charge(captureUnits * count);
    return Array.from({ length: count }, (_, i) => this.capture(i, start, end));
  }

  #step(): void {
    if (++this.#steps > mostSteps) throw this.#m.error('pattern too complex');
  }

  #match(start: number, from: number): number {
    if (++this.#nesting > maxNesting) throw this.#m.error('pattern too complex');
    const end = this.#matchHere(start, from);
    this.#nesting--;
    return end;
  }

  #matchHere(start: number, from: number): number {
    const pattern = this.#pattern;
    const source = this.#source;
    let s = start;
    let p = from;
    for (;;) {
      this.#step();
      if (p >= pattern.length) return s;
      const c = pattern.charCodeAt(p);
      if (c === 40) {
        return pattern.charCodeAt(p + 1) === 41
          ? this.#startCapture(s, p + 2, isPosition)
          : this.#startCapture(s, p + 1, isOpen);
      }
      if (c === 41) return this.#endCapture(s, p + 1);
      if (c === 36 && p + 1 === pattern.length) return s === source.length ? s : -1;
      if (c === percent) {
        const d = pattern.charCodeAt(p + 1);
        if (d === 98) {
          s = this.#balance(s, p + 2);
          if (s < 0) return -1;
          p += 4;
          continue;
        }
        if (d === 102) {
          p += 2;
          if (pattern.charCodeAt(p) !== 91)
            throw this.#m.error("missing '[' after '%f' in pattern");
          const end = this.#classEnd(p);
          const before = s === 0 ? 0 : source.charCodeAt(s - 1);
          const now = s < source.length ? source.charCodeAt(s) : 0;
          if (this.#inSet(before, p, end - 1) || !this.#inSet(now, p, end - 1)) return -1;
          p = end;
          continue;
        }
        if (isDigit(d)) {
          s = this.#backReference(s, d);
          if (s < 0) return -1;
          p += 2;
          continue;
        }
      }
      const end = this.#classEnd(p);
      const suffix = pattern.charCodeAt(end);
      if (suffix === 63) {
        if (this.#isSingle(s, p, end)) {
          const found = this.#match(s + 1, end + 1);
          if (found >= 0) return found;
        }
        p = end + 1;
      } else if (suffix === 43) {
        return this.#isSingle(s, p, end) ? this.#most(s + 1, p, end) : -1;
      } else if (suffix === 42) return this.#most(s, p, end);
      else if (suffix === 45) return this.#least(s, p, end);
      else {
        if (!this.#isSingle(s, p, end)) return -1;
        s++;
        p = end;
      }
    }
  }

  #isSingle(s: number, p: number, end: number): boolean {
    if (s >= this.#source.length) return false;
    this.#step();
    return this.#isIn(this.#source.charCodeAt(s), p, end);
  }

  /** Whether a byte is in the class from `p` to `end`. */
  #isIn(c: number, p: number, end: number): boolean {
    const first = this.#pattern.charCodeAt(p);
    if (first === 46) return true;
    if (first === percent) return isInClass(c, this.#pattern.charCodeAt(p + 1));
    return first === 91 ? this.#inSet(c, p, end - 1) : first === c;
  }

  #most(start: number, p: number, end: number): number {
    let s = start;
    while (this.#isSingle(s, p, end)) s++;
    for (; s >= start; s--) {
      const found = this.#match(s, end + 1);
      if (found >= 0) return found;
    }
    return -1;
  }

  #least(start: number, p: number, end: number): number {
    for (let s = start; ; s++) {
      const found = this.#match(s, end + 1);
      if (found >= 0) return found;
      if (!this.#isSingle(s, p, end)) return -1;
    }
  }

  #startCapture(s: number, p: number, what: number): number {
    if (this.#level >= maxCaptures) throw this.#m.error('too many captures');
    this.#starts[this.#level] = s;
    this.#lengths[this.#level] = what;
    this.#level++;
    const found = this.#match(s, p);
    if (found < 0) this.#level--;
    return found;
  }

  #endCapture(s: number, p: number): number {
    let level = this.#level - 1;
    while (level >= 0 && this.#lengths[level] !== isOpen) level--;
    if (level < 0) throw this.#m.error('invalid pattern capture');
    this.#lengths[level] = s - this.#starts[level]!;
    const found = this.#match(s, p);
    if (found < 0) this.#lengths[level] = isOpen;
    return found;
  }

  #backReference(s: number, digit: number): number {
    const index = digit - 49;
    const length = this.#lengths[index];
    if (index < 0 || index >= this.#level || length === undefined || length === isOpen) {
      throw this.#m.error('invalid capture index');
    }
    const text = this.#source.slice(this.#starts[index]!, this.#starts[index]! + length);
    this.#steps += text.length;
    return this.#source.startsWith(text, s) ? s + text.length : -1;
  }

  #balance(s: number, p: number): number {
    const pattern = this.#pattern;
    if (p + 1 >= pattern.length) throw this.#m.error('unbalanced pattern');
    const source = this.#source;
    const open = pattern.charCodeAt(p);
    const close = pattern.charCodeAt(p + 1);
    if (s >= source.length || source.charCodeAt(s) !== open) return -1;
    let depth = 1;
    for (let at = s + 1; at < source.length; at++) {
      this.#step();
      const c = source.charCodeAt(at);
      if (c === close) {
        if (--depth === 0) return at + 1;
      } else if (c === open) depth++;
    }
    return -1;
  }

  /** Where the class that begins at `p` ends. */
  #classEnd(p: number): number {
    const pattern = this.#pattern;
    let at = p + 1;
    const first = pattern.charCodeAt(p);
    if (first === percent) {
      if (at >= pattern.length) throw this.#m.error("malformed pattern (ends with '%')");
      return at + 1;
    }
    if (first !== 91) return at;
    if (pattern.charCodeAt(at) === 94) at++;
    do {
      if (at >= pattern.length) throw this.#m.error("malformed pattern (missing ']')");
      const c = pattern.charCodeAt(at++);
      if (c === percent) {
        if (at >= pattern.length) throw this.#m.error("malformed pattern (missing ']')");
        at++;
      }
    } while (pattern.charCodeAt(at) !== 93);
    return at + 1;
  }

  /** Whether a byte is in the set from `[` at `p` to `]` at `end`. */
  #inSet(c: number, p: number, end: number): boolean {
    const pattern = this.#pattern;
    let at = p + 1;
    const isNegated = pattern.charCodeAt(at) === 94;
    if (isNegated) at++;
    for (; at < end; at++) {
      const d = pattern.charCodeAt(at);
      if (d === percent) {
        at++;
        if (isInClass(c, pattern.charCodeAt(at))) return !isNegated;
      } else if (pattern.charCodeAt(at + 1) === 45 && at + 2 < end) {
        at += 2;
        if (d <= c && c <= pattern.charCodeAt(at)) return !isNegated;
      } else if (d === c) return !isNegated;
    }
    return isNegated;
  }
}

function isInClass(c: number, letter: number): boolean {
  const test = classes.get(letter | 32);
  if (test === undefined || !isAlpha(letter)) return letter === c;
  return test(c) !== isUpper(letter);
}

/** Whether a pattern is a plain string. */
export function isPlain(pattern: string): boolean {
  return !/[\^$*+?.()[\]%-]/.test(pattern);
}
