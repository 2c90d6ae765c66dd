// A hash with fields that expire, in the RDB format of Redis 7.4: no older Redis has such hashes.

import type { Row, Rows } from '../../../rows.ts';
import { step, stepElements, type Steps } from '../../../steps.ts';
import { TimedMap } from '../../../timed-map.ts';
import { Tally } from '../support/long-walks.ts';
import { RdbType } from './format.ts';
import type { ValueWriter } from './value-writer.ts';

/** Writes the hash that `find` finds, type and all, without fields that are due. */
export function* writeTimed(rows: Rows, find: () => Row, writer: ValueWriter): Steps {
  const map = new TimedMap();
  const first = yield* step(() => {
    map.load(rows, find());
    return map.nextAfter(rows, find(), rows.now);
  });
  writer.byte(RdbType.hashTimes);
  writer.milliseconds(first);
  const countAt = writer.length;
  writer.wideCount(0);
  const count = new Tally();
  let cursor = 0;
  do {
    const from = cursor;
    const mark = writer.length;
    const counted = count.value;
    cursor = yield* step(() => {
      writer.length = mark;
      count.value = counted;
      return map.each(
        rows,
        find(),
        rows.now,
        from,
        stepElements,
        (fb, fs, fn, vb, vs, vn, time) => {
          const later = time === 0 ? 0 : time - first + 1;
          writer.hugeCount(Math.floor(later / 2 ** 32), later % 2 ** 32);
          writer.string(fb, fs, fn);
          writer.string(vb, vs, vn);
          count.value++;
        },
      );
    });
  } while (cursor !== 0);
  writer.setWideCount(countAt, count.value);
}
