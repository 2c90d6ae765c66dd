// Wildcards and patterns in fields and GROUP BY, replaced by the names in the sources.

import { compareText } from '../../../../../universal-row/series/series-key.ts';
import type { Cast, Dimension, Expression, SelectField } from '../../ast.ts';
import { QueryError } from '../../result.ts';
import { fieldName } from './column-names.ts';
import type { SourceSchema } from './schema.ts';
import { stronger, type ValueType } from './types.ts';

export interface Expanded {
  readonly fields: readonly SelectField[];
  /** Tags of GROUP BY in the order they were written. */
  readonly dimensions: readonly string[];
}

interface Name {
  readonly name: string;
  readonly type: Cast;
}

export function expand(
  fields: readonly SelectField[],
  groupBy: readonly Dimension[],
  schemas: readonly SourceSchema[],
): Expanded {
  const hasPattern = groupBy.some(({ kind }) => kind === 'wildcard' || kind === 'pattern');
  if (!hasPattern && !fields.some(({ expression }) => hasWildcard(expression))) {
    return { fields, dimensions: plainDimensions(groupBy) };
  }
  const tags = new Set<string>();
  const types = new Map<string, ValueType>();
  for (const schema of schemas) {
    for (const tag of schema.tags()) tags.add(tag);
    for (const [name, type] of schema.fields()) types.set(name, stronger(types.get(name), type));
  }
  const sortedTags = [...tags].sort(compareText);
  const names: Name[] = [...types].map(([name, type]) => ({ name, type: type! }));
  // Without a field there is nothing to expand to.
  if (!hasPattern && names.length > 0) {
    const grouped = new Set(plainDimensions(groupBy));
    for (const name of sortedTags) if (!grouped.has(name)) names.push({ name, type: 'tag' });
  }
  names.sort((a, b) => compareText(a.name, b.name) || (a.type === 'tag' ? 1 : -1));
  return {
    fields: fields.flatMap((field) => expandField(field, names)),
    dimensions: expandDimensions(groupBy, sortedTags),
  };
}

function hasWildcard(expression: Expression): boolean {
  switch (expression.kind) {
    case 'wildcard':
    case 'pattern':
      return true;
    case 'call':
      return expression.args.some(hasWildcard);
    default:
      return false;
  }
}

function plainDimensions(groupBy: readonly Dimension[]): string[] {
  return groupBy.flatMap((dimension) => (dimension.kind === 'tag' ? [dimension.name] : []));
}

function expandDimensions(groupBy: readonly Dimension[], tags: readonly string[]): string[] {
  return groupBy.flatMap((dimension) => {
    switch (dimension.kind) {
      case 'tag':
        return [dimension.name];
      case 'wildcard':
        return tags;
      case 'pattern':
        return tags.filter((tag) => dimension.pattern.regexp.test(tag));
      default:
        return [];
    }
  });
}

function expandField(field: SelectField, names: readonly Name[]): SelectField[] {
  const { expression } = field;
  switch (expression.kind) {
    case 'wildcard':
      return names
        .filter(({ type }) => expression.only === undefined || isOnly(expression.only, type))
        .map(reference);
    case 'pattern':
      return names.filter(({ name }) => expression.pattern.regexp.test(name)).map(reference);
    case 'call':
      return expandCall(field, expression, names);
    default:
      return [field];
  }
}

function isOnly(only: 'tag' | 'field', type: Cast): boolean {
  return (type === 'tag') === (only === 'tag');
}

function reference({ name, type }: Name): SelectField {
  return { expression: { kind: 'reference', name, cast: type }, alias: undefined };
}

/** Expands f(*) to a call for each field whose type f accepts, named f_<field>. */
function expandCall(
  field: SelectField,
  template: Extract<Expression, { kind: 'call' }>,
  names: readonly Name[],
): SelectField[] {
  let call = template;
  for (let inner = call.args[0]; inner?.kind === 'call'; inner = call.args[0]) call = inner;
  const argument = call.args[0];
  if (argument === undefined) return [field];
  if (argument.kind !== 'wildcard' && argument.kind !== 'pattern') return [field];
  if (argument.kind === 'wildcard' && argument.only === 'tag') {
    throw new QueryError(`unable to use tag wildcard in ${call.name}()`);
  }
  const prefix = fieldName(field);
  return names
    .filter(({ name, type }) => {
      if (!takes(call.name, type)) return false;
      return argument.kind !== 'pattern' || argument.pattern.regexp.test(name);
    })
    .map(({ name, type }) => ({
      expression: withArgument(template, { kind: 'reference', name, cast: type }),
      alias: `${prefix}_${name}`,
    }));
}

function withArgument(
  call: Extract<Expression, { kind: 'call' }>,
  argument: Expression,
): Expression {
  const [first, ...others] = call.args;
  const inner = first!.kind === 'call' ? withArgument(first, argument) : argument;
  return { ...call, args: [inner, ...others] };
}

const ofAnything: ReadonlySet<string> = new Set([
  'count',
  'distinct',
  'elapsed',
  'first',
  'last',
  'mode',
  'sample',
]);

/** Whether a wildcard in the call stands for fields of the type. */
function takes(name: string, type: Cast): boolean {
  if (type === 'tag') return false;
  if (type === 'string') return ofAnything.has(name);
  if (type === 'boolean') return ofAnything.has(name) || name === 'min' || name === 'max';
  return type !== 'unsigned' || !name.startsWith('holt_winters');
}
