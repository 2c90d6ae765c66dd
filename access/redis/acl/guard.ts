// Permission check before a command of a restricted client, and the error replies.

import type { Arguments } from '../../../universal-row/arguments.ts';
import type { CommandEntry } from '../commands/registry.ts';
import type { Client } from '../client.ts';
import { describeClient } from '../describe-client.ts';
import { maxObjectLength } from './acl-log.ts';
import type { Denial } from './selector.ts';

/** The error to answer when its user may not run the command. */
export function refusalOf(
  connection: Client,
  entry: CommandEntry,
  args: Arguments,
): string | undefined {
  const { tenant, permissions } = connection;
  if (entry.serverWide && !tenant.isFirst) {
    log(connection, { reason: 'command', word: 0 }, entry, args);
    return `NOPERM the '${entry.fullName}' command is about the whole server, and not for users of tenant '${tenant.definition.name}'`;
  }
  const denial = permissions.check(entry, args);
  if (denial === undefined) {
    const isSort = entry.fullName === 'sort' || entry.fullName === 'sort_ro';
    return isSort ? refusedPattern(connection, entry, args) : undefined;
  }
  log(connection, denial, entry, args);
  if (denial.reason === 'command') {
    return `NOPERM this user has no permissions to run the '${entry.fullName}' command`;
  }
  return `NOPERM this user has no permissions to access one of the ${denial.reason}s used as arguments`;
}

const scriptDenials = {
  command: "can't run this command or subcommand",
  key: "can't access at least one of the keys mentioned in the command arguments",
  channel: "can't publish to the channel mentioned in the command",
} as const;

export function scriptDenialText({ reason }: Denial): string {
  return `ERR The user executing the script ${scriptDenials[reason]}`;
}

/** As `refusalOf`, of a command that a script calls. */
export function scriptRefusal(
  connection: Client,
  entry: CommandEntry,
  args: Arguments,
): string | undefined {
  const denial = connection.permissions.check(entry, args);
  if (denial === undefined) return undefined;
  log(connection, denial, entry, args, 'lua');
  return scriptDenialText(denial);
}

/** SORT looks up keys that it makes from patterns. */
function refusedPattern(
  { permissions }: Client,
  entry: CommandEntry,
  args: Arguments,
): string | undefined {
  for (let i = 2; i + 1 < args.count; i++) {
    const isBy = args.is(i, 'BY');
    if (!isBy && !args.is(i, 'GET')) continue;
    if (isBy && !args.bytes(i + 1).includes('*')) continue;
    if (permissions.readsAllKeys(entry, args)) return undefined;
    return `ERR ${isBy ? 'BY' : 'GET'} option of SORT denied due to insufficient ACL permissions.`;
  }
  return undefined;
}

const lostRights = {
  command: 'no permission to execute the command or subcommand',
  key: 'no permission to touch the specified keys',
  channel: 'no permission to access one of the channels used as arguments to the command',
} as const;

/** As `refusalOf`, of a command that was allowed when it was queued. */
export function refusalByNow(
  connection: Client,
  entry: CommandEntry,
  args: Arguments,
): string | undefined {
  const denial = connection.permissions.check(entry, args);
  if (denial === undefined) return undefined;
  log(connection, denial, entry, args);
  return `NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. This command is no longer allowed for the following reason: ${lostRights[denial.reason]}`;
}

function log(
  connection: Client,
  { reason, word }: Denial,
  entry: CommandEntry,
  args: Arguments,
  context: 'toplevel' | 'multi' | 'lua' = connection.transaction === undefined
    ? 'toplevel'
    : 'multi',
): void {
  connection.tenant.aclLog.add({
    reason,
    context,
    object: reason === 'command' ? entry.fullName : args.latin1(word, maxObjectLength),
    user: connection.user,
    at: connection.server.now,
    client: describeClient(connection, entry),
  });
}
