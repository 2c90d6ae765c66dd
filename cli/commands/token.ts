// `polyrow token`: secrets of their own for programs. A user's token gives access to its data; a
// role's token to the admin API.

import { type Command, Option } from 'commander';
import { defaultTenant } from '../../contracts/tenancy/definitions.ts';
import { ExitError } from '../../server/lifecycle/exit-error.ts';
import { answer, remark } from '../output/answer.ts';
import { exitCodes } from '../../server/exit-codes.ts';
import { type Column, grid } from '../output/grid.ts';
import { formatTime } from '../output/values.ts';
import type { AdminClient } from './admin-client.ts';
import { adminTokensPage, tokensPage } from './admin-pages.ts';
import { addTenantFlag, userName } from './argument-values.ts';
import { type AccessFlags, withServer } from './server-access.ts';

const roles = ['operator', 'viewer', 'tenant'] as const;

interface TokenView {
  id: string;
  tenant?: string;
  /** The user of a data token. */
  user?: string;
  /** The role of an admin token. */
  role?: (typeof roles)[number];
  description: string;
  createdAt: number;
}

type MadeToken = TokenView & { secret: string };

interface TokenFlags extends AccessFlags {
  tenant?: string;
  role?: string;
  admin?: true;
  description?: string;
}

export function tokenCommand(program: Command): void {
  const token = program
    .command('token')
    .description('Tokens: of users, for data; of a role, for the admin API.');

  withServer(
    addTenantFlag(
      token
        .command('create [user]')
        .description('Create a token of a user, or of a role by --role. It is shown once.')
        .addOption(new Option('--role <role>', 'a token for the admin API').choices([...roles]))
        .option('--description <text>', 'purpose of the token'),
      'tenant of a user named without @, or of --role tenant',
    ),
    async (client, flags: TokenFlags, user) => {
      const made = await create(client, flags, user);
      await answer(flags, made, (token) => grid(columns, [token]));
      if (!flags.json) remark(`The token, shown only now: ${made.secret}`);
    },
  );
  withServer(
    addTenantFlag(
      token
        .command('list')
        .description('Show the tokens of a tenant, or by --admin those for the admin API.')
        .option('--admin', 'tokens for the admin API'),
      `whose (default ${defaultTenant})`,
    ),
    async (client, flags: TokenFlags) => {
      const { tokens } = await client.get<{ tokens: TokenView[] }>(pageOf(flags));
      await answer(flags, tokens, (all) => grid(columns, all));
    },
  );
  withServer(
    addTenantFlag(
      token
        .command('revoke <id>')
        .description(
          'Revoke a token: logins with it are refused, and its connections closed, at once.',
        )
        .option('--admin', 'the token is for the admin API'),
      `whose it is (default ${defaultTenant})`,
    ),
    async (client, flags: TokenFlags, id) => {
      const done = await client.request('DELETE', `${pageOf(flags)}/${encodeURIComponent(id!)}`);
      await answer(flags, done, () => `token ${id} is revoked`);
    },
  );
}

async function create(
  client: AdminClient,
  flags: TokenFlags,
  user: string | undefined,
): Promise<MadeToken> {
  const { role, tenant, description } = flags;
  if ((user === undefined) === (role === undefined)) {
    throw new ExitError('name the user the token is for, or give --role', exitCodes.usage);
  }
  if (role !== undefined) {
    const wish = { role, tenant, description };
    return (await client.request('POST', adminTokensPage, wish)) as MadeToken;
  }
  const name = userName(user!, tenant);
  const wish = { user: name.user, description };
  return (await client.request('POST', tokensPage(name.tenant), wish)) as MadeToken;
}

function pageOf({ admin, tenant }: TokenFlags): string {
  return admin ? adminTokensPage : tokensPage(tenant ?? defaultTenant);
}

const columns: Column<TokenView>[] = [
  { title: 'id', value: ({ id }) => id },
  { title: 'of', value: ownerOf },
  { title: 'made', value: ({ createdAt }) => formatTime(createdAt) },
  { title: 'description', value: ({ description }) => description },
];

function ownerOf({ tenant, user, role }: TokenView): string {
  if (user !== undefined) return `${user}@${tenant ?? defaultTenant}`;
  return tenant === undefined ? (role ?? '') : `${role} ${tenant}`;
}
