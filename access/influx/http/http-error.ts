// Failures of requests as clients of the v1 and of the v2 API expect them.

import {
  isFinal,
  ReadOnlyError,
  SeriesError,
  TooLargeError,
  UnavailableError,
} from '../../../contracts/series-store.ts';

interface HttpErrorDetails {
  headers?: Readonly<Record<string, string>>;
  code?: string;
  details?: Readonly<Record<string, unknown>>;
}

/** The text is InfluxDB's own where it has one: clients match on it. */
export class HttpError extends Error {
  override readonly name = 'HttpError';
  readonly status: number;
  /** Headers that go with it. */
  readonly headers: Readonly<Record<string, string>>;
  /** Error code of the v2 API, if it is not the usual code of the status, and further fields of the error. */
  readonly code: string | undefined;
  readonly details: Readonly<Record<string, unknown>>;

  constructor(status: number, message: string, more: HttpErrorDetails = {}) {
    super(message);
    this.status = status;
    this.headers = more.headers ?? {};
    this.code = more.code;
    this.details = more.details ?? {};
  }
}

/** There is no memory for the request. The words make clients send it again. */
export class MemoryRefusal extends HttpError {
  constructor(isV2: boolean) {
    const text = 'the server has no memory for this request at the moment';
    super(isV2 ? 503 : 500, isV2 ? text : `timeout: ${text}`, { headers: { 'Retry-After': '1' } });
  }
}

/** Header of a 503 answer: the node that forwarded the request may retry it. */
export const againHeader = 'x-polyrow-again';

/** The client has disconnected or has stopped reading: no answer is sent. */
export class ClientGone extends Error {
  override readonly name = 'ClientGone';
}

const v2Codes: Readonly<Record<number, string>> = {
  400: 'invalid',
  401: 'unauthorized',
  403: 'forbidden',
  404: 'not found',
  405: 'method not allowed',
  408: 'request timeout',
  413: 'request too large',
  415: 'invalid',
  422: 'unprocessable entity',
  429: 'too many requests',
  500: 'internal error',
  501: 'not implemented',
  503: 'unavailable',
};

export function v2Code(status: number): string {
  return v2Codes[status] ?? 'internal error';
}

/** HTTP error for a thrown error; undefined for a bug. */
export function asHttpError(error: unknown): HttpError | undefined {
  if (error instanceof HttpError) return error;
  if (error instanceof ReadOnlyError) return new HttpError(403, error.message);
  if (error instanceof TooLargeError) return new HttpError(413, error.message);
  if (error instanceof UnavailableError) {
    const again = isFinal(error) ? {} : { [againHeader]: '1' };
    const headers = { 'Retry-After': '1', ...again };
    return new HttpError(503, error.message, { headers });
  }
  if (error instanceof SeriesError) return new HttpError(500, error.message);
  return undefined;
}

/** A text that may stand in a header: UTF-8 by its bytes, control characters as spaces, not too long. */
export function headerText(text: string): string {
  const bytes = Buffer.from(text.slice(0, maxHeaderText));
  for (let i = 0; i < bytes.length; i++) {
    if (bytes[i]! < 0x20 || bytes[i] === 0x7f) bytes[i] = 0x20;
  }
  return bytes.toString('latin1').trim();
}

// Node's own clients refuse headers of more than 16 kB.
const maxHeaderText = 2048;
