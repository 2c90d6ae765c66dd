// Argument checks of builtins, with Lua's own error texts.

import type { Machine } from '../machine.ts';
import { numberText } from '../numbers.ts';
import { LuaTable, typeName, type Value } from '../values.ts';

export function checkTable(m: Machine, value: Value, position: number, name: string): LuaTable {
  if (value instanceof LuaTable) return value;
  throw m.argument(position, name, `table expected, got ${given(value)}`);
}

function given(value: Value): string {
  return value === undefined ? 'no value' : typeName(value);
}

/** A table that may be changed. */
export function checkWritable(m: Machine, value: Value, position: number, name: string): LuaTable {
  const table = checkTable(m, value, position, name);
  if (table.isReadonly) throw m.error('Attempt to modify a readonly table');
  return table;
}

export function checkString(m: Machine, value: Value, position: number, name: string): string {
  if (typeof value === 'string') return value;
  if (typeof value === 'number') return numberText(value);
  throw m.argument(position, name, `string expected, got ${given(value)}`);
}

export function checkNumber(m: Machine, value: Value, position: number, name: string): number {
  if (typeof value === 'number') return value;
  const number = m.toNumber(value);
  if (number !== undefined) return number;
  throw m.argument(position, name, `number expected, got ${given(value)}`);
}

/** A number cut to a whole one. */
export function checkInteger(
  m: Machine,
  value: Value,
  position: number,
  name: string,
  otherwise?: number,
): number {
  if (value === undefined && otherwise !== undefined) return otherwise;
  const number = Math.trunc(checkNumber(m, value, position, name));
  return number === number ? number : 0;
}
