// `polyrow slowlog`: requests that took long.

import type { Command } from 'commander';
import type { SlowlogEntry, StepEntry } from '../../control/monitor/slowlog.ts';
import { answer } from '../output/answer.ts';
import { type Column, grid } from '../output/grid.ts';
import { formatDuration, formatNumber, formatTime, shorten } from '../output/values.ts';
import { addTenantFlag, wholeNumber } from './argument-values.ts';
import { type AccessFlags, withServer } from './server-access.ts';

interface SlowlogFlags extends AccessFlags {
  tenant?: string;
  limit?: number;
  steps?: boolean;
}

/** With where it ran, and the tenant's name in place of its number. */
type View<T> = Omit<T, 'tenant'> & { plane: string; tenant: string };
type SlowlogView = View<SlowlogEntry>;
type StepView = View<StepEntry>;

export function slowlogCommand(program: Command): void {
  withServer(
    addTenantFlag(
      program
        .command('slowlog')
        .description('Show slow requests, the newest first.')
        .option('--limit <number>', 'limit (default 20)', wholeNumber)
        .option(
          '--steps',
          'show steps of more than 25 ms in place of requests: parts of a request that blocked all other clients',
        ),
      'only of this tenant',
    ),
    async (client, flags: SlowlogFlags) => {
      const { limit = 20, tenant } = flags;
      if (flags.steps === true) {
        const { steps } = await client.get<{ steps: StepView[] }>('/v1/steps', { limit, tenant });
        await answer(flags, steps, (all) => grid(stepColumns, all));
        return;
      }
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

const stepColumns: Column<StepView>[] = [
  { title: 'ended', value: ({ at }) => formatTime(at) },
  { title: 'took', value: ({ durationMicros }) => formatDuration(durationMicros), right: true },
  { title: 'cause', value: ({ cause }) => cause },
  { title: 'plane', value: ({ plane }) => plane },
  { title: 'tenant', value: ({ tenant }) => tenant },
  { title: 'bytes', value: ({ bytes }) => formatNumber(bytes), right: true },
  { title: 'step', value: ({ text }) => shorten(text, 100) },
];
