// ACL: the users of the client's own tenant, and their rights. Users are kept by the control plane;
// a change is answered once it is in force.

import { randomBytes } from 'node:crypto';
import type { Arguments } from '../../../universal-row/arguments.ts';
import { CommandError } from '../../../universal-row/errors.ts';
import type { UserDefinition } from '../../../contracts/tenancy/definitions.ts';
import { describeUser } from '../acl/acl-user.ts';
import { categoryNames, isCategory } from '../acl/categories.ts';
import type { Permissions } from '../acl/acl-user.ts';
import { editUser } from '../acl/edit-user.ts';
import { shownDigest } from '../acl/passwords.ts';
import type { Client, ClientCommand } from '../client.ts';
import { askWide, doWide } from '../cluster-wide.ts';
import type { AclLogEntry } from '../acl/acl-log.ts';
import type { RespWriter } from '../resp-writer.ts';
import { innerCommand } from './support/inner-command.ts';

const common = { group: 'server', since: '6.0.0' } as const;
const admin = ['admin', 'noscript', 'loading', 'stale'] as const;
const plain = ['noscript', 'loading', 'stale'] as const;

const noFile = new CommandError(
  'ERR This Redis instance is not configured to use an ACL file. You may want to specify users via the ACL SETUSER command and then issue a CONFIG REWRITE (assuming you have a Redis configuration file set) in order to store users in the Redis configuration.',
);
const maxPasswordBits = 4096;
const defaultPasswordBits = 256;
const defaultLogCount = 10;

function tooManyWords(args: Arguments): CommandError {
  return new CommandError(
    `ERR unknown subcommand or wrong number of arguments for '${args.latin1(1)}'. Try ACL HELP.`,
  );
}

function usersOf({ server, tenant }: Client): UserDefinition[] {
  const users = [...server.principals.users(tenant.definition.name).values()];
  return users.sort((a, b) => (a.name < b.name ? -1 : 1));
}

function findUser({ server, tenant }: Client, name: string): UserDefinition | undefined {
  return server.principals.user(tenant.definition.name, name);
}

function describe(connection: Client, user: UserDefinition): string {
  const permissions = connection.server.permissionsOf(user);
  return describeUser(user, permissions, user.secrets.map(shownDigest));
}

function writeUser(user: UserDefinition, permissions: Permissions, reply: RespWriter): void {
  const flags = [user.enabled ? 'on' : 'off'];
  if (user.open) flags.push('nopass');
  reply.map(6);
  reply.text('flags');
  reply.set(flags.length);
  for (const flag of flags) reply.text(flag);
  reply.text('passwords');
  reply.array(user.secrets.length);
  for (const secret of user.secrets) reply.text(shownDigest(secret));
  writeSelector(permissions.root, reply);
  reply.text('selectors');
  reply.array(permissions.selectors.length);
  for (const selector of permissions.selectors) {
    reply.map(3);
    writeSelector(selector, reply);
  }
}

function writeSelector(selector: Permissions['root'], reply: RespWriter): void {
  reply.text('commands');
  reply.text(selector.commandText);
  reply.text('keys');
  reply.text(selector.keyText);
  reply.text('channels');
  reply.text(selector.channelText);
}

function dryRun(connection: Client, args: Arguments, reply: RespWriter): void {
  const { server, tenant } = connection;
  const user = findUser(connection, args.text(2));
  if (user === undefined) throw new CommandError(`ERR User '${args.latin1(2)}' not found`);
  const inner = innerCommand(args, 3);
  const found = server.registry.lookup(inner);
  const isContainer = found?.subcommands !== undefined && inner.count > 1;
  const entry = isContainer ? found.subcommand(inner) : found;
  if (entry === undefined) throw new CommandError(`ERR Command '${args.latin1(3)}' not found`);
  if (!entry.takes(inner.count)) {
    throw new CommandError(`ERR wrong number of arguments for '${entry.fullName}' command`);
  }
  const isElsewhere = entry.serverWide && !tenant.isFirst;
  const denial = isElsewhere
    ? ({ reason: 'command', word: 0 } as const)
    : server.permissionsOf(user).check(entry, inner);
  if (denial === undefined) reply.ok();
  else if (denial.reason === 'command') {
    reply.text(`This user has no permissions to run the '${entry.fullName}' command`);
  } else {
    // Redis writes words as C strings, so they end at a zero byte.
    const [object] = inner.latin1(denial.word).split('\0');
    reply.text(`This user has no permissions to access the '${object}' ${denial.reason}`);
  }
}

function writeLog(connection: Client, entries: readonly AclLogEntry[], reply: RespWriter): void {
  reply.array(entries.length);
  for (const entry of entries) {
    reply.map(7);
    reply.text('count');
    reply.integer(entry.count);
    reply.text('reason');
    reply.text(entry.reason);
    reply.text('context');
    reply.text(entry.context);
    reply.text('object');
    reply.text(entry.object);
    reply.text('username');
    reply.text(entry.user);
    reply.text('age-seconds');
    reply.double((connection.server.now - entry.at) / 1000);
    reply.text('client-info');
    reply.text(entry.client);
  }
}

/**
 * Lets the control plane make the change, and replies when it is done, even if the client's own
 * user is removed.
 */
async function manage(
  connection: Client,
  what: () => Promise<(reply: RespWriter) => void>,
): Promise<void> {
  connection.setManaging(true);
  try {
    const answer = await what();
    answer(connection.answer());
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    connection.answer().error(error instanceof CommandError ? text : `ERR ${text}`);
  } finally {
    connection.setManaging(false);
  }
}

async function deleteUsers(connection: Client, names: readonly string[]): Promise<number> {
  const { users } = connection.server;
  if (users === undefined) throw new Error('users cannot be changed here');
  let deleted = 0;
  for (const name of new Set(names)) {
    if (findUser(connection, name) === undefined) continue;
    await users.dropUser(connection.tenant.definition.name, name);
    deleted++;
  }
  return deleted;
}

const subcommands: readonly ClientCommand[] = [
  {
    ...common,
    name: 'cat',
    arity: -2,
    syntax: '[categoryname]',
    flags: plain,
    summary: 'Lists the ACL categories, or the commands inside a category.',
    handle({ server }, args, reply) {
      if (args.count > 3) throw tooManyWords(args);
      const names: string[] = [];
      if (args.count === 2) names.push(...categoryNames);
      else {
        const category = args.text(2).toLowerCase();
        if (!isCategory(category)) {
          throw new CommandError(`ERR Unknown category '${args.latin1(2)}'`);
        }
        for (const { categories, fullName } of server.registry.entries()) {
          if (categories.has(category)) names.push(fullName);
        }
      }
      reply.array(names.length);
      for (const name of names) reply.text(name);
    },
  },
  {
    ...common,
    name: 'deluser',
    arity: -3,
    syntax: 'username [username ...]',
    flags: admin,
    mayNotQueue: true,
    summary: 'Deletes ACL users, and terminates their connections.',
    handle(connection, args) {
      const names: string[] = [];
      for (let i = 2; i < args.count; i++) names.push(args.text(i));
      return manage(connection, async () => {
        if (names.includes('default')) {
          throw new CommandError("ERR The 'default' user cannot be removed");
        }
        const deleted = await deleteUsers(connection, names);
        return (reply) => reply.integer(deleted);
      });
    },
  },
  {
    ...common,
    name: 'dryrun',
    arity: -4,
    syntax: 'username command [arg [arg ...]]',
    flags: admin,
    since: '7.0.0',
    summary: 'Simulates the execution of a command by a user, without executing the command.',
    handle: dryRun,
  },
  {
    ...common,
    name: 'genpass',
    arity: -2,
    syntax: '[bits]',
    flags: plain,
    summary: 'Generates a pseudorandom, secure password that can be used to identify ACL users.',
    handle(_connection, args, reply) {
      if (args.count > 3) throw tooManyWords(args);
      const bits = args.count === 3 ? args.integer(2) : defaultPasswordBits;
      if (bits <= 0 || bits > maxPasswordBits) {
        throw new CommandError(
          `ERR ACL GENPASS argument must be the number of bits for the output password, a positive number up to ${maxPasswordBits}`,
        );
      }
      const digits = Math.ceil(bits / 4);
      reply.text(
        randomBytes(Math.ceil(digits / 2))
          .toString('hex')
          .slice(0, digits),
      );
    },
  },
  {
    ...common,
    name: 'getuser',
    arity: 3,
    syntax: 'username',
    flags: admin,
    summary: 'Lists the ACL rules of a user.',
    handle(connection, args, reply) {
      const user = findUser(connection, args.text(2));
      if (user === undefined) reply.nil();
      else writeUser(user, connection.server.permissionsOf(user), reply);
    },
  },
  {
    ...common,
    name: 'list',
    arity: 2,
    flags: admin,
    summary: 'Dumps the effective rules in ACL file format.',
    handle(connection, _args, reply) {
      const users = usersOf(connection);
      reply.array(users.length);
      for (const user of users) reply.text(describe(connection, user));
    },
  },
  {
    ...common,
    name: 'load',
    arity: 2,
    flags: admin,
    summary: 'Reloads the rules from the configured ACL file; there is none.',
    handle() {
      throw noFile;
    },
  },
  {
    ...common,
    name: 'log',
    arity: -2,
    syntax: '[count | RESET]',
    flags: admin,
    summary: 'Lists recent security events generated due to ACL rules.',
    handle(connection, args, reply) {
      if (args.count > 3) throw tooManyWords(args);
      if (args.is(2, 'RESET')) {
        return doWide(connection, 'resetAclLog', {}, reply);
      }
      const count = Math.max(0, args.count === 3 ? args.integer(2) : defaultLogCount);
      return askWide(connection, 'aclLog', { count }, reply, (out, { answers }) => {
        const all = answers.flat().sort((a, b) => b.at - a.at);
        writeLog(connection, all.slice(0, count), out);
      });
    },
  },
  {
    ...common,
    name: 'save',
    arity: 2,
    flags: admin,
    summary: 'Saves the effective ACL rules in the configured ACL file; there is none.',
    handle() {
      throw noFile;
    },
  },
  {
    ...common,
    name: 'setuser',
    arity: -3,
    syntax: 'username [rule [rule ...]]',
    flags: admin,
    mayNotQueue: true,
    summary: 'Creates and modifies an ACL user and its rules.',
    handle(connection, args) {
      const rules: string[] = [];
      for (let i = 3; i < args.count; i++) rules.push(args.text(i));
      const name = args.text(2);
      return manage(connection, async () => {
        await editUser(connection.server, connection.tenant.definition.name, name, rules);
        return (reply) => reply.ok();
      });
    },
  },
  {
    ...common,
    name: 'users',
    arity: 2,
    flags: admin,
    summary: 'Lists all ACL users.',
    handle(connection, _args, reply) {
      const users = usersOf(connection);
      reply.array(users.length);
      for (const { name } of users) reply.text(name);
    },
  },
  {
    ...common,
    name: 'whoami',
    arity: 2,
    flags: plain,
    summary: 'Returns the authenticated username of the current connection.',
    handle(connection, _args, reply) {
      reply.text(connection.user);
    },
  },
];

const helpLines = [
  'ACL <subcommand> [<arg> [value] [opt] ...]. Subcommands are:',
  'CAT [<category>]',
  '    List all commands that belong to <category>, or all command categories',
  '    when no category is specified.',
  'DELUSER <username> [<username> ...]',
  '    Delete a list of users.',
  'DRYRUN <username> <command> [<arg> ...]',
  '    Returns whether the user can execute the given command without executing the command.',
  'GETUSER <username>',
  "    Get the user's details.",
  'GENPASS [<bits>]',
  '    Generate a secure 256-bit user password. The optional `bits` argument can',
  '    be used to specify a different size.',
  'LIST',
  '    Show users details in config file format.',
  'LOAD',
  '    Reload users from the ACL file.',
  'LOG [<count> | RESET]',
  '    Show the ACL log entries.',
  'SAVE',
  '    Save the current config to the ACL file.',
  'SETUSER <username> <attribute> [<attribute> ...]',
  '    Create or modify a user with the specified attributes.',
  'USERS',
  '    List all the registered usernames.',
  'WHOAMI',
  '    Return the current connection username.',
  'HELP',
  '    Prints this help.',
];

export const aclCommands: readonly ClientCommand[] = [
  {
    ...common,
    name: 'acl',
    arity: -2,
    flags: [],
    summary: 'A container for Access List Control commands.',
    handle(_connection, _args, reply) {
      reply.error("ERR wrong number of arguments for 'acl' command");
    },
    subcommands: [
      ...subcommands,
      {
        ...common,
        name: 'help',
        arity: 2,
        flags: ['loading', 'stale'],
        summary: 'Returns helpful text about the different subcommands.',
        handle(_connection, _args, reply) {
          reply.array(helpLines.length);
          for (const line of helpLines) reply.simple(line);
        },
      },
    ],
  },
];
