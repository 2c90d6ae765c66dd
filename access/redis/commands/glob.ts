// Redis's glob patterns (KEYS, SCAN MATCH, PSUBSCRIBE, CONFIG GET), over bytes:
//
//   *  any bytes      ?  one byte      [abc] [a-z] [^a]  one byte of a set      \x  x itself
//
// Every part but `*` takes exactly one byte, so only the last `*` ever needs to be widened, and a match
// costs at most pattern times string. Redis's oddities are kept: an unclosed set ends with the pattern,
// ranges compare signed bytes, and nothing but the empty pattern matches the empty string.

const star = 42;
const question = 63;
const open = 91;
const backslash = 92;
const close = 93;
const caret = 94;
const dash = 45;

/** Whether all of `b[s, s + n)` matches the pattern `pb[ps, ps + pn)`. */
export function globMatches(
  pb: Uint8Array,
  ps: number,
  pn: number,
  b: Uint8Array,
  s: number,
  n: number,
  ignoreCase = false,
): boolean {
  const patternEnd = ps + pn;
  const end = s + n;
  if (n === 0) return pn === 0;
  let p = ps;
  let i = s;
  // Where to go on from when what follows the last star did not match: the star takes one more byte.
  let afterStar = -1;
  let starTakesTo = 0;

  while (i < end) {
    if (p < patternEnd && pb[p] === star) {
      do p++;
      while (p < patternEnd && pb[p] === star);
      if (p === patternEnd) return true;
      afterStar = p;
      starTakesTo = i;
      continue;
    }
    const next = p < patternEnd ? matchOne(pb, p, patternEnd, b[i]!, ignoreCase) : -1;
    if (next >= 0) {
      p = next;
      i++;
      continue;
    }
    if (afterStar < 0) return false;
    p = afterStar;
    i = ++starTakesTo;
  }
  while (p < patternEnd && pb[p] === star) p++;
  return p === patternEnd;
}

/** Matches one byte against the part at `p`. Returns where the next part begins, or -1. */
function matchOne(
  pb: Uint8Array,
  p: number,
  patternEnd: number,
  byte: number,
  ignoreCase: boolean,
): number {
  const c = pb[p]!;
  if (c === question) return p + 1;
  if (c === open) return matchSet(pb, p + 1, patternEnd, byte, ignoreCase);
  const at = c === backslash && p + 1 < patternEnd ? p + 1 : p;
  return same(pb[at]!, byte, ignoreCase) ? at + 1 : -1;
}

function matchSet(
  pb: Uint8Array,
  from: number,
  patternEnd: number,
  byte: number,
  ignoreCase: boolean,
): number {
  let p = from;
  const negated = p < patternEnd && pb[p] === caret;
  if (negated) p++;
  let found = false;
  while (p < patternEnd && pb[p] !== close) {
    if (pb[p] === backslash && p + 1 < patternEnd) {
      // Redis compares an escaped byte of a set in its own case even when it ignores case elsewhere.
      if (pb[p + 1] === byte) found = true;
      p += 2;
    } else if (p + 2 < patternEnd && pb[p + 1] === dash) {
      if (inRange(pb[p]!, pb[p + 2]!, byte, ignoreCase)) found = true;
      p += 3;
    } else {
      if (same(pb[p]!, byte, ignoreCase)) found = true;
      p++;
    }
  }
  if (found === negated) return -1;
  return p < patternEnd ? p + 1 : p;
}

function inRange(a: number, b: number, byte: number, ignoreCase: boolean): boolean {
  const low = signed(a);
  const high = signed(b);
  let from = low < high ? low : high;
  let to = low < high ? high : low;
  let c = signed(byte);
  if (ignoreCase) {
    from = lower(from);
    to = lower(to);
    c = lower(c);
  }
  return c >= from && c <= to;
}

function same(a: number, b: number, ignoreCase: boolean): boolean {
  return a === b || (ignoreCase && lower(a) === lower(b));
}

function lower(c: number): number {
  return c >= 65 && c <= 90 ? c + 32 : c;
}

function signed(c: number): number {
  return (c << 24) >> 24;
}
