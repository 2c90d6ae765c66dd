// `polyrow slowlog`: requests that took long.

import type { Command } from 'commander';
import type { SlowlogEntry } from '../../control/monitor/slowlog.ts';
import { answer } from '../output/answer.ts';
import { type Column, grid } from '../output/grid.ts';
import { formatDuration, formatNumber, formatTime, shorten } from '../output/values.ts';
import { addTenantFlag, wholeNumber } from './argument-values.ts';
import { type AccessFlags, withServer } from './server-access.ts';

interface SlowlogFlags extends AccessFlags {
  tenant?: string;
  limit?: number;
}

/** With where it ran, and the tenant's name in place of its number. */
type SlowlogView = Omit<SlowlogEntry, 'tenant'> & { plane: string; tenant: string };

export function slowlogCommand(program: Command): void {
  withServer(
    addTenantFlag(
      program
        .command('slowlog')
        .description('Show requests that took long, the newest first.')
        .option('--limit <number>', 'at most so many (default 20)', wholeNumber),
      'only of this tenant',
    ),
    async (client, flags: SlowlogFlags) => {
      const { limit = 20, tenant } = flags;
      const { slowlog } = await client.get<{ slowlog: SlowlogView[] }>('/v1/slowlog', {
        limit,
        tenant,
      });
      await answer(flags, slowlog, (all) => grid(columns, all));
    },
  );
}

const columns: Column<SlowlogView>[] = [
  { title: 'ended', value: ({ at }) => formatTime(at) },
  { title: 'took', value: ({ durationMicros }) => formatDuration(durationMicros), right: true },
  { title: 'RU', value: ({ ru }) => formatNumber(ru), right: true },
  { title: 'plane', value: ({ plane }) => plane },
  { title: 'user', value: ({ user, tenant }) => `${user}@${tenant}` },
  { title: 'from', value: ({ address }) => address },
  { title: 'request', value: ({ text }) => shorten(text, 100) },
];
