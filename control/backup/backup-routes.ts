// /v1/backups and /v1/restores, used by `polyrow backup` and `polyrow restore`. Directories are on the server's machine,
// so only operators may name them.

import type { FastifyInstance } from 'fastify';
import { addRoute } from '../admin/route.ts';
import { flag, listOf, object, text } from '../admin/schemas.ts';
import type { BackupJobs, BackupRequest, RestoreRequest } from './backup-jobs.ts';

const directory = { type: 'string', minLength: 1, maxLength: 4096 } as const;
const name = { type: 'string', minLength: 1, maxLength: 63 } as const;
const backupId = { type: 'string', pattern: '^\\d{8}T\\d{6}\\.\\d{3}Z-[0-9a-f]{8}$' } as const;
const time = { type: 'integer', minimum: 0, description: 'Unix milliseconds.' } as const;

const newBackup = object({ directory, tenant: name, incremental: flag }, ['directory']);
const newRestore = object(
  { directory, backup: backupId, tenant: name, as: name, replace: flag, users: flag },
  ['directory'],
);
const job = object(
  {
    id: text,
    kind: { type: 'string', enum: ['backup', 'restore'] },
    state: { type: 'string', enum: ['running', 'done', 'failed', 'cancelled'] },
    request: { type: 'object', description: 'As it was asked for.' },
    startedAt: time,
    endedAt: time,
    phase: { type: 'string', description: 'What is being done, for people.' },
    fraction: { type: 'number', minimum: 0, maximum: 1 },
    bytes: { type: 'integer', minimum: 0, description: 'Of the backup, so far.' },
    error: text,
    result: { type: 'object', description: 'What came of it, once it is done.' },
  },
  ['id', 'kind', 'state', 'request', 'startedAt', 'phase', 'fraction', 'bytes'],
);

export function backupRoutes(app: FastifyInstance, jobs: BackupJobs): void {
  addRoute<BackupRequest>(
    app,
    {
      method: 'POST',
      url: '/v1/backups',
      access: 'operate',
      summary: 'Begin a backup, of all tenants or one, to a directory of the server.',
      body: newBackup,
      answer: job,
      status: 202,
    },
    ({ body }) => jobs.backup(body),
  );
  addRoute<RestoreRequest>(
    app,
    {
      method: 'POST',
      url: '/v1/restores',
      access: 'operate',
      summary: 'Begin to restore a backup from a directory of the server.',
      body: newRestore,
      answer: job,
      status: 202,
    },
    ({ body }) => jobs.restore(body),
  );
  for (const [page, kind] of [
    ['/v1/backups', 'backup'],
    ['/v1/restores', 'restore'],
  ] as const) {
    addRoute(
      app,
      {
        method: 'GET',
        url: page,
        access: 'observe',
        summary: `Every ${kind} under way, and the last that ended.`,
        answer: listOf(page.slice(4), job),
      },
      () => ({ [page.slice(4)]: jobs.list().filter((one) => one.kind === kind) }),
    );
    addRoute(
      app,
      {
        method: 'GET',
        url: `${page}/:id`,
        access: 'observe',
        summary: `How a ${kind} goes.`,
        answer: job,
      },
      ({ path }) => jobs.find(path['id']!),
    );
    addRoute(
      app,
      {
        method: 'DELETE',
        url: `${page}/:id`,
        access: 'operate',
        summary: `Cancel a ${kind}. One that has ended stays as it is.`,
        answer: job,
      },
      ({ path }) => jobs.cancel(path['id']!),
    );
  }
}
