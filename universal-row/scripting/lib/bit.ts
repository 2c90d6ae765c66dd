// The bit library (Lua BitOp): 32-bit integers, signed.

import type { Machine } from '../machine.ts';
import type { Callable, Value } from '../values.ts';
import { checkNumber } from './checks.ts';

function toBit(value: number): number {
  // Rounded as the library does, by adding 2^52 + 2^51.
  const rounded = Number.isInteger(value) ? value : value + 6755399441055744 - 6755399441055744;
  return Math.abs(rounded) < 2 ** 53
    ? rounded | 0
    : Number(BigInt.asIntN(32, BigInt(Math.trunc(rounded) || 0)));
}

type Fold = (a: number, b: number) => number;

export function bitLibrary(m: Machine): Record<string, Callable> {
  const bits = (value: Value, position: number, name: string): number => {
    const number = checkNumber(m, value, position, name);
    return Number.isFinite(number) ? toBit(number) : 0;
  };
  const folded =
    (name: string, fold: Fold): Callable =>
    (first, ...rest) => {
      let result = bits(first, 1, name);
      rest.forEach((value, i) => (result = fold(result, bits(value, i + 2, name))));
      return result | 0;
    };
  const shifted =
    (name: string, shift: Fold): Callable =>
    (value, by) =>
      shift(bits(value, 1, name), bits(by, 2, name) & 31) | 0;
  return {
    tobit: (value) => bits(value, 1, 'tobit'),
    tohex: (value, digits) => {
      const count = digits === undefined ? 8 : bits(digits, 2, 'tohex');
      const length = Math.min(8, Math.abs(count));
      const text = (bits(value, 1, 'tohex') >>> 0)
        .toString(16)
        .padStart(8, '0')
        .slice(8 - length);
      return count < 0 ? text.toUpperCase() : text;
    },
    bnot: (value) => ~bits(value, 1, 'bnot'),
    band: folded('band', (a, b) => a & b),
    bor: folded('bor', (a, b) => a | b),
    bxor: folded('bxor', (a, b) => a ^ b),
    lshift: shifted('lshift', (a, n) => a << n),
    rshift: shifted('rshift', (a, n) => a >>> n),
    arshift: shifted('arshift', (a, n) => a >> n),
    rol: shifted('rol', (a, n) => (a << n) | (a >>> ((32 - n) & 31))),
    ror: shifted('ror', (a, n) => (a >>> n) | (a << ((32 - n) & 31))),
    bswap: (value) => {
      const b = bits(value, 1, 'bswap');
      return (b << 24) | ((b & 0xff00) << 8) | ((b >>> 8) & 0xff00) | (b >>> 24);
    },
  };
}
