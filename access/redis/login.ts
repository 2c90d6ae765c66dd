// Logging in by AUTH or HELLO.

import { Principal } from '../gateway/principals.ts';
import type { MaybePromise } from '../../universal-row/maybe-promise.ts';
import { whenReady } from '../../universal-row/maybe-promise.ts';
import type { Client } from './client.ts';
import { describeClient } from './describe-client.ts';

/** Undefined once the connection acts for the user, or else the error to answer. */
export function logIn(
  connection: Client,
  name: string,
  secret: Buffer,
): MaybePromise<string | undefined> {
  const { principals } = connection.server;
  const address = connection.socket.remoteAddress ?? '';
  return whenReady(principals.login(name, secret, address), (login) => {
    if (connection.closed) return undefined;
    if (login instanceof Principal) return connection.become(login);
    const { logins } = connection.server;
    if (logins.isOverdue(connection, performance.now())) connection.closeSoon();
    if (login.failure === 'credentials') {
      logFailure(connection, name);
      return 'WRONGPASS invalid username-password pair or user is disabled.';
    }
    return `ERR ${login.message}`;
  });
}

/** Logs the failure in the ACL log of the user's tenant, if the user exists. */
function logFailure(connection: Client, name: string): void {
  const { server } = connection;
  const { tenant, user } = server.principals.resolve(name);
  const definition = server.principals.tenant(tenant);
  const known = definition && server.tenants.get(definition.number);
  known?.aclLog.add({
    reason: 'auth',
    context: 'toplevel',
    object: 'AUTH',
    user: user.slice(0, 64),
    at: server.now,
    client: describeClient(connection),
  });
}
