// The bounds of score and lexicographic ranges: `1.5`, `(1.5`, `-inf`, `+inf`; `[a`, `(a`, `-`, `+`.

import type { Arguments } from '../../../arguments.ts';
import { parseFloatBytes } from '../../../arguments.ts';
import { compareBytes } from '../../../bytes.ts';
import { CommandError } from '../../../errors.ts';
import type { LexRange, ScoreRange } from '../../../rows.ts';
import { shortDecimal } from './short-decimal.ts';

const notAScoreBound = new CommandError('ERR min or max is not a float');
const notALexBound = new CommandError('ERR min or max not valid string range item');

const openBracket = 40;
const squareBracket = 91;
const plus = 43;
const minus = 45;

/** Reads both bounds into `range`; returns false when no score can lie between them. */
export function readScoreRange(
  args: Arguments,
  minWord: number,
  maxWord: number,
  range: ScoreRange,
): boolean {
  range.minExclusive = isExclusive(args, minWord);
  range.min = scoreBound(args, minWord, range.minExclusive);
  range.maxExclusive = isExclusive(args, maxWord);
  range.max = scoreBound(args, maxWord, range.maxExclusive);
  if (range.min === range.max) return !range.minExclusive && !range.maxExclusive;
  return range.min < range.max;
}

function isExclusive(args: Arguments, word: number): boolean {
  return args.lens[word]! > 0 && args.buf[args.starts[word]!] === openBracket;
}

function scoreBound(args: Arguments, word: number, exclusive: boolean): number {
  const skip = exclusive ? 1 : 0;
  const s = args.starts[word]! + skip;
  const n = args.lens[word]! - skip;
  // Scans mostly continue to the end.
  if (n === 4 && isInf(args.buf, s + 1)) {
    if (args.buf[s] === plus) return Infinity;
    if (args.buf[s] === minus) return -Infinity;
  }
  const value = shortDecimal(args.buf, s, n);
  return Number.isNaN(value) ? otherBound(args.buf, s, n) : value;
}

function isInf(b: Buffer, s: number): boolean {
  return b[s] === 105 && b[s + 1] === 110 && b[s + 2] === 102;
}

/** All that strtod takes: nothing at all for 0, spaces before a number, numbers of any form. */
function otherBound(b: Buffer, s: number, n: number): number {
  if (n === 0) return 0;
  const text = b.toString('latin1', s, s + n);
  const spaces = /^[ \t\n\v\f\r]*/.exec(text)![0].length;
  const value = parseFloatBytes(b, s + spaces, n - spaces);
  if (Number.isNaN(value)) throw notAScoreBound;
  return value;
}

/** The range between two bounds; undefined when nothing can lie between them. */
export function readLexRange(
  args: Arguments,
  minWord: number,
  maxWord: number,
): LexRange | undefined {
  const minKind = lexKind(args, minWord);
  const maxKind = lexKind(args, maxWord);
  if (minKind === plus || maxKind === minus) return undefined;
  const min = minKind === minus ? undefined : args.bytes(minWord).subarray(1);
  const max = maxKind === plus ? undefined : args.bytes(maxWord).subarray(1);
  const minExclusive = minKind === openBracket;
  const maxExclusive = maxKind === openBracket;
  if (min !== undefined && max !== undefined) {
    const order = compareBytes(min, 0, min.length, max, 0, max.length);
    if (order > 0 || (order === 0 && (minExclusive || maxExclusive))) return undefined;
  }
  return { min, minExclusive, max, maxExclusive };
}

/** The first byte, which is the kind of the bound. */
function lexKind(args: Arguments, word: number): number {
  const n = args.lens[word]!;
  const kind = n === 0 ? 0 : args.buf[args.starts[word]!]!;
  if (kind === openBracket || kind === squareBracket) return kind;
  if (n === 1 && (kind === plus || kind === minus)) return kind;
  throw notALexBound;
}
