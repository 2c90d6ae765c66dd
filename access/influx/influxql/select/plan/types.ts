// Types of expressions, as InfluxDB finds them before it reads a row.

import type { FieldType } from '../../../../../universal-row/series/field-type.ts';
import type { BinaryOperator, Expression } from '../../ast.ts';
import { print } from '../../parser/print.ts';
import { QueryError } from '../../result.ts';
import { keepsType, mathFunctions } from './math-functions.ts';

export type ValueType = FieldType | 'tag' | undefined;

const precedence: readonly ValueType[] = [
  'float',
  'integer',
  'unsigned',
  'string',
  'boolean',
  'tag',
  undefined,
];

/** The type that stands for all types a name has in different sources. */
export function stronger(a: ValueType, b: ValueType): ValueType {
  return precedence.indexOf(a) <= precedence.indexOf(b) ? a : b;
}

const floats: ReadonlySet<string> = new Set([
  'mean',
  'median',
  'integral',
  'stddev',
  'derivative',
  'non_negative_derivative',
  'moving_average',
  'holt_winters',
  'holt_winters_with_fit',
]);

export function callType(name: string, input: ValueType): FieldType | undefined {
  if (name === 'count' || name === 'elapsed') return 'integer';
  if (floats.has(name)) return 'float';
  return input === 'tag' ? undefined : input;
}

/** `typeOf` knows the names. Throws for operands that do not go together. */
export function typeOfExpression(
  expression: Expression,
  typeOf: (reference: Extract<Expression, { kind: 'reference' }>) => ValueType,
): ValueType {
  const type = (inner: Expression): ValueType => typeOfExpression(inner, typeOf);
  switch (expression.kind) {
    case 'reference':
      return typeOf(expression);
    case 'number':
      return 'float';
    case 'integer':
    case 'duration':
      return 'integer';
    case 'string':
      return 'string';
    case 'boolean':
      return 'boolean';
    case 'parentheses':
      return type(expression.inner);
    case 'call': {
      const { name, args } = expression;
      if (mathFunctions.has(name)) return mathType(name, args.map(type));
      return args.length === 0 ? undefined : callType(name, type(args[0]!));
    }
    case 'binary': {
      const left = type(expression.left);
      const right = type(expression.right);
      if (left === undefined) return right;
      if (right === undefined) return left;
      const result = binaryType(expression.op, left, right);
      if (result === undefined) {
        throw new QueryError(
          `type error: ${print(expression)}: incompatible types: ${left} and ${right}`,
        );
      }
      return result;
    }
    default:
      return undefined;
  }
}

function mathType(name: string, types: readonly ValueType[]): ValueType {
  const places = ['first', 'second'];
  types.forEach((type, i) => {
    const isInteger = type === 'integer' || type === 'unsigned';
    const isFine = type === undefined || type === 'float' || isInteger;
    if (isFine && !(isInteger && (name === 'asin' || name === 'acos'))) return;
    throw new QueryError(
      `invalid argument type for the ${places[i]} argument in ${name}(): ${type}`,
    );
  });
  return keepsType.has(name) ? types[0] : 'float';
}

const comparisons: ReadonlySet<BinaryOperator> = new Set(['=', '!=', '<', '<=', '>', '>=']);
const bitwise: ReadonlySet<BinaryOperator> = new Set(['&', '|', '^']);

/** undefined when the operator has no meaning for the two. */
export function binaryType(
  op: BinaryOperator,
  left: FieldType | 'tag',
  right: FieldType | 'tag',
): FieldType | undefined {
  // Comparing incomparable types is false.
  if (comparisons.has(op)) return 'boolean';
  if (left === 'boolean' && right === 'boolean') {
    return bitwise.has(op) || op === 'and' || op === 'or' ? 'boolean' : undefined;
  }
  if (!isNumeric(left) || !isNumeric(right) || op === 'and' || op === 'or') return undefined;
  if (left === 'float' || right === 'float') return bitwise.has(op) ? undefined : 'float';
  if (op === '/') return 'float';
  return left === 'unsigned' || right === 'unsigned' ? 'unsigned' : 'integer';
}

function isNumeric(type: FieldType | 'tag'): boolean {
  return type === 'float' || type === 'integer' || type === 'unsigned';
}
