// Whether the fields of a SELECT are well formed and go together.

import type { Expression, Fill } from '../../ast.ts';
import { print } from '../../parser/print.ts';
import { QueryError } from '../../result.ts';
import { mathFunctions } from './math-functions.ts';

interface FieldSurroundings {
  readonly fill: Fill;
  readonly limit: number;
  readonly hasTarget: boolean;
  readonly hasInterval: boolean;
  /** The GROUP BY time is inherited from the enclosing statement. */
  readonly isInheritedInterval: boolean;
}

const selectors: ReadonlySet<string> = new Set(['max', 'min', 'first', 'last']);
const aggregates: ReadonlySet<string> = new Set([
  'count',
  'sum',
  'mean',
  'median',
  'mode',
  'stddev',
  'spread',
]);

type Call = Extract<Expression, { kind: 'call' }>;

export class FieldChecker {
  calls = 0;
  readonly #around: FieldSurroundings;
  #fields = 0;
  #onlySelectors = true;
  #hasDistinct = false;
  #hasReferences = false;
  #topBottom = '';
  /** In the current field. */
  #wildcardAllowed = true;

  constructor(around: FieldSurroundings) {
    this.#around = around;
  }

  add(expression: Expression): void {
    this.#fields++;
    this.#wildcardAllowed = true;
    this.#check(expression);
  }

  finish(): void {
    if (this.#fields === 0) throw new QueryError('at least 1 non-time field must be queried');
    const { fill, hasInterval, isInheritedInterval } = this.#around;
    if (this.calls > 1 && this.#topBottom !== '') throw this.#notAlone();
    if (this.calls === 0) {
      if (fill.kind === 'none') throw new QueryError('fill(none) must be used with a function');
      if (fill.kind === 'linear') throw new QueryError('fill(linear) must be used with a function');
      if (hasInterval && !isInheritedInterval) {
        throw new QueryError('GROUP BY requires at least one aggregate function');
      }
    }
    if (this.#hasDistinct && (this.calls !== 1 || this.#hasReferences)) {
      throw new QueryError(
        'aggregate function distinct() cannot be combined with other functions or fields',
      );
    }
    if (!this.#hasReferences) return;
    if (!this.#onlySelectors) {
      throw new QueryError('mixing aggregate and non-aggregate queries is not supported');
    }
    if (this.calls > 1) {
      throw new QueryError(
        'mixing multiple selector functions with tags or fields is not supported',
      );
    }
  }

  #check(expression: Expression): void {
    switch (expression.kind) {
      case 'reference':
        this.#hasReferences = true;
        return;
      case 'wildcard':
        this.#hasReferences = true;
        if (this.#wildcardAllowed) return;
        throw new QueryError('unable to use wildcard in a binary expression');
      case 'pattern':
        if (!this.#wildcardAllowed) {
          throw new QueryError('unable to use regex in a binary expression');
        }
        this.#hasReferences = true;
        return;
      case 'call':
        return this.#call(expression);
      case 'binary':
        return this.#binary(expression);
      case 'parentheses':
        return this.#check(expression.inner);
      default:
        throw new QueryError('field must contain at least one variable');
    }
  }

  #binary({ left, right }: Extract<Expression, { kind: 'binary' }>): void {
    this.#wildcardAllowed = false;
    if (isLiteral(left) && isLiteral(right)) {
      throw new QueryError('cannot perform a binary expression on two literals');
    }
    if (!isLiteral(left)) this.#check(left);
    if (!isLiteral(right)) this.#check(right);
  }

  #call(call: Call): void {
    const expected = mathFunctions.get(call.name);
    if (expected !== undefined) {
      expectArguments(call, expected);
      for (const arg of call.args) if (!isLiteral(arg)) this.#check(arg);
      return;
    }
    this.calls++;
    switch (call.name) {
      case 'percentile':
        return this.#percentile(call);
      case 'sample':
        return this.#sample(call);
      case 'distinct':
        return this.#distinct(call, false);
      case 'top':
      case 'bottom':
        return this.#top(call);
      case 'derivative':
      case 'non_negative_derivative':
      case 'elapsed':
        expectBetween(call, 1, 2);
        expectDuration(call, `second argument to ${call.name} must be a duration, got `);
        return this.#transformation(call);
      case 'difference':
      case 'non_negative_difference':
      case 'cumulative_sum':
        expectArguments(call, 1);
        return this.#transformation(call);
      case 'moving_average':
        expectArguments(call, 2);
        checkWindow(call.args[1]!);
        return this.#transformation(call);
      case 'integral':
        expectBetween(call, 1, 2);
        if (call.args.length === 2 && call.args[1]!.kind !== 'duration') {
          throw new QueryError('second argument must be a duration');
        }
        expectDuration(call, '');
        this.#onlySelectors = false;
        return this.#symbol(call);
      case 'holt_winters':
      case 'holt_winters_with_fit':
        return this.#holtWinters(call);
      default:
        return this.#plain(call);
    }
  }

  #plain(call: Call): void {
    if (aggregates.has(call.name)) this.#onlySelectors = false;
    else if (!selectors.has(call.name)) throw new QueryError(`undefined function ${call.name}()`);
    expectArguments(call, 1);
    const inner = call.args[0]!;
    if (call.name === 'count' && inner.kind === 'call' && inner.name === 'distinct') {
      return this.#distinct(inner, true);
    }
    this.#symbol(call);
  }

  /** The first argument is a field, or several by a pattern. */
  #symbol(call: Call): void {
    const { kind } = call.args[0]!;
    if (kind === 'reference') return;
    if (kind !== 'wildcard' && kind !== 'pattern') {
      throw new QueryError(`expected field argument in ${call.name}()`);
    }
    if (!this.#wildcardAllowed) {
      const what = kind === 'wildcard' ? 'wildcard' : 'regex field';
      throw new QueryError(`unsupported expression with ${what}: ${call.name}()`);
    }
    this.#onlySelectors = false;
  }

  #percentile(call: Call): void {
    expectArguments(call, 2);
    const { kind } = call.args[1]!;
    if (kind !== 'integer' && kind !== 'number') {
      throw new QueryError('expected float argument in percentile()');
    }
    this.#symbol(call);
  }

  #sample(call: Call): void {
    expectArguments(call, 2);
    const size = call.args[1]!;
    if (size.kind !== 'integer') throw new QueryError('expected integer argument in sample()');
    if (size.value <= 0n) {
      throw new QueryError(`sample window must be greater than 1, got ${size.value}`);
    }
    this.#symbol(call);
  }

  #distinct(call: Call, isNested: boolean): void {
    const { args } = call;
    if (args.length === 0) {
      throw new QueryError('distinct function requires at least one argument');
    }
    if (args.length !== 1) throw new QueryError('distinct function can only have one argument');
    if (args[0]!.kind !== 'reference') {
      throw new QueryError('expected field argument in distinct()');
    }
    if (!isNested) this.#hasDistinct = true;
    this.#onlySelectors = false;
  }

  #top(call: Call): void {
    const { name, args } = call;
    if (this.#topBottom !== '') throw this.#notAlone();
    if (args.length < 2) {
      throw new QueryError(
        `invalid number of arguments for ${name}, expected at least 2, got ${args.length}`,
      );
    }
    const last = args[args.length - 1]!;
    if (last.kind !== 'integer') {
      throw new QueryError(`expected integer as last argument in ${name}(), found ${print(last)}`);
    }
    const limit = last.value;
    if (limit <= 0n) {
      throw new QueryError(`limit (${limit}) in ${name} function must be at least 1`);
    }
    const most = this.#around.limit;
    if (most > 0 && limit > BigInt(most)) {
      throw new QueryError(
        `limit (${limit}) in ${name} function can not be larger than the LIMIT (${most}) in the select statement`,
      );
    }
    if (args[0]!.kind !== 'reference') {
      const found = print(args[0]!);
      throw new QueryError(`expected first argument to be a field in ${name}(), found ${found}`);
    }
    for (const arg of args.slice(1, -1)) {
      if (arg.kind !== 'reference') {
        throw new QueryError(`only fields or tags are allowed in ${name}(), found ${print(arg)}`);
      }
      if (!this.#around.hasTarget) this.#hasReferences = true;
    }
    this.#topBottom = name;
  }

  #transformation(call: Call): void {
    const { name } = call;
    this.#onlySelectors = false;
    const inner = call.args[0]!;
    const { hasInterval, isInheritedInterval } = this.#around;
    if (inner.kind === 'call') {
      if (!hasInterval) throw new QueryError(`${name} aggregate requires a GROUP BY interval`);
      return this.#nested(inner);
    }
    if (hasInterval && !isInheritedInterval) {
      throw new QueryError(`aggregate function required inside the call to ${name}`);
    }
    this.#symbol(call);
  }

  #nested(call: Call): void {
    if (call.name === 'distinct') this.#distinct(call, true);
    else this.#check(call);
  }

  #holtWinters(call: Call): void {
    const { name, args } = call;
    expectArguments(call, 3);
    const [inner, n, season] = args;
    if (n!.kind !== 'integer') {
      throw new QueryError(`expected integer argument as second arg in ${name}`);
    }
    if (n.value <= 0n) {
      throw new QueryError(`second arg to ${name} must be greater than 0, got ${n.value}`);
    }
    if (season!.kind !== 'integer') {
      throw new QueryError(`expected integer argument as third arg in ${name}`);
    }
    if (season.value < 0n) {
      throw new QueryError(`third arg to ${name} cannot be negative, got ${season.value}`);
    }
    this.#onlySelectors = false;
    if (inner!.kind !== 'call') {
      throw new QueryError(`must use aggregate function with ${name}`);
    }
    if (!this.#around.hasInterval) {
      throw new QueryError(`${name} aggregate requires a GROUP BY interval`);
    }
    this.#nested(inner);
  }

  #notAlone(): QueryError {
    return new QueryError(
      `selector function ${this.#topBottom}() cannot be combined with other functions`,
    );
  }
}

const literalNames: { readonly [kind in Expression['kind']]?: string } = {
  boolean: 'BooleanLiteral',
  duration: 'DurationLiteral',
  integer: 'IntegerLiteral',
  number: 'NumberLiteral',
  parameter: 'BoundParameter',
  pattern: 'RegexLiteral',
  string: 'StringLiteral',
  time: 'TimeLiteral',
};

function isLiteral({ kind }: Expression): boolean {
  return literalNames[kind] !== undefined;
}

/** InfluxDB's name for the kind of an argument. */
function typeName({ kind }: Expression): string {
  const others: { readonly [kind in Expression['kind']]?: string } = {
    binary: 'BinaryExpr',
    call: 'Call',
    distinct: 'Distinct',
    parentheses: 'ParenExpr',
    reference: 'VarRef',
    wildcard: 'Wildcard',
  };
  return `*influxql.${literalNames[kind] ?? others[kind]}`;
}

function expectArguments({ name, args }: Call, expected: number): void {
  if (args.length !== expected) {
    throw new QueryError(
      `invalid number of arguments for ${name}, expected ${expected}, got ${args.length}`,
    );
  }
}

function expectBetween({ name, args }: Call, least: number, most: number): void {
  if (args.length < least || args.length > most) {
    throw new QueryError(
      `invalid number of arguments for ${name}, expected at least ${least} but no more than ${most}, got ${args.length}`,
    );
  }
}

function expectDuration({ args }: Call, otherwise: string): void {
  const unit = args[1];
  if (unit === undefined) return;
  if (unit.kind !== 'duration') throw new QueryError(`${otherwise}${typeName(unit)}`);
  if (unit.value <= 0n) {
    throw new QueryError(`duration argument must be positive, got ${print(unit)}`);
  }
}

function checkWindow(window: Expression): void {
  if (window.kind !== 'integer') {
    throw new QueryError(
      `second argument for moving_average must be an integer, got ${typeName(window)}`,
    );
  }
  if (window.value <= 1n) {
    throw new QueryError(`moving_average window must be greater than 1, got ${window.value}`);
  }
}
