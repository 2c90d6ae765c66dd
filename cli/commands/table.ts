// `polyrow table`: the properties of the table behind each database number.

import { type Command, Option } from 'commander';
import type { TableDescription } from '../../control/admin/table-routes.ts';
import type { TableChange } from '../../control/metadata/table-catalog.ts';
import { type TableModel, tableModels } from '../../control/metadata/table-definition.ts';
import { ExitError } from '../lifecycle/exit-error.ts';
import { answer } from '../output/answer.ts';
import { exitCodes } from '../output/exit-codes.ts';
import { type Column, grid } from '../output/grid.ts';
import { formatBytes, formatDuration, formatNumber } from '../output/values.ts';
import { addTenantFlag, size } from './argument-values.ts';
import { type AccessFlags, addAccessFlags } from './server-access.ts';
import type { Tables } from './tables-access.ts';

interface PropertyFlags extends AccessFlags {
  tenant?: string;
  model?: TableModel;
  name?: string;
  readOnly?: boolean;
  ttlDefaultMs?: number;
  maxRowBytes?: number;
}

export function tableCommand(program: Command): void {
  const table = program
    .command('table')
    .description('Tables and their properties. Redis database n is table n.');

  withConnection(table.command('list').description('Show all tables.'), async (tables, flags) =>
    answer(flags, await tables.list(), (all) => grid(columns, all)),
  );
  withConnection(
    table.command('describe <table>').description('Show one table, by number or name.'),
    async (tables, flags, name) => showOne(await tables.describe(name!), flags),
  );
  withConnection(
    withProperties(
      table.command('create <table>').description('Give a database properties of its own.'),
    ),
    async (tables, flags, name) => showOne(await tables.create(name!, changeOf(flags)), flags),
  );
  withConnection(
    withProperties(
      table.command('alter <table>').description('Change properties of a table; at once.'),
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
    table
      .command('reset <table>')
      .description('Take back all properties of a table. Its rows stay.'),
    async (tables, flags, name) => showOne(await tables.reset(name!), flags),
  );
}

function withProperties(command: Command): Command {
  return command
    .addOption(
      new Option('--model <model>', 'engine that holds the rows').choices([...tableModels]),
    )
    .option('--name <name>', 'name to use instead of the number')
    .option('--read-only', 'refuse writes')
    .option('--no-read-only', 'take writes again')
    .option('--ttl-default-ms <ms>', 'life of rows written without an expiry; 0 for ever', size)
    .option('--max-row-bytes <bytes>', 'largest row; 0 no limit', size);
}

function withConnection(
  command: Command,
  action: (tables: Tables, flags: PropertyFlags, table: string | undefined) => Promise<void>,
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
  const all = { model, name, readOnly, ttlDefaultMs, maxRowBytes };
  const given = Object.entries(all).filter(([, value]) => value !== undefined);
  return Object.fromEntries(given) as TableChange;
}

async function showOne(table: TableDescription, flags: PropertyFlags): Promise<void> {
  await answer(flags, table, (one) => grid(columns, [one]));
}

const columns: Column<TableDescription>[] = [
  { title: 'tenant', value: ({ tenant }) => tenant },
  { title: 'database', value: ({ database }) => database, right: true },
  { title: 'name', value: ({ name }) => name },
  { title: 'model', value: modelOf },
  {
    title: 'rows',
    value: ({ rows }) => (rows === undefined ? '?' : formatNumber(rows)),
    right: true,
  },
  { title: 'writes', value: ({ readOnly }) => (readOnly ? 'refused' : 'yes') },
  {
    title: 'default ttl',
    value: ({ ttlDefaultMs: ms }) => (ms === 0 ? 'none' : formatDuration(ms * 1000)),
    right: true,
  },
  {
    title: 'max row',
    value: ({ maxRowBytes: bytes }) => (bytes === 0 ? 'no limit' : formatBytes(bytes)),
    right: true,
  },
];

function modelOf({ model, wantedModel }: TableDescription): string {
  return wantedModel === undefined ? model : `${model}, ${wantedModel} after a start if empty`;
}
