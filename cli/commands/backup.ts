// `polyrow backup`: all tenants, or one, to a directory of the server's machine.

import { rmSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Command } from 'commander';
import { podOf } from '../../storage-node/backup/chain.ts';
import { listBackups, partialPath } from '../../storage-node/backup/manifest.ts';
import { realDisk } from '../../storage-node/disk/real-disk.ts';
import type { BackupResult } from '../../server/backup/backup-run.ts';
import { answer } from '../output/answer.ts';
import { grid } from '../output/grid.ts';
import { formatBytes } from '../output/values.ts';
import type { AdminClient } from './admin-client.ts';
import { runJob } from './backup-jobs.ts';
import { type AccessFlags, withServer } from './server-access.ts';

interface BackupFlags extends AccessFlags {
  to: string;
  tenant?: string;
  incremental?: true;
  removeInterrupted?: true;
}

export function backupCommand(program: Command): void {
  withServer(
    program
      .command('backup')
      .description(
        'Write a backup while the server runs. It has the state at one moment of each log.',
      )
      .requiredOption('--to <path>', "directory for backups, on the server's machine")
      .option('--tenant <name>', 'only this tenant')
      .option('--incremental', 'only changes since the last backup there')
      .option('--remove-interrupted', 'first remove backups there that were never finished'),
    backup,
  );
}

async function backup(client: AdminClient, flags: BackupFlags): Promise<void> {
  const directory = resolve(flags.to);
  if (flags.removeInterrupted) removeInterrupted(directory);
  const { tenant, incremental = false, json = false } = flags;
  const request = { directory, incremental, ...(tenant === undefined ? {} : { tenant }) };
  const result = await runJob<BackupResult>(client, '/v1/backups', request, json);
  await answer(flags, result, describe);
}

function removeInterrupted(set: string): void {
  for (const id of listBackups(realDisk, set).partial) {
    rmSync(partialPath(set, id), { recursive: true });
    process.stderr.write(`removed ${partialPath(set, id)}\n`);
  }
}

async function describe(result: BackupResult): Promise<string> {
  const { kind, directory, bytes, parts, parent, interrupted } = result;
  const lines = [
    `${kind} backup${parent === undefined ? '' : ` on ${parent}`}, ${formatBytes(bytes)}: ${directory}`,
    await grid(
      [
        { title: 'engine', value: podOf },
        { title: 'what', value: (part) => whatOf[part.kind] },
        { title: 'log entry', value: ({ index }) => index, right: true },
        { title: 'at', value: ({ at }) => at },
        { title: 'rows', value: ({ rows }) => rows ?? '', right: true },
        { title: 'shards', value: ({ shards }) => shards ?? '', right: true },
      ],
      parts,
    ),
  ];
  for (const { reason, ...part } of parts) {
    if (reason !== undefined) lines.push(`all of ${podOf(part)}: ${reason}`);
  }
  for (const id of interrupted) {
    lines.push(`interrupted: ${id}.partial (--remove-interrupted removes it)`);
  }
  return lines.join('\n');
}

export const whatOf = {
  all: 'all',
  entries: 'changes since',
  shards: 'what has changed since',
} as const;
