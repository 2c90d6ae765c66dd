// `polyrow ru`: request units spent by tenants.

import { type Command, InvalidArgumentError, Option } from 'commander';
import type { UsageGroup, UsageRow, UsageSlot } from '../../control/monitor/usage-history.ts';
import { answer, remark } from '../output/answer.ts';
import { type Column, grid } from '../output/grid.ts';
import { formatNumber, formatTime } from '../output/values.ts';
import { addTenantFlag, durationOf, wholeNumber } from './argument-values.ts';
import { type AccessFlags, withServer } from './server-access.ts';

/** As the admin API tells it: with the tenant's name in place of its number. */
export type UsageView = Omit<UsageRow, 'tenant'> & { tenant?: string };

interface UsageFlags extends AccessFlags {
  tenant?: string;
  plane?: string;
  last: number;
  by: UsageGroup[];
  limit: number;
}

export interface UsageAnswer {
  usage: UsageView[];
  /** The answer was cut off. */
  more: boolean;
}

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;

const groups = ['tenant', 'plane', 'class', 'time'] as const satisfies readonly UsageGroup[];

export function usageCommand(program: Command): void {
  withServer(
    addTenantFlag(
      program
        .command('ru')
        .description('Show the usage of tenants, in request units.')
        .addOption(
          new Option('--last <time>', 'how far back, as 1m, 6h or 7d')
            .argParser(durationOf)
            .default(hourMs, '1h'),
        )
        .addOption(
          new Option('--by <groups>', `what to tell apart, of ${groups.join(', ')}, with commas`)
            .argParser(groupsOf)
            .default(['tenant', 'plane', 'class'], 'tenant,plane,class'),
        )
        .option('--limit <number>', 'limit of lines', wholeNumber, 1000)
        .addOption(
          new Option('--plane <plane>', 'only of this plane').choices(['redis', 'influx']),
        ),
      'only of this tenant',
    ),
    async (client, flags: UsageFlags) => {
      const { tenant, plane, by, last } = flags;
      // The minutes are kept for a day.
      const slot: UsageSlot = last <= dayMs ? 'minute' : 'hour';
      const width = slot === 'minute' ? minuteMs : hourMs;
      const from = Math.floor((Date.now() - last) / width) * width;
      const query = { slot, tenant, plane, by: by.join(','), from, limit: flags.limit };
      const { usage, more } = await client.get<UsageAnswer>('/v1/ru', query);
      await answer(flags, usage, (all) => grid(columnsOf(by), all, 'nothing was spent'));
      if (more) remark(`There is more than these ${usage.length}: ask for less, or raise --limit.`);
    },
  );
}

function groupsOf(text: string): UsageGroup[] {
  const wanted = text.split(',').map((word) => word.trim());
  const known = wanted.every((word) => groups.some((group) => group === word));
  if (!known) throw new InvalidArgumentError(`They are of ${groups.join(', ')}.`);
  return groups.filter((group) => wanted.includes(group));
}

function columnsOf(by: readonly UsageGroup[]): Column<UsageView>[] {
  const told: Record<UsageGroup, Column<UsageView>> = {
    time: { title: 'from', value: ({ at }) => (at === undefined ? '' : formatTime(at)) },
    tenant: { title: 'tenant', value: ({ tenant }) => tenant ?? '' },
    plane: { title: 'plane', value: ({ plane }) => plane ?? '' },
    class: { title: 'class', value: (row) => row.class ?? '' },
  };
  const order = ['time', 'tenant', 'plane', 'class'] as const;
  return [
    ...order.filter((group) => by.includes(group)).map((group) => told[group]),
    { title: 'requests', value: ({ requests }) => formatNumber(requests), right: true },
    { title: 'errors', value: ({ errors }) => formatNumber(errors), right: true },
    { title: 'RU', value: ({ ru }) => formatNumber(ru), right: true },
  ];
}
