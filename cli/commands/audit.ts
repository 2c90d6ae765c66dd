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
      .description('Show the audit log of the admin API, the newest entry last.')
      .option('--limit <number>', 'limit (default 50)', wholeNumber)
      .option('--after <seq>', 'only entries after the one of this number', wholeNumber)
      .option('--all', 'include calls that only read'),
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
  { title: 'who', value: ({ who, role }) => (who === '' ? 'unknown' : `${who} (${role})`) },
  { title: 'from', value: ({ address }) => address },
  { title: 'what', value: ({ method, path }) => shorten(`${method} ${path}`, 60) },
  { title: 'outcome', value: ({ status }) => status, right: true },
  { title: '', value: detail },
];

function detail({ error, change }: AuditRecord): string {
  if (error !== undefined) return shorten(error, 80);
  return change === undefined ? '' : shorten(JSON.stringify(change), 80);
}
