// `polyrow audit`: lists changes made through the admin API.

import type { Command } from 'commander';
import type { NodeAuditRecord } from '../../control/admin/audit/wide-audit.ts';
import { answer, remark } from '../output/answer.ts';
import { type Column, grid } from '../output/grid.ts';
import { formatTime, shorten } from '../output/values.ts';
import { wholeNumber } from './argument-values.ts';
import { type AccessFlags, withServer } from './server-access.ts';

interface AuditFlags extends AccessFlags {
  limit?: number;
  after?: number;
  all?: true;
  node?: number;
}

export function auditCommand(program: Command): void {
  withServer(
    program
      .command('audit')
      .description('Show the audit log of the admin API, the newest entry last.')
      .option('--limit <number>', 'limit (default 50)', wholeNumber)
      .option('--after <seq>', 'only entries after the one of this number', wholeNumber)
      .option('--all', 'include calls that only read')
      .option('--node <number>', 'only calls to this node of a cluster', wholeNumber),
    async (client, flags: AuditFlags) => {
      const { limit = 50, after, all, node } = flags;
      const { audit, silentNodes = [] } = await client.get<Answer>('/v1/audit', {
        limit,
        after,
        all,
        node,
      });
      await answer(flags, audit, (list) => grid(columnsOf(list), list));
      if (silentNodes.length > 0) remark(`nodes that have not answered: ${silentNodes.join(', ')}`);
    },
  );
}

/** A server alone has no nodes. */
interface Entry extends Omit<NodeAuditRecord, 'node'> {
  readonly node?: number;
}

interface Answer {
  audit: Entry[];
  silentNodes?: number[];
}

function columnsOf(list: readonly Entry[]): Column<Entry>[] {
  if (list.every(({ node }) => node === undefined)) return columns;
  return [{ title: 'node', value: ({ node }) => node ?? '', right: true }, ...columns];
}

const columns: Column<Entry>[] = [
  { title: 'no.', value: ({ seq }) => seq, right: true },
  { title: 'when', value: ({ at }) => formatTime(at) },
  { title: 'who', value: ({ who, role }) => (who === '' ? 'unknown' : `${who} (${role})`) },
  { title: 'from', value: ({ address }) => address },
  { title: 'what', value: ({ method, path }) => shorten(`${method} ${path}`, 60) },
  { title: 'outcome', value: ({ status }) => status, right: true },
  { title: '', value: detail },
];

function detail({ error, change }: Entry): string {
  if (error !== undefined) return shorten(error, 80);
  return change === undefined ? '' : shorten(JSON.stringify(change), 80);
}
