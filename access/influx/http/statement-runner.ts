// What stands between a request's statements and those who run them: the parser, the registry of running
// queries, and all that a statement has around it.

import type { Clock } from '../../../universal-row/environment.ts';
import type { SeriesStore, WriteOutcome } from '../../../universal-row/series/series-store.ts';
import type { Statement } from '../influxql/ast.ts';
import { parseQuery } from '../influxql/parser/parser.ts';
import type { StatementResult } from '../influxql/result.ts';
import type { SelectContext, SelectLimits } from '../influxql/select/context.ts';
import { executeSelect } from '../influxql/select/execute-select.ts';
import { explainSelect } from '../influxql/select/explain.ts';
import type { ServerFacts, StatementContext } from '../statements/context.ts';
import { executeStatement } from '../statements/execute.ts';
import { QueryRegistry, type QueryTask } from '../statements/query-registry.ts';
import type { PointWriter } from './point-writer.ts';

export interface QueryLimits extends SelectLimits {
  /** Queries at once; more wait. 0 for any number. */
  readonly maxConcurrent: number;
}

export const noQueryLimits: QueryLimits = {
  maxConcurrent: 0,
  maxSeries: 0,
  maxPoints: 0,
  maxBuckets: 0,
  maxMemoryBytes: 0,
  timeoutMs: 0,
};

/** Runs a statement that was parsed: SELECT and EXPLAIN as everything else. */
export type Execute = (
  statement: Statement,
  context: Omit<StatementContext, 'select'>,
  select: SelectContext,
) => StatementResult;

export interface StatementRunnerOptions {
  store: SeriesStore;
  points: PointWriter;
  clock: Clock;
  limits: QueryLimits;
  facts: ServerFacts;
  execute?: Execute | undefined;
}

export interface QueryRequest {
  text: string;
  database: string;
  retentionPolicy: string;
  /** By GET. */
  isReadOnly: boolean;
}

/** The statements of one request, one after the other. */
export interface RunningQuery {
  run(statement: Statement): StatementResult;
  /** It fails at its next look at the clock. */
  kill(): void;
  end(): void;
}

const nanosPerMilli = 1_000_000n;

export class StatementRunner {
  readonly #options: StatementRunnerOptions;
  readonly #execute: Execute;
  readonly #queries: QueryRegistry;

  constructor(options: StatementRunnerOptions) {
    this.#options = options;
    this.#execute = options.execute ?? runStatement;
    // Those beyond the limit wait before they are registered.
    this.#queries = new QueryRegistry({ clock: options.clock, maxConcurrent: 0 });
  }

  /** Throws `ParseError`. */
  parse(text: string, params: Readonly<Record<string, unknown>>): readonly Statement[] {
    return parseQuery(text, { now: this.#now(), params });
  }

  begin(request: QueryRequest): RunningQuery {
    const { store, limits, facts, points } = this.#options;
    const { database, retentionPolicy, isReadOnly } = request;
    const task: QueryTask = this.#queries.start(request.text, database);
    const now = this.#now();
    const select: SelectContext = {
      store,
      database,
      retentionPolicy,
      now,
      task,
      limits,
      yieldNow: () => new Promise(setImmediate),
      writePoints: (into, policy, lines) => storeLines(points, into, policy, lines),
    };
    const context: Omit<StatementContext, 'select'> = {
      store,
      database,
      retentionPolicy,
      now,
      queries: this.#queries,
      readOnlyRequest: isReadOnly,
      server: facts,
    };
    return {
      run: (statement) => {
        task.throwIfKilled();
        return this.#execute(statement, context, select);
      },
      kill: () => task.cancel(),
      end: () => task.end(),
    };
  }

  #now(): bigint {
    return BigInt(Math.floor(this.#options.clock.now())) * nanosPerMilli;
  }
}

export function runStatement(
  statement: Statement,
  context: Omit<StatementContext, 'select'>,
  select: SelectContext,
): StatementResult {
  return executeStatement(statement, {
    ...context,
    select: (query) =>
      query.kind === 'explain'
        ? explainSelect(query.select, query.analyze, select)
        : executeSelect(query, select),
  });
}

/** For SELECT INTO. The query waits for the log once, at its end. */
async function storeLines(
  points: PointWriter,
  database: string,
  retentionPolicy: string,
  lines: string,
): Promise<WriteOutcome> {
  const target = { database, retentionPolicy, precision: 'ns' };
  const { written, dropped, error, parseErrors } = await points.store(target, [Buffer.from(lines)]);
  return { written, dropped, error: error ?? (parseErrors === '' ? undefined : parseErrors) };
}
