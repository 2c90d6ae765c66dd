// Named classes of characters in regular expressions, as ranges of code points.

import type { Range } from './regexp-syntax.ts';

const maxCodePoint = 0x10ffff;

/** Ranges out of pairs of characters: 'azAZ' is [a-zA-Z]. */
function pairs(text: string): Range[] {
  const ranges: Range[] = [];
  for (let i = 0; i < text.length; i += 2) {
    ranges.push([text.charCodeAt(i), text.charCodeAt(i + 1)]);
  }
  return ranges;
}

/** All that is not in sorted ranges. */
export function invert(ranges: readonly Range[]): Range[] {
  const inverted: Range[] = [];
  let next = 0;
  for (const [first, last] of [...ranges].sort((a, b) => a[0] - b[0])) {
    if (first > next) inverted.push([next, first - 1]);
    next = Math.max(next, last + 1);
  }
  if (next <= maxCodePoint) inverted.push([next, maxCodePoint]);
  return inverted;
}

const digit = pairs('09');
const word = pairs('09AZ__az');
const space = pairs('\t\n\f\r  ');

export const classEscapes: ReadonlyMap<string, readonly Range[]> = new Map([
  ['\\d', digit],
  ['\\D', invert(digit)],
  ['\\w', word],
  ['\\W', invert(word)],
  ['\\s', space],
  ['\\S', invert(space)],
]);

export const posixClasses: ReadonlyMap<string, readonly Range[]> = new Map([
  ['alnum', pairs('09AZaz')],
  ['alpha', pairs('AZaz')],
  ['ascii', pairs('\0\x7f')],
  ['blank', pairs('\t\t  ')],
  ['cntrl', pairs('\0\x1f\x7f\x7f')],
  ['digit', digit],
  ['graph', pairs('!~')],
  ['lower', pairs('az')],
  ['print', pairs(' ~')],
  ['punct', pairs('!/:@[`{~')],
  ['space', pairs('\t\r  ')],
  ['upper', pairs('AZ')],
  ['word', word],
  ['xdigit', pairs('09AFaf')],
]);

/** A general category or a script, as `\p{...}` of JavaScript wants it; undefined for neither. */
export function isProperty(name: string): string | undefined {
  if (!/^[A-Z][A-Za-z_]*$/.test(name)) return undefined;
  const candidates = name.length <= 2 ? [`gc=${name}`] : [`sc=${name}`];
  return candidates.find((each) => {
    try {
      return new RegExp(`\\p{${each}}`, 'u').test('') || true;
    } catch {
      return false;
    }
  });
}

/** Larger ranges have both cases of nearly all they have. */
const maxFolded = 2048;

/** Ranges and the other case of what is in them. */
export function foldRanges(ranges: readonly Range[]): Range[] {
  const folded: Range[] = [...ranges];
  for (const [first, last] of ranges) {
    if (last - first > maxFolded) continue;
    for (let code = first; code <= last; code++) {
      for (const other of otherCases(code)) folded.push([other, other]);
    }
  }
  return folded;
}

function otherCases(code: number): number[] {
  const char = String.fromCodePoint(code);
  const cases = [char.toLowerCase(), char.toUpperCase(), char.toUpperCase().toLowerCase()];
  const codes = cases
    // 'ß' in capitals is two letters, which is no case of one.
    .filter((each) => each.length === (each.codePointAt(0)! > 0xffff ? 2 : 1))
    .map((each) => each.codePointAt(0)!);
  // The Kelvin sign and the long s.
  if (char === 'k' || char === 'K') codes.push(0x212a);
  if (char === 's' || char === 'S') codes.push(0x17f);
  return [...new Set(codes)].filter((each) => each !== code);
}
