// A script's result as an answer: the conversions of redis-server.

import type { Reply } from '../../../reply.ts';
import type { Machine } from '../../../scripting/machine.ts';
import { numberText } from '../../../scripting/numbers.ts';
import { firstOf, LuaTable, type Value } from '../../../scripting/values.ts';
import { stepBytes, stepElements } from '../../../steps.ts';
import { CommandError } from '../../../errors.ts';

const maxDepth = 100;

const tooDeep = new CommandError('ERR reached lua stack limit');

interface AnswerForm {
  /** Protocol version that the script has set for itself: how booleans are answered. */
  readonly version: number;
  readonly machine: Machine;
}

export function answerWith(reply: Reply, result: unknown, form: AnswerForm, depth = 0): void {
  const value = firstOf(result);
  switch (typeof value) {
    case 'string':
      bulk(reply, value);
      return;
    case 'number':
      reply.integer(wholeNumber(value));
      return;
    case 'boolean':
      if (form.version >= 3) reply.boolean(value);
      else if (value) reply.integer(1);
      else reply.nil();
      return;
    default:
      if (!(value instanceof LuaTable)) reply.nil();
      else if (depth >= maxDepth) throw tooDeep;
      else answerTable(reply, value, form, depth);
  }
}

/** The error that a script's result is answered with, if so. */
export function errorOf(result: unknown): string | undefined {
  const value = firstOf(result);
  return value instanceof LuaTable ? textField(value, 'err') : undefined;
}

function bulk(reply: Reply, text: string): void {
  const bytes = Buffer.from(text, 'latin1');
  reply.bulk(bytes, 0, bytes.length);
}

function wholeNumber(value: number): number {
  if (value !== value) return -(2 ** 63);
  const whole = Math.trunc(value);
  if (whole >= 2 ** 63 || whole < -(2 ** 63)) return -(2 ** 63);
  return whole === 0 ? 0 : whole;
}

function oneLine(text: string): string {
  return text.replace(/[\r\n]/g, ' ');
}

function textField(table: LuaTable, key: string): string | undefined {
  const value = table.get(key);
  if (typeof value === 'string') return value;
  return typeof value === 'number' ? numberText(value) : undefined;
}

/**
 * As `answerWith`, for a script in the stepping form: yields when a step's work is done, so that long lists are written
 * in steps.
 */
export function* answerInSteps(
  reply: Reply,
  result: unknown,
  form: AnswerForm,
): Generator<undefined, void, undefined> {
  yield* elementInSteps(reply, firstOf(result), form, 0, { elements: 0, bytesFrom: reply.mark() });
}

/** Written since the last yield: elements, and bytes from there. */
interface StepWork {
  elements: number;
  bytesFrom: number;
}

function* elementInSteps(
  reply: Reply,
  value: unknown,
  form: AnswerForm,
  depth: number,
  work: StepWork,
): Generator<undefined, void, undefined> {
  work.elements++;
  if (!(value instanceof LuaTable) || depth >= maxDepth) {
    answerWith(reply, value, form, depth);
    return;
  }
  if (answeredByFields(reply, value, form, depth)) return;
  const { list } = value;
  const count = beginList(reply, value, form);
  for (let i = 0; i < count; i++) {
    const element = list[i];
    if (element instanceof LuaTable) yield* elementInSteps(reply, element, form, depth + 1, work);
    else {
      work.elements++;
      answerWith(reply, element, form, depth + 1);
    }
    if (work.elements < stepElements && reply.mark() - work.bytesFrom < stepBytes) continue;
    yield;
    work.elements = 0;
    work.bytesFrom = reply.mark();
  }
}

function answerTable(reply: Reply, table: LuaTable, form: AnswerForm, depth: number): void {
  if (answeredByFields(reply, table, form, depth)) return;
  const count = beginList(reply, table, form);
  for (let i = 0; i < count; i++) answerWith(reply, table.list[i], form, depth + 1);
}

/** Answers a table that stands for something else than a list; false where it is one. */
function answeredByFields(reply: Reply, table: LuaTable, form: AnswerForm, depth: number): boolean {
  const failure = textField(table, 'err');
  if (failure !== undefined) {
    reply.error(oneLine(failure).replace(/^-/, ''));
    return true;
  }
  const status = textField(table, 'ok');
  if (status !== undefined) {
    reply.simple(oneLine(status));
    return true;
  }
  const double = table.get('double');
  if (typeof double === 'number') {
    reply.double(double);
    return true;
  }
  const map = table.get('map');
  const set = table.get('set');
  if (map instanceof LuaTable) {
    answerFields(reply, map, true, form, depth);
    return true;
  }
  if (set instanceof LuaTable) {
    answerFields(reply, set, false, form, depth);
    return true;
  }
  const big = textField(table, 'big_number');
  if (big !== undefined) {
    bulk(reply, oneLine(big));
    return true;
  }
  const verbatim = table.get('verbatim_string');
  if (verbatim instanceof LuaTable && textField(verbatim, 'format') !== undefined) {
    const text = textField(verbatim, 'string');
    if (text !== undefined) {
      reply.verbatim(Buffer.from(text, 'latin1').toString());
      return true;
    }
  }
  return false;
}

/** Begins the answer of a list, and returns its length: the elements up to the first nil. */
function beginList(reply: Reply, { list }: LuaTable, form: AnswerForm): number {
  let count = list.indexOf(undefined);
  if (count < 0) count = list.length;
  form.machine.charge(count);
  reply.array(count);
  return count;
}

function answerFields(
  reply: Reply,
  table: LuaTable,
  isMap: boolean,
  form: AnswerForm,
  depth: number,
): void {
  const mark = reply.open();
  let count = 0;
  const visit = (key: Value, value: Value): void => {
    count++;
    answerWith(reply, key, form, depth + 1);
    if (isMap) answerWith(reply, value, form, depth + 1);
  };
  for (let at = table.seek(0); at >= 0; at = table.seek(at + 1)) visit(at + 1, table.list[at]);
  for (let at = table.seekRest(0); at >= 0; at = table.seekRest(at + 1)) {
    visit(table.restKey(at), table.restValue(at));
  }
  reply.close(mark, isMap ? 'map' : 'set', count);
}
