// `polyrow verify`: whether backups can be restored. It needs no server.

import { tmpdir } from 'node:os';
import { resolve } from 'node:path';
import type { Command } from 'commander';
import { ChainReplays } from '../../storage-node/backup/chain-replay.ts';
import { podOf } from '../../storage-node/backup/chain.ts';
import { filesOf, listBackups, readManifest } from '../../storage-node/backup/manifest.ts';
import {
  type VerifiedBackup,
  type VerifiedPart,
  verifyBackup,
} from '../../storage-node/backup/verify.ts';
import { realDisk } from '../../storage-node/disk/real-disk.ts';
import { ExitError } from '../../server/lifecycle/exit-error.ts';
import { answer } from '../output/answer.ts';
import { exitCodes } from '../../server/exit-codes.ts';
import { grid } from '../output/grid.ts';
import { formatBytes, printable } from '../output/values.ts';
import { progressView } from './backup-progress.ts';
import { whatOf } from './backup.ts';

interface VerifyFlags {
  json?: true;
  backup?: string;
}

interface Verified {
  backups: VerifiedBackup[];
  interrupted: string[];
}

export function verifyCommand(program: Command): void {
  const command = program
    .command('verify <path>')
    .description('Check that the backups in a directory are complete and can be restored.')
    .option('--backup <id>', 'only this one')
    .option('--json', 'answer in JSON, for programs');
  command.action(async (path: string, flags: VerifyFlags) => {
    const verified = await verify(resolve(path), flags);
    await answer(flags, verified, describe);
    const bad = verified.backups.filter(({ problems }) => problems.length > 0);
    if (bad.length > 0) {
      throw new ExitError(`${bad.length} of ${verified.backups.length} backups cannot be restored`);
    }
  });
}

async function verify(set: string, { json, backup }: VerifyFlags): Promise<Verified> {
  const { ids, partial } = listBackups(realDisk, set);
  const wanted = backup === undefined ? ids : ids.filter((id) => id === backup);
  if (wanted.length === 0) {
    throw new ExitError(`there is no backup ${backup ?? ''} in ${set}`, exitCodes.missing);
  }
  const view = await progressView(json === true);
  const total = wanted.reduce((sum, id) => sum + sizeOf(set, id), 0);
  const backups: VerifiedBackup[] = [];
  let bytes = 0;
  const show = (): void =>
    view.update({
      phase: 'checking',
      fraction: total === 0 ? 1 : Math.min(1, bytes / total),
      bytes,
    });
  const replays = new ChainReplays(tmpdir());
  try {
    for (const id of wanted) {
      show();
      const more = (some: number): void => {
        bytes += some;
        show();
      };
      backups.push(await verifyBackup(realDisk, set, id, more, replays));
    }
  } finally {
    await replays.close();
  }
  view.end();
  return { backups, interrupted: partial };
}

/** A manifest that cannot be read is reported when it is looked at. */
function sizeOf(set: string, id: string): number {
  try {
    return filesOf(readManifest(realDisk, set, id)).reduce((sum, file) => sum + file.bytes, 0);
  } catch {
    return 0;
  }
}

async function describe({ backups, interrupted }: Verified): Promise<string> {
  const rows = backups.flatMap((backup) =>
    (backup.parts.length === 0 ? [undefined] : backup.parts).map((part) => ({ backup, part })),
  );
  const lines = [
    await grid(
      [
        { title: 'backup', value: ({ backup }) => backup.id },
        { title: 'tenant', value: ({ backup }) => backup.tenant ?? 'all' },
        { title: 'size', value: ({ backup }) => formatBytes(backup.bytes), right: true },
        { title: 'engine', value: ({ part }) => (part === undefined ? '' : podOf(part)) },
        { title: 'what', value: ({ part }) => (part === undefined ? '' : contentsOf(part)) },
        { title: 'log entry', value: ({ part }) => part?.index ?? '', right: true },
        {
          title: 'state',
          value: ({ backup }) => (backup.problems.length === 0 ? 'whole' : 'damaged'),
        },
      ],
      rows,
    ),
  ];
  for (const { problems } of backups) lines.push(...problems.map(printable));
  for (const id of interrupted) {
    lines.push(`${id}.partial was interrupted: remove it (polyrow backup --remove-interrupted)`);
  }
  return lines.join('\n');
}

function contentsOf({ kind, rows, changes, shards, points }: VerifiedPart): string {
  const parts: string[] = [whatOf[kind]];
  if (rows !== undefined) parts.push(`${rows} rows`);
  if (changes !== undefined) parts.push(`${changes} changes`);
  if (shards !== undefined) parts.push(`${shards} shards`);
  if (points !== undefined) parts.push(`${points} points`);
  return parts.join(', ');
}
