// `polyrow audit`: lists changes made through the admin API.

import type { Command } from 'commander';
import type { AuditRecord } from '../../control/admin/audit/audit-log.ts';
import { answer } from '../output/answer.ts';
import { type Column, grid } from '../output/grid.ts';
import { formatTime, shorten } from '../output/values.ts';
import { wholeNumber } from './argument-values.ts';
import { type AccessFlags, withServer } from './server-access.ts';

interface AuditFlags extends AccessFlags {
  limit?: number;
  after?: number;
  all?: true;
}

export function auditCommand(program: Command): void {
  withServer(
    program
      .command('audit')
      .description('Show who did what through the admin API, the newest last.')
      .option('--limit <number>', 'at most so many (default 50)', wholeNumber)
      .option('--after <seq>', 'only what followed the record of this number', wholeNumber)
      .option('--all', 'also calls that only looked at something'),
    async (client, flags: AuditFlags) => {
      const { limit = 50, after, all } = flags;
      const { audit } = await client.get<{ audit: AuditRecord[] }>('/v1/audit', {
        limit,
        after,
        all,
      });
      await answer(flags, audit, (list) => grid(columns, list));
    },
  );
}

const columns: Column<AuditRecord>[] = [
  { title: 'no.', value: ({ seq }) => seq, right: true },
  { title: 'when', value: ({ at }) => formatTime(at) },
  { title: 'who', value: ({ who, role }) => (who === '' ? 'nobody known' : `${who} (${role})`) },
  { title: 'from', value: ({ address }) => address },
  { title: 'what', value: ({ method, path }) => shorten(`${method} ${path}`, 60) },
  { title: 'outcome', value: ({ status }) => status, right: true },
  { title: '', value: detail },
];

function detail({ error, change }: AuditRecord): string {
  if (error !== undefined) return shorten(error, 80);
  return change === undefined ? '' : shorten(JSON.stringify(change), 80);
}
