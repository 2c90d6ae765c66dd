// The string library.

import type { Machine } from '../machine.ts';
import { numberText } from '../numbers.ts';
import {
  type Callable,
  firstOf,
  LuaTable,
  noValues,
  Pending,
  typeName,
  type Value,
} from '../values.ts';
import { checkInteger, checkString } from './checks.ts';
import { format } from './format.ts';
import { isPlain, Matcher } from './patterns.ts';

const maxBytes = 8000;
const where = { chunk: '=[C]', line: 0 };

/** A position from the start, 1-based; negative ones count from the end. */
function fromStart(position: number, length: number): number {
  if (position >= 0) return position;
  return -position > length ? 0 : length + position + 1;
}

/** Where a search has used up its slice: it continues in the next one. */
function* nextSlice(m: Machine): Generator<unknown, void, unknown> {
  if (!m.isStepping) m.tick();
  yield undefined;
  m.resumed();
}

function* find(
  m: Machine,
  args: readonly Value[],
  isFind: boolean,
): Generator<unknown, unknown, unknown> {
  const name = isFind ? 'find' : 'match';
  const source = checkString(m, args[0], 1, name);
  const pattern = checkString(m, args[1], 2, name);
  const given = fromStart(checkInteger(m, args[2], 3, name, 1), source.length);
  const init = Math.max(0, given - 1);
  if (init > source.length) return undefined;
  const plain = args[3] !== undefined && args[3] !== false;
  if (isFind && (plain || isPlain(pattern))) {
    const at = source.indexOf(pattern, init);
    m.charge((at < 0 ? source.length - init : at - init) >>> 4);
    return at < 0 ? undefined : [at + 1, at + pattern.length];
  }
  const isAnchored = pattern.charCodeAt(0) === 94;
  const matcher = new Matcher(m, source, pattern);
  for (let start = init; start <= source.length; start++) {
    const end = matcher.matchAt(start, isAnchored ? 1 : 0);
    if (end >= 0) {
      return isFind
        ? [start + 1, end, ...matcher.captures(start, end, false)]
        : matcher.captures(start, end, true);
    }
    if (isAnchored) break;
    if (--m.n < 0) yield* nextSlice(m);
  }
  return undefined;
}

function gmatch(m: Machine, subject: Value, shape: Value): Callable {
  const source = checkString(m, subject, 1, 'gmatch');
  const pattern = checkString(m, shape, 2, 'gmatch');
  const matcher = new Matcher(m, source, pattern);
  let from = 0;
  return m.stepping(function* () {
    for (let start = from; start <= source.length; start++) {
      const end = matcher.matchAt(start, 0);
      if (end >= 0) {
        from = end === start ? end + 1 : end;
        return matcher.captures(start, end, true);
      }
      if (--m.n < 0) yield* nextSlice(m);
    }
    from = source.length + 1;
    return undefined;
  });
}

/** Replacement of a match; undefined to keep the match. */
function* replacement(
  m: Machine,
  by: Value,
  matcher: Matcher,
  start: number,
  end: number,
): Generator<unknown, Value, unknown> {
  if (typeof by === 'string') return expand(m, by, matcher, start, end);
  let value: Value;
  if (by instanceof LuaTable) {
    const found = m.index(by, matcher.capture(0, start, end), where);
    value = found instanceof Pending ? yield* found : found;
  } else value = firstOf(yield* m.callBack(by as Callable, matcher.captures(start, end, true)));
  if (value === undefined || value === false) return undefined;
  if (typeof value === 'number') return numberText(value);
  if (typeof value === 'string') return value;
  throw m.error(`invalid replacement value (a ${typeName(value)})`);
}

function expand(m: Machine, by: string, matcher: Matcher, start: number, end: number): string {
  if (!by.includes('%')) return by;
  let text = '';
  for (let i = 0; i < by.length; i++) {
    const c = by[i]!;
    if (c !== '%') {
      text += c;
      continue;
    }
    const d = by[++i] ?? '';
    if (d === '0') text += matcher.whole(start, end);
    else if (d >= '1' && d <= '9') {
      const value = matcher.capture(Number(d) - 1, start, end);
      text += typeof value === 'number' ? numberText(value) : value;
    } else text += d;
  }
  m.charge(by.length >>> 3);
  return text;
}

function* gsub(m: Machine, args: readonly Value[]): Generator<unknown, unknown, unknown> {
  const source = checkString(m, args[0], 1, 'gsub');
  const pattern = checkString(m, args[1], 2, 'gsub');
  const given = args[2];
  const by = typeof given === 'number' ? numberText(given) : given;
  if (typeof by !== 'string' && typeof by !== 'function' && !(by instanceof LuaTable)) {
    throw m.argument(3, 'gsub', 'string/function/table expected');
  }
  const most = checkInteger(m, args[3], 4, 'gsub', source.length + 1);
  const isAnchored = pattern.charCodeAt(0) === 94;
  const matcher = new Matcher(m, source, pattern);
  let text = '';
  let copied = 0;
  let at = 0;
  let count = 0;
  while (count < most) {
    const end = matcher.matchAt(at, isAnchored ? 1 : 0);
    if (end >= 0) {
      count++;
      const value = yield* replacement(m, by, matcher, at, end);
      if (value !== undefined) {
        text += source.slice(copied, at) + (value as string);
        copied = end;
        if (text.length > m.limits.stringBytes) throw m.error('not enough memory');
      }
    }
    if (end > at) at = end;
    else if (at < source.length) at++;
    else break;
    if (isAnchored) break;
    if (--m.n < 0) yield* nextSlice(m);
  }
  return [m.made(text + source.slice(copied)), count];
}

function byte(m: Machine, text: Value, from: Value, to: Value): unknown {
  const source = checkString(m, text, 1, 'byte');
  const first = fromStart(checkInteger(m, from, 2, 'byte', 1), source.length);
  const last = fromStart(checkInteger(m, to, 3, 'byte', first), source.length);
  const start = Math.max(1, first);
  const end = Math.min(last, source.length);
  if (start === end) return source.charCodeAt(start - 1);
  if (start > end) return noValues;
  if (end - start >= maxBytes) throw m.error('string slice too long');
  return Array.from({ length: end - start + 1 }, (_, i) => source.charCodeAt(start - 1 + i));
}

function sub(m: Machine, text: Value, from: Value, to: Value): string {
  const source = checkString(m, text, 1, 'sub');
  const first = fromStart(checkInteger(m, from, 2, 'sub', 1), source.length);
  const last = fromStart(checkInteger(m, to, 3, 'sub', -1), source.length);
  return source.slice(Math.max(1, first) - 1, Math.max(0, Math.min(last, source.length)));
}

function rep(m: Machine, text: Value, times: Value): string {
  const source = checkString(m, text, 1, 'rep');
  const count = checkInteger(m, times, 2, 'rep');
  if (count <= 0 || source.length === 0) return '';
  m.allocate(Math.min(Number.MAX_SAFE_INTEGER, source.length * count));
  return source.repeat(count);
}

/** Letters of ASCII from `first` on change their case. */
function caseChanged(text: string, first: number): string {
  const bytes = Buffer.from(text, 'latin1');
  for (let i = 0; i < bytes.length; i++) {
    const c = bytes[i]!;
    if (c >= first && c < first + 26) bytes[i] = c ^ 32;
  }
  return bytes.toString('latin1');
}

function reversed(text: string): string {
  const bytes = Buffer.from(text, 'latin1');
  return bytes.reverse().toString('latin1');
}

/** Longer texts are read in pieces of this length, in steps. */
const pieceLength = 64 * 1024;
/** Characters that are read in the time of an instruction. */
const charactersPerUnit = 4;

/** The pieces of a text in order, with a look at the instructions after each. */
export function* eachPiece(
  m: Machine,
  text: string,
  visit: (piece: string) => void,
): Generator<unknown, void, unknown> {
  for (let at = 0; at < text.length; at += pieceLength) {
    const piece = text.slice(at, at + pieceLength);
    visit(piece);
    m.n -= Math.floor(piece.length / charactersPerUnit);
    if (m.n < 0) yield* nextSlice(m);
  }
}

/** A builtin that returns a text of the same length, made of the pieces. */
function mapping(
  m: Machine,
  name: string,
  change: (piece: string) => string,
  isBackwards = false,
): Callable {
  const inPieces = m.stepping(function* (text) {
    const pieces: string[] = [];
    yield* eachPiece(m, text as string, (piece) => pieces.push(change(piece)));
    if (isBackwards) pieces.reverse();
    return pieces.join('');
  });
  return (value) => {
    const text = checkString(m, value, 1, name);
    m.allocate(text.length);
    return text.length <= pieceLength ? change(text) : inPieces(text);
  };
}

export function stringLibrary(m: Machine): Record<string, Callable> {
  return {
    find: m.stepping((...args) => find(m, args, true)),
    match: m.stepping((...args) => find(m, args, false)),
    gmatch: (source, pattern) => gmatch(m, source, pattern),
    gfind: () => {
      throw m.error("'string.gfind' was renamed to 'string.gmatch'");
    },
    gsub: m.stepping((...args) => gsub(m, args)),
    format: (...args) => format(m, args),
    byte: (text, from, to) => byte(m, text, from, to),
    char: (...codes) => {
      let text = '';
      codes.forEach((code, i) => {
        const c = checkInteger(m, code, i + 1, 'char');
        if (c < 0 || c > 255) throw m.argument(i + 1, 'char', 'invalid value');
        text += String.fromCharCode(c);
      });
      return m.made(text);
    },
    sub: (text, from, to) => sub(m, text, from, to),
    rep: (text, times) => rep(m, text, times),
    len: (text) => checkString(m, text, 1, 'len').length,
    lower: mapping(m, 'lower', (piece) => caseChanged(piece, 65)),
    upper: mapping(m, 'upper', (piece) => caseChanged(piece, 97)),
    reverse: mapping(m, 'reverse', reversed, true),
    // Unsupported: the result could not be loaded.
    dump: (callee) => {
      if (typeof callee === 'function') return '\x1bLua';
      throw m.error('unable to dump given function');
    },
  };
}
