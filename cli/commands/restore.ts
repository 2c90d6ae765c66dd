// `polyrow restore`: restores a backup into a server.

import { resolve } from 'node:path';
import type { Command } from 'commander';
import type { RestoreRequest } from '../../control/backup/backup-jobs.ts';
import type { RestoredTenant, RestoreResult } from '../../server/backup/restore-run.ts';
import type { Config } from '../../server/settings/schema.ts';
import { answer } from '../output/answer.ts';
import { grid } from '../output/grid.ts';
import { printable } from '../output/values.ts';
import { runJob } from './backup-jobs.ts';
import { type AccessFlags, addAccessFlags, requireServer } from './server-access.ts';

interface RestoreFlags extends AccessFlags {
  backup?: string;
  tenant?: string;
  as?: string;
  replace?: true;
  users?: true;
  into?: string;
}

export function restoreCommand(program: Command): void {
  const command = program
    .command('restore <path>')
    .description(
      'Restore a backup. It takes effect at one moment, after all of it was loaded and compared.',
    )
    .option('--backup <id>', 'this one of those in the directory; else the last')
    .option('--tenant <name>', 'only this tenant')
    .option('--as <name>', 'under another name')
    .option('--replace', 'replace existing data')
    .option('--users', 'existing tenants get the users and tokens of the backup that they lack')
    .option('--into <path>', 'make a new data directory of it, without a server');
  const config = addAccessFlags(command);
  command.action(async (path: string) => {
    const flags = command.opts<RestoreFlags>();
    const request = requestOf(path, flags);
    const run = (found: Config, access: AccessFlags): Promise<RestoreResult> =>
      runJob(requireServer(access, found), '/v1/restores', request, flags.json === true);
    if (flags.into === undefined) return await answer(flags, await run(config(), flags), describe);
    const directory = resolve(flags.into);
    const { inNewDirectory } = await import('../restore/new-directory.ts');
    const result = await inNewDirectory(directory, request, () =>
      run({ ...config(), 'data-dir': directory, 'admin.token': '' }, {}),
    );
    await answer(flags, result, describe);
  });
}

function requestOf(path: string, flags: RestoreFlags): RestoreRequest {
  const { backup, tenant, as, replace = false, users } = flags;
  const given = Object.entries({ backup, tenant, as, users }).filter(
    ([, value]) => value !== undefined,
  );
  return { directory: resolve(path), replace, ...Object.fromEntries(given) };
}

async function describe({ backup, tenants }: RestoreResult): Promise<string> {
  const lines = [`restored from ${backup}, and compared with it`];
  for (const tenant of tenants) lines.push(...(await describeTenant(tenant)));
  return lines.join('\n');
}

async function describeTenant(tenant: RestoredTenant): Promise<string[]> {
  const { name, from, created, users, state, tables, shards, expiredShards } = tenant;
  const source = name === from ? '' : `, was ${printable(from)}`;
  const lines = [`tenant ${name}${source}${created ? ', made' : ''}: ${state}`];
  if (tables.length > 0) {
    lines.push(
      await grid(
        [
          { title: 'database', value: ({ database }) => database, right: true },
          { title: 'rows', value: ({ rows }) => rows, right: true },
          { title: 'with expiry', value: ({ expiring }) => expiring, right: true },
          { title: 'expired', value: ({ due }) => due, right: true },
          { title: 'checksum', value: ({ checksum }) => checksum },
          {
            title: 'compared',
            value: (table) => (table.checksumCompared ? 'rows, checksum' : 'rows'),
          },
        ],
        tables,
      ),
    );
  }
  if (shards.length > 0) {
    lines.push(
      await grid(
        [
          { title: 'database', value: ({ database }) => database },
          { title: 'policy', value: ({ policy }) => policy },
          { title: 'from', value: (shard) => new Date(shard.startSeconds * 1000).toISOString() },
          { title: 'points', value: ({ rows }) => rows, right: true },
          { title: 'checksum', value: ({ checksum }) => checksum },
        ],
        shards,
      ),
    );
  }
  if (expiredShards > 0) lines.push(`${expiredShards} shards are older than their policies keep`);
  if (users === 'kept') lines.push('its users and tokens are as they were: see --users');
  if (state === 'suspended') lines.push(`logins are refused: polyrow tenant resume ${name}`);
  return lines;
}
