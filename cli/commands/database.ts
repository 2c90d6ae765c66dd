// `polyrow database`: lists and drops databases of tenants.

import type { Command } from 'commander';
import type { DatabaseInfo } from '../../control/monitor/database-info.ts';
import { defaultTenant } from '../../contracts/tenancy/definitions.ts';
import { answer } from '../output/answer.ts';
import { confirmName } from '../output/confirmation.ts';
import { grid } from '../output/grid.ts';
import { formatNumber } from '../output/values.ts';
import { tenantPage } from './admin-pages.ts';
import { addTenantFlag } from './argument-values.ts';
import { type AccessFlags, withServer } from './server-access.ts';

const aboutTenant = `whose (default ${defaultTenant})`;

interface DatabaseFlags extends AccessFlags {
  tenant?: string;
  yes?: true;
}

/** Database with the plane that serves it. */
type DatabaseView = DatabaseInfo & { kind: string };

export function databaseCommand(program: Command): void {
  const database = program
    .command('database')
    .description('Databases of a tenant, of Redis and of InfluxDB.');
  withServer(
    addTenantFlag(
      database.command('list').description('Show the databases that hold something.'),
      aboutTenant,
    ),
    async (client, flags: DatabaseFlags) => {
      const { databases } = await client.get<{ databases: DatabaseView[] }>(pageOf(flags));
      await answer(flags, databases, (all) =>
        grid(
          [
            { title: 'kind', value: ({ kind }) => kind },
            { title: 'database', value: ({ name }) => name },
            {
              title: 'rows',
              value: ({ rows }) => (rows === undefined ? '' : formatNumber(rows)),
              right: true,
            },
          ],
          all,
        ),
      );
    },
  );
  withServer(
    addTenantFlag(
      database.command('create <name>').description('Create an InfluxDB database.'),
      aboutTenant,
    ),
    async (client, flags: DatabaseFlags, name) => {
      const made = await client.request('POST', pageOf(flags), { name });
      await answer(flags, made, () => `database ${name} is there`);
    },
  );
  withServer(
    addTenantFlag(
      database
        .command('drop <name>')
        .description('Delete an InfluxDB database with all its data.')
        .option('--yes', 'do not ask for confirmation'),
      aboutTenant,
    ),
    async (client, flags: DatabaseFlags, name) => {
      if (!flags.yes)
        await confirmName(`All data of database ${name} will be deleted permanently.`, name!);
      const done = await client.request('DELETE', `${pageOf(flags)}/${encodeURIComponent(name!)}`);
      await answer(flags, done, () => `database ${name} is dropped`);
    },
  );
}

function pageOf({ tenant }: DatabaseFlags): string {
  return `${tenantPage(tenant ?? defaultTenant)}/databases`;
}
