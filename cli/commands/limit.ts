// `polyrow limit`: limits of tenants and their use.

import { Argument, type Command, Option } from 'commander';
import type { TenantLimits } from '../../contracts/tenancy/definitions.ts';
import { type AdmissionView, admissionText } from '../output/admission-view.ts';
import { answer } from '../output/answer.ts';
import { grid } from '../output/grid.ts';
import type { AdminClient } from './admin-client.ts';
import { limitsPage } from './admin-pages.ts';
import {
  collectLimits,
  type LimitChange,
  limitNames,
  limitText,
  limitValue,
  wholeNumber,
} from './argument-values.ts';
import { type AccessFlags, withServer } from './server-access.ts';

export function limitCommand(program: Command): void {
  const limit = program.command('limit').description('Limits of a tenant.');
  withServer(
    limit.command('get <tenant>').description('Show the limits of a tenant, and their use.'),
    async (client, flags: AccessFlags, tenant) => {
      await show(flags, await client.get<LimitsView>(limitsPage(tenant!)));
      if (!flags.json) await showUse(client, tenant!);
    },
  );
  withServer(
    limit
      .command('usage [tenant]')
      .description('Show the use of tenants’ request units, with waiting and refused requests.')
      .addOption(new Option('--plane <plane>', 'only of this plane').choices(['redis', 'influx']))
      .option('--limit <number>', 'limit of lines', wholeNumber, 50),
    async (client, flags: UsageFlags, tenant) => {
      const { plane, limit: most } = flags;
      const rows = await admissionOf(client, { tenant, plane, limit: most });
      await answer(flags, rows, (all) => admissionText(all, 'tenant'));
    },
  );
  withServer(
    limit
      .command('set <tenant>')
      .description('Change limits of a tenant, effective at once. Limits not given stay.')
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

interface UsageFlags extends AccessFlags {
  plane?: string;
  limit: number;
}

/** Use of limits on request units, highest fraction first. */
export async function admissionOf(
  client: AdminClient,
  query: { tenant?: string | undefined; plane?: string | undefined; limit?: number },
): Promise<AdmissionView[]> {
  return (await client.get<{ admission: AdmissionView[] }>('/v1/admission', query)).admission;
}

/** Shows the use of one tenant with a limit on request units. */
export async function showUse(client: AdminClient, tenant: string): Promise<void> {
  const rows = await admissionOf(client, { tenant });
  if (rows.length > 0) process.stdout.write(`\n${await admissionText(rows, 'plane')}\n`);
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
