// /query: a text of one or more statements, run one after the other, and their answers in one reply.

import type { Clock } from '../../../universal-row/environment.ts';
import { ReadOnlyError, SeriesError } from '../../../contracts/series-store.ts';
import type { PodAdmission } from '../../../contracts/pod-admission.ts';
import type { Statement } from '../influxql/ast.ts';
import { ParseError, QueryError } from '../influxql/result.ts';
import { printStatement } from '../influxql/parser/print.ts';
import type { ServerFacts } from '../statements/context.ts';
import type { Caller } from '../tenants/caller.ts';
import { AnswerStream } from './answer-stream.ts';
import { type AnswerWriter, defaultChunkSize } from './answer-writer.ts';
import { csvField, CsvWriter } from './csv-writer.ts';
import type { Exchange } from './exchange.ts';
import type { GroupCommit } from './group-commit.ts';
import { ClientGone, headerText, HttpError, MemoryRefusal } from './http-error.ts';
import type { InfluxCounters } from './influx-metrics.ts';
import { JsonWriter } from './json-writer.ts';
import { refuseForeignPages } from './browser-guard.ts';
import { multipartFields } from './multipart.ts';
import { tooManyParameters } from './parameters.ts';
import { type GatewayStage, isQueryControl } from '../admission/gateway-stage.ts';
import type { PodStage } from '../admission/pod-stage.ts';
import type { PointWriter } from './point-writer.ts';
import { authorize } from './privileges.ts';
import { readQueryParams } from './query-parameters.ts';
import { ReplyStream } from './reply-stream.ts';
import type { BodyLimits } from './request-body.ts';
import {
  type Execute,
  type QueryLimits,
  type RunningQuery,
  StatementRunner,
} from './statement-runner.ts';
import { epochUnit, TimeWriter } from './time-text.ts';

interface QueryHandlerOptions {
  commit: GroupCommit;
  points: PointWriter;
  counters: InfluxCounters;
  clock: Clock;
  body: BodyLimits;
  /** Milliseconds for which a client may read nothing of an answer. */
  stallMs: number;
  /** The admission stages; absent where there are no limits, and where every request runs at once. */
  gateway: GatewayStage | undefined;
  pod?: PodStage | undefined;
  limits: QueryLimits;
  facts: ServerFacts;
  execute: Execute | undefined;
  /** Schedules the steps of long queries. */
  podAdmission?: PodAdmission | undefined;
  report: (level: 'info' | 'warn' | 'error', message: string, fields?: object) => void;
}

export class QueryHandler {
  readonly #options: QueryHandlerOptions;
  readonly #runner: StatementRunner;
  readonly #running = new Set<Running>();
  /** Queries that are not admitted yet. */
  readonly #waiting = new Set<Running>();
  readonly #parsed = new WeakMap<Exchange, readonly Statement[]>();
  /** Queries that wait until fewer are running. */
  readonly #queue: (() => void)[] = [];

  constructor(options: QueryHandlerOptions) {
    this.#options = options;
    this.#runner = new StatementRunner(options);
  }

  /** Memory of running queries. */
  get memoryBytes(): number {
    return this.#runner.memory.usedBytes;
  }

  cancelAll(): void {
    for (const { query } of this.#running) query.kill();
  }

  /** The server stops: queries that are not admitted yet fail. */
  endWaiting(): void {
    for (const { query } of this.#waiting) query.task.cancel('the server is stopping');
  }

  /** Privileges have changed: ends queries that may not run any more. */
  recheck(): void {
    for (const running of [...this.#running, ...this.#waiting]) {
      try {
        check(running);
      } catch {
        running.query.kill();
      }
    }
  }

  async handle(exchange: Exchange, caller: Caller): Promise<void> {
    try {
      await this.readForm(exchange);
      const statements = await this.#parse(exchange, caller);
      if (statements.some(hasEffects)) refuseForeignPages(exchange.request);
      const database = exchange.parameters.get('db');
      check({ caller, statements, database });
      await this.#answer(exchange, caller, statements);
    } catch (error) {
      this.fail(exchange, error);
    }
  }

  /** Answers in the form that was asked for, if there is no answer yet. */
  fail(exchange: Exchange, error: unknown): void {
    if (!(error instanceof HttpError) || exchange.response.headersSent) throw error;
    if (error instanceof MemoryRefusal) {
      // Grafana and others cannot take another status.
      const failed = { results: [{ statement_id: 0, error: error.message }] };
      exchange.json(200, failed, error.headers, isPretty(exchange));
      return;
    }
    if (wantsCsv(exchange)) failInCsv(exchange, error);
    else exchange.fail(error, isPretty(exchange));
  }

  /** Parameters may be in the body as well; there they go first. Reads it once. */
  async readForm(exchange: Exchange): Promise<void> {
    if (exchange.method !== 'POST' || exchange.hasReadForm) return;
    exchange.hasReadForm = true;
    const { parameters, request } = exchange;
    const type = request.headers['content-type'] ?? '';
    const isForm = type.startsWith('application/x-www-form-urlencoded');
    const isMultipart = type.startsWith('multipart/form-data');
    if (!isForm && !isMultipart) return;
    const body = await exchange.smallBody(this.#options.body, formBytes);
    exchange.form = body;
    if (isForm) await parameters.addForm(body);
    if (parameters.isOverfull) throw tooManyParameters();
    if (!isMultipart) return;
    for (const [name, value] of multipartFields(type, body)) parameters.set(name, value);
  }

  /** Whether a replica that is not the leader may answer the request: no statement but KILL QUERY has effects. */
  async onlyReads(exchange: Exchange, caller: Caller): Promise<boolean> {
    await this.readForm(exchange);
    const statements = await this.#parse(exchange, caller);
    return statements.every((one) => one.kind === 'killQuery' || !hasEffects(one));
  }

  /** Whether it only lists or ends queries. */
  async isControl(exchange: Exchange, caller: Caller): Promise<boolean> {
    await this.readForm(exchange);
    return isQueryControl(await this.#parse(exchange, caller));
  }

  async #parse(exchange: Exchange, caller: Caller): Promise<readonly Statement[]> {
    let statements = this.#parsed.get(exchange);
    if (statements === undefined) {
      statements = await this.#parseText(exchange, caller);
      this.#parsed.set(exchange, statements);
    }
    return statements;
  }

  async #parseText(exchange: Exchange, { space }: Caller): Promise<readonly Statement[]> {
    const { parameters } = exchange;
    const text = parameters.get('q');
    if (text === '') throw new HttpError(400, 'missing required parameter "q"');
    if (text.length > maxQueryLength) {
      throw new HttpError(400, `error parsing query: more than ${maxQueryLength} characters`);
    }
    const params = readQueryParams(parameters.get('params'));
    try {
      return await this.#runner.parse(text, params, space.number);
    } catch (error) {
      if (error instanceof ParseError) throw new HttpError(400, error.message);
      throw error;
    }
  }

  async #answer(
    exchange: Exchange,
    caller: Caller,
    statements: readonly Statement[],
  ): Promise<void> {
    const { gateway, counters, stallMs } = this.#options;
    const isLimited = gateway?.limitsQueries(caller.space.number) === true;
    // Without a limit a query is registered only when it runs.
    if (!isLimited) await this.#untilFewEnough();
    if (!exchange.isOpen) throw new ClientGone();
    const writer = writerFor(exchange);
    const reply = new ReplyStream(exchange, writer.contentType, stallMs);
    const stream = new AnswerStream(writer, reply);
    const running = this.#register(exchange, caller, statements);
    const { query } = running;
    const kill = () => query.kill();
    exchange.response.once('close', kill);
    try {
      const atPod = isLimited ? undefined : this.#admitAtPod(exchange, running);
      const isAdmitted = !isLimited && atPod === undefined;
      const refusal = isAdmitted ? undefined : await this.#untilAdmitted(exchange, running, atPod);
      if (refusal === undefined) await this.#run(exchange, running, writer, stream);
      else {
        counters.statementsFailed++;
        writer.beginStatement(0);
        // That the others were not executed would be told in place of why: see `notExecuted`.
        writer.failStatement(refusal.message, 0);
        await stream.end();
      }
    } finally {
      exchange.response.off('close', kill);
      query.end();
      counters.bytesOut += reply.bytes;
      counters.querySeconds.observe((performance.now() - exchange.startedAt) / 1000);
    }
  }

  #register(exchange: Exchange, caller: Caller, statements: readonly Statement[]): Running {
    const { parameters, work } = exchange;
    const database = parameters.get('db');
    exchange.shownText = shownText(parameters.get('q'), statements);
    const query = this.#runner.register(
      {
        text: exchange.shownText,
        database,
        retentionPolicy: parameters.get('rp'),
        isReadOnly: exchange.method !== 'POST',
        reads: exchange.reads,
        work,
        cost: () => exchange.metering?.costOf(exchange),
        processorMs: () => exchange.metering?.processorMsOf(exchange) ?? 0,
      },
      caller,
    );
    return { caller, statements, database, query };
  }

  /** Undefined when the pod admits the query at once. */
  #admitAtPod(exchange: Exchange, { statements, query }: Running): Promise<void> | undefined {
    if (isQueryControl(statements)) return undefined;
    return this.#options.pod?.admitQuery(exchange, exchange.parameters.get('db'), query.task);
  }

  /** Waits for both stages, or for `atPod` where the tenant has no limit. Resolves to the error of a refused query. */
  async #untilAdmitted(
    exchange: Exchange,
    running: Running,
    atPod: Promise<void> | undefined,
  ): Promise<QueryError | undefined> {
    const { gateway, limits } = this.#options;
    const { caller, query, statements } = running;
    const text = exchange.parameters.get('q');
    query.task.wait();
    this.#waiting.add(running);
    try {
      const { task } = query;
      const { timeoutMs } = limits;
      if (atPod === undefined) {
        const { number } = caller.space;
        await gateway!.admitQuery(exchange, number, { text, statements, task, timeoutMs });
      }
      await (atPod ?? this.#admitAtPod(exchange, running));
      await this.#untilFewEnough();
      if (!exchange.isOpen) throw new ClientGone();
      return undefined;
    } catch (error) {
      if (error instanceof QueryError) return error;
      throw error;
    } finally {
      this.#waiting.delete(running);
    }
  }

  async #run(
    exchange: Exchange,
    running: Running,
    writer: AnswerWriter,
    stream: AnswerStream,
  ): Promise<void> {
    const { counters } = this.#options;
    const { parameters, work } = exchange;
    work.statements = running.statements.length;
    work.textBytes = parameters.get('q').length;
    this.#running.add(running);
    counters.queriesRun++;
    counters.queriesRunning = this.#running.size;
    running.query.begin();
    try {
      await this.#runAll(exchange, running, writer, stream);
      await stream.end();
    } finally {
      this.#running.delete(running);
      counters.queriesRunning = this.#running.size;
      this.#queue.shift()?.();
    }
  }

  /** Waits while `maxConcurrent` queries run: clients take a refusal for a failure of the server. */
  async #untilFewEnough(): Promise<void> {
    const { maxConcurrent } = this.#options.limits;
    while (maxConcurrent > 0 && this.#running.size >= maxConcurrent) {
      await new Promise<void>((resolve) => this.#queue.push(resolve));
    }
  }

  async #runAll(
    exchange: Exchange,
    running: Running,
    writer: AnswerWriter,
    stream: AnswerStream,
  ): Promise<void> {
    const { query, statements } = running;
    const { commit, counters } = this.#options;
    if (statements.length === 0) {
      // Clients look at the first result without asking whether there is one.
      writer.beginStatement(0);
      writer.endStatement([]);
    }
    const slice = this.#runner.slice(running.caller.space.number);
    for (const [id, statement] of statements.entries()) {
      if (slice.isOver) await slice.yield();
      writer.beginStatement(id);
      try {
        // The statement may have waited, or earlier ones may have taken long.
        check({ ...running, statements: [statement] });
        const { series, messages } = query.run(statement);
        for await (const piece of series) {
          exchange.touch();
          await stream.write(piece);
        }
        if (changesData(statement)) await commit.safe();
        writer.endStatement(messages);
      } catch (error) {
        if (error instanceof ClientGone) throw error;
        counters.statementsFailed++;
        // Refused before anything was done for it, it costs nothing.
        const { rows, logBytes } = exchange.work;
        if (error instanceof ReadOnlyError && id === 0) exchange.isRefused = rows + logBytes === 0;
        writer.failStatement(this.#textOf(error), statements.length - 1 - id);
        return;
      }
    }
  }

  #textOf(error: unknown): string {
    if (error instanceof QueryError || error instanceof SeriesError) return error.message;
    if (error instanceof HttpError) return error.message;
    this.#options.report('error', 'a query failed', { error });
    return 'internal error';
  }
}

/** Properties of a query on which the right to run it depends. */
interface Asked {
  readonly caller: Caller;
  readonly statements: readonly Statement[];
  readonly database: string;
}

interface Running extends Asked {
  readonly query: RunningQuery;
}

/** Throws when it may not run, or not any more. */
function check({ caller, statements, database }: Asked): void {
  if (caller.ended) throw new HttpError(401, 'authorization failed');
  if (caller.principal !== undefined) authorize(caller.principal, statements, database);
}

/** The text of a query, without the passwords in it. */
function shownText(text: string, statements: readonly Statement[]): string {
  const hasSecret = statements.some(({ kind }) => kind === 'createUser' || kind === 'setPassword');
  return hasSecret ? statements.map(printStatement).join('; ') : text;
}

/** Characters of a query, its statements together. */
const maxQueryLength = 1024 * 1024;
/** A form holds a query, not data: three bytes for each character, and some overhead. */
const formBytes = 4 * 1024 * 1024;

function wantsCsv(exchange: Exchange): boolean {
  return /\b(application|text)\/csv\b/.test(exchange.request.headers.accept ?? '');
}

function isPretty(exchange: Exchange): boolean {
  return exchange.parameters.get('pretty') === 'true';
}

function writerFor(exchange: Exchange): AnswerWriter {
  const { parameters } = exchange;
  const unit = epochUnit(parameters.get('epoch'));
  if (wantsCsv(exchange)) return new CsvWriter(new TimeWriter(unit ?? 'ns'));
  const size = Number(parameters.get('chunk_size'));
  return new JsonWriter({
    times: new TimeWriter(unit),
    isPretty: isPretty(exchange),
    chunkSize:
      parameters.get('chunked') !== 'true'
        ? undefined
        : Number.isSafeInteger(size) && size > 0
          ? size
          : defaultChunkSize,
  });
}

function failInCsv(exchange: Exchange, { status, message, headers }: HttpError): void {
  exchange.reply(status, `error\n${csvField(message)}\n`, {
    ...headers,
    'Content-Type': 'text/csv',
    'X-Influxdb-Error': headerText(message),
  });
}

function hasEffects(statement: Statement): boolean {
  switch (statement.kind) {
    case 'show':
    case 'explain':
      return false;
    case 'select':
      return statement.into !== undefined;
    default:
      return true;
  }
}

function changesData(statement: Statement): boolean {
  switch (statement.kind) {
    case 'show':
    case 'explain':
    case 'killQuery':
    case 'unsupported':
    case 'createUser':
    case 'dropUser':
    case 'setPassword':
    case 'grant':
    case 'revoke':
      return false;
    case 'select':
      return statement.into !== undefined;
    default:
      return true;
  }
}
