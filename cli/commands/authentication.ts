// `polyrow authentication`: whether the server refuses wrong credentials.

import type { Command } from 'commander';
import { answer } from '../output/answer.ts';
import { card } from '../output/grid.ts';
import { type AccessFlags, withServer } from './server-access.ts';

const page = '/v1/authentication';

interface AuthenticationView {
  checksCredentials: boolean;
}

export function authenticationCommand(program: Command): void {
  const authentication = program
    .command('authentication')
    .description('Whether the server refuses wrong credentials.');
  withServer(
    authentication.command('show').description('Show whether credentials are checked.'),
    async (client, flags: AccessFlags) =>
      answer(flags, await client.get<AuthenticationView>(page), describe),
  );
  withServer(
    authentication
      .command('reset')
      .description(
        'Ignore credentials again, as a new server does. Refused while any user has a password or a token.',
      ),
    async (client, flags: AccessFlags) => {
      const view = await client.request('PATCH', page, { checksCredentials: false });
      await answer(flags, view as AuthenticationView, describe);
    },
  );
}

function describe({ checksCredentials }: AuthenticationView): string {
  return card([['credentials', checksCredentials ? 'checked' : 'ignored']]);
}
