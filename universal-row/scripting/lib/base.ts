// The functions without a library: pcall, pairs, tostring ...

import { LuaSyntaxError } from '../lexer.ts';
import type { Machine } from '../machine.ts';
import { nowhere, type Site } from '../script-state.ts';
import { numberText, parseInBase } from '../numbers.ts';
import { type Iterators, Program } from '../program.ts';
import {
  type Callable,
  firstOf,
  LuaError,
  LuaTable,
  Pending,
  typeName,
  type Value,
} from '../values.ts';
import { checkInteger, checkTable } from './checks.ts';

/** Frames of pcall. */
const protectedDepth = 8;
const maxUnpacked = 8000;
/** Cost of compiling, in instructions: for each byte, and the minimum. */
const compileUnits = 100;
const leastCompileUnits = 20_000;

const builtin: Site = { chunk: '=[C]', line: 0 };

export function tostring(m: Machine, value: Value): unknown {
  const handler = m.metamethod(value, '__tostring');
  if (handler !== undefined) return m.result(m.callee(handler, builtin)(value));
  switch (typeof value) {
    case 'string':
      return value;
    case 'number':
      return numberText(value);
    case 'undefined':
      return 'nil';
    case 'boolean':
      return String(value);
    default: {
      const kind = typeof value === 'function' ? 'function' : typeName(value);
      return `${kind}: 0x${m
        .identity(value as object)
        .toString(16)
        .padStart(12, '0')}`;
    }
  }
}

function nextOf(m: Machine): Callable {
  return (table, key) => {
    const t = checkTable(m, table, 1, 'next');
    let rest = 0;
    if (key === undefined || isListKey(t, key)) {
      const at = t.seek(key === undefined ? 0 : (key as number));
      if (at >= 0) return [at + 1, t.list[at]];
    } else {
      rest = t.restPosition(key) + 1;
      // A number that was in the list until its end was removed continues with the rest.
      if (rest === 0 && typeof key !== 'number') throw m.error("invalid key to 'next'");
    }
    const at = t.seekRest(rest);
    m.charge((at < 0 ? t.restCount : at - rest) >>> 4);
    return at < 0 ? undefined : [t.restKey(at), t.restValue(at)];
  };
}

function isListKey(t: LuaTable, key: Value): boolean {
  return typeof key === 'number' && key >= 1 && key <= t.list.length && Number.isInteger(key);
}

function inextOf(m: Machine): Callable {
  return (table, index) => {
    const next = (index as number) + 1;
    const value = checkTable(m, table, 1, 'ipairs').get(next);
    return value === undefined ? undefined : [next, value];
  };
}

interface Entered {
  readonly depth: number;
  readonly at: Site;
}

function protectedCalls(m: Machine): Record<string, Callable> {
  const enter = (): Entered => {
    const { d: depth, at } = m;
    m.d += protectedDepth;
    if (m.d > m.dmax) {
      m.d = depth;
      m.overflow();
    }
    // Its caller is no function of Lua: errors name no place for it.
    m.at = nowhere;
    return { depth, at };
  };
  const leave = ({ depth, at }: Entered): void => {
    m.d = depth;
    m.at = at;
  };
  const failed = (error: unknown, entered: Entered): Value[] => {
    const value = m.caught(error);
    leave(entered);
    return [false, value];
  };
  const done = (result: unknown, entered: Entered): Value[] => {
    leave(entered);
    return result instanceof Array ? [true, ...(result as Value[])] : [true, result];
  };
  function* pcallLater(f: Value, ...args: Value[]): Generator {
    const entered = enter();
    try {
      const result = m.callee(f, builtin)(...args);
      return done(result instanceof Pending ? yield* result : result, entered);
    } catch (error) {
      return failed(error, entered);
    }
  }
  const pcall: Callable = (f, ...args) => {
    const entered = enter();
    try {
      return done(m.callee(f, builtin)(...args), entered);
    } catch (error) {
      return failed(error, entered);
    }
  };
  function* xpcall(f: Value, handler: Value): Generator {
    const entered = enter();
    try {
      return done(yield* m.callBack(m.callee(f, builtin), []), entered);
    } catch (error) {
      const [, value] = failed(error, entered);
      const handled = yield* m.callBack(m.callee(handler, builtin), [value]);
      return [false, firstOf(handled)];
    }
  }
  return { pcall: m.isStepping ? pcallLater : pcall, xpcall: m.stepping(xpcall) };
}

function loaders(m: Machine, iterators: Iterators): Record<string, Callable> {
  const compile = (source: string, name: string): unknown => {
    m.charge(Math.max(leastCompileUnits, source.length * compileUnits));
    m.allocate(source.length * 16);
    if (source.startsWith('\x1bLua')) return [undefined, `${name}: bad binary format`];
    try {
      return new Program(source, name).bind(m, iterators);
    } catch (error) {
      if (!(error instanceof LuaSyntaxError)) throw error;
      return [undefined, error.message];
    }
  };
  function* load(f: Value, name: Value): Generator {
    let source = '';
    for (;;) {
      const part = firstOf(yield* m.callBack(m.callee(f, builtin), []));
      if (part === undefined || part === '') break;
      if (typeof part !== 'string') throw m.error('reader function must return a string');
      source = m.made(source + part);
    }
    return compile(source, shortName(typeof name === 'string' ? name : '=(load)'));
  }
  return {
    load: m.stepping(load),
    loadstring: (source, name) => {
      if (typeof source !== 'string') {
        throw m.argument(1, 'loadstring', `string expected, got ${typeName(source)}`);
      }
      return compile(source, shortName(typeof name === 'string' ? name : source));
    },
  };
}

/** As luaO_chunkid shortens it. */
function shortName(name: string): string {
  if (name.startsWith('=') || name.startsWith('@')) return name.slice(1, 60);
  const line = name.split('\n', 1)[0]!;
  return line.length < name.length || line.length > 40
    ? `[string "${line.slice(0, 40)}..."]`
    : `[string "${line}"]`;
}

function tableFunctions(m: Machine): Record<string, Callable> {
  return {
    getmetatable: (value) => {
      const meta = m.metatable(value);
      return meta?.get('__metatable') ?? meta;
    },
    setmetatable: (table, meta) => {
      const t = checkTable(m, table, 1, 'setmetatable');
      if (meta !== undefined && !(meta instanceof LuaTable)) {
        throw m.argument(2, 'setmetatable', 'nil or table expected');
      }
      if (t.meta?.get('__metatable') !== undefined)
        throw m.error('cannot change a protected metatable');
      if (t.isReadonly) throw new LuaError('Attempt to modify a readonly table');
      t.meta = meta;
      return t;
    },
    rawequal: (a, b) => a === b,
    rawget: (table, key) => checkTable(m, table, 1, 'rawget').get(key),
    rawset: (table, key, value) => {
      const t = checkTable(m, table, 1, 'rawset');
      if (t.isReadonly) throw new LuaError('Attempt to modify a readonly table');
      if (key === undefined) throw m.error('table index is nil');
      if (key !== key) throw m.error('table index is NaN');
      if (t.set(key, value)) m.grew();
      return t;
    },
    unpack: (table, from, to) => {
      const t = checkTable(m, table, 1, 'unpack');
      const first = checkInteger(m, from, 2, 'unpack', 1);
      const last = to === undefined ? t.length : checkInteger(m, to, 3, 'unpack');
      if (last - first >= maxUnpacked) throw m.error('too many results to unpack');
      m.charge(Math.max(0, last - first) >>> 2);
      if (first === 1 && last === t.list.length) return t.list.slice();
      const values: Value[] = [];
      for (let i = first; i <= last; i++) values.push(t.get(i));
      return values;
    },
  };
}

function conversions(m: Machine): Record<string, Callable> {
  return {
    tostring: (...args) => {
      if (args.length === 0) throw m.argument(1, 'tostring', 'value expected');
      return tostring(m, args[0]);
    },
    tonumber: (...args) => {
      const [value, base] = args;
      if (args.length === 0) throw m.argument(1, 'tonumber', 'value expected');
      if (base === undefined || base === 10) return m.toNumber(value);
      const radix = checkInteger(m, base, 2, 'tonumber');
      if (radix < 2 || radix > 36) throw m.argument(2, 'tonumber', 'base out of range');
      return parseInBase(typeof value === 'number' ? numberText(value) : String(value), radix);
    },
    select: (n, ...values) => {
      if (n === '#') return values.length;
      m.charge(values.length >>> 4);
      const at = checkInteger(m, n, 1, 'select');
      if (at < 0 && -at <= values.length) return values.slice(at);
      if (at < 1) throw m.argument(1, 'select', 'index out of range');
      return values.slice(at - 1);
    },
  };
}

const collectorOptions: ReadonlySet<string> = new Set([
  ...['collect', 'count', 'step', 'stop', 'restart', 'setpause', 'setstepmul'],
]);

/** There is nothing to collect by hand; the options are known, and others are refused. */
function collect(m: Machine, what: Value): Value {
  if (typeof what !== 'string' && typeof what !== 'number') {
    throw m.argument(1, 'collectgarbage', `string expected, got ${typeName(what)}`);
  }
  const option = typeof what === 'number' ? numberText(what) : what;
  if (!collectorOptions.has(option)) {
    throw m.argument(1, 'collectgarbage', `invalid option '${option}'`);
  }
  if (option === 'step') return true;
  return option === 'count' ? [0, 0] : 0;
}

export function baseLibrary(m: Machine, iterators: Iterators): Record<string, Value> {
  iterators.next = nextOf(m);
  iterators.inext = inextOf(m);
  return {
    ...protectedCalls(m),
    ...loaders(m, iterators),
    ...tableFunctions(m),
    ...conversions(m),
    _VERSION: 'Lua 5.1',
    next: iterators.next,
    pairs: (table: Value) => [iterators.next, checkTable(m, table, 1, 'pairs'), undefined],
    ipairs: (table: Value) => [iterators.inext, checkTable(m, table, 1, 'ipairs'), 0],
    type: (...args: Value[]) => {
      if (args.length === 0) throw m.argument(1, 'type', 'value expected');
      return typeName(args[0]);
    },
    assert: (...args: Value[]) => {
      const [value, message] = args;
      if (value !== undefined && value !== false) return args;
      throw args.length > 1 ? new LuaError(message) : m.error('assertion failed!');
    },
    error: (value: Value, level: Value) => {
      const at = checkInteger(m, level, 2, 'error', 1);
      const isText = typeof value === 'string' || typeof value === 'number';
      throw new LuaError(isText && at > 0 ? m.where(at) + tostring(m, value) : value);
    },
    collectgarbage: (what: Value = 'collect') => collect(m, what),
    gcinfo: () => [0, 0],
  };
}
