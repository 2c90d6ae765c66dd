// Walking over keys.

import type { Arguments } from '../../arguments.ts';
import { emptyBytes, Slice } from '../../bytes.ts';
import type { Reply } from '../../reply.ts';
import type { Row, Rows } from '../../rows.ts';
import { shortWork, step, type Steps, StepSize, type StepTransform } from '../../steps.ts';
import { Glob } from './glob.ts';
import { countedAnswer } from './support/long-walks.ts';
import { walkPage } from './support/scan-page.ts';
import { parseScanCursor, parseScanOptions } from './support/scan-options.ts';
import { typeName } from './support/type-name.ts';

const key = new Slice();
const star = 42;
/** Bytes around a bulk string. */
const frame = 16;

export function keys(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  if (rows.rowCount() > shortWork.elements) return keysInSteps;
  const { buf } = args;
  const s = args.starts[1]!;
  const n = args.lens[1]!;
  const glob = n === 1 && buf[s] === star ? undefined : new Glob(buf, s, n);
  const mark = reply.open();
  let count = 0;
  let cursor = 0;
  do {
    cursor = rows.scan(cursor, rows.rowCount(), (row) => {
      rows.key(row, key);
      if (glob?.matches(key.b, key.s, key.n) === false) return;
      reply.bulk(key.b, key.s, key.n);
      count++;
    });
  } while (cursor !== 0);
  reply.close(mark, 'array', count);
  key.b = emptyBytes;
}

function* keysInSteps(rows: Rows, args: Arguments, reply: Reply): Steps {
  const { buf } = args;
  const s = args.starts[1]!;
  const n = args.lens[1]!;
  const glob = n === 1 && buf[s] === star ? undefined : new Glob(buf, s, n);
  const size = new StepSize();
  yield* countedAnswer(reply, 'array', function* (tally) {
    let cursor = 0;
    do {
      const from = cursor;
      const before = tally.mark();
      cursor = yield* step(() => {
        tally.rollback(before);
        size.begin();
        return rows.scan(from, size.elements, (row) => {
          rows.key(row, key);
          size.add(key.n);
          if (glob?.matches(key.b, key.s, key.n) === false) return;
          reply.bulk(key.b, key.s, key.n);
          tally.value++;
        });
      });
      size.end();
    } while (cursor !== 0);
  });
  key.b = emptyBytes;
}

export function scan(rows: Rows, args: Arguments, reply: Reply): void {
  const cursor = parseScanCursor(args, 1);
  const options = parseScanOptions(args, 2, true);
  const type = options.typeWord === 0 ? '' : args.text(options.typeWord).toLowerCase();
  // The cursor comes first in the answer but is known last.
  const found: Row[] = [];
  /** Bytes of the answer with each of them, and those before it. */
  const bytes: number[] = [];
  let scanned = 0;
  const next = walkPage(cursor, options.count, {
    walk: (from, budget) =>
      rows.scan(from, budget, (row) => {
        if (type !== '' && typeName(rows, row) !== type) return;
        rows.key(row, key);
        scanned += key.n;
        if (options.pattern?.matches(key.b, key.s, key.n) === false) return;
        found.push(row);
        bytes.push((bytes.at(-1) ?? 0) + key.n + frame);
      }),
    bytes: () => bytes.at(-1) ?? 0,
    scanned: () => scanned,
    kept: () => found.length,
    cut: (kept) => {
      found.length = kept;
      bytes.length = kept;
    },
  });
  reply.array(2);
  reply.text(String(next));
  reply.array(found.length);
  for (const row of found) answerKey(rows, row, reply);
}

export function randomkey(rows: Rows, _args: Arguments, reply: Reply): void {
  const row = rows.anyRow(rows.random());
  if (row === 0) reply.nil();
  else answerKey(rows, row, reply);
}

function answerKey(rows: Rows, row: Row, reply: Reply): void {
  rows.key(row, key);
  reply.bulk(key.b, key.s, key.n);
  key.b = emptyBytes;
}
