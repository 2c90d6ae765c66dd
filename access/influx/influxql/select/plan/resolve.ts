// From a compiled SELECT to a plan: with the schema of its sources at hand, names become typed columns.

import { compareText } from '../../../../../universal-row/series/series-key.ts';
import { minTime } from '../../../../../contracts/series-store.ts';
import type { Expression, SelectField } from '../../ast.ts';
import { splitTags } from '../../conditions.ts';
import { print } from '../../parser/print.ts';
import { QueryError } from '../../result.ts';
import { columnNames, fieldName } from './column-names.ts';
import type { Compiled } from './compile.ts';
import { expand, type Expanded } from './expand.ts';
import { mathFunctions } from './math-functions.ts';
import type { Call, MeasurementPlan, Node, Plan, Ref, RowFilter, SubqueryPlan } from './plan.ts';
import {
  MeasurementSchema,
  measurementsOf,
  type SchemaSource,
  type SourceSchema,
  SubquerySchema,
} from './schema.ts';
import { callType, stronger, typeOfExpression, type ValueType } from './types.ts';

type Reference = Extract<Expression, { kind: 'reference' }>;
type CallExpression = Extract<Expression, { kind: 'call' }>;

/** Requests of the enclosing statement to a subquery, besides the subquery's own. */
interface Outer {
  readonly dimensions: readonly string[];
  readonly seriesLimit: number;
  readonly seriesOffset: number;
}

const noOuter: Outer = { dimensions: [], seriesLimit: 0, seriesOffset: 0 };

export function resolve(compiled: Compiled, context: SchemaSource, outer = noOuter): Plan {
  const { statement } = compiled;
  const own: Outer = {
    // Wildcards expand only with the tags of the subqueries, so subqueries are resolved first.
    dimensions: [
      ...outer.dimensions,
      ...statement.groupBy.flatMap((d) => (d.kind === 'tag' ? [d.name] : [])),
      ...tagArguments(compiled),
    ],
    seriesLimit: statement.seriesLimit + outer.seriesLimit,
    seriesOffset: statement.seriesOffset + outer.seriesOffset,
  };
  const sources: (MeasurementPlan | SubqueryPlan)[] = [];
  const schemas: SourceSchema[] = [];
  // Functions that look back read more than the statement's range.
  const earlier = compiled.from - compiled.interval.width;
  const reach = { from: earlier < minTime ? minTime : earlier, to: compiled.to };
  statement.sources.forEach((source, i) => {
    if (source.kind === 'subquery') {
      const plan = resolve(compiled.subqueries[i]!, context, own);
      const schema = new SubquerySchema(plan);
      const rows = rowFilter(compiled.condition, schema);
      sources.push({ kind: 'subquery', plan, rows });
      schemas.push(schema);
      return;
    }
    for (const measurement of measurementsOf(source, context)) {
      const schema = new MeasurementSchema(context, measurement, reach.from, reach.to);
      const split = splitTags(compiled.condition, (name) => !schema.isField(name));
      const rows = rowFilter(split.residual, schema);
      sources.push({ kind: 'measurement', ...measurement, filter: split.filter, rows });
      schemas.push(schema);
    }
  });
  const expanded = expand(compiled.fields, statement.groupBy, schemas);
  checkSize(expanded, schemas.length);
  const symbols = new Symbols((reference) => typeOf(reference, schemas));
  for (const { expression } of expanded.fields) symbols.typeOf(expression);
  const listed = withArguments(expanded.fields, statement.into !== undefined);
  for (const { field } of listed) symbols.collect(field.expression);
  const dimensions = [...new Set([...expanded.dimensions, ...outer.dimensions])];
  return {
    sources,
    timeName: compiled.timeName,
    columns: columnNames(listed.map(({ field }) => field)),
    names: listed.map(({ field }) => fieldName(field)),
    outputs: listed.map(({ field }) => symbols.node(field.expression)),
    outputTypes: listed.map(({ field }) => symbols.typeOf(field.expression)),
    isArgument: listed.map(({ isArgument }) => isArgument),
    calls: symbols.calls,
    refs: symbols.refs,
    dimensions: dimensions.sort(compareText),
    from: compiled.from,
    to: compiled.to,
    interval: compiled.interval,
    fill: statement.fill,
    descending: compiled.descending,
    limit: statement.limit,
    offset: statement.offset,
    seriesLimit: own.seriesLimit,
    seriesOffset: own.seriesOffset,
    timeZone: statement.timeZone,
  };
}

/** Columns of one SELECT, tags of its GROUP BY, and columns times the measurements that they are looked up in. */
const maxColumns = 32_768;
const maxDimensions = 1000;
const maxLookups = 1_000_000;

/** Throws for statements that would take too long to plan at once. */
function checkSize({ fields, dimensions }: Expanded, sources: number): void {
  const columns = fields.length;
  if (columns > maxColumns) {
    throw new QueryError(`more than ${maxColumns} columns: select fewer fields`);
  }
  if (dimensions.length > maxDimensions) {
    throw new QueryError(`more than ${maxDimensions} tags in GROUP BY`);
  }
  if (columns * sources > maxLookups) {
    throw new QueryError(
      `${columns} columns of ${sources} measurements are more than ${maxLookups} together: select fewer of either`,
    );
  }
}

/** top(v, tag, n) needs its input told apart by the tag. */
function tagArguments({ fields }: Compiled): string[] {
  return fields.flatMap(({ expression }) => {
    if (expression.kind !== 'call' || !isTop(expression)) return [];
    return expression.args
      .slice(1, -1)
      .flatMap((arg) => (arg.kind === 'reference' ? [arg.name] : []));
  });
}

function isTop({ name }: CallExpression): boolean {
  return name === 'top' || name === 'bottom';
}

interface ListedField {
  readonly field: SelectField;
  readonly isArgument: boolean;
}

/** The tags among the arguments of top() are columns too, unless the answer is written somewhere. */
function withArguments(fields: readonly SelectField[], hasTarget: boolean): ListedField[] {
  return fields.flatMap((field) => {
    const { expression } = field;
    const listed = [{ field, isArgument: false }];
    if (hasTarget || expression.kind !== 'call' || !isTop(expression)) return listed;
    for (const argument of expression.args.slice(1, -1)) {
      listed.push({ field: { expression: argument, alias: undefined }, isArgument: true });
    }
    return listed;
  });
}

function typeOf({ name, cast }: Reference, schemas: readonly SourceSchema[]): ValueType {
  if (cast === 'field') {
    return schemas.reduce<ValueType>((type, s) => stronger(type, s.fieldType(name)), undefined);
  }
  if (cast !== undefined) return cast;
  return schemas.reduce<ValueType>(
    (type, schema) => stronger(type, schema.typeOf(name)),
    undefined,
  );
}

/** The calls and names of a statement, each with its place in a row. */
class Symbols {
  readonly calls: Call[] = [];
  readonly refs: Ref[] = [];
  readonly #typeOf: (reference: Reference) => ValueType;
  // By text, and by name and type: where they are in `calls` and `refs`.
  readonly #callPlaces = new Map<string, number>();
  readonly #refPlaces = new Map<string, number>();

  constructor(typeOf: (reference: Reference) => ValueType) {
    const known = new Map<string, ValueType>();
    this.#typeOf = (reference) => {
      const key = `${reference.cast ?? ''} ${reference.name}`;
      if (!known.has(key)) known.set(key, typeOf(reference));
      return known.get(key);
    };
  }

  typeOf(expression: Expression): ValueType {
    return typeOfExpression(expression, this.#typeOf);
  }

  /** Gives places. All expressions must be collected before nodes are made. */
  collect(expression: Expression): void {
    switch (expression.kind) {
      case 'reference': {
        const ref = this.#ref(expression);
        if (this.#placeOf(ref) >= 0) return;
        this.#refPlaces.set(keyOf(ref), this.refs.length);
        this.refs.push(ref);
        return;
      }
      case 'call': {
        if (mathFunctions.has(expression.name)) {
          for (const arg of expression.args) this.collect(arg);
          return;
        }
        const call = this.#call(expression);
        if (this.#callPlaces.has(call.text)) return;
        this.#callPlaces.set(call.text, this.calls.length);
        this.calls.push(call);
        return;
      }
      case 'parentheses':
        return this.collect(expression.inner);
      case 'binary':
        this.collect(expression.left);
        this.collect(expression.right);
    }
  }

  node(expression: Expression): Node {
    return toNode(expression, (symbol) => {
      if (symbol.kind === 'reference') {
        return this.calls.length + this.#placeOf(this.#ref(symbol));
      }
      const { text } = this.#call(symbol);
      return this.#callPlaces.get(text) ?? -1;
    });
  }

  #ref(reference: Reference): Ref {
    const type = this.#typeOf(reference);
    const { name, cast } = reference;
    const field = { ...reference, cast: 'field' as const };
    const isCast = cast !== undefined && cast !== 'tag' && type !== this.#typeOf(field);
    return { name, type, isCast };
  }

  #placeOf(ref: Ref): number {
    return this.#refPlaces.get(keyOf(ref)) ?? -1;
  }

  #call(expression: CallExpression): Call {
    const { name, args } = expression;
    const first = args[0]!;
    const input = first.kind === 'call' ? this.#call(first) : this.#ref(first as Reference);
    const last = args.length > 1 ? args[isTop(expression) ? args.length - 1 : 1] : undefined;
    const tags = isTop(expression) ? args.slice(1, -1) : [];
    return {
      name,
      text: `${print(expression)} ${input.type}`,
      input,
      type: callType(name, input.type),
      parameter: last === undefined ? undefined : literal(last),
      season: args[2] === undefined || isTop(expression) ? 0 : literal(args[2]),
      tags: tags.map((tag) => this.#ref(tag as Reference)),
    };
  }
}

function keyOf({ name, type }: Ref): string {
  return `${type ?? ''} ${name}`;
}

function literal(expression: Expression): number {
  return 'value' in expression ? Number(expression.value) : 0;
}

function toNode(
  expression: Expression,
  indexOf: (symbol: Reference | CallExpression) => number,
): Node {
  const node = (inner: Expression): Node => toNode(inner, indexOf);
  switch (expression.kind) {
    case 'reference':
      return { kind: 'symbol', index: indexOf(expression) };
    case 'parentheses':
      return node(expression.inner);
    case 'number':
      return { kind: 'constant', type: 'float', value: expression.value };
    case 'integer':
      return integerNode(expression.value);
    case 'duration':
    case 'time':
      return integerNode(expression.value);
    case 'string':
    case 'boolean':
      return { kind: 'constant', type: expression.kind, value: expression.value };
    case 'call':
      if (mathFunctions.has(expression.name)) {
        return { kind: 'math', name: expression.name, args: expression.args.map(node) };
      }
      return { kind: 'symbol', index: indexOf(expression) };
    case 'binary': {
      const { op, left, right } = expression;
      if (right.kind === 'pattern') {
        const { regexp } = right.pattern;
        return { kind: 'match', operand: node(left), regexp, negate: op === '!~' };
      }
      return { kind: 'binary', op, left: node(left), right: node(right) };
    }
    default:
      return { kind: 'constant', type: 'string', value: null };
  }
}

function integerNode(value: bigint): Node {
  const small = Number(value);
  const type = value >= 2n ** 63n ? 'unsigned' : 'integer';
  return { kind: 'constant', type, value: Number.isSafeInteger(small) ? small : value };
}

function rowFilter(condition: Expression | undefined, schema: SourceSchema): RowFilter | undefined {
  if (condition === undefined) return undefined;
  const refs: Ref[] = [];
  const places = new Map<string, number>();
  const node = toNode(condition, (symbol) => {
    // Calls of anything else were refused before.
    const { name, cast } = symbol as Reference;
    const type = cast === undefined || cast === 'field' ? schema.fieldType(name) : cast;
    const isCast = type !== schema.fieldType(name);
    const wanted = {
      name,
      type: type ?? (cast === 'field' ? undefined : ('tag' as const)),
      isCast,
    };
    const known = places.get(keyOf(wanted));
    if (known !== undefined) return known;
    places.set(keyOf(wanted), refs.length);
    return refs.push(wanted) - 1;
  });
  // A cast value says nothing of the one that is kept.
  const bounds = boundsOf(node, refs).filter(({ name, type }) => schema.fieldType(name) === type);
  return { refs, node, bounds };
}

const mirrored = { '<': '>', '<=': '>=', '>': '<', '>=': '<=', '=': '=' } as const;

type Bound = RowFilter['bounds'][number] & { readonly type: ValueType };

/** Comparisons of one field with a number that all rows must meet. */
function boundsOf(node: Node, refs: readonly Ref[]): Bound[] {
  if (node.kind !== 'binary') return [];
  const { op, left, right } = node;
  if (op === 'and') return [...boundsOf(left, refs), ...boundsOf(right, refs)];
  if (op !== '=' && op !== '<' && op !== '<=' && op !== '>' && op !== '>=') return [];
  if (left.kind === 'symbol') return bound(refs[left.index]!, op, right);
  return right.kind === 'symbol' ? bound(refs[right.index]!, mirrored[op], left) : [];
}

function bound({ name, type }: Ref, op: Bound['op'], constant: Node): Bound[] {
  if (type !== 'float' && type !== 'integer' && type !== 'unsigned') return [];
  if (constant.kind !== 'constant' || typeof constant.value !== 'number') return [];
  return [{ name, type, op, value: constant.value }];
}
