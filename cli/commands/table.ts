// `polyrow table`: the properties of the tables behind Redis databases, and of InfluxDB databases.

import { type Command, Option } from 'commander';
import {
  seriesModel,
  type TableChange,
  tableModels,
} from '../../control/metadata/table-definition.ts';
import type { TableDescription } from '../../control/metadata/tables.ts';
import {
  consistencyKinds,
  defaultBounds,
  quotaModes,
  shardingKinds,
  writePriorities,
} from '../../contracts/table-properties.ts';
import { ExitError } from '../../server/lifecycle/exit-error.ts';
import { answer } from '../output/answer.ts';
import { exitCodes } from '../../server/exit-codes.ts';
import { addTenantFlag, size, wholeNumber } from './argument-values.ts';
import { type AccessFlags, addAccessFlags } from './server-access.ts';
import { describedTable, listedTables } from './table-view.ts';
import type { TablesAccess } from './tables-access.ts';

interface PropertyFlags extends AccessFlags, Omit<TableChange, 'consistency'> {
  tenant?: string;
  consistency?: (typeof consistencyKinds)[number];
  maxStalenessMs?: number;
  maxLagEntries?: number;
}

export function tableCommand(program: Command): void {
  const table = program
    .command('table')
    .description(
      'Tables and their properties. Redis database n is table n, an InfluxDB database is one by its name.',
    );

  withConnection(table.command('list').description('Show all tables.'), async (tables, flags) =>
    answer(flags, await tables.list(), listedTables),
  );
  withConnection(
    table.command('describe <table>').description('Show one table, by number or name.'),
    async (tables, flags, name) => showOne(await tables.describe(name!), flags),
  );
  withConnection(
    withProperties(
      table
        .command('create <table>')
        .description(
          'Give a database properties of its own. With --model series it is an InfluxDB database, and is created.',
        ),
    ),
    async (tables, flags, name) => showOne(await tables.create(name!, changeOf(flags)), flags),
  );
  withConnection(
    withProperties(
      table
        .command('alter <table>')
        .description('Change properties of a table, effective at once.'),
    ),
    async (tables, flags, name) => {
      const change = changeOf(flags);
      if (Object.keys(change).length === 0) {
        throw new ExitError('nothing to change was given', exitCodes.usage);
      }
      await showOne(await tables.alter(name!, change), flags);
    },
  );
  withConnection(
    table.command('reset <table>').description('Remove all properties of a table. Its rows stay.'),
    async (tables, flags, name) => showOne(await tables.reset(name!), flags),
  );
}

function withProperties(command: Command): Command {
  return command
    .addOption(
      new Option('--model <model>', 'engine that holds the rows; series: InfluxDB').choices([
        ...tableModels,
        seriesModel,
      ]),
    )
    .option('--name <name>', 'name to use instead of the number')
    .option('--read-only', 'refuse writes')
    .option('--no-read-only', 'take writes again')
    .option(
      '--ttl-default-ms <ms>',
      'time to live of rows written without an expiry; 0 for ever',
      size,
    )
    .option('--max-row-bytes <bytes>', 'largest row or point; 0 no limit', size)
    .addOption(
      new Option('--consistency <kind>', 'what reads may see').choices([...consistencyKinds]),
    )
    .option('--max-staleness-ms <ms>', 'of bounded consistency', wholeNumber)
    .option('--max-lag-entries <n>', 'not yet available', wholeNumber)
    .addOption(
      new Option(
        '--sharding-kind <kind>',
        'how rows are spread: hash; range is not yet available',
      ).choices([...shardingKinds]),
    )
    .option('--partitions <n>', 'ranges of slots to divide it into; while it is empty', wholeNumber)
    .addOption(
      new Option('--write-priority <priority>', 'which writes go first').choices([
        ...writePriorities,
      ]),
    )
    .addOption(
      new Option(
        '--quota-mode <mode>',
        'whether it may use unused request units of others',
      ).choices([...quotaModes]),
    )
    .option('--cache-bypass', 'do not cache rows that are read')
    .option('--no-cache-bypass', 'cache rows that are read again');
}

function withConnection(
  command: Command,
  action: (tables: TablesAccess, flags: PropertyFlags, table: string | undefined) => Promise<void>,
): void {
  addTenantFlag(command, "a tenant's tables, which it numbers from 0; else those of all");
  const config = addAccessFlags(command);
  command.action(async (...given: unknown[]) => {
    const table = typeof given[0] === 'string' ? given[0] : undefined;
    const flags = command.opts<PropertyFlags>();
    // Loaded only here: the other commands have no need of it.
    const { openTables } = await import('./tables-access.ts');
    const tables = await openTables(flags, config(), flags.tenant);
    try {
      await action(tables, flags, table);
    } finally {
      await tables.close();
    }
  });
}

function changeOf(flags: PropertyFlags): TableChange {
  const { model, name, readOnly, ttlDefaultMs, maxRowBytes } = flags;
  const { shardingKind, partitions, writePriority, quotaMode, cacheBypass } = flags;
  const all = {
    ...{ model, name, readOnly, ttlDefaultMs, maxRowBytes },
    ...{ shardingKind, partitions, writePriority, quotaMode, cacheBypass },
    consistency: consistencyOf(flags),
  };
  const given = Object.entries(all).filter(([, value]) => value !== undefined);
  return Object.fromEntries(given) as TableChange;
}

function consistencyOf(flags: PropertyFlags): TableChange['consistency'] {
  const { consistency, maxStalenessMs, maxLagEntries } = flags;
  if (maxStalenessMs === undefined && maxLagEntries === undefined) return consistency;
  if (consistency !== undefined && consistency !== 'bounded') {
    throw new ExitError(`consistency ${consistency} has no bounds`, exitCodes.usage);
  }
  return {
    kind: 'bounded',
    maxStalenessMs: maxStalenessMs ?? defaultBounds.maxStalenessMs,
    maxLagEntries: maxLagEntries ?? defaultBounds.maxLagEntries,
  };
}

async function showOne(table: TableDescription, flags: PropertyFlags): Promise<void> {
  await answer(flags, table, describedTable);
}
