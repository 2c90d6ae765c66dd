// Bound parameters: `$name` is read as the token that its value would be.
//
//   "text", 1.5, 2, true             a string, a number, a boolean
//   {"regex": "^a"}                  and likewise duration, identifier, string, float, integer, boolean

import { ParseError } from '../result.ts';
import type { Token } from './lexer.ts';

type Bound = Pick<Token, 'kind' | 'text'>;

/** The token in place of `parameter`. */
export function bindParameter(parameter: Token, params: Readonly<Record<string, unknown>>): Token {
  const name = parameter.text;
  if (name === '') throw new ParseError('error parsing query: empty bound parameter');
  const value = Object.hasOwn(params, name) ? params[name] : undefined;
  if (value === undefined || value === null) {
    throw new ParseError(`error parsing query: missing parameter: ${name}`);
  }
  const bound = bind(value);
  if (bound === undefined) {
    throw new ParseError(
      `error parsing query: unable to bind parameter with type ${typeName(value)}`,
    );
  }
  return { ...parameter, ...bound };
}

function bind(value: unknown): Bound | undefined {
  switch (typeof value) {
    case 'string':
      return { kind: 'STRING', text: value };
    case 'bigint':
      return { kind: 'INTEGER', text: String(value) };
    case 'number':
      return Number.isSafeInteger(value)
        ? { kind: 'INTEGER', text: String(value) }
        : { kind: 'NUMBER', text: String(value) };
    case 'boolean':
      return { kind: value ? 'TRUE' : 'FALSE', text: '' };
    case 'object':
      return value === null ? undefined : bindObject(value);
    default:
      return undefined;
  }
}

/** An object with one key, which says how to read its value. */
function bindObject(object: object): Bound | undefined {
  const entries: [string, unknown][] = Object.entries(object);
  if (entries.length !== 1) return undefined;
  const [kind, value] = entries[0]!;
  switch (kind) {
    case 'regex':
      return typeof value === 'string' ? { kind: 'REGEX', text: value } : undefined;
    case 'identifier':
    case 'ident':
      return typeof value === 'string' ? { kind: 'IDENT', text: value } : undefined;
    case 'string':
      return typeof value === 'string' ? bind(value) : undefined;
    case 'boolean':
      return typeof value === 'boolean' ? bind(value) : undefined;
    case 'duration':
      if (typeof value === 'string') return { kind: 'DURATIONVAL', text: value };
      return isWhole(value) ? { kind: 'DURATIONVAL', text: `${value}ns` } : undefined;
    case 'integer':
    case 'int':
      return isWhole(value) || typeof value === 'bigint' ? bind(value) : undefined;
    case 'float':
    case 'number':
      return typeof value === 'number' ? { kind: 'NUMBER', text: String(value) } : undefined;
    default:
      return undefined;
  }
}

function isWhole(value: unknown): value is number {
  return Number.isSafeInteger(value);
}

function typeName(value: unknown): string {
  if (Array.isArray(value)) return '[]interface {}';
  return typeof value === 'object' ? 'map[string]interface {}' : typeof value;
}
