// `polyrow limit`: what a tenant may take at most.

import { Argument, type Command } from 'commander';
import type { TenantLimits } from '../../universal-row/tenancy/definitions.ts';
import { answer } from '../output/answer.ts';
import { grid } from '../output/grid.ts';
import { limitsPage } from './admin-pages.ts';
import {
  collectLimits,
  type LimitChange,
  limitNames,
  limitText,
  limitValue,
} from './argument-values.ts';
import { type AccessFlags, withServer } from './server-access.ts';

export function limitCommand(program: Command): void {
  const limit = program.command('limit').description('Limits of a tenant.');
  withServer(
    limit.command('get <tenant>').description('Show the limits of a tenant.'),
    async (client, flags: AccessFlags, tenant) =>
      show(flags, await client.get<LimitsView>(limitsPage(tenant!))),
  );
  withServer(
    limit
      .command('set <tenant>')
      .description('Change limits of a tenant; at once. The others stay.')
      .addArgument(
        new Argument('<limit...>', 'as ruPerSecond=5000, storedBytes=10gb, keys=none').argParser(
          (text: string, sofar: LimitChange | undefined) => collectLimits(text, sofar),
        ),
      ),
    async (client, flags: AccessFlags, tenant, change) =>
      show(
        flags,
        (await client.request(
          'PATCH',
          limitsPage(tenant!),
          change as unknown as LimitChange,
        )) as LimitsView,
      ),
  );
}

type LimitsView = { limits: TenantLimits };

async function show(flags: AccessFlags, { limits }: LimitsView): Promise<void> {
  await answer(flags, limits, (all) =>
    grid(
      [
        { title: 'limit', value: (name) => name },
        { title: 'value', value: (name) => limitValue(name, all[name]), right: true },
        { title: 'of', value: limitText },
      ],
      limitNames,
    ),
  );
}
