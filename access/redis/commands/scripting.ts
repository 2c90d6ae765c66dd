// Scripts: EVAL and its relatives, SCRIPT.

import { Action } from '../../../universal-row/command.ts';
import { CommandError } from '../../../universal-row/errors.ts';
import { scriptKeys } from '../../../universal-row/transforms/redis/scripts/eval.ts';
import type { Client, ClientCommand, ClientHandler } from '../client.ts';
import type { NodeQuestion } from '../elsewhere.ts';
import { killScripts } from '../node-questions.ts';
import type { RespWriter } from '../resp-writer.ts';
import type { CommandFlag } from './spec.ts';
import { busyWithFunction, busyWithScript } from '../tenant-scripts.ts';
import { helpOf } from './support/help.ts';

const unkillable =
  'UNKILLABLE Sorry the script already executed write commands against the dataset. You can either wait the script termination or kill the server in a hard way using the SHUTDOWN NOSAVE command.';
const flushOptions = new CommandError('ERR SCRIPT FLUSH only support SYNC|ASYNC option');

function evaluates(name: string, isSha: boolean, isReadOnly: boolean): ClientCommand {
  const flags: CommandFlag[] = ['noscript', 'movablekeys'];
  if (isReadOnly) flags.push('readonly');
  else flags.push('stale', 'may_replicate');
  const text = isSha ? 'sha1' : 'script';
  return {
    name,
    arity: -3,
    syntax: `${text} numkeys [key [key ...]] [arg [arg ...]]`,
    flags,
    keys: scriptKeys,
    group: 'scripting',
    since: isReadOnly ? '7.0.0' : '2.6.0',
    summary: `Executes a ${isReadOnly ? 'read-only ' : ''}server-side Lua script${isSha ? ' by SHA1 digest' : ''}.`,
    complexity: 'Depends on the script that is executed.',
    action: isReadOnly ? Action.query : Action.update,
    bind: (client) => client.scripts.transform(isSha, isReadOnly),
  };
}

/** Answers once the other nodes that can be reached have done it, too; a transaction does not wait for that. */
function everywhere(
  client: Client,
  question: NodeQuestion,
  reply: RespWriter,
  answer: (out: RespWriter, others: readonly unknown[]) => void,
): void | Promise<void> {
  const others = client.server.elsewhere?.ask(question);
  if (others === undefined || client.isExecuting) answer(reply, []);
  else return others.then((answers) => answer(client.answer(), answers));
}

const load: ClientHandler = (client, args, reply) => {
  const { number, scripts } = client.tenant;
  const script = scripts.cache.take(args.latin1(2));
  script.isLoaded = true;
  const { source, sha } = script;
  return everywhere(client, { what: 'loadScript', tenant: number, source }, reply, (out) =>
    out.text(sha),
  );
};

const exists: ClientHandler = (client, args, reply) => {
  const { cache } = client.tenant.scripts;
  reply.array(args.count - 2);
  for (let i = 2; i < args.count; i++) {
    reply.integer(cache.bySha(args.latin1(i, 64)) === undefined ? 0 : 1);
  }
};

const flush: ClientHandler = (client, args, reply) => {
  if (args.count > 3) throw flushOptions;
  if (args.count === 3 && !args.is(2, 'SYNC') && !args.is(2, 'ASYNC')) throw flushOptions;
  const { number, scripts } = client.tenant;
  scripts.cache.flush();
  return everywhere(client, { what: 'loadScript', tenant: number, source: '' }, reply, (out) =>
    out.ok(),
  );
};

/** SCRIPT KILL, or FUNCTION KILL: wherever scripts of the client's tenant run. */
export function killing(functions: boolean): ClientHandler {
  return (client, _args, reply) => {
    const { tenant } = client;
    const own = killScripts(tenant, functions);
    const question = { what: 'killScripts', tenant: tenant.number, functions } as const;
    return everywhere(client, question, reply, (out, others) => {
      const outcomes = [own, ...others];
      if (outcomes.includes('killed')) out.ok();
      else if (outcomes.includes('other')) out.error(functions ? busyWithScript : busyWithFunction);
      else if (outcomes.includes('unkillable')) out.error(unkillable);
      else out.error('NOTBUSY No scripts in execution right now.');
    });
  };
}

const debug: ClientHandler = (_client, _args, reply) => {
  reply.error('ERR SCRIPT DEBUG is not supported: scripts run in the same server as other clients');
};

function sub(
  name: string,
  arity: number,
  syntax: string | undefined,
  since: string,
  summary: string,
  handle: ClientHandler,
): ClientCommand {
  return {
    name,
    arity,
    ...(syntax === undefined ? {} : { syntax }),
    flags: ['noscript'],
    group: 'scripting',
    since,
    summary,
    ...(name === 'load' ? { longWords: true } : {}),
    handle,
  };
}

const subcommands: readonly ClientCommand[] = [
  sub(
    'debug',
    3,
    '<YES | SYNC | NO>',
    '3.2.0',
    'Sets the debug mode of server-side Lua scripts.',
    debug,
  ),
  sub(
    'exists',
    -3,
    'sha1 [sha1 ...]',
    '2.6.0',
    'Determines whether server-side Lua scripts exist in the script cache.',
    exists,
  ),
  sub(
    'flush',
    -2,
    '[ASYNC | SYNC]',
    '2.6.0',
    'Removes all server-side Lua scripts from the script cache.',
    flush,
  ),
  sub(
    'kill',
    2,
    undefined,
    '2.6.0',
    'Terminates a server-side Lua script during execution.',
    killing(false),
  ),
  sub('load', 3, 'script', '2.6.0', 'Loads a server-side Lua script to the script cache.', load),
];

const scriptCommand: ClientCommand = {
  name: 'script',
  arity: -2,
  flags: [],
  group: 'scripting',
  since: '2.6.0',
  summary: 'A container for Lua scripts management commands.',
  subcommands: [...subcommands, helpOf('script', subcommands)],
};

export const scriptingCommands: readonly ClientCommand[] = [
  evaluates('eval', false, false),
  evaluates('evalsha', true, false),
  evaluates('eval_ro', false, true),
  evaluates('evalsha_ro', true, true),
  scriptCommand,
];
