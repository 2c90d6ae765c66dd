// Runs a request's statements: parses them, registers running queries, and builds the environment
// of each statement.

import type { Pause } from '../statements/answers.ts';
import type { Clock } from '../../../universal-row/environment.ts';
import type { SeriesWork } from '../../../request-units/series-pricer.ts';
import type { SeriesReads, WriteOutcome } from '../../../contracts/series-store.ts';
import { type PodAdmission, TimeSlice } from '../../../contracts/pod-admission.ts';
import type { Statement } from '../influxql/ast.ts';
import { parseStatements } from '../influxql/parser/parser.ts';
import { ParseError, type StatementResult } from '../influxql/result.ts';
import type { SelectContext, SelectLimits } from '../influxql/select/context.ts';
import { executeSelect } from '../influxql/select/execute-select.ts';
import { explainSelect } from '../influxql/select/explain.ts';
import type { ServerFacts, StatementContext } from '../statements/context.ts';
import { executeStatement } from '../statements/execute.ts';
import type { QueryTask } from '../statements/query-registry.ts';
import { RequestMemory } from '../../admission/request-memory.ts';
import type { Caller } from '../tenants/caller.ts';
import { limitText } from '../tenants/limits.ts';
import type { TenantSpace } from '../tenants/tenant-space.ts';
import { MeteredStore } from './metered-store.ts';
import type { PointWriter, WriteTarget } from './point-writer.ts';

export interface QueryLimits extends SelectLimits {
  /** Queries at once; more wait. 0 for any number. */
  readonly maxConcurrent: number;
}

export const noQueryLimits: QueryLimits = {
  maxConcurrent: 0,
  maxMemoryBytes: 0,
  timeoutMs: 0,
};

/** Runs a statement that was parsed: SELECT and EXPLAIN as everything else. */
export type Execute = (
  statement: Statement,
  context: Omit<StatementContext, 'select'>,
  select: SelectContext,
) => StatementResult;

interface StatementRunnerOptions {
  points: PointWriter;
  clock: Clock;
  limits: QueryLimits;
  facts: ServerFacts;
  execute?: Execute | undefined;
  /** Schedules the thread among queries at their pauses; absent where they simply alternate. */
  podAdmission?: PodAdmission | undefined;
}

interface QueryRequest {
  /** As SHOW QUERIES may tell it. */
  text: string;
  database: string;
  retentionPolicy: string;
  /** By GET. */
  isReadOnly: boolean;
  /** How late its reads may be. */
  reads?: SeriesReads | undefined;
  /** Counters of the work done. */
  work: SeriesWork;
  /** Cost of that work, where it is charged. */
  cost: () => Float64Array | undefined;
  /** Processor time that it stands for, in milliseconds. */
  processorMs: () => number;
}

/** The statements of one request, one after the other. */
export interface RunningQuery {
  /** Entry in the registry: it waits until `begin`. */
  readonly task: QueryTask;
  /** Its time begins. */
  begin(): void;
  run(statement: Statement): StatementResult;
  /** Makes the query fail at its next check of the clock. */
  kill(): void;
  end(): void;
}

const nanosPerMilli = 1_000_000n;
/** Most statements in one request. */
const maxStatements = 10_000;
/** Longest stretch of work between two pauses. */
const sliceMs = 3;

/**
 * All queries together may hold as much memory as this many of the largest. The queries of one tenant may hold half
 * of that: as much as one query alone.
 */
const queriesTogether = 2;

export class StatementRunner {
  /** Memory account of all running queries. */
  readonly memory: RequestMemory;
  readonly #options: StatementRunnerOptions;
  readonly #execute: Execute;

  constructor(options: StatementRunnerOptions) {
    this.#options = options;
    const { maxMemoryBytes } = options.limits;
    const maxBytes = maxMemoryBytes === 0 ? Infinity : queriesTogether * maxMemoryBytes;
    this.memory = new RequestMemory({ maxBytes });
    this.#execute = options.execute ?? runStatement;
  }

  /** Stops for others between statements. Throws `ParseError`. */
  async parse(
    text: string,
    params: Readonly<Record<string, unknown>>,
    tenant: number,
  ): Promise<readonly Statement[]> {
    const statements: Statement[] = [];
    const slice = this.slice(tenant);
    for (const statement of parseStatements(text, { now: this.#now(), params })) {
      if (statement !== undefined) {
        if (statements.length === maxStatements) {
          throw new ParseError(`error parsing query: more than ${maxStatements} statements`);
        }
        statements.push(statement);
      }
      if (slice.isOver) await slice.yield();
    }
    return statements;
  }

  /** For work on a request of the tenant other than a running SELECT. */
  slice(tenant: number): TimeSlice {
    return new TimeSlice(this.#options.podAdmission, tenant, sliceMs);
  }

  /** Registers it. */
  register(request: QueryRequest, { space, principal, users }: Caller): RunningQuery {
    const { limits, facts, points, podAdmission } = this.#options;
    const { queries } = space;
    const { work, cost, processorMs } = request;
    const store = new MeteredStore(space.store, work, request.reads);
    const { database, retentionPolicy, isReadOnly } = request;
    const task = queries.start(request.text, database, principal?.name);
    const memory = space.memory.open(this.memory.account(space.number));
    let timer: NodeJS.Timeout | undefined;
    let slice: TimeSlice | undefined;
    const now = this.#now();
    const select: SelectContext = {
      store,
      database,
      retentionPolicy,
      now,
      task,
      limits,
      memory,
      work,
      cost,
      processorMs,
      yieldNow: () => {
        if (podAdmission === undefined) return new Promise(setImmediate);
        slice ??= new TimeSlice(podAdmission, space.number);
        return slice.yield();
      },
      isCrowded: (at) => podAdmission?.isContended(at) === true,
      writePoints: (into, policy, lines) =>
        storeLines(
          points,
          {
            tenant: space.number,
            store,
            database: into,
            retentionPolicy: policy,
            precision: 'ns',
            work,
          },
          lines,
        ),
    };
    const context: Omit<StatementContext, 'select'> = {
      store,
      database,
      retentionPolicy,
      now,
      queries,
      readOnlyRequest: isReadOnly,
      server: space.factsOf(facts),
      principal,
      users,
      pause: pauseOf(this.slice(space.number), task),
    };
    return {
      task,
      begin: () => {
        task.begin();
        timer = timeLimit(space, task);
      },
      run: (statement) => {
        task.throwIfKilled();
        return this.#execute(statement, context, select);
      },
      kill: () => task.cancel(),
      end: () => {
        clearTimeout(timer);
        memory.close();
        task.end();
      },
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

function pauseOf(slice: TimeSlice, task: QueryTask): Pause {
  return {
    get isDue() {
      return slice.isOver;
    },
    pause: async () => {
      await slice.yield();
      task.throwIfKilled();
    },
  };
}

/** Ends the query when it takes longer than its tenant's may. */
function timeLimit({ name, limits }: TenantSpace, task: QueryTask): NodeJS.Timeout | undefined {
  const { queryTimeMs } = limits;
  if (queryTimeMs === 0) return undefined;
  // A timer cannot be longer; such a limit is none.
  const end = (): void => task.cancel(limitText(name, 'queryTimeMs', queryTimeMs));
  return setTimeout(end, Math.min(queryTimeMs, 2 ** 31 - 1));
}

/** For SELECT INTO. The query waits for the log once, at its end. */
async function storeLines(
  points: PointWriter,
  target: WriteTarget,
  lines: string,
): Promise<WriteOutcome> {
  const { written, dropped, error, parseErrors } = await points.store(target, [Buffer.from(lines)]);
  return { written, dropped, error: error ?? (parseErrors === '' ? undefined : parseErrors) };
}
