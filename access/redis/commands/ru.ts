// Request units: cost of the last command, usage of the tenant, and estimated cost of a command. A
// client sees its own tenant only.

import type { Arguments } from '../../../universal-row/arguments.ts';
import { Action, type Command, type Transform } from '../../../universal-row/command.ts';
import { CommandError } from '../../../universal-row/errors.ts';
import type { MaybePromise } from '../../../universal-row/maybe-promise.ts';
import {
  type DryRun,
  dryRunPrefix,
  readDryRun,
} from '../../../universal-row/transforms/redis/scripts/dry-run.ts';
import { chargeClasses } from '../../../request-units/meter.ts';
import { costLayout } from '../../../request-units/row-pricer.ts';
import { quotaFields } from '../admission/quota-fields.ts';
import type { Client, ClientCommand } from '../client.ts';
import { ClientScripts, prepareElsewhere } from '../client-scripts.ts';
import { Explainer, type NamedRows, namedRows } from '../explain.ts';
import type { RedisMetering } from '../metering.ts';
import { RespWriter } from '../resp-writer.ts';
import type { CommandEntry } from './registry.ts';
import { helpOf } from './support/help.ts';
import { innerCommand } from './support/inner-command.ts';

function meteringOf({ server }: Client): RedisMetering {
  if (server.metering === undefined) throw new CommandError('ERR metering is off (ru.metering)');
  return server.metering;
}

const costNames = ['cpu', 'memory', 'io', 'network'] as const;
const digits = 4;

/** Rounded to the accuracy of the estimate. */
function units(value: number): number {
  return Number(value.toFixed(digits));
}

/** Rounded text: RESP2 would show all digits of the double. */
function writeUnits(reply: RespWriter, value: number): void {
  if (reply.version < 3) reply.text(String(units(value)));
  else reply.double(units(value));
}

/** Five pairs of a map. */
function writeCost(reply: RespWriter, cost: Float64Array): void {
  reply.text('ru');
  writeUnits(reply, cost[costLayout.lru]!);
  for (const name of costNames) {
    reply.text(name);
    writeUnits(reply, cost[costLayout[name]]!);
  }
}

const flags = ['loading', 'stale'] as const;
const common = { flags, group: 'server', since: '7.2.0', hidesCost: true } as const;

const subcommands: readonly ClientCommand[] = [
  {
    ...common,
    name: 'last',
    arity: 2,
    summary: 'Returns the cost of the previous command.',
    complexity: 'O(1)',
    handle(connection, _args, reply) {
      const { name, cost } = connection.meter.last(meteringOf(connection));
      reply.map(6);
      reply.text('command');
      reply.text(name);
      writeCost(reply, cost);
    },
  },
  {
    ...common,
    name: 'work',
    arity: 2,
    summary: 'Returns the priced work of the previous commands.',
    complexity: 'O(1)',
    handle(connection, _args, reply) {
      const { name, work } = connection.meter.lastWork(meteringOf(connection));
      const counts = Object.entries(work ?? {});
      reply.map(1 + counts.length);
      reply.text('command');
      reply.text(name);
      for (const [what, count] of counts) {
        reply.text(what);
        reply.integer(count);
      }
    },
  },
  {
    ...common,
    name: 'stats',
    arity: 2,
    summary: 'Returns the cost of all requests of the tenant since the server was started.',
    complexity: 'O(1)',
    handle(connection, _args, reply) {
      const metering = meteringOf(connection);
      connection.meter.flush(metering);
      metering.flushAll();
      const account = connection.meter.accountIn(metering);
      const usage = account.usage();
      const fields: [string, number][] = [
        ['requests', usage.requests],
        ['errors', usage.errors],
        ['rejected', usage.rejected],
        ['bytes_in', usage.bytesIn],
        ['bytes_out', usage.bytesOut],
      ];
      const spent: [string, number][] = [
        ['ru', usage.lru],
        ['ru_last_second', usage.lastSecondLru],
      ];
      for (const name of chargeClasses) {
        const of = usage.classes[name];
        fields.push([`${name}_requests`, of.requests]);
        spent.push([`${name}_ru`, of.lru]);
        costNames.forEach((cost, d) => spent.push([`${name}_${cost}`, of.pru[d]!]));
      }
      usage.databases.forEach((ru, database) => {
        if (ru !== 0) spent.push([`db${database}_ru`, ru]);
      });
      const { counts, units: ofQuota } = quotaFields(connection.tenant.limits, account);
      fields.push(...counts);
      spent.push(...ofQuota);
      reply.map(fields.length + spent.length);
      for (const [name, value] of fields) {
        reply.text(name);
        reply.integer(value);
      }
      for (const [name, value] of spent) {
        reply.text(name);
        writeUnits(reply, value);
      }
    },
  },
  {
    ...common,
    longWords: true,
    // Its rows are looked up by a command of its own.
    mayNotQueue: true,
    name: 'explain',
    arity: -3,
    syntax: 'command [arg [arg ...]]',
    summary:
      'Estimates the cost of a command without running it, and tells that of a script by a run that is undone.',
    complexity: 'O(N) for N keys of the command; as the script',
    handle: explain,
  },
];

function explain(connection: Client, args: Arguments, reply: RespWriter): MaybePromise<void> {
  const metering = meteringOf(connection);
  const inner = innerCommand(args, 2);
  const entry = entryOf(connection, inner);
  const route = connection.server.router.to(connection.table);
  const explainer = new Explainer(
    route.pricer ?? metering.pricer,
    metering.historyOf(connection.meter.accountIn(metering)),
  );
  const script = new ClientScripts(connection, true).transformOf(entry.fullName);
  if (script !== undefined)
    return explainScript(connection, entry, inner, script, explainer, reply);
  const answer = (to: RespWriter, rows: NamedRows): void => {
    const { stages, cost } = explainer.explain(entry, inner, rows);
    to.map(8);
    to.text('command');
    to.text(entry.fullName);
    to.text('class');
    to.text(chargeClasses[entry.chargeClass]!);
    writeCost(to, cost);
    to.text('stages');
    to.array(stages.length);
    for (const stage of stages) {
      to.map(4);
      to.text('stage');
      to.text(stage.name);
      to.text('items');
      to.integer(stage.items);
      to.text('bytes');
      to.integer(stage.bytes);
      to.text('ru');
      writeUnits(to, stage.cost[costLayout.lru]!);
    }
  };
  let found: NamedRows = { keys: 0, found: 0, items: 0, bytes: 0 };
  if (entry.run === undefined) {
    answer(reply, found);
    return;
  }
  // The rows are looked up as for any command, by their executor.
  const unheard = new RespWriter(256);
  const done = route.executor.execute(
    {
      action: Action.fetch,
      name: 'ru|explain',
      likeCommand: entry.fullName,
      grows: false,
      table: connection.table,
      span: connection.tenant.span,
      args: inner,
      work: connection.meter.begin(metering, ownEntry(connection), connection.table, undefined),
      transform: (rows) => {
        found = namedRows(rows, entry, inner);
      },
    },
    unheard,
  );
  const finish = (to: RespWriter): void => {
    if (unheard.pos === 0) answer(to, found);
    else to.rawBytes(unheard.buf, 0, unheard.pos);
  };
  if (done instanceof Promise) return done.then(() => finish(connection.answer()));
  finish(reply);
}

/** Runs the script, has all undone, and answers what it cost and would have written. */
function explainScript(
  connection: Client,
  entry: CommandEntry,
  args: Arguments,
  transform: Transform,
  explainer: Explainer,
  reply: RespWriter,
): MaybePromise<void> {
  const { table, tenant, server, meter, id } = connection;
  const command: Command = {
    action: entry.action,
    name: dryRunPrefix + entry.fullName,
    likeCommand: entry.fullName,
    leavesNothing: true,
    transform,
    grows: entry.grows,
    table,
    span: tenant.span,
    args,
    work: meter.begin(meteringOf(connection), ownEntry(connection), table, undefined),
    tenant: tenant.number,
    client: id,
  };
  prepareElsewhere(connection, entry, command);
  const unheard = new RespWriter(256);
  unheard.version = reply.version;
  const finish = (to: RespWriter, { buf, pos }: RespWriter): void => {
    const run = readDryRun(buf.toString('latin1', 0, pos));
    if (run === undefined) to.rawBytes(buf, 0, pos);
    else writeDryRun(to, entry, run, explainer.costOf(args, run));
  };
  const done = server.router.to(table).executor.execute(command, unheard);
  if (done instanceof Promise) {
    return done.then((own) => finish(connection.answer(), (own ?? unheard) as RespWriter));
  }
  finish(reply, unheard);
}

function writeDryRun(to: RespWriter, entry: CommandEntry, run: DryRun, cost: Float64Array): void {
  to.map(13);
  to.text('command');
  to.text(entry.fullName);
  to.text('class');
  to.text(chargeClasses[entry.chargeClass]!);
  writeCost(to, cost);
  for (const name of ['calls', 'writes', 'rows', 'messages'] as const) {
    to.text(name);
    to.integer(run[name]);
  }
  to.text('log_bytes');
  to.integer(run.work.logBytes);
  to.text('error');
  if (run.failure === '') to.nil();
  else {
    const text = Buffer.from(run.failure, 'latin1');
    to.bulk(text, 0, text.length);
  }
}

function ownEntry({ server }: Client): CommandEntry {
  return server.registry.getFull('ru|explain')!;
}

function entryOf(connection: Client, inner: Arguments): CommandEntry {
  let entry = connection.server.registry.lookup(inner);
  if (entry?.subcommands !== undefined && inner.count > 1) {
    entry = entry.subcommands.get(inner.text(1).toLowerCase());
  }
  if (entry === undefined) throw new CommandError('ERR Invalid command specified');
  if (!entry.takes(inner.count)) {
    throw new CommandError('ERR Invalid number of arguments specified for command');
  }
  // The size of a row is hidden from users without access to it.
  if (connection.permissions.check(entry, inner) !== undefined) {
    throw new CommandError('NOPERM this user has no permissions to run this command');
  }
  return entry;
}

export const ruCommands: readonly ClientCommand[] = [
  {
    ...common,
    name: 'ru',
    arity: -2,
    summary: 'A container for commands about request units.',
    handle(_connection, _args, reply) {
      reply.error("ERR wrong number of arguments for 'ru' command");
    },
    subcommands: [...subcommands, helpOf('ru', subcommands)],
  },
];
