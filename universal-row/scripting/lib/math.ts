// The math library. Its random numbers come from drand48, as in redis-server.

import type { Machine } from '../machine.ts';
import { LuaTable, type Value } from '../values.ts';
import { checkInteger, checkNumber } from './checks.ts';

const multiplierLow = 0xe66d;
const multiplierMiddle = 0xdeec;
const multiplierHigh = 5;

/** As srand48 and lrand48: 48 bits of state in three parts. */
class Random {
  #low = 0x330e;
  #middle = 0;
  #high = 0;

  seed(value: number): void {
    this.#low = 0x330e;
    this.#middle = value & 0xffff;
    this.#high = (value >>> 16) & 0xffff;
  }

  /** `seed` is in [0, 1). */
  start(seed: number): void {
    this.#low = 0x330e;
    const bits = Math.floor(seed * 2 ** 32) >>> 0;
    this.#middle = bits & 0xffff;
    this.#high = bits >>> 16;
  }

  /** Below 2^31. */
  next(): number {
    const low = this.#low * multiplierLow + 0xb;
    const middle =
      this.#middle * multiplierLow + this.#low * multiplierMiddle + Math.floor(low / 65536);
    const high =
      this.#high * multiplierLow +
      this.#middle * multiplierMiddle +
      this.#low * multiplierHigh +
      Math.floor(middle / 65536);
    this.#low = low % 65536;
    this.#middle = middle % 65536;
    this.#high = high % 65536;
    return this.#high * 32768 + (this.#middle >>> 1);
  }
}

const most = 0x7fffffff;

function random(m: Machine, source: Random, args: readonly Value[]): number {
  const r = (source.next() % most) / most;
  if (args.length === 0) return r;
  if (args.length > 2) throw m.error('wrong number of arguments');
  const low = args.length === 1 ? 1 : checkInteger(m, args[0], 1, 'random');
  const high = checkInteger(m, args.at(-1), args.length, 'random');
  if (low > high) throw m.argument(args.length, 'random', 'interval is empty');
  return Math.floor(r * (high - low + 1)) + low;
}

function frexp(x: number): number[] {
  if (x === 0 || !Number.isFinite(x)) return [x, 0];
  let exponent = Math.max(-1023, Math.floor(Math.log2(Math.abs(x))) + 1);
  let mantissa = x * 2 ** -exponent;
  while (Math.abs(mantissa) < 0.5) {
    mantissa *= 2;
    exponent--;
  }
  while (Math.abs(mantissa) >= 1) {
    mantissa /= 2;
    exponent++;
  }
  return [mantissa, exponent];
}

const ofOne = [
  'abs',
  'acos',
  'asin',
  'atan',
  'ceil',
  'cos',
  'cosh',
  'exp',
  'floor',
  'log',
  'log10',
  'sin',
  'sinh',
  'sqrt',
  'tan',
  'tanh',
] as const;

interface MathLibrary {
  readonly functions: Record<string, Value>;
  /** Before a script begins; `seed` is in [0, 1). */
  readonly reseed: (seed: number) => void;
}

export function mathLibrary(m: Machine): MathLibrary {
  const source = new Random();
  const number = (value: Value, position: number, name: string): number =>
    checkNumber(m, value, position, name);
  const functions: Record<string, Value> = {
    pi: Math.PI,
    huge: Infinity,
    atan2: (y: Value, x: Value) => Math.atan2(number(y, 1, 'atan2'), number(x, 2, 'atan2')),
    deg: (x: Value) => (number(x, 1, 'deg') * 180) / Math.PI,
    rad: (x: Value) => (number(x, 1, 'rad') * Math.PI) / 180,
    fmod: (x: Value, y: Value) => number(x, 1, 'fmod') % number(y, 2, 'fmod'),
    mod: (x: Value, y: Value) => number(x, 1, 'fmod') % number(y, 2, 'fmod'),
    frexp: (x: Value) => frexp(number(x, 1, 'frexp')),
    ldexp: (x: Value, e: Value) => number(x, 1, 'ldexp') * 2 ** checkInteger(m, e, 2, 'ldexp'),
    max: (...args: Value[]) => {
      let best = number(args[0], 1, 'max');
      for (let i = 1; i < args.length; i++) {
        const x = number(args[i], i + 1, 'max');
        if (x > best) best = x;
      }
      return best;
    },
    min: (...args: Value[]) => {
      let best = number(args[0], 1, 'min');
      for (let i = 1; i < args.length; i++) {
        const x = number(args[i], i + 1, 'min');
        if (x < best) best = x;
      }
      return best;
    },
    modf: (x: Value) => {
      const value = number(x, 1, 'modf');
      if (!Number.isFinite(value)) return [value, value === value ? 0 : value];
      return [Math.trunc(value), value - Math.trunc(value)];
    },
    pow: (x: Value, y: Value) => number(x, 1, 'pow') ** number(y, 2, 'pow'),
    random: (...args: Value[]) => random(m, source, args),
    randomseed: (seed: Value) => {
      source.seed(checkInteger(m, seed, 1, 'randomseed'));
    },
  };
  for (const name of ofOne) {
    const compute = Math[name] as (x: number) => number;
    functions[name] = (x: Value) => compute(number(x, 1, name));
  }
  return { functions, reseed: (seed) => source.start(seed) };
}

/** A library as a table that no script can change. */
export function libraryTable(functions: Record<string, Value>): LuaTable {
  const table = new LuaTable();
  for (const [name, value] of Object.entries(functions)) table.set(name, value);
  table.isReadonly = true;
  return table;
}
