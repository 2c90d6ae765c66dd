// table.concat, insert, remove, sort ...

import type { Machine } from '../machine.ts';
import { numberText } from '../numbers.ts';
import {
  type Callable,
  firstOf,
  type LuaTable,
  noValues,
  Pending,
  typeName,
  type Value,
} from '../values.ts';
import { checkInteger, checkString, checkTable, checkWritable } from './checks.ts';

const where = { chunk: '=[C]', line: 0 };

function put(m: Machine, t: LuaTable, key: number, value: Value): void {
  if (t.set(key, value)) m.grew();
}

function insert(m: Machine, args: readonly Value[]): unknown {
  const t = checkWritable(m, args[0], 1, 'insert');
  if (args.length === 2) {
    put(m, t, t.length + 1, args[1]);
    return noValues;
  }
  if (args.length !== 3) throw m.error("wrong number of arguments to 'insert'");
  const at = checkInteger(m, args[1], 2, 'insert');
  const { length } = t;
  const value = args[2];
  m.charge(Math.max(0, length - at) >>> 4);
  if (at >= 1 && at <= length && value !== undefined) {
    t.insertAt(at, value);
    m.grew();
    return noValues;
  }
  for (let i = length + 1; i > at; i--) put(m, t, i, t.get(i - 1));
  put(m, t, at, value);
  return noValues;
}

function remove(m: Machine, table: Value, position: Value): unknown {
  const t = checkWritable(m, table, 1, 'remove');
  const { length } = t;
  const at = checkInteger(m, position, 2, 'remove', length);
  if (at < 1 || at > length) return noValues;
  m.charge((length - at) >>> 4);
  const value = t.list[at - 1];
  t.removeAt(at);
  return value;
}

function concat(m: Machine, table: Value, separator: Value, from: Value, to: Value): string {
  const t = checkTable(m, table, 1, 'concat');
  const between = separator === undefined ? '' : checkString(m, separator, 2, 'concat');
  const first = checkInteger(m, from, 3, 'concat', 1);
  const last = to === undefined ? t.length : checkInteger(m, to, 4, 'concat');
  const parts: string[] = [];
  let bytes = 0;
  for (let i = first; i <= last; i++) {
    const value = t.get(i);
    if (typeof value !== 'string' && typeof value !== 'number') {
      throw m.error(`invalid value (${typeName(value)}) at index ${i} in table for 'concat'`);
    }
    const text = typeof value === 'number' ? numberText(value) : value;
    parts.push(text);
    bytes += text.length + between.length;
    if ((i & 1023) === 0) {
      m.allocate(0);
      m.charge(1024);
      if (bytes > m.limits.stringBytes) throw m.error('not enough memory');
    }
  }
  m.allocate(bytes);
  return parts.join(between);
}

/**
 * Merge sort of a part of the list: the number of comparisons is bounded, even for an inconsistent
 * order.
 */
function* sort(m: Machine, table: Value, order: Value): Generator<unknown, unknown, unknown> {
  const t = checkWritable(m, table, 1, 'sort');
  const { length } = t;
  if (order !== undefined && typeof order !== 'function') {
    throw m.argument(2, 'sort', `function expected, got ${typeName(order)}`);
  }
  let from: Value[] = [];
  for (let i = 1; i <= length; i++) from.push(t.get(i));
  m.allocate(length * 16);
  let into: Value[] = Array.from({ length });
  for (let width = 1; width < length; width *= 2) {
    for (let start = 0; start < length; start += 2 * width) {
      const middle = Math.min(start + width, length);
      const end = Math.min(start + 2 * width, length);
      let left = start;
      let right = middle;
      for (let k = start; k < end; k++) {
        let takesRight = left >= middle;
        if (!takesRight && right < end) {
          const isLess = yield* less(m, order as Callable | undefined, from[right], from[left]);
          takesRight = isLess;
        }
        into[k] = takesRight ? from[right++] : from[left++];
      }
    }
    [from, into] = [into, from];
  }
  for (let i = 0; i < length; i++) t.set(i + 1, from[i]);
  return noValues;
}

/** Instructions that a comparison of `sort` counts as, where it is not the script's own. */
const compareUnits = 16;

function* less(
  m: Machine,
  order: Callable | undefined,
  a: Value,
  b: Value,
): Generator<unknown, boolean, unknown> {
  if (order !== undefined) {
    const value = firstOf(yield* m.callBack(order, [a, b]));
    return value !== undefined && value !== false;
  }
  if ((m.n -= compareUnits) < 0) {
    if (!m.isStepping) m.tick();
    yield undefined;
    m.resumed();
  }
  const result = m.less(a, b, m.at.line === 0 ? where : m.at);
  return (result instanceof Pending ? yield* result : result) === true;
}

function* foreach(m: Machine, table: Value, f: Value): Generator<unknown, unknown, unknown> {
  const t = checkTable(m, table, 1, 'foreach');
  const callee = m.callee(f, where);
  for (let at = t.seek(0); at >= 0; at = t.seek(at + 1)) {
    const result = firstOf(yield* m.callBack(callee, [at + 1, t.list[at]]));
    if (result !== undefined) return result;
  }
  for (let at = t.seekRest(0); at >= 0; at = t.seekRest(at + 1)) {
    const result = firstOf(yield* m.callBack(callee, [t.restKey(at), t.restValue(at)]));
    if (result !== undefined) return result;
  }
  return noValues;
}

function* foreachi(m: Machine, table: Value, f: Value): Generator<unknown, unknown, unknown> {
  const t = checkTable(m, table, 1, 'foreachi');
  const callee = m.callee(f, where);
  for (let i = 1; i <= t.length; i++) {
    const result = firstOf(yield* m.callBack(callee, [i, t.get(i)]));
    if (result !== undefined) return result;
  }
  return noValues;
}

function maxn(m: Machine, table: Value): number {
  const t = checkTable(m, table, 1, 'maxn');
  let most = t.length;
  m.charge(t.restCount >>> 2);
  for (let at = t.seekRest(0); at >= 0; at = t.seekRest(at + 1)) {
    const key = t.restKey(at);
    if (typeof key === 'number' && key > most) most = key;
  }
  return most;
}

export function tableLibrary(m: Machine): Record<string, Callable> {
  return {
    insert: (...args) => insert(m, args),
    remove: (table, position) => remove(m, table, position),
    concat: (table, separator, from, to) => concat(m, table, separator, from, to),
    sort: m.stepping((table, order) => sort(m, table, order)),
    foreach: m.stepping((table, f) => foreach(m, table, f)),
    foreachi: m.stepping((table, f) => foreachi(m, table, f)),
    maxn: (table) => maxn(m, table),
    getn: (table) => checkTable(m, table, 1, 'getn').length,
    setn: () => {
      throw m.error("'setn' is obsolete");
    },
  };
}
