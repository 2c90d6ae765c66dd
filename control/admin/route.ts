// Registration of a page of the admin API: its topic, permissions, request and response. The checks, the audit log and
// the OpenAPI document all come from this one description.

import type { FastifyInstance, FastifyReply, FastifyRequest, HTTPMethods } from 'fastify';
import { longList } from './long-lists.ts';
import { type Access, type AdminPrincipal, NotAllowed } from './principal.ts';
import type { Schema } from './schemas.ts';

export interface RouteDescription {
  method: HTTPMethods & ('GET' | 'POST' | 'PATCH' | 'DELETE');
  /** Path of the page. In every path, `:tenant` is the name of a tenant. */
  url: string;
  access: Access;
  /** A summary for people, in one line. */
  summary: string;
  /** Schema of the request body. */
  body?: Schema;
  /** Schema of the query parameters. Texts of digits are converted to numbers. */
  query?: Schema;
  /** Schema of the response body. */
  answer: Schema;
  /** Status of a successful response; 200 by default. */
  status?: 200 | 201 | 202;
  /** Names of values in the body that must not be seen in the audit log. */
  hidden?: (body: Readonly<Record<string, unknown>>) => readonly string[];
}

declare module 'fastify' {
  interface FastifyContextConfig {
    admin?: RouteDescription;
  }

  interface FastifyRequest {
    /** undefined where no token is needed. */
    principal: AdminPrincipal | undefined;
    /** Why it was refused, for the audit log. */
    refusal: string | undefined;
  }
}

/** Arguments of a handler. */
interface Call<Body = undefined, Query = Record<string, never>> {
  /** Parts of the path, by name. */
  path: Readonly<Record<string, string>>;
  body: Body;
  query: Query;
  request: FastifyRequest;
  reply: FastifyReply;
}

/** Returns the response body. Exceptions become API errors: see `statusOf`. */
type Handler<Body, Query> = (call: Call<Body, Query>) => unknown;

export function addRoute<Body = undefined, Query = Record<string, never>>(
  app: FastifyInstance,
  description: RouteDescription,
  handle: Handler<Body, Query>,
): void {
  const { method, url, body, query, status = 200 } = description;
  app.route({
    method,
    url,
    config: { admin: description },
    schema: {
      ...(body === undefined ? {} : { body }),
      querystring: query ?? { type: 'object', additionalProperties: false, properties: {} },
    },
    handler: async (request, reply) => {
      reply.code(status);
      const answer = await handle({
        path: request.params as Record<string, string>,
        body: request.body as Body,
        query: request.query as Query,
        request,
        reply,
      });
      const pieces = longList(answer);
      if (pieces === undefined) return answer;
      reply.type('application/json; charset=utf-8');
      return pieces;
    },
  });
}

/** The caller, on a page that always needs a token. */
export function callerOf(request: FastifyRequest): AdminPrincipal {
  if (request.principal === undefined) throw new NotAllowed('it is not known who asks');
  return request.principal;
}
