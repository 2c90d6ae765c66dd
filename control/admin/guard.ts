// Authenticates, authorizes and rate-limits requests.

import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Authenticator } from './authenticator.ts';
import { type Access, refusal } from './principal.ts';
import { RateLimit } from './rate-limit.ts';

interface GuardOptions {
  authenticator: Authenticator;
  /** The API is reachable from this machine only. */
  isLocal: boolean;
  /** Requests a second of each caller; 0 is no limit. */
  requestsPerSecond: () => number;
}

interface Refusal {
  code: 401 | 403 | 429;
  error: string;
  afterSeconds?: number;
}

// Unused requests accumulate for this long.
const burstSeconds = 4;
const strangersPerSecond = 5;

export function guard(app: FastifyInstance, options: GuardOptions): void {
  const requests = new Guard(options);
  app.decorateRequest('principal', undefined);
  app.decorateRequest('refusal', undefined);
  app.addHook('onRequest', async (request, reply) => {
    const refused = requests.refusalOf(request);
    if (refused === undefined) return;
    request.refusal = refused.error;
    await refuse(reply, refused);
  });
}

async function refuse(
  reply: FastifyReply,
  { code, error, afterSeconds = 1 }: Refusal,
): Promise<void> {
  if (code === 401) reply.header('www-authenticate', 'Bearer');
  if (code === 429) reply.header('retry-after', String(Math.max(1, Math.ceil(afterSeconds))));
  await reply.code(code).send({ error });
}

class Guard {
  readonly #options: GuardOptions;
  readonly #callers: RateLimit;
  readonly #strangers: RateLimit;

  constructor(options: GuardOptions) {
    this.#options = options;
    const { requestsPerSecond } = options;
    this.#callers = new RateLimit(requestsPerSecond, burstSeconds);
    const ofStrangers = (): number => Math.min(strangersPerSecond, requestsPerSecond());
    this.#strangers = new RateLimit(ofStrangers, burstSeconds);
  }

  refusalOf(request: FastifyRequest): Refusal | undefined {
    const { authenticator, isLocal } = this.#options;
    // Unknown paths need a token as well, so that they reveal nothing.
    const access: Access = request.routeOptions.config.admin?.access ?? 'read';
    if (access === 'open') return undefined;
    const { authorization } = request.headers;
    const principal = authenticator.principal(authorization);
    if (principal === undefined) {
      if (access === 'local' && isLocal && authorization === undefined) return fromOutside(request);
      return this.#strange(request, authorization === undefined);
    }
    request.principal = principal;
    const afterSeconds = this.#callers.take(principal.name);
    if (afterSeconds > 0) return { code: 429, error: 'too many requests', afterSeconds };
    if (authenticator.isSuspended(principal)) {
      return { code: 403, error: `tenant ${principal.tenant} is suspended` };
    }
    const { tenant } = request.params as { tenant?: string };
    const error = refusal(principal, access, tenant);
    return error === undefined ? undefined : { code: 403, error };
  }

  #strange(request: FastifyRequest, isMissing: boolean): Refusal {
    const afterSeconds = this.#strangers.take(request.ip);
    if (afterSeconds > 0) return { code: 429, error: 'too many requests', afterSeconds };
    const what = isMissing ? 'a token is needed' : 'this token is not known';
    return { code: 401, error: `${what}: send Authorization: Bearer <token>` };
  }
}

/**
 * A web page can make a browser on this machine ask, under a name of its own that points here; that shows in
 * the host it believes to speak to.
 */
function fromOutside({ hostname }: FastifyRequest): Refusal | undefined {
  const isOurName = /^(localhost|127(\.\d+){3}|::1|\[::1\])$/.test(hostname);
  if (isOurName) return undefined;
  return { code: 403, error: `not served as ${hostname}: use 127.0.0.1 or localhost` };
}
