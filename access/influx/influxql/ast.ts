// InfluxQL as a tree. Durations and times are nanoseconds as `bigint`.

import type { Privilege } from '../../../contracts/tenancy/definitions.ts';
import type { Secret } from './secret.ts';

export type Statement =
  | SelectStatement
  | ShowStatement
  | CreateDatabaseStatement
  | { readonly kind: 'dropDatabase'; readonly database: string }
  | RetentionPolicyStatement
  | { readonly kind: 'dropRetentionPolicy'; readonly name: string; readonly database: string }
  | { readonly kind: 'dropMeasurement'; readonly measurement: string }
  | DeleteStatement
  | CreateUserStatement
  | { readonly kind: 'dropUser'; readonly name: string }
  | { readonly kind: 'setPassword'; readonly name: string; readonly password: Secret }
  | PrivilegeStatement
  | { readonly kind: 'dropShard'; readonly id: number }
  | { readonly kind: 'killQuery'; readonly id: number; readonly host: string | undefined }
  | { readonly kind: 'explain'; readonly analyze: boolean; readonly select: SelectStatement }
  /** Well-formed, but it cannot be run; `error` is the answer. Such as a GROUP BY that makes no sense. */
  | { readonly kind: 'unsupported'; readonly text: string; readonly error: string };

export interface SelectStatement {
  readonly kind: 'select';
  readonly fields: readonly SelectField[];
  /** SELECT ... INTO. */
  readonly into: MeasurementSource | undefined;
  readonly sources: readonly Source[];
  readonly where: Expression | undefined;
  readonly groupBy: readonly Dimension[];
  readonly fill: Fill;
  readonly descending: boolean;
  /** 0: no limit. */
  readonly limit: number;
  readonly offset: number;
  readonly seriesLimit: number;
  readonly seriesOffset: number;
  /** IANA name of tz('...'). */
  readonly timeZone: string | undefined;
}

export interface SelectField {
  readonly expression: Expression;
  readonly alias: string | undefined;
}

export type Source = MeasurementSource | SubquerySource;

export interface MeasurementSource {
  readonly kind: 'measurement';
  /** '' where not named. */
  readonly database: string;
  readonly retentionPolicy: string;
  /** One of the two is set; INTO may have neither (`:MEASUREMENT`, then `isBackReference`). */
  readonly name: string | undefined;
  readonly pattern: Pattern | undefined;
  readonly isBackReference: boolean;
}

export interface SubquerySource {
  readonly kind: 'subquery';
  readonly select: SelectStatement;
}

export type Dimension =
  | { readonly kind: 'tag'; readonly name: string }
  | { readonly kind: 'time'; readonly interval: bigint; readonly offset: bigint }
  | { readonly kind: 'pattern'; readonly pattern: Pattern }
  | { readonly kind: 'wildcard' };

export type Fill =
  | { readonly kind: 'null' | 'none' | 'previous' | 'linear' | 'default' }
  | { readonly kind: 'number'; readonly value: number };

/** Whether texts match a regular expression, unanchored. */
export interface TextMatcher {
  test(text: string): boolean;
}

/** A regular expression in RE2's syntax. */
export interface Pattern {
  readonly source: string;
  readonly regexp: TextMatcher;
}

export type BinaryOperator =
  | '+'
  | '-'
  | '*'
  | '/'
  | '%'
  | '&'
  | '|'
  | '^'
  | '='
  | '!='
  | '<'
  | '<='
  | '>'
  | '>='
  | '=~'
  | '!~'
  | 'and'
  | 'or';

/** v::integer and the like; `tag` and `field` (any) say where to look instead. */
export type Cast = 'float' | 'integer' | 'unsigned' | 'string' | 'boolean' | 'tag' | 'field';

export type Expression =
  | { readonly kind: 'reference'; readonly name: string; readonly cast: Cast | undefined }
  | { readonly kind: 'wildcard'; readonly only: 'tag' | 'field' | undefined }
  | { readonly kind: 'pattern'; readonly pattern: Pattern }
  /** With a point or an exponent. */
  | { readonly kind: 'number'; readonly value: number }
  | { readonly kind: 'integer'; readonly value: bigint }
  | { readonly kind: 'string'; readonly value: string }
  | { readonly kind: 'boolean'; readonly value: boolean }
  | { readonly kind: 'duration'; readonly value: bigint }
  /** An absolute time, as now() in place of which the parser puts the request's time. */
  | { readonly kind: 'time'; readonly value: bigint }
  /** $name, when no `params` had it. */
  | { readonly kind: 'parameter'; readonly name: string }
  | { readonly kind: 'call'; readonly name: string; readonly args: readonly Expression[] }
  | { readonly kind: 'distinct'; readonly field: string }
  | { readonly kind: 'parentheses'; readonly inner: Expression }
  | {
      readonly kind: 'binary';
      readonly op: BinaryOperator;
      readonly left: Expression;
      readonly right: Expression;
    };

export type ShowKind =
  | 'databases'
  | 'measurements'
  | 'tagKeys'
  | 'tagValues'
  | 'fieldKeys'
  | 'series'
  | 'retentionPolicies'
  | 'users'
  | 'grants'
  | 'queries'
  | 'continuousQueries'
  | 'subscriptions'
  | 'shards'
  | 'shardGroups'
  | 'stats'
  | 'diagnostics'
  | 'seriesCardinality'
  | 'measurementCardinality'
  | 'tagKeyCardinality'
  | 'tagValuesCardinality'
  | 'fieldKeyCardinality';

export interface ShowStatement {
  readonly kind: 'show';
  readonly what: ShowKind;
  /** ON database; '' where not named. */
  readonly database: string;
  readonly sources: readonly Source[];
  readonly where: Expression | undefined;
  /** SHOW TAG VALUES WITH KEY = | != | =~ | !~ | IN. */
  readonly withKey:
    | { readonly op: '=' | '!=' | 'in'; readonly names: readonly string[] }
    | { readonly op: '=~' | '!~'; readonly pattern: Pattern }
    | undefined;
  /** SHOW MEASUREMENTS WITH MEASUREMENT. */
  readonly withMeasurement: MeasurementSource | undefined;
  readonly groupBy: readonly Dimension[];
  readonly exact: boolean;
  readonly descending: boolean;
  readonly limit: number;
  readonly offset: number;
  readonly seriesLimit: number;
  readonly seriesOffset: number;
  /** SHOW STATS FOR 'x'. */
  readonly module: string;
  /** SHOW GRANTS FOR x. */
  readonly user: string;
}

export interface RetentionPolicyClauses {
  readonly duration: bigint | undefined;
  readonly replication: number | undefined;
  readonly shardDuration: bigint | undefined;
}

export interface CreateDatabaseStatement {
  readonly kind: 'createDatabase';
  readonly database: string;
  /** WITH DURATION ... REPLICATION ... SHARD DURATION ... NAME. */
  readonly policy: (RetentionPolicyClauses & { readonly name: string }) | undefined;
}

export interface RetentionPolicyStatement extends RetentionPolicyClauses {
  readonly kind: 'createRetentionPolicy' | 'alterRetentionPolicy';
  readonly name: string;
  readonly database: string;
  readonly makeDefault: boolean;
}

export interface CreateUserStatement {
  readonly kind: 'createUser';
  readonly name: string;
  readonly password: Secret;
  /** WITH ALL PRIVILEGES. */
  readonly admin: boolean;
}

export interface PrivilegeStatement {
  readonly kind: 'grant' | 'revoke';
  readonly privilege: Privilege;
  /** undefined: on everything, as an administrator; the privilege is then `all`. */
  readonly database: string | undefined;
  readonly user: string;
}

/** DELETE and DROP SERIES. */
export interface DeleteStatement {
  readonly kind: 'delete' | 'dropSeries';
  readonly sources: readonly Source[];
  readonly where: Expression | undefined;
}
