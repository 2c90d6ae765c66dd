// One request and its answer, with the headers that InfluxDB puts on every answer.

import { randomUUID } from 'node:crypto';
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { SeriesWork } from '../../../request-units/series-pricer.ts';
import type { StepInfo, StepSource, StepWatcher } from '../../../contracts/step-watcher.ts';
import type { SeriesReads } from '../../../contracts/series-store.ts';
import type { BatchIdentity } from '../../../universal-row/series/batch-identity.ts';
import type { Caller } from '../tenants/caller.ts';
import { type RequestMemory, unauthenticatedTenant } from '../../admission/request-memory.ts';
import { ExchangeMemory } from './exchange-memory.ts';
import { asHttpError, ClientGone, headerText, HttpError, v2Code } from './http-error.ts';
import { costHeader, type InfluxMetering, workHeader } from './metering.ts';
import { Parameters } from './parameters.ts';
import { sessionHeader } from './request-reads.ts';
import {
  type Body,
  type BodyLimits,
  bodyOf,
  discardBody,
  readBody,
  readRawBody,
  readSmallBody,
} from './request-body.ts';

interface ExchangeOptions {
  /** X-Influxdb-Version and X-Influxdb-Build. */
  version: string;
  build: string;
  /** 100 Continue is waited for. */
  expectsContinue: boolean;
  /** Hears of steps that take long; absent where none does. */
  steps?: StepWatcher | undefined;
  /** Account for the memory of requests. */
  memory?: RequestMemory | undefined;
  /** The connection is to close after this answer. */
  isDraining(): boolean;
  /** Address of the client, where a node forwarded the request. */
  clientAddress?: string | undefined;
  /** See `Exchange`; NaN for nothing. */
  receivedAt?: number | undefined;
  identity?: BatchIdentity | undefined;
  onBug(error: unknown, exchange: Exchange): void;
}

/** A request admitted by an admission stage. */
export interface AdmittedRequest {
  /** To be called once, when the exchange is over and has cost so many request units. */
  charge(units: number): void;
}

// Size of the lines around a request's path and before an answer, approximate.
const headBytes = 16;
const answerHeadBytes = 300;

// Most bytes of an unwanted body that are read before the connection is closed.
const discardedBytes = 256 * 1024 * 1024;
const discardingMs = 5_000;

export class Exchange implements StepSource {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly method: string;
  readonly path: string;
  readonly parameters: Parameters;
  readonly startedAt = performance.now();
  readonly requestId: string;
  /** The route, as counters call it. */
  route = 'other';
  /** Failures take the form of the v2 API. */
  isV2 = false;
  /** The body as it came, kept to be read or sent again. */
  held: Buffer | undefined;
  /** When a node of the cluster received it, Unix milliseconds: points without a time are of then. Absent: of now. */
  receivedAt: number | undefined;
  /** Of a body of points, for the identities of its batches; undefined where it is stored in one attempt. */
  identity: BatchIdentity | undefined;
  /** The store was given points of it. */
  isGiven = false;
  /** Caller of the request; undefined until it is known, or where it does not matter. */
  caller: Caller | undefined;
  /** How late its reads may be; undefined: as the database says. */
  reads: SeriesReads | undefined;
  /** The token of its session as of now, for the answer; absent where it is in none. */
  sessionToken: (() => string) | undefined;
  /** Text of the request for display; without secrets. */
  shownText: string;
  /** Address of the client. */
  readonly clientAddress: string;
  /** Work done for the request. */
  readonly work = new SeriesWork();
  /** Memory the exchange holds of the plane's memory. */
  readonly memory: ExchangeMemory;
  /** Absent while nothing is charged. */
  metering: InfluxMetering | undefined;
  /** The request is queued for admission, or was refused: it costs nothing. */
  isRefused = false;
  /** Milliseconds for which it was queued for admission. */
  waitedMs = 0;
  /** At the gateway's admission stage, where its tenant has a limit. */
  gatewayRequest: AdmittedRequest | undefined;
  /** At the pod's admission stage. */
  podRequest: AdmittedRequest | undefined;
  /** The form was read, and its fields are among the parameters. */
  hasReadForm = false;
  /** The form as it was read; undefined when the body is no form. */
  form: Buffer | undefined;
  #expectsContinue: boolean;
  readonly #options: ExchangeOptions;

  constructor(request: IncomingMessage, response: ServerResponse, options: ExchangeOptions) {
    this.request = request;
    this.response = response;
    this.method = request.method ?? 'GET';
    const url = request.url ?? '/';
    const mark = url.indexOf('?');
    this.path = mark < 0 ? url : url.slice(0, mark);
    this.parameters = new Parameters(mark < 0 ? '' : url.slice(mark + 1));
    const { remoteAddress = '', remotePort = 0 } = request.socket;
    this.clientAddress = options.clientAddress ?? `${remoteAddress}:${remotePort}`;
    this.shownText = `${this.method} ${this.path} ${this.parameters.get('db')}`.trimEnd();
    this.requestId = givenId(request) ?? randomUUID();
    this.work.received = url.length + headBytes;
    for (const text of request.rawHeaders) this.work.received += text.length + 2;
    this.memory = new ExchangeMemory(options.memory);
    this.#expectsContinue = options.expectsContinue;
    const { receivedAt = NaN } = options;
    this.receivedAt = Number.isFinite(receivedAt) ? receivedAt : undefined;
    this.identity = options.identity;
    this.#options = options;
  }

  /** Address of the client without its port. */
  get clientHost(): string {
    return this.clientAddress.slice(0, Math.max(0, this.clientAddress.lastIndexOf(':')));
  }

  /** The client is still there to be answered. */
  get isOpen(): boolean {
    return !this.response.destroyed && !this.response.writableEnded;
  }

  /** From the header; Infinity where it is not known. */
  get bodyLength(): number {
    const length = this.request.headers['content-length'];
    return length === undefined ? Infinity : Number(length);
  }

  get acceptsGzip(): boolean {
    const accepted = this.request.headers['accept-encoding'];
    return (
      typeof accepted === 'string' &&
      /(^|[,\s])gzip($|[,;\s])(?!\s*q=0(\.0*)?($|,))/i.test(accepted)
    );
  }

  /** The plane's thread continues with this request. */
  touch(): void {
    this.#options.steps?.touched(this);
  }

  stepInfo(): StepInfo {
    const tenant = this.caller?.space.number ?? unauthenticatedTenant;
    return { what: this.shownText, tenant, bytes: this.work.received };
  }

  /** Throws `HttpError`, and `ClientGone` if the client leaves. */
  body(limits: BodyLimits): Promise<Body> {
    if (this.held !== undefined) return bodyOf(this.held, this.request, this.#counted(limits));
    this.#continue();
    return readBody(this.request, this.#counted(limits));
  }

  /** As `body`, for one that is no longer than `maxBytes`. */
  smallBody(limits: BodyLimits, maxBytes: number): Promise<Buffer> {
    this.#continue();
    return readSmallBody(this.request, this.#counted(limits), maxBytes);
  }

  /** Keeps the body, so that `body` can be asked for again. */
  async hold(limits: BodyLimits): Promise<void> {
    this.#continue();
    this.held = await readRawBody(this.request, this.#counted(limits));
  }

  /** Reverts the admission: the request has to be made again. */
  giveUpAdmission(): void {
    this.gatewayRequest?.charge(0);
    this.podRequest?.charge(0);
    this.gatewayRequest = undefined;
    this.podRequest = undefined;
  }

  /** The body, for forwarding it as a stream. */
  expectBody(): IncomingMessage {
    this.#continue();
    return this.request;
  }

  #counted(limits: BodyLimits): BodyLimits {
    return {
      ...limits,
      memory: this.memory,
      isV2: this.isV2,
      onBytes: (bytes) => {
        this.work.received += bytes;
        this.touch();
        limits.onBytes(bytes);
      },
    };
  }

  #continue(): void {
    if (!this.#expectsContinue) return;
    this.#expectsContinue = false;
    this.response.writeContinue();
  }

  /** Starts the answer. */
  begin(status: number, headers: OutgoingHttpHeaders): void {
    const { version, build } = this.#options;
    if (this.#options.isDraining()) headers['Connection'] = 'close';
    const isWhole = headers['Content-Length'] !== undefined || status === 204;
    const later: string[] = [];
    if (this.metering !== undefined && this.caller !== undefined) {
      if (!this.#tellCost(this.metering, status, headers)) later.push(costHeader);
    }
    if (this.sessionToken !== undefined) {
      headers[sessionHeader] = this.sessionToken();
      if (!isWhole) later.push(sessionHeader);
    }
    if (later.length > 0) headers['Trailer'] = later.join(', ');
    this.response.writeHead(status, {
      ...headers,
      'Request-Id': this.requestId,
      'X-Influxdb-Build': build,
      'X-Influxdb-Version': version,
      'X-Request-Id': this.requestId,
    });
  }

  /**
   * The cost is sent with the headers when the answer's length is known; else it follows the
   * answer, and this is false.
   */
  #tellCost(metering: InfluxMetering, status: number, headers: OutgoingHttpHeaders): boolean {
    const { response, work } = this;
    const length = headers['Content-Length'];
    response.statusCode = status;
    work.sent += answerHeadBytes;
    if (length === undefined && status !== 204) return false;
    work.sent += Number(length ?? 0);
    Object.assign(headers, this.#costs(metering));
    return true;
  }

  /** Headers with the cost; and with its parts, if the client sent the header for them. */
  #costs(metering: InfluxMetering): Record<string, string> {
    const costs: Record<string, string> = { [costHeader]: metering.textOf(this) };
    if (this.request.headers[workHeader.toLowerCase()] !== undefined) {
      costs[workHeader] = JSON.stringify(this.work);
    }
    return costs;
  }

  /** The end of an answer of unknown length, of which so many bytes were sent. */
  tellAfter(bytes: number): void {
    const { metering, sessionToken } = this;
    const trailers: Record<string, string> = {};
    // Only this token covers reads that were made after the headers were sent.
    if (sessionToken !== undefined) trailers[sessionHeader] = sessionToken();
    if (metering !== undefined) {
      this.work.sent += bytes;
      Object.assign(trailers, this.#costs(metering));
    }
    this.response.addTrailers(trailers);
  }

  /** The whole answer at once. */
  reply(status: number, text = '', headers: OutgoingHttpHeaders = {}): void {
    if (!this.isOpen) return;
    if (status === 204) {
      this.begin(status, { 'Content-Type': 'application/json', ...headers });
      this.response.end();
      return;
    }
    const bytes = Buffer.from(text);
    this.begin(status, { ...headers, 'Content-Length': bytes.length });
    if (this.method === 'HEAD') this.response.end();
    else if (this.request.complete) this.response.end(bytes);
    else void this.#endAfterBody(bytes, headers['Connection'] === 'close');
  }

  /**
   * Passes on the answer of another node as a stream. Resolves when the client has it, or is gone.
   */
  async pass(answer: IncomingMessage, rawHeaders: string[]): Promise<void> {
    const { response } = this;
    if (!this.isOpen) return;
    const headers = this.#options.isDraining()
      ? [...rawHeaders, 'Connection', 'close']
      : rawHeaders;
    response.writeHead(answer.statusCode ?? 502, answer.statusMessage, headers);
    const ended = new Promise<void>((resolve) => {
      response.once('close', () => resolve());
      response.once('finish', () => resolve());
    });
    // An answer that breaks off there breaks off here.
    answer.once('error', () => response.destroy());
    answer.once('end', () => {
      const trailers: [string, string][] = [];
      const raw = answer.rawTrailers;
      for (let i = 0; i + 1 < raw.length; i += 2) trailers.push([raw[i]!, raw[i + 1]!]);
      if (trailers.length > 0) response.addTrailers(trailers);
      response.end();
    });
    answer.pipe(response, { end: false });
    await ended;
    if (this.request.complete || this.#expectsContinue) return;
    await discardBody(this.request, discardedBytes, discardingMs);
    if (!this.request.complete) this.request.destroy();
  }

  json(status: number, value: unknown, headers: OutgoingHttpHeaders = {}, isPretty = false): void {
    const text = `${escapeHtml(JSON.stringify(value, undefined, isPretty ? 4 : undefined))}\n`;
    this.reply(status, text, { 'Content-Type': 'application/json', ...headers });
  }

  /** Answers with the failure, if the client is still there. */
  fail(error: unknown, isPretty = false): void {
    if (error instanceof ClientGone || !this.isOpen) return;
    if (this.response.headersSent) {
      // All that is left to say is that the answer is not complete.
      this.response.destroy();
      if (asHttpError(error) === undefined) this.#options.onBug(error, this);
      return;
    }
    const failure = asHttpError(error);
    if (failure === undefined) {
      if (this.request.destroyed && !this.request.complete) return;
      this.#options.onBug(error, this);
    }
    this.#failWith(failure ?? new HttpError(500, 'internal error'), isPretty);
  }

  #failWith(failure: HttpError, isPretty: boolean): void {
    const { status, message } = failure;
    const headers: OutgoingHttpHeaders = {
      ...failure.headers,
      'X-Influxdb-Error': headerText(message),
    };
    // A client that did not wait for 100 Continue could be sending the body, or not, so it must begin anew.
    if (status === 413 || status === 408 || this.#expectsContinue) headers['Connection'] = 'close';
    if (!this.isV2) {
      this.json(status, { error: message }, headers, isPretty);
      return;
    }
    const code = failure.code ?? v2Code(status);
    headers['X-Platform-Error-Code'] = code;
    this.json(status, { code, message, ...failure.details }, headers);
  }

  /**
   * Discards the rest of the body. A connection that is closed with unread bytes is reset, and the client may lose the
   * answer; a connection that stays open must be read up to the next request.
   */
  async #endAfterBody(bytes: Buffer, closes: boolean): Promise<void> {
    if (closes) this.response.write(bytes);
    else this.response.end(bytes);
    // Nothing comes from a client that still waits for 100 Continue.
    if (!this.#expectsContinue) await discardBody(this.request, discardedBytes, discardingMs);
    if (closes) this.response.end();
    else if (!this.request.complete) this.request.destroy();
  }
}

function givenId(request: IncomingMessage): string | undefined {
  const given = request.headers['x-request-id'] ?? request.headers['request-id'];
  return typeof given === 'string' && given !== '' ? given : undefined;
}

/** As Go's encoder does. */
function escapeHtml(json: string): string {
  return json.replace(
    /[<>&\u2028\u2029]/g,
    (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
