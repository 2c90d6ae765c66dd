// Statements and expressions back to text, in InfluxDB's wording. Parsed again they are the same.

import type {
  Cast,
  DeleteStatement,
  Dimension,
  Expression,
  Fill,
  MeasurementSource,
  Pattern,
  PrivilegeStatement,
  RetentionPolicyClauses,
  RetentionPolicyStatement,
  SelectStatement,
  ShowKind,
  ShowStatement,
  Source,
  Statement,
} from '../ast.ts';
import { formatDuration } from './durations.ts';
import { isKeyword } from './lexer.ts';
import { formatTime } from './time-literal.ts';

export function print(expression: Expression): string {
  switch (expression.kind) {
    case 'reference':
      return quoteName(expression.name) + castOf(expression.cast);
    case 'wildcard':
      return `*${castOf(expression.only)}`;
    case 'pattern':
      return printPattern(expression.pattern);
    case 'number':
      return printNumber(expression.value);
    case 'integer':
    case 'boolean':
      return String(expression.value);
    case 'string':
      return quoteString(expression.value);
    case 'duration':
      return formatDuration(expression.value);
    case 'time':
      return `'${formatTime(expression.value)}'`;
    case 'parameter':
      return `$${quoteName(expression.name)}`;
    case 'call':
      return `${expression.name}(${expression.args.map(print).join(', ')})`;
    case 'distinct':
      return `DISTINCT ${quoteName(expression.field)}`;
    case 'parentheses':
      return `(${print(expression.inner)})`;
    case 'binary': {
      const { left, right } = expression;
      return `${print(left)} ${expression.op.toUpperCase()} ${print(right)}`;
    }
  }
}

const castOf = (cast: Cast | undefined): string => (cast === undefined ? '' : `::${cast}`);

/** A name, in double quotes where it would not be one without. */
export function quoteName(name: string): string {
  if (/^[A-Za-z_][A-Za-z0-9_]*$/.test(name) && !isKeyword(name)) return name;
  return `"${escapeQuoted(name, '"')}"`;
}

function quoteString(text: string): string {
  return `'${escapeQuoted(text, "'")}'`;
}

function escapeQuoted(text: string, quote: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll(quote, `\\${quote}`).replaceAll('\n', '\\n');
}

function printPattern(pattern: Pattern): string {
  return `/${pattern.source.replaceAll('/', '\\/')}/`;
}

/** In plain digits: InfluxQL has no exponents. */
function printNumber(value: number): string {
  const text = String(value);
  if (!text.includes('e')) return text.includes('.') ? text : `${text}.0`;
  const [mantissa = '', exponent = '0'] = text.split('e');
  const negative = mantissa.startsWith('-');
  const [whole = '', fraction = ''] = mantissa.replace('-', '').split('.');
  const point = whole.length + Number(exponent);
  const digits = whole + fraction;
  const plain =
    point <= 0
      ? `0.${'0'.repeat(-point)}${digits}`
      : `${digits.padEnd(point, '0').slice(0, point)}.${digits.slice(point) || '0'}`;
  return negative ? `-${plain}` : plain;
}

export function printStatement(statement: Statement): string {
  switch (statement.kind) {
    case 'select':
      return printSelect(statement);
    case 'show':
      return printShow(statement);
    case 'createDatabase':
      return printCreateDatabase(statement);
    case 'dropDatabase':
      return `DROP DATABASE ${quoteName(statement.database)}`;
    case 'createRetentionPolicy':
    case 'alterRetentionPolicy':
      return printRetentionPolicy(statement);
    case 'dropRetentionPolicy':
      return `DROP RETENTION POLICY ${quoteName(statement.name)} ON ${quoteName(statement.database)}`;
    case 'dropMeasurement':
      return `DROP MEASUREMENT ${quoteName(statement.measurement)}`;
    case 'delete':
    case 'dropSeries':
      return printDelete(statement);
    case 'dropShard':
      return `DROP SHARD ${statement.id}`;
    case 'killQuery':
      return words('KILL QUERY', String(statement.id), named('ON', statement.host ?? ''));
    case 'createUser':
      return words(
        `CREATE USER ${quoteName(statement.name)} WITH PASSWORD ${String(statement.password)}`,
        statement.admin && 'WITH ALL PRIVILEGES',
      );
    case 'dropUser':
      return `DROP USER ${quoteName(statement.name)}`;
    case 'setPassword':
      return `SET PASSWORD FOR ${quoteName(statement.name)} = ${String(statement.password)}`;
    case 'grant':
    case 'revoke':
      return printPrivilege(statement);
    case 'explain':
      return words('EXPLAIN', statement.analyze && 'ANALYZE', printSelect(statement.select));
    case 'unsupported':
      return statement.text;
  }
}

/** Joined by blanks, without the parts there are none of. */
function words(...parts: readonly (string | false | undefined)[]): string {
  return parts.filter((part) => part !== undefined && part !== false && part !== '').join(' ');
}

const named = (word: string, name: string): string =>
  name === '' ? '' : `${word} ${quoteName(name)}`;

const counted = (word: string, count: number): string => (count === 0 ? '' : `${word} ${count}`);

function printSelect(select: SelectStatement): string {
  const fields = select.fields.map(({ expression, alias }) =>
    words(print(expression), alias !== undefined && `AS ${quoteName(alias)}`),
  );
  return words(
    `SELECT ${fields.join(', ')}`,
    select.into !== undefined && `INTO ${printMeasurement(select.into)}`,
    `FROM ${select.sources.map(printSource).join(', ')}`,
    where(select.where),
    groupBy(select.groupBy),
    fill(select.fill),
    select.descending && 'ORDER BY time DESC',
    ...limits(select),
    select.timeZone !== undefined && `TZ(${quoteString(select.timeZone)})`,
  );
}

const where = (condition: Expression | undefined): string =>
  condition === undefined ? '' : `WHERE ${print(condition)}`;

const groupBy = (dimensions: readonly Dimension[]): string =>
  dimensions.length === 0 ? '' : `GROUP BY ${dimensions.map(printDimension).join(', ')}`;

function limits(
  of: Pick<SelectStatement, 'limit' | 'offset' | 'seriesLimit' | 'seriesOffset'>,
): string[] {
  return [
    counted('LIMIT', of.limit),
    counted('OFFSET', of.offset),
    counted('SLIMIT', of.seriesLimit),
    counted('SOFFSET', of.seriesOffset),
  ];
}

function fill(of: Fill): string {
  if (of.kind === 'default') return '';
  return `fill(${of.kind === 'number' ? printNumber(of.value).replace(/\.0$/, '') : of.kind})`;
}

function printDimension(dimension: Dimension): string {
  switch (dimension.kind) {
    case 'tag':
      return quoteName(dimension.name);
    case 'wildcard':
      return '*';
    case 'pattern':
      return printPattern(dimension.pattern);
    case 'time': {
      const { interval, offset } = dimension;
      const shift = offset === 0n ? '' : `, ${formatDuration(offset)}`;
      return `time(${formatDuration(interval)}${shift})`;
    }
  }
}

function printSource(source: Source): string {
  return source.kind === 'subquery' ? `(${printSelect(source.select)})` : printMeasurement(source);
}

function printMeasurement(source: MeasurementSource): string {
  const { database, retentionPolicy: policy } = source;
  let text = database === '' ? '' : `${quoteName(database)}.`;
  if (policy !== '') text += `${quoteName(policy)}.`;
  else if (database !== '') text += '.';
  if (source.isBackReference) return `${text}:MEASUREMENT`;
  return text + (source.pattern ? printPattern(source.pattern) : quoteName(source.name ?? ''));
}

const showWords: Readonly<Record<ShowKind, string>> = {
  databases: 'DATABASES',
  measurements: 'MEASUREMENTS',
  tagKeys: 'TAG KEYS',
  tagValues: 'TAG VALUES',
  fieldKeys: 'FIELD KEYS',
  series: 'SERIES',
  retentionPolicies: 'RETENTION POLICIES',
  users: 'USERS',
  grants: 'GRANTS',
  queries: 'QUERIES',
  continuousQueries: 'CONTINUOUS QUERIES',
  subscriptions: 'SUBSCRIPTIONS',
  shards: 'SHARDS',
  shardGroups: 'SHARD GROUPS',
  stats: 'STATS',
  diagnostics: 'DIAGNOSTICS',
  seriesCardinality: 'SERIES CARDINALITY',
  measurementCardinality: 'MEASUREMENT CARDINALITY',
  tagKeyCardinality: 'TAG KEY CARDINALITY',
  tagValuesCardinality: 'TAG VALUES CARDINALITY',
  fieldKeyCardinality: 'FIELD KEY CARDINALITY',
};

function printShow(show: ShowStatement): string {
  const what = showWords[show.what];
  return words(
    'SHOW',
    show.exact ? what.replace('CARDINALITY', 'EXACT CARDINALITY') : what,
    named('ON', show.database),
    show.module !== '' && `FOR ${quoteString(show.module)}`,
    show.what === 'grants' && `FOR ${quoteName(show.user)}`,
    show.withMeasurement !== undefined && withMeasurement(show.withMeasurement),
    show.sources.length > 0 && `FROM ${show.sources.map(printSource).join(', ')}`,
    withKey(show.withKey),
    where(show.where),
    groupBy(show.groupBy),
    show.descending && 'ORDER BY time DESC',
    ...limits(show),
  );
}

function withMeasurement(source: MeasurementSource): string {
  return `WITH MEASUREMENT ${source.pattern ? '=~' : '='} ${printMeasurement(source)}`;
}

function withKey(key: ShowStatement['withKey']): string {
  if (key === undefined) return '';
  if ('pattern' in key) return `WITH KEY ${key.op} ${printPattern(key.pattern)}`;
  const names = key.names.map(quoteName);
  return key.op === 'in' ? `WITH KEY IN (${names.join(', ')})` : `WITH KEY ${key.op} ${names[0]}`;
}

function clauses(of: RetentionPolicyClauses): string[] {
  return [
    of.duration === undefined ? '' : `DURATION ${formatDuration(of.duration)}`,
    of.replication === undefined ? '' : `REPLICATION ${of.replication}`,
    of.shardDuration === undefined ? '' : `SHARD DURATION ${formatDuration(of.shardDuration)}`,
  ];
}

function printCreateDatabase(statement: Extract<Statement, { kind: 'createDatabase' }>): string {
  const { policy } = statement;
  return words(
    `CREATE DATABASE ${quoteName(statement.database)}`,
    ...(policy === undefined ? [] : ['WITH', ...clauses(policy), named('NAME', policy.name)]),
  );
}

function printRetentionPolicy(statement: RetentionPolicyStatement): string {
  return words(
    statement.kind === 'createRetentionPolicy' ? 'CREATE' : 'ALTER',
    `RETENTION POLICY ${quoteName(statement.name)} ON ${quoteName(statement.database)}`,
    ...clauses(statement),
    statement.makeDefault && 'DEFAULT',
  );
}

const privilegeWords = { read: 'READ', write: 'WRITE', all: 'ALL PRIVILEGES' } as const;

function printPrivilege({ kind, privilege, database, user }: PrivilegeStatement): string {
  return words(
    `${kind.toUpperCase()} ${privilegeWords[privilege]}`,
    database !== undefined && `ON ${quoteName(database)}`,
    `${kind === 'grant' ? 'TO' : 'FROM'} ${quoteName(user)}`,
  );
}

function printDelete(statement: DeleteStatement): string {
  return words(
    statement.kind === 'delete' ? 'DELETE' : 'DROP SERIES',
    statement.sources.length > 0 && `FROM ${statement.sources.map(printSource).join(', ')}`,
    where(statement.where),
  );
}
