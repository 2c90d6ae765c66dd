// Partitions of a table: /v1/tables/:table/partitions, where a table is named as on its own page.

import type { FastifyInstance } from 'fastify';
import type { PartitionOrder } from '../metadata/partition-catalog.ts';
import { TableError } from '../metadata/table-rules.ts';
import type { Tables } from '../metadata/tables.ts';
import { scopeOf } from './principal.ts';
import { addRoute, callerOf } from './route.ts';
import * as schema from './schemas.ts';

const url = '/v1/tables/:table/partitions';

/** An order as it arrives: the schema has checked each member, not which go together. */
interface OrderBody {
  kind: PartitionOrder['kind'];
  partition?: number;
  at?: number;
  partitions?: number[];
  model?: 'memory' | 'kv';
}

export function partitionRoutes(app: FastifyInstance, tables: Tables): void {
  addRoute(
    app,
    {
      method: 'GET',
      url,
      access: 'read',
      summary: 'Partitions of a table, and the change of them that is under way.',
      answer: schema.partitions,
    },
    ({ request, path }) => tables.partitions(path['table']!, scopeOf(callerOf(request))),
  );
  addRoute<OrderBody>(
    app,
    {
      method: 'POST',
      url,
      access: 'operate',
      summary:
        'Begin to split, merge or move partitions, or to move all of them to another engine.',
      body: schema.partitionOrder,
      answer: schema.partitions,
      status: 202,
    },
    ({ path, body }) => tables.changePartitions(path['table']!, orderOf(body)),
  );
  addRoute(
    app,
    {
      method: 'DELETE',
      url,
      access: 'operate',
      summary: 'Give up the change that is under way: the partitions stay as they are.',
      answer: schema.partitions,
    },
    ({ path }) => tables.cancelPartitionChange(path['table']!),
  );
}

function orderOf({ kind, partition, at, partitions, model }: OrderBody): PartitionOrder {
  switch (kind) {
    case 'split':
      return {
        kind,
        partition: given(partition, 'partition'),
        ...(at === undefined ? {} : { at }),
      };
    case 'merge':
      return { kind, partitions: given(partitions, 'partitions') };
    case 'move':
      return { kind, partition: given(partition, 'partition'), model: given(model, 'model') };
    case 'convert':
      return { kind, model: given(model, 'model') };
  }
}

function given<T>(value: T | undefined, name: string): T {
  if (value !== undefined) return value;
  throw new TableError('invalid', `${name} is missing`);
}
