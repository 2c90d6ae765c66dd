// /v1/tables: what the `polyrow table` commands speak to.

import type { FastifyInstance, FastifyReply } from 'fastify';
import { type TableCatalog, type TableChange, TableError } from '../metadata/table-catalog.ts';
import { type TableDefinition, tableModels } from '../metadata/table-definition.ts';

export interface TableDescription extends TableDefinition {
  /** Rows in it; missing when no data plane can say. */
  rows?: number;
  /** Made or altered by a person, rather than following the defaults. */
  explicit: boolean;
  /** Model it takes on at the next start, if it is empty then. */
  wantedModel?: string;
}

const properties = {
  name: { type: 'string' },
  model: { type: 'string', enum: [...tableModels] },
  readOnly: { type: 'boolean' },
  ttlDefaultMs: { type: 'integer', minimum: 0 },
  maxRowBytes: { type: 'integer', minimum: 0 },
} as const;

const alterSchema = { type: 'object', additionalProperties: false, properties } as const;
const createSchema = {
  type: 'object',
  additionalProperties: false,
  required: ['table'],
  properties: { table: { type: ['integer', 'string'] }, ...properties },
} as const;

const statusOf = { missing: 404, conflict: 409, invalid: 400 } as const;

type TablePath = { Params: { table: string } };

export function tableRoutes(app: FastifyInstance, catalog: TableCatalog): void {
  const describe = (definition: TableDefinition) => describeTable(catalog, definition);

  app.get('/v1/tables', async () => ({
    tables: await Promise.all(catalog.definitions().map(describe)),
  }));

  app.get<TablePath>('/v1/tables/:table', async (request, reply) =>
    answering(reply, async () => describe(catalog.find(request.params.table))),
  );

  app.post<{ Body: TableChange & { table: number | string } }>(
    '/v1/tables',
    { schema: { body: createSchema } },
    async (request, reply) => {
      const { table, ...change } = request.body;
      return answering(reply, async () => {
        const made = await describe(await catalog.create(String(table), change));
        reply.code(201);
        return made;
      });
    },
  );

  app.patch<TablePath & { Body: TableChange }>(
    '/v1/tables/:table',
    { schema: { body: alterSchema } },
    async (request, reply) =>
      answering(reply, async () =>
        describe(await catalog.alter(request.params.table, request.body)),
      ),
  );

  app.delete<TablePath>('/v1/tables/:table', async (request, reply) =>
    answering(reply, async () => describe(await catalog.reset(request.params.table))),
  );
}

export async function describeTable(
  catalog: TableCatalog,
  definition: TableDefinition,
): Promise<TableDescription> {
  const rows = await catalog.rowCount(definition.id);
  const wantedModel = catalog.wantedModel(definition.id);
  return {
    ...definition,
    explicit: catalog.isExplicit(definition.id),
    ...(rows === undefined ? {} : { rows }),
    ...(wantedModel === undefined ? {} : { wantedModel }),
  };
}

async function answering<T>(
  reply: FastifyReply,
  answer: () => Promise<T>,
): Promise<T | { error: string }> {
  try {
    return await answer();
  } catch (error) {
    if (!(error instanceof TableError)) throw error;
    reply.code(statusOf[error.reason]);
    return { error: error.message };
  }
}
