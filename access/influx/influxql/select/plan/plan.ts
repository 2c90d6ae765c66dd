// The plan of a SELECT: expressions over symbols, calls over fields, and the source of the rows.

import type { FieldType } from '../../../../../universal-row/series/field-type.ts';
import type { SeriesFilter, ValueBound } from '../../../../../contracts/series-store.ts';
import type { BinaryOperator, Fill, TextMatcher } from '../../ast.ts';
import type { Interval } from './compile.ts';

/** A column that rows of a source have. Types are undefined for fields that no source has. */
export interface Ref {
  readonly name: string;
  readonly type: FieldType | 'tag' | undefined;
  /** `::type` makes it another than it is. */
  readonly isCast: boolean;
}

export interface Call {
  readonly name: string;
  /** Two calls with the same text are one. */
  readonly text: string;
  readonly input: Ref | Call;
  readonly type: FieldType | undefined;
  /** A number, or for `distinct` inside `count` nothing: percentile, rows, window, unit in nanoseconds. */
  readonly parameter: number | undefined;
  /** Second parameter of holt_winters. */
  readonly season: number;
  /** top(v, tag, ..., n). */
  readonly tags: readonly Ref[];
}

export function isCall(input: Ref | Call): input is Call {
  return 'input' in input;
}

/** An expression over symbols: places in a row. */
export type Node =
  | { readonly kind: 'symbol'; readonly index: number }
  | {
      readonly kind: 'constant';
      readonly value: number | bigint | string | boolean | null;
      readonly type: FieldType;
    }
  | {
      readonly kind: 'match';
      readonly operand: Node;
      readonly regexp: TextMatcher;
      readonly negate: boolean;
    }
  | { readonly kind: 'math'; readonly name: string; readonly args: readonly Node[] }
  | {
      readonly kind: 'binary';
      readonly op: BinaryOperator;
      readonly left: Node;
      readonly right: Node;
    };

/** WHERE as rows are put to it. */
export interface RowFilter {
  readonly refs: readonly Ref[];
  readonly node: Node;
  /** Bounds implied for single fields, by name. */
  readonly bounds: readonly (Omit<ValueBound, 'field'> & { readonly name: string })[];
}

export interface MeasurementPlan {
  readonly kind: 'measurement';
  readonly database: string;
  readonly retentionPolicy: string;
  readonly name: string;
  readonly filter: SeriesFilter | undefined;
  readonly rows: RowFilter | undefined;
}

export interface SubqueryPlan {
  readonly kind: 'subquery';
  readonly plan: Plan;
  readonly rows: RowFilter | undefined;
}

export interface Plan {
  readonly sources: readonly (MeasurementPlan | SubqueryPlan)[];
  readonly timeName: string;
  /** Names of `outputs`. */
  readonly columns: readonly string[];
  /**
   * Names of the fields before duplicates are numbered; the enclosing statement refers to fields by
   * these.
   */
  readonly names: readonly string[];
  /** Outputs over symbols: first those of `calls`, then those of `refs`. */
  readonly outputs: readonly Node[];
  readonly outputTypes: readonly (FieldType | 'tag' | undefined)[];
  /** Of each output: whether it is an argument of top() or bottom(), which an enclosing wildcard does not see. */
  readonly isArgument: readonly boolean[];
  readonly calls: readonly Call[];
  /** Fields and tags that stand outside of calls. */
  readonly refs: readonly Ref[];
  /** In the order of their bytes, each once. */
  readonly dimensions: readonly string[];
  readonly from: bigint;
  readonly to: bigint;
  readonly interval: Interval;
  readonly fill: Fill;
  readonly descending: boolean;
  readonly limit: number;
  readonly offset: number;
  readonly seriesLimit: number;
  readonly seriesOffset: number;
  readonly timeZone: string | undefined;
}
