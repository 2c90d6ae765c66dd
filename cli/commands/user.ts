// `polyrow user`: manages users of tenants and their permissions.

import { type Command, InvalidArgumentError } from 'commander';
import type { UserView } from '../../control/admin/user-routes.ts';
import { defaultTenant, type Privilege } from '../../contracts/tenancy/definitions.ts';
import { ExitError } from '../../server/lifecycle/exit-error.ts';
import { answer, remark } from '../output/answer.ts';
import { exitCodes } from '../../server/exit-codes.ts';
import { type Column, grid } from '../output/grid.ts';
import { type PasswordFlags, wantedPassword } from '../output/secret-input.ts';
import type { AdminClient } from './admin-client.ts';
import { tenantPage, userPage } from './admin-pages.ts';
import { addPasswordFlags, addTenantFlag, checkNewName, userName } from './argument-values.ts';
import { allOf } from './pages.ts';
import { type AccessFlags, withServer } from './server-access.ts';

interface UserFlags extends AccessFlags, PasswordFlags {
  tenant?: string;
  rules?: string;
  grant?: Record<string, Privilege>;
  revoke?: string[];
  influxAdmin?: boolean;
  enable?: true;
  disable?: true;
  open?: true;
}

/** Properties of a user other than the password. */
interface UserChange {
  rules?: string;
  grants?: Record<string, Privilege>;
  influxAdmin?: boolean;
  enabled?: boolean;
  open?: boolean;
  password?: string;
}

const aboutTenant = 'tenant of a user named without @';

export function userCommand(program: Command): void {
  const user = program
    .command('user')
    .description('Users of a tenant. One is called ann@shop, or ann with --tenant shop.');

  withServer(
    addTenantFlag(
      user.command('list').description('Show the users of a tenant.'),
      `whose (default ${defaultTenant})`,
    ),
    async (client, flags: UserFlags) => {
      const page = `${tenantPage(flags.tenant ?? defaultTenant)}/users`;
      const users = await allOf<UserView>(client, page, 'users', ({ name }) => name);
      await answer(flags, users, (all) => grid(columns, all));
    },
  );
  withServer(
    withRights(
      addPasswordFlags(
        user
          .command('create <user>')
          .description(
            'Create a user. Its password is generated and shown once, if none is given. Without options for its rights it may do everything in its tenant.',
          )
          .option('--open', 'allow logins without a password'),
      ),
    ),
    create,
  );
  withServer(
    withRights(
      user.command('alter <user>').description('Change the rights of a user, effective at once.'),
    )
      .option('--revoke <database>', 'revoke the privileges on it; once for each', collect)
      .option('--enable', 'allow logins again')
      .option('--disable', 'close its connections, and refuse its logins')
      .option('--open', 'allow logins without a password'),
    alter,
  );
  withServer(
    addPasswordFlags(
      addTenantFlag(
        user
          .command('passwd <user>')
          .description('Give a user another password; it is asked for on the terminal.'),
        aboutTenant,
      ),
    ),
    changePassword,
  );
  withServer(
    addTenantFlag(
      user.command('drop <user>').description('Delete a user with its tokens.'),
      aboutTenant,
    ),
    async (client, flags: UserFlags, text) => {
      const name = userName(text!, flags.tenant);
      const done = await client.request('DELETE', userPage(name));
      await answer(flags, done, () => `user ${name.user}@${name.tenant} is dropped`);
    },
  );
}

function withRights(command: Command): Command {
  return addTenantFlag(command, aboutTenant)
    .option('--rules <rules>', 'over Redis, in words of ACL SETUSER: "+@read ~cache:*"')
    .option(
      '--grant <database=privilege>',
      'read, write or all of an InfluxDB database; once for each',
      collectGrants,
    )
    .option('--influx-admin', 'everything over the InfluxDB protocol')
    .option('--no-influx-admin', 'only granted privileges');
}

async function create(client: AdminClient, flags: UserFlags, text?: string): Promise<void> {
  const { tenant, user } = userName(text!, flags.tenant);
  checkNewName(user);
  const { password, isGenerated } = flags.open
    ? { isGenerated: false }
    : await wantedPassword(flags, `${user}@${tenant}`, 'generate');
  const body = { name: user, password, ...changeOf(flags, {}) };
  const made = (await client.request('POST', `${tenantPage(tenant)}/users`, body)) as UserView;
  await answer(flags, isGenerated ? { ...made, password } : made, (one) => grid(columns, [one]));
  if (isGenerated && !flags.json) {
    remark(`Password of ${user}@${tenant}, shown only now: ${password}`);
  }
}

async function alter(client: AdminClient, flags: UserFlags, text?: string): Promise<void> {
  if (flags.enable && flags.disable) {
    throw new ExitError('--enable and --disable cannot both be', exitCodes.usage);
  }
  const name = userName(text!, flags.tenant);
  const isAboutGrants = flags.grant !== undefined || flags.revoke !== undefined;
  const before = isAboutGrants ? await client.get<UserView>(userPage(name)) : undefined;
  const change = changeOf(flags, before?.grants ?? {});
  if (Object.keys(change).length === 0) {
    throw new ExitError('nothing to change was given', exitCodes.usage);
  }
  const changed = (await client.request('PATCH', userPage(name), change)) as UserView;
  await answer(flags, changed, (one) => grid(columns, [one]));
}

async function changePassword(client: AdminClient, flags: UserFlags, text?: string): Promise<void> {
  const name = userName(text!, flags.tenant);
  const whose = `${name.user}@${name.tenant}`;
  // Check that the user exists before prompting for the password.
  await client.get(userPage(name));
  const { password, isGenerated } = await wantedPassword(flags, whose, 'prompt');
  const changed = (await client.request('PATCH', userPage(name), { password })) as UserView;
  const told = isGenerated ? { ...changed, password } : changed;
  await answer(flags, told, () => `${whose} has another password`);
  if (isGenerated && !flags.json) remark(`Password of ${whose}, shown only now: ${password}`);
}

function changeOf(flags: UserFlags, before: Readonly<Record<string, Privilege>>): UserChange {
  const { rules, grant, revoke, influxAdmin, enable, disable, open } = flags;
  const change: UserChange = {};
  if (rules !== undefined) change.rules = rules;
  if (influxAdmin !== undefined) change.influxAdmin = influxAdmin;
  if (enable || disable) change.enabled = enable === true;
  if (open) change.open = true;
  if (grant !== undefined || revoke !== undefined) {
    const grants = { ...before, ...grant };
    for (const database of revoke ?? []) delete grants[database];
    change.grants = grants;
  }
  return change;
}

function collect(text: string, sofar: string[] = []): string[] {
  return [...sofar, text];
}

function collectGrants(
  text: string,
  sofar: Record<string, Privilege> = {},
): Record<string, Privilege> {
  const at = text.lastIndexOf('=');
  const privilege = text.slice(at + 1).toLowerCase();
  if (at <= 0 || !isPrivilege(privilege)) {
    throw new InvalidArgumentError('It is a database and read, write or all, as metrics=read.');
  }
  return { ...sofar, [text.slice(0, at)]: privilege };
}

function isPrivilege(text: string): text is Privilege {
  return text === 'read' || text === 'write' || text === 'all';
}

const columns: Column<UserView>[] = [
  { title: 'user', value: ({ name, tenant }) => `${name}@${tenant}` },
  { title: 'may log in', value: loginOf },
  { title: 'redis rules', value: ({ rules }) => rules },
  { title: 'influx', value: influxRights },
];

function loginOf({ enabled, open, hasPassword }: UserView): string {
  if (!enabled) return 'no, disabled';
  if (open) return 'without a password';
  return hasPassword ? 'by password' : 'by token only';
}

function influxRights({ influxAdmin, grants }: UserView): string {
  if (influxAdmin) return 'everything';
  const granted = Object.entries(grants).map(([database, privilege]) => `${database}=${privilege}`);
  return granted.length === 0 ? 'nothing' : granted.join(' ');
}
