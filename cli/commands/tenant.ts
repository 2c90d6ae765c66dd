// `polyrow tenant`: manages tenants.

import type { Command } from 'commander';
import type { TenantDefinition } from '../../contracts/tenancy/definitions.ts';
import { ExitError } from '../../server/lifecycle/exit-error.ts';
import { answer, remark } from '../output/answer.ts';
import { confirmName } from '../output/confirmation.ts';
import { exitCodes } from '../../server/exit-codes.ts';
import { card, type Column, grid } from '../output/grid.ts';
import { type PasswordFlags, wantedPassword } from '../output/secret-input.ts';
import type { AdminClient } from './admin-client.ts';
import { tenantPage } from './admin-pages.ts';
import {
  addPasswordFlags,
  checkNewName,
  collectLimits,
  type LimitChange,
  limitNames,
  limitText,
  limitValue,
  wholeNumber,
} from './argument-values.ts';
import { admissionOf, showUse } from './limit.ts';
import { allTenants } from './pages.ts';
import { type AccessFlags, withServer } from './server-access.ts';

interface TenantFlags extends AccessFlags, PasswordFlags {
  databases?: number;
  limit?: LimitChange;
  yes?: true;
}

export function tenantCommand(program: Command): void {
  const tenant = program
    .command('tenant')
    .description('Tenants: each has users, databases, tables and limits of its own.');

  withServer(
    tenant.command('list').description('Show all tenants.'),
    async (client, flags: TenantFlags) => {
      await answer(flags, await allTenants(client), (all) => grid(columns, all));
    },
  );
  withServer(
    tenant.command('show <tenant>').description('Show one tenant, and its use of its limits.'),
    async (client, flags: TenantFlags, name) => showTenant(client, flags, name!),
  );
  withServer(
    addPasswordFlags(
      withLimits(
        tenant
          .command('create <tenant>')
          .description(
            'Create a tenant. The password of its user default is generated and shown once.',
          )
          .option('--databases <number>', 'databases its clients can SELECT', wholeNumber),
      ),
    ),
    create,
  );
  withServer(
    withLimits(
      tenant.command('alter <tenant>').description('Change limits of a tenant, effective at once.'),
    ),
    async (client, flags: TenantFlags, name) => {
      const { limit: limits } = flags;
      if (limits === undefined) throw new ExitError('nothing to change was given', exitCodes.usage);
      await answer(flags, await alter(client, name!, { limits }), describe);
    },
  );
  withServer(
    tenant
      .command('suspend <tenant>')
      .description('Close all its connections, and refuse new ones until it is resumed.'),
    async (client, flags: TenantFlags, name) =>
      answer(flags, await alter(client, name!, { state: 'suspended' }), describe),
  );
  withServer(
    tenant.command('resume <tenant>').description('Allow its users to log in again.'),
    async (client, flags: TenantFlags, name) =>
      answer(flags, await alter(client, name!, { state: 'active' }), describe),
  );
  withServer(
    tenant
      .command('drop <tenant>')
      .description('Delete a tenant with all its data, users and tokens.')
      .option('--yes', 'do not ask for confirmation'),
    drop,
  );
}

async function showTenant(client: AdminClient, flags: TenantFlags, name: string): Promise<void> {
  const tenant = await client.get<TenantDefinition>(tenantPage(name));
  if (flags.json) {
    await answer(
      flags,
      { ...tenant, admission: await admissionOf(client, { tenant: name }) },
      String,
    );
    return;
  }
  await answer(flags, tenant, describe);
  await showUse(client, name);
}

function withLimits(command: Command): Command {
  const about = 'a limit, as ruPerSecond=5000 or storedBytes=10gb; once for each';
  return command.option('--limit <name=value>', about, collectLimits);
}

async function create(client: AdminClient, flags: TenantFlags, name?: string): Promise<void> {
  const { databases, limit: limits } = flags;
  checkNewName(name!);
  const { password, isGenerated } = await wantedPassword(flags, `default@${name}`, 'generate');
  const made = await client.request('POST', '/v1/tenants', { name, databases, limits, password });
  const tenant = made as TenantDefinition;
  await answer(flags, isGenerated ? { ...tenant, password } : tenant, describe);
  if (isGenerated && !flags.json) {
    remark(`Password of the user ${name} (default@${name}), shown only now: ${password}`);
  }
}

async function alter(client: AdminClient, name: string, change: object): Promise<TenantDefinition> {
  return (await client.request('PATCH', tenantPage(name), change)) as TenantDefinition;
}

async function drop(client: AdminClient, flags: TenantFlags, name?: string): Promise<void> {
  const page = tenantPage(name!);
  if (!flags.yes) {
    await client.get(page);
    await confirmName(`All data of tenant ${name} will be deleted permanently.`, name!);
  }
  await answer(flags, await client.request('DELETE', page), () => `tenant ${name} is dropped`);
}

const columns: Column<TenantDefinition>[] = [
  { title: 'tenant', value: ({ name }) => name },
  { title: 'state', value: ({ state }) => state },
  { title: 'databases', value: ({ databases }) => databases, right: true },
  {
    title: 'RU/s',
    value: ({ limits }) => limitValue('ruPerSecond', limits.ruPerSecond),
    right: true,
  },
  {
    title: 'stored',
    value: ({ limits }) => limitValue('storedBytes', limits.storedBytes),
    right: true,
  },
  {
    title: 'connections',
    value: ({ limits }) => limitValue('connections', limits.connections),
    right: true,
  },
];

function describe({ name, state, databases, limits }: TenantDefinition): string {
  return card([
    ['tenant', name],
    ['state', state],
    ['databases', databases],
    ...limitNames.map(
      (limit) => [`limit of ${limitText(limit)}`, limitValue(limit, limits[limit])] as const,
    ),
  ]);
}
