// Gives a command of plain hashes those with fields that expire, too. A plain hash is tried first, and pays nothing.

import type { Arguments } from '../../../arguments.ts';
import type { Transform } from '../../../command.ts';
import type { Reply } from '../../../reply.ts';
import type { Row, Rows } from '../../../rows.ts';
import { step, type Steps, type StepTransform } from '../../../steps.ts';
import { dueFieldTimes, TimedMap } from '../../../timed-map.ts';
import { eachRecordInSteps, Tally } from '../support/long-walks.ts';
import { hasTimedFields } from '../support/typed-row.ts';
import { TimedRows } from './timed-rows.ts';

/** So many fields that are due are counted in one go. */
const fewDue = 4096;

const map = new TimedMap();

/** The key is word 1. With `keepsTimes`, fields that are set keep their times. */
export function withTimedFields(run: Transform, keepsTimes = false): Transform {
  const inSteps = timedInSteps(run, keepsTimes);
  return (rows, args, reply): StepTransform | void => {
    try {
      const long = run(rows, args, reply);
      return long === undefined ? undefined : plainOr(long, inSteps);
    } catch (error) {
      if (error !== hasTimedFields) throw error;
    }
    const row = keyRow(rows, args);
    map.load(rows, row);
    const due = map.countDue(rows, row, rows.now, fewDue);
    if (due > fewDue) return inSteps;
    const long = run(new TimedRows(rows, keepsTimes, due).rows, args, reply);
    return long === undefined ? undefined : inSteps;
  };
}

function keyRow(rows: Rows, args: Arguments): Row {
  return rows.find(args.buf, args.starts[1]!, args.lens[1]!);
}

function plainOr(long: StepTransform, timed: StepTransform): StepTransform {
  return function* (rows: Rows, args: Arguments, reply: Reply): Steps {
    const mark = reply.mark();
    try {
      return yield* long(rows, args, reply);
    } catch (error) {
      if (error !== hasTimedFields) throw error;
    }
    reply.rollback(mark);
    yield* timed(rows, args, reply);
  };
}

function timedInSteps(run: Transform, keepsTimes: boolean): StepTransform {
  return function* (rows: Rows, args: Arguments, reply: Reply): Steps {
    const due = new Tally();
    const { from, to } = dueFieldTimes(rows.now);
    const count = (): void => void due.value++;
    yield* eachRecordInSteps(rows, () => keyRow(rows, args), from, to, count, due);
    const view = new TimedRows(rows, keepsTimes, due.value).rows;
    const mark = reply.mark();
    const long = yield* step(() => {
      reply.rollback(mark);
      return run(view, args, reply);
    });
    if (long === undefined) return;
    reply.rollback(mark);
    yield* long(view, args, reply);
  };
}
