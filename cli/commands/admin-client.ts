// Speaks to the admin API of a running server on behalf of a command.

import { request as httpRequest, type RequestOptions } from 'node:http';
import { ExitError } from '../../server/lifecycle/exit-error.ts';
import { type ExitCode, exitCodes } from '../../server/exit-codes.ts';

const timeoutMs = 30_000;
const longestAnswerBytes = 64 * 1024 * 1024;

/** How to know a server that speaks HTTPS, and to be known by it. All in PEM. */
export interface ClientTls {
  authorities?: string;
  certificate?: string;
  key?: string;
  /** The very certificate of the server, which then need not be for the name it is reached by. */
  serverCertificate?: string;
}

interface AdminClientOptions {
  url: string;
  token: string;
  tls?: ClientTls;
}

type Parameters = Readonly<Record<string, string | number | boolean | undefined>>;

export class AdminClient {
  readonly #url: string;
  readonly #token: string;
  readonly #tls: ClientTls;

  constructor({ url, token, tls = {} }: AdminClientOptions) {
    this.#url = url.replace(/\/$/, '');
    this.#token = token;
    this.#tls = tls;
  }

  get url(): string {
    return this.#url;
  }

  async get<T>(path: string, parameters: Parameters = {}): Promise<T> {
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(parameters)) {
      if (value !== undefined) query.set(name, String(value));
    }
    return (await this.request(
      'GET',
      query.size === 0 ? path : `${path}?${query.toString()}`,
    )) as T;
  }

  /** The answer's JSON, {} when there is none. Throws `ExitError` with the server's own words when it refuses. */
  async request(method: string, path: string, body?: object): Promise<unknown> {
    const headers: Record<string, string | number> = {};
    const text = body === undefined ? '' : JSON.stringify(body);
    if (this.#token !== '') headers['authorization'] = `Bearer ${this.#token}`;
    if (body !== undefined) {
      headers['content-type'] = 'application/json';
      headers['content-length'] = Buffer.byteLength(text);
    }
    let response: Answer;
    try {
      response = await this.#send({ method, headers, timeout: timeoutMs }, path, text);
    } catch (error) {
      throw this.#noAnswer(error);
    }
    const answer = response.text === '' ? {} : parseAnswer(response.text);
    if (response.status >= 300) throw this.#refusal(response.status, answer);
    if (answer === undefined) {
      throw new ExitError(`${this.#url} is not a Polyrow admin API`, exitCodes.unreachable);
    }
    return answer;
  }

  /** Why the server is not fit for traffic; [] when it is. Throws `ExitError` when it does not answer. */
  async reasonsNotReady(): Promise<string[]> {
    const { text } = await this.#send({ method: 'GET', timeout: timeoutMs }, '/readyz', '').catch(
      (error: unknown) => {
        throw this.#noAnswer(error);
      },
    );
    return ((parseAnswer(text) ?? {}) as { reasons?: string[] }).reasons ?? [];
  }

  #noAnswer(error: unknown): ExitError {
    return new ExitError(
      `no answer from the server at ${this.#url}: ${reasonOf(error)}`,
      exitCodes.unreachable,
    );
  }

  async #send(options: RequestOptions, path: string, body: string): Promise<Answer> {
    const url = new URL(this.#url + path);
    if (url.protocol !== 'https:') return await exchange(httpRequest(url, options), body);
    // Loaded only where it is spoken.
    const { request } = await import('node:https');
    return await exchange(request(url, { ...options, ...tlsOptions(this.#tls) }), body);
  }

  #refusal(status: number, answer: unknown): ExitError {
    const { error } = (answer ?? {}) as { error?: string };
    const hint = status === 401 ? ' (--token, --token-file or POLYROW_ADMIN_TOKEN)' : '';
    const message = error ?? `the server at ${this.#url} says ${status}`;
    return new ExitError(message + hint, exitCodeOf(status));
  }
}

interface Answer {
  status: number;
  text: string;
}

function exchange(request: ReturnType<typeof httpRequest>, body: string): Promise<Answer> {
  return new Promise((resolve, reject) => {
    request.on('error', reject);
    request.on('timeout', () => request.destroy(new Error('it takes too long')));
    request.on('response', (response) => {
      const chunks: Buffer[] = [];
      let length = 0;
      response.on('data', (chunk: Buffer) => {
        chunks.push(chunk);
        length += chunk.length;
        if (length > longestAnswerBytes) request.destroy(new Error('it answers without end'));
      });
      response.on('error', reject);
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, text: Buffer.concat(chunks).toString() }),
      );
    });
    request.end(body);
  });
}

function tlsOptions({ authorities, certificate, key, serverCertificate }: ClientTls): object {
  return {
    ...(authorities === undefined ? {} : { ca: authorities }),
    ...(certificate === undefined ? {} : { cert: certificate, key }),
    ...(serverCertificate === undefined
      ? {}
      : {
          // The certificate itself is trusted, regardless of its issuer and names.
          ca: serverCertificate,
          allowPartialTrustChain: true,
          checkServerIdentity: () => undefined,
        }),
  };
}

function exitCodeOf(status: number): ExitCode {
  switch (status) {
    case 400:
    case 422:
      return exitCodes.usage;
    case 401:
    case 403:
      return exitCodes.notAllowed;
    case 404:
      return exitCodes.missing;
    case 409:
    case 412:
      return exitCodes.conflict;
    default:
      return exitCodes.failed;
  }
}

function reasonOf(error: unknown): string {
  const { code, message, errors } = error as NodeJS.ErrnoException & { errors?: Error[] };
  if (code === 'DEPTH_ZERO_SELF_SIGNED_CERT' || code === 'UNABLE_TO_VERIFY_LEAF_SIGNATURE') {
    return `its certificate is not signed by a known authority (${code}); name its authority by --ca-file`;
  }
  // One error for each address of a name.
  return message || (errors?.[0]?.message ?? String(code));
}

function parseAnswer(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
