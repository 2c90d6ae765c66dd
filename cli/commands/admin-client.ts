// Speaks to the admin API of a running server on behalf of a command.

import { ExitError } from '../lifecycle/exit-error.ts';

export class AdminClient {
  readonly #url: string;
  readonly #token: string;

  constructor(url: string, token: string) {
    this.#url = url.replace(/\/$/, '');
    this.#token = token;
  }

  /** The answer's JSON. Throws `ExitError` with the server's own words when it refuses. */
  async request(method: string, path: string, body?: object): Promise<unknown> {
    const headers: Record<string, string> = {};
    if (this.#token !== '') headers['authorization'] = `Bearer ${this.#token}`;
    if (body !== undefined) headers['content-type'] = 'application/json';
    let response: Response;
    let text: string;
    try {
      response = await fetch(this.#url + path, {
        method,
        headers,
        signal: AbortSignal.timeout(30_000),
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      text = await response.text();
    } catch (error) {
      const { cause, message } = error as Error;
      const reason = cause instanceof Error ? cause.message : message;
      throw new ExitError(`no answer from the server at ${this.#url}: ${reason}`);
    }
    const answer = parseAnswer(text);
    if (!response.ok) {
      const { error } = (answer ?? {}) as { error?: string };
      const hint = response.status === 401 ? ' (--admin.token or POLYROW_ADMIN_TOKEN)' : '';
      throw new ExitError((error ?? `the server at ${this.#url} says ${response.status}`) + hint);
    }
    if (answer === undefined) throw new ExitError(`${this.#url} is not a Polyrow admin API`);
    return answer;
  }
}

function parseAnswer(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
