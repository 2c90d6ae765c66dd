// Times of fields: the HEXPIRE family of Redis 7.4, and HGETEX, HSETEX and HGETDEL of 8.0.

import type { Arguments } from '../../../arguments.ts';
import { Slice } from '../../../bytes.ts';
import type { Transform } from '../../../command.ts';
import { CommandError, type ReadFault } from '../../../errors.ts';
import type { Reply } from '../../../reply.ts';
import type { Rows } from '../../../rows.ts';
import { isLong, runNow, shortWork, step, type Steps, type StepTransform } from '../../../steps.ts';
import { eachWord } from '../support/long-walks.ts';
import { HashFields, makeTimed } from './fields.ts';
import { badTime, fieldTime, fieldWords, type TimeForm, timeOption } from './options.ts';

const Answer = { noField: -2, noTime: -1, unmet: 0, done: 1, removed: 2 } as const;
const conditions = ['NX', 'XX', 'GT', 'LT'] as const;
type Condition = (typeof conditions)[number] | undefined;

const fields = new HashFields();
const value = new Slice();

/** Runs the steps at once unless there are many words, or a large hash may have to be made anew. */
function whenShort(steps: StepTransform): Transform {
  return (rows, args, reply): StepTransform | void => {
    const row = rows.find(args.buf, args.starts[1]!, args.lens[1]!);
    if (args.count > shortWork.elements || isLong(rows, row)) return steps;
    runNow(steps(rows, args, reply));
  };
}

/** Calls `each` with the word of every field, the hash open in `fields`. */
function eachFieldWord(
  rows: Rows,
  args: Arguments,
  first: number,
  each: (word: number) => void,
  stride = 1,
): Steps {
  return eachWord(
    args,
    first,
    args.count,
    stride,
    undefined,
    () => {
      fields.open(rows, args);
    },
    each,
  );
}

function allows(condition: Condition, current: number, next: number): boolean {
  if (condition === 'NX') return current === 0;
  if (condition === 'XX') return current !== 0;
  if (condition === 'GT') return current !== 0 && next > current;
  return condition !== 'LT' || current === 0 || next < current;
}

/** HEXPIRE and its kin. */
function setsTimes(name: string, form: TimeForm): Transform {
  const outOfRange = badTime(name);
  return whenShort(function* (rows: Rows, args: Arguments, reply: Reply): Steps {
    const time = fieldTime(args, 2, form, rows.now, outOfRange);
    const condition = conditions.find((word) => args.is(3, word));
    const first = fieldWords(args, condition === undefined ? 3 : 4, 1, false);
    const isPast = time <= rows.now;
    const isThere = yield* step(() => fields.open(rows, args).isThere);
    // A plain hash has no times that these could be about.
    const canSet = condition === undefined || condition === 'NX' || condition === 'LT';
    if (isThere && !isPast && canSet && (yield* hasAny(rows, args, first))) {
      yield* makeTimed(rows, args);
    }
    reply.array(args.count - first);
    yield* eachFieldWord(rows, args, first, (word) => {
      const current = fields.find(args, word);
      if (current < 0) return reply.integer(Answer.noField);
      if (!allows(condition, current, time)) return reply.integer(Answer.unmet);
      if (isPast) fields.remove(args, word);
      else fields.put(args, word, fields.value, time);
      reply.integer(isPast ? Answer.removed : Answer.done);
    });
  });
}

/** Whether the hash has one of the fields. */
function* hasAny(
  rows: Rows,
  args: Arguments,
  first: number,
): Generator<ReadFault | undefined, boolean, undefined> {
  let found = false;
  yield* eachWord(
    args,
    first,
    args.count,
    1,
    undefined,
    () => {
      fields.open(rows, args);
    },
    (word) => {
      found = fields.find(args, word) >= 0;
      return found;
    },
  );
  return found;
}

/** HTTL and its kin. */
function answersTimes(form: TimeForm): Transform {
  return whenShort(function* (rows: Rows, args: Arguments, reply: Reply): Steps {
    const first = fieldWords(args, 2, 1, false);
    const base = form.isRelative ? rows.now : 0;
    yield* step(() => {
      fields.open(rows, args);
    });
    reply.array(args.count - first);
    yield* eachFieldWord(rows, args, first, (word) => {
      const time = fields.find(args, word);
      if (time < 0) reply.integer(Answer.noField);
      else if (time === 0) reply.integer(Answer.noTime);
      else reply.integer(Math.ceil((time - base) / form.unit));
    });
  });
}

const seconds = { unit: 1000, isRelative: true } as const;
const milliseconds = { unit: 1, isRelative: true } as const;
const secondsSince1970 = { unit: 1000, isRelative: false } as const;
const millisecondsSince1970 = { unit: 1, isRelative: false } as const;

export const hexpire = setsTimes('hexpire', seconds);
export const hpexpire = setsTimes('hpexpire', milliseconds);
export const hexpireat = setsTimes('hexpireat', secondsSince1970);
export const hpexpireat = setsTimes('hpexpireat', millisecondsSince1970);
export const httl = answersTimes(seconds);
export const hpttl = answersTimes(milliseconds);
export const hexpiretime = answersTimes(secondsSince1970);
export const hpexpiretime = answersTimes(millisecondsSince1970);

export const hpersist: Transform = whenShort(function* (rows, args, reply): Steps {
  const first = fieldWords(args, 2, 1, false);
  yield* step(() => {
    fields.open(rows, args);
  });
  reply.array(args.count - first);
  yield* eachFieldWord(rows, args, first, (word) => {
    const time = fields.find(args, word);
    if (time <= 0) return reply.integer(time < 0 ? Answer.noField : Answer.noTime);
    fields.put(args, word, fields.value, 0);
    reply.integer(Answer.done);
  });
});

function answerValue(reply: Reply, isThere: boolean): void {
  if (isThere) reply.bulk(fields.value.b, fields.value.s, fields.value.n);
  else reply.nil();
}

export const hgetdel: Transform = whenShort(function* (rows, args, reply): Steps {
  const first = fieldWords(args, 2, 1, true);
  yield* step(() => {
    fields.open(rows, args);
  });
  reply.array(args.count - first);
  yield* eachFieldWord(rows, args, first, (word) => {
    const isThere = fields.find(args, word) >= 0;
    answerValue(reply, isThere);
    if (isThere) fields.remove(args, word);
  });
});

const badGetTime = badTime('hgetex');
const badSetTime = badTime('hsetex');

function unknownWord(args: Arguments, word: number): CommandError {
  const shown = args.text(word).replace(/[\r\n]/g, ' ');
  return new CommandError(`ERR unknown argument: ${shown}`);
}

export const hgetex: Transform = whenShort(function* (rows, args, reply): Steps {
  let word = 2;
  const time = timeOption(args, word, rows.now, badGetTime);
  const persists = time === undefined && args.is(word, 'PERSIST');
  if (time !== undefined) word += 2;
  else if (persists) word++;
  else if (!args.is(word, 'FIELDS')) throw unknownWord(args, word);
  const first = fieldWords(args, word, 1, true);
  const isThere = yield* step(() => fields.open(rows, args).isThere);
  const isPast = time !== undefined && time <= rows.now;
  if (isThere && time !== undefined && !isPast && (yield* hasAny(rows, args, first))) {
    yield* makeTimed(rows, args);
  }
  reply.array(args.count - first);
  yield* eachFieldWord(rows, args, first, (at) => {
    const current = fields.find(args, at);
    answerValue(reply, current >= 0);
    if (current < 0) return;
    if (isPast) fields.remove(args, at);
    else if (time !== undefined) fields.put(args, at, fields.value, time);
    else if (persists && current > 0) fields.put(args, at, fields.value, 0);
  });
});

interface SetOptions {
  /** FNX or FXX: only if none of the fields is there, or all are. */
  only: 'none' | 'all' | undefined;
  keepsTimes: boolean;
  time: number | undefined;
  first: number;
}

function setOptions(args: Arguments, now: number): SetOptions {
  const options: SetOptions = { only: undefined, keepsTimes: false, time: undefined, first: 0 };
  let word = 2;
  for (; word < args.count && !args.is(word, 'FIELDS'); word++) {
    const hasLifetime = options.keepsTimes || options.time !== undefined;
    if (options.only === undefined && args.is(word, 'FNX')) options.only = 'none';
    else if (options.only === undefined && args.is(word, 'FXX')) options.only = 'all';
    else if (!hasLifetime && args.is(word, 'KEEPTTL')) options.keepsTimes = true;
    else {
      const time = hasLifetime ? undefined : timeOption(args, word, now, badSetTime);
      if (time === undefined) throw unknownWord(args, word);
      options.time = time;
      word++;
    }
  }
  options.first = fieldWords(args, word, 2, true);
  return options;
}

export const hsetex: Transform = whenShort(function* (rows, args, reply): Steps {
  const { only, keepsTimes, time, first } = setOptions(args, rows.now);
  let isMet = true;
  yield* step(() => {
    fields.open(rows, args);
  });
  if (only !== undefined) {
    yield* eachFieldWord(
      rows,
      args,
      first,
      (word) => {
        if (fields.find(args, word) >= 0 !== (only === 'all')) isMet = false;
      },
      2,
    );
  }
  if (!isMet) return reply.integer(0);
  const isPast = time !== undefined && time <= rows.now;
  if (time !== undefined && !isPast) yield* makeTimed(rows, args);
  yield* eachFieldWord(
    rows,
    args,
    first,
    (word) => {
      const current = fields.find(args, word);
      if (isPast) {
        if (current >= 0) fields.remove(args, word);
        return;
      }
      value.set(args.buf, args.starts[word + 1]!, args.lens[word + 1]!);
      fields.put(args, word, value, keepsTimes ? Math.max(current, 0) : (time ?? 0));
    },
    2,
  );
  reply.integer(1);
});
