// HSCAN, SSCAN and ZSCAN.

import type { Arguments } from '../../../arguments.ts';
import type { Reply } from '../../../reply.ts';
import type { Rows } from '../../../rows.ts';
import { Shape } from '../../../rows.ts';
import { ByteList } from './byte-list.ts';
import { formatDouble } from './format-double.ts';
import { walkPage } from './scan-page.ts';
import { parseScanCursor, parseScanOptions } from './scan-options.ts';
import { typedRow } from './typed-row.ts';

// Redis keeps small hashes and sorted sets in one piece, and returns them whole, ignoring COUNT.
const wholeUpTo = 128;

// Bytes around a bulk string; and with a score behind it.
const frame = 16;
const scoredFrame = 50;

// The cursor comes first in the reply but is known last, so elements are buffered here: fields and
// values alternately, or members alone, with their scores if they are ranked.
const seen = new ByteList();

/** Answers the next cursor and an array: fields and values, members, or members and scores. */
export function scanRow(rows: Rows, args: Arguments, reply: Reply, shape: Shape): void {
  const cursor = parseScanCursor(args, 2);
  const row = typedRow(rows, args, 1, shape);
  // As in Redis the options of a scan over nothing are not looked at.
  if (row === 0) {
    reply.array(2);
    reply.text('0');
    reply.array(0);
    return;
  }
  const options = parseScanOptions(args, 3, false);
  const whole = shape !== Shape.set && rows.count(row) <= wholeUpTo;
  seen.clear();
  let scanned = 0;
  const next = walkPage(cursor, whole ? Math.max(options.count, wholeUpTo) : options.count, {
    walk: (from, budget) =>
      rows.scanFields(row, from, budget, (fb, fs, fn, vb, vs, vn) => {
        scanned += fn;
        if (options.pattern?.matches(fb, fs, fn) === false) return;
        seen.add(fb, fs, fn, shape === Shape.ranked ? rows.score(row, fb, fs, fn) : 0);
        if (shape === Shape.map) seen.add(vb, vs, vn);
      }),
    bytes: () => seen.bytes + seen.count * (shape === Shape.ranked ? scoredFrame : frame),
    scanned: () => scanned,
    kept: () => seen.count,
    cut: (kept) => seen.cut(kept),
  });
  reply.array(2);
  reply.text(String(next));
  reply.array(shape === Shape.ranked ? seen.count * 2 : seen.count);
  for (let i = 0; i < seen.count; i++) {
    reply.bulk(seen.buf, seen.start(i), seen.length(i));
    if (shape === Shape.ranked) reply.text(formatScore(seen.score(i), whole));
  }
  seen.clear();
}

/** Small sorted sets hold whole scores as 64-bit integers, and ZSCAN shows it: no exponent for 1e17. */
function formatScore(score: number, small: boolean): string {
  const asInteger = small && Number.isInteger(score) && Math.abs(score) < 2 ** 63;
  return asInteger ? BigInt(score).toString() : formatDouble(score);
}
