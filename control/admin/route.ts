// How a page of the admin API is registered: what it is about, who may ask, what is sent and answered. The
// checks, the audit log and the OpenAPI document all come from this one description.

import type { FastifyInstance, FastifyReply, FastifyRequest, HTTPMethods } from 'fastify';
import { type Access, type AdminPrincipal, NotAllowed } from './principal.ts';
import type { Schema } from './schemas.ts';

export interface RouteDescription {
  method: HTTPMethods & ('GET' | 'POST' | 'PATCH' | 'DELETE');
  /** `:tenant` is a tenant's name in all of them. */
  url: string;
  access: Access;
  /** One line for people. */
  summary: string;
  /** What can be sent. */
  body?: Schema;
  /** What can stand behind the question mark. Texts of digits are taken for numbers. */
  query?: Schema;
  /** What is answered. */
  answer: Schema;
  /** Of an answer without an error; 200 when missing. */
  status?: 200 | 201 | 202;
  /** Names of values in the body that must not be seen in the audit log. */
  hidden?: (body: Readonly<Record<string, unknown>>) => readonly string[];
}

declare module 'fastify' {
  interface FastifyContextConfig {
    admin?: RouteDescription;
  }

  interface FastifyRequest {
    /** undefined where nobody need say who it is. */
    principal: AdminPrincipal | undefined;
    /** Why it was refused, for the audit log. */
    refusal: string | undefined;
  }
}

/** What a handler is given. */
export interface Call<Body = undefined, Query = Record<string, never>> {
  /** Parts of the path, by name. */
  path: Readonly<Record<string, string>>;
  body: Body;
  query: Query;
  request: FastifyRequest;
  reply: FastifyReply;
}

/** The answer's body. What it throws becomes an error of the API: see `statusOf`. */
export type Handler<Body, Query> = (call: Call<Body, Query>) => unknown;

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
      return await handle({
        path: request.params as Record<string, string>,
        body: request.body as Body,
        query: request.query as Query,
        request,
        reply,
      });
    },
  });
}

/** Who asks, on a page for which that is always known. */
export function callerOf(request: FastifyRequest): AdminPrincipal {
  if (request.principal === undefined) throw new NotAllowed('it is not known who asks');
  return request.principal;
}
