// Runtime of one script: its state, and the operations of Lua that generated code calls. Short
// names are those that generated code uses.

import { numberText, parseNumber } from './numbers.ts';
import { ScriptState, type Site } from './script-state.ts';
import {
  type Callable,
  firstOf,
  listOf,
  LuaTable,
  NeedsSteps,
  Pending,
  typeName,
  type Value,
} from './values.ts';

/** Frames of a builtin that calls back. */
const callbackDepth = 8;
const maxIndexChain = 100;
/** More arguments than this are spread only while there is room on the stack. */
const wideCall = 64;

export class Machine extends ScriptState {
  #typeError(site: Site, what: string, value: Value, name: string | undefined): never {
    const described = name === undefined ? `a ${typeName(value)} value` : undefined;
    this.fail(
      site,
      described === undefined
        ? `attempt to ${what} ${name} (a ${typeName(value)} value)`
        : `attempt to ${what} ${described}`,
    );
  }

  // ---- metatables

  metatable(value: Value): LuaTable | undefined {
    if (value instanceof LuaTable) return value.meta;
    return typeof value === 'string' ? this.stringMeta : undefined;
  }

  metamethod(value: Value, event: string): Value {
    return this.metatable(value)?.get(event);
  }

  /** A result of which the first value counts. */
  result(result: unknown): unknown {
    if (result instanceof Array) return (result as Value[])[0];
    return result instanceof Pending ? firstLater(result) : result;
  }

  /** The function to call in place of the value. */
  callee(value: Value, site: Site): Callable {
    if (typeof value === 'function') return value as Callable;
    const handler = this.metamethod(value, '__call');
    if (typeof handler !== 'function') this.#typeError(site, 'call', value, site.first);
    return (...args) => (handler as Callable)(value, ...args);
  }

  // ---- operations

  global(name: string, site: Site): unknown {
    const value = this.globals.get(name);
    if (value !== undefined || !this.globals.isReadonly) return value;
    this.fail(site, `Script attempted to access nonexistent global variable '${name}'`);
  }

  index(object: Value, key: Value, site: Site): unknown {
    let from = object;
    for (let i = 0; i < maxIndexChain; i++) {
      let handler: Value;
      if (from instanceof LuaTable) {
        const value = from.get(key);
        if (value !== undefined || from.meta === undefined) return value;
        handler = from.meta.get('__index');
        if (handler === undefined) return undefined;
      } else {
        handler = typeof from === 'string' ? this.stringMeta.get('__index') : undefined;
        if (handler === undefined) this.#typeError(site, 'index', from, site.first);
      }
      if (typeof handler === 'function') {
        this.at = site;
        return this.result((handler as Callable)(from, key));
      }
      from = handler;
    }
    this.fail(site, 'loop in gettable');
  }

  setIndex(object: Value, key: Value, value: Value, site: Site): unknown {
    let to = object;
    for (let i = 0; i < maxIndexChain; i++) {
      let handler: Value;
      if (to instanceof LuaTable) {
        handler = to.meta?.get('__newindex');
        if (handler === undefined || to.get(key) !== undefined) {
          if (to.isReadonly) this.fail(site, 'Attempt to modify a readonly table');
          if (key === undefined) this.fail(site, 'table index is nil');
          if (key !== key) this.fail(site, 'table index is NaN');
          if (to.set(key, value)) this.grew();
          return undefined;
        }
      } else this.#typeError(site, 'index', to, site.first);
      if (typeof handler === 'function') {
        this.at = site;
        return (handler as Callable)(to, key, value);
      }
      to = handler;
    }
    this.fail(site, 'loop in settable');
  }

  /** Makes a table of items and of keys and values alternately. */
  table(items: Value[], fields: readonly Value[] | undefined, site: Site): LuaTable {
    this.allocate(64 + items.length * 8);
    const table = new LuaTable(items);
    if (fields === undefined) return table;
    for (let i = 0; i < fields.length; i += 2) {
      const key = fields[i];
      if (key === undefined) this.fail(site, 'table index is nil');
      if (key !== key) this.fail(site, 'table index is NaN');
      // Items come after fields of the same number.
      if (typeof key === 'number' && key >= 1 && key <= items.length) continue;
      if (table.set(key, fields[i + 1])) this.grew();
    }
    return table;
  }

  /** Items of a constructor, or arguments, of which the last ones are all results of a call. */
  join(front: readonly Value[], rest: unknown): Value[] {
    if (!(rest instanceof Array)) return [...front, rest];
    return [...front, ...(rest as Value[])];
  }

  list(result: unknown): readonly Value[] {
    return listOf(result);
  }

  /** Results as arguments of a call that is about to be made. */
  spread(rest: unknown, site: Site): readonly Value[] {
    const list = rest instanceof Array ? (rest as Value[]) : [rest];
    if (list.length > wideCall) {
      this.charge(list.length);
      if (!hasRoom()) this.fail(site, 'stack overflow');
    }
    this.at = site;
    return list;
  }

  toNumber(value: Value): number | undefined {
    if (typeof value === 'number') return value;
    return typeof value === 'string' ? parseNumber(value) : undefined;
  }

  arithmetic(op: string, a: Value, b: Value, site: Site): unknown {
    const x = this.toNumber(a);
    const y = this.toNumber(b);
    if (x !== undefined && y !== undefined) return compute(op, x, y);
    const event = events[op]!;
    const handler = this.metamethod(a, event) ?? this.metamethod(b, event);
    if (handler !== undefined) {
      const call = this.callee(handler, site);
      this.at = site;
      return this.result(call(a, b));
    }
    const isFirst = x === undefined;
    this.#typeError(
      site,
      'perform arithmetic on',
      isFirst ? a : b,
      isFirst ? site.first : site.second,
    );
  }

  negate(value: Value, site: Site): unknown {
    const x = this.toNumber(value);
    if (x !== undefined) return -x;
    const handler = this.metamethod(value, '__unm');
    if (handler === undefined) {
      this.#typeError(site, 'perform arithmetic on', value, site.first);
    }
    const call = this.callee(handler, site);
    this.at = site;
    return this.result(call(value, value));
  }

  length(value: Value, site: Site): unknown {
    if (typeof value === 'string') return value.length;
    if (value instanceof LuaTable) return value.length;
    this.#typeError(site, 'get length of', value, site.first);
  }

  concat(a: Value, b: Value, site: Site): unknown {
    const isText = (value: Value): boolean =>
      typeof value === 'string' || typeof value === 'number';
    if (isText(a) && isText(b)) {
      const left = typeof a === 'number' ? numberText(a) : (a as string);
      const right = typeof b === 'number' ? numberText(b) : (b as string);
      const bytes = left.length + right.length;
      if (bytes > 64) {
        if (bytes > this.limits.stringBytes) this.fail(site, 'not enough memory');
        // A rope is made: only its parts were copied.
        this.allocate(Math.min(bytes, 4096));
      }
      return left + right;
    }
    const handler = this.metamethod(a, '__concat') ?? this.metamethod(b, '__concat');
    if (handler !== undefined) {
      const call = this.callee(handler, site);
      this.at = site;
      return this.result(call(a, b));
    }
    const isFirst = !isText(a);
    this.#typeError(site, 'concatenate', isFirst ? a : b, isFirst ? site.first : site.second);
  }

  equals(a: Value, b: Value, site: Site): unknown {
    if (a === b) return true;
    if (!(a instanceof LuaTable) || !(b instanceof LuaTable)) return false;
    const handler = a.meta?.get('__eq');
    if (handler === undefined || handler !== b.meta?.get('__eq')) return false;
    const call = this.callee(handler, site);
    this.at = site;
    return this.#truth(call(a, b));
  }

  less(a: Value, b: Value, site: Site): unknown {
    if (typeof a === 'number' && typeof b === 'number') return a < b;
    if (typeof a === 'string' && typeof b === 'string') {
      this.charge(Math.min(a.length, b.length) >>> 6);
      return a < b;
    }
    return this.#order('__lt', a, b, site);
  }

  lessEqual(a: Value, b: Value, site: Site): unknown {
    if (typeof a === 'number' && typeof b === 'number') return a <= b;
    if (typeof a === 'string' && typeof b === 'string') {
      this.charge(Math.min(a.length, b.length) >>> 6);
      return a <= b;
    }
    if (this.#comparer('__le', a, b) !== undefined) return this.#order('__le', a, b, site);
    if (this.#comparer('__lt', a, b) === undefined) return this.#order('__le', a, b, site);
    const swapped = this.#order('__lt', b, a, site);
    return swapped instanceof Pending ? notLater(swapped) : swapped !== true;
  }

  #comparer(event: string, a: Value, b: Value): Value {
    if (typeName(a) !== typeName(b)) return undefined;
    const handler = this.metamethod(a, event);
    return handler === this.metamethod(b, event) ? handler : undefined;
  }

  #order(event: string, a: Value, b: Value, site: Site): unknown {
    const handler = this.#comparer(event, a, b);
    if (handler === undefined) {
      const [one, other] = [typeName(a), typeName(b)];
      this.fail(
        site,
        one === other
          ? `attempt to compare two ${one} values`
          : `attempt to compare ${one} with ${other}`,
      );
    }
    const call = this.callee(handler, site);
    this.at = site;
    return this.#truth(call(a, b));
  }

  #truth(result: unknown): unknown {
    if (result instanceof Pending) return truthLater(result);
    const value = firstOf(result);
    return value !== undefined && value !== false;
  }

  /** A bound of a numeric loop. */
  loopNumber(value: Value, what: string, site: Site): number {
    const number = this.toNumber(value);
    if (number === undefined) this.fail(site, `'for' ${what} must be a number`);
    return number;
  }

  // ---- for builtins

  /** Calls back from a builtin, which is a generator: in the plain form it never yields. */
  *callBack(callee: Callable, args: readonly Value[]): Generator<unknown, unknown, unknown> {
    if ((this.d += callbackDepth) > this.dmax) this.overflow();
    if (--this.n < 0) {
      if (!this.isStepping) this.tick();
      yield undefined;
      this.resumed();
    }
    const { at } = this;
    const result = callee(...args);
    const values = result instanceof Pending ? yield* result : result;
    this.at = at;
    this.d -= callbackDepth;
    return values;
  }

  /** Within a builtin of a generator whose instructions are used up: the plain form never comes here. */
  *pause(): Generator<unknown, void, unknown> {
    yield undefined;
    this.resumed();
  }

  /** A builtin made of a generator, in the form this machine runs. */
  stepping(steps: (...args: Value[]) => Generator<unknown, unknown, unknown>): Callable {
    return this.isStepping ? steps : (...args) => runPlain(steps(...args));
  }
}

/** Runs a generator that does not yield. */
function runPlain(steps: Generator<unknown, unknown, unknown>): unknown {
  const { done, value } = steps.next();
  if (done !== true) throw new NeedsSteps('budget');
  return value;
}

const events: Record<string, string> = {
  '+': '__add',
  '-': '__sub',
  '*': '__mul',
  '/': '__div',
  '%': '__mod',
  '^': '__pow',
};

function compute(op: string, x: number, y: number): number {
  switch (op) {
    case '+':
      return x + y;
    case '-':
      return x - y;
    case '*':
      return x * y;
    case '/':
      return x / y;
    case '%':
      return x - Math.floor(x / y) * y;
    default:
      return x ** y;
  }
}

function* firstLater(steps: Generator<unknown, unknown, unknown>): Generator {
  return firstOf(yield* steps);
}

function* truthLater(steps: Generator<unknown, unknown, unknown>): Generator {
  const value = firstOf(yield* steps);
  return value !== undefined && value !== false;
}

function* notLater(steps: Generator<unknown, unknown, unknown>): Generator {
  return (yield* steps) !== true;
}

/** Whether the stack has room for a wide call and for its callees. */
function hasRoom(): boolean {
  try {
    descend(400);
    return true;
  } catch (error) {
    if (error instanceof RangeError) return false;
    throw error;
  }
}

/** Frames of about half a kilobyte. */
function descend(frames: number, ...pad: number[]): number {
  const [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0] = pad;
  if (frames === 0) return a + b + c + d + e + f;
  return descend(frames - 1, a, b, c, d, e, f, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14) + 1;
}
