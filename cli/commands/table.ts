// `polyrow table`: the properties of the table behind each database number.

import { type Command, InvalidArgumentError, Option } from 'commander';
import type { TableDescription } from '../../control/admin/table-routes.ts';
import type { TableChange } from '../../control/metadata/table-catalog.ts';
import { type TableModel, tableModels } from '../../control/metadata/table-definition.ts';
import { resolveConfig } from '../config/resolve.ts';
import { parseSize } from '../config/setting.ts';
import { ExitError } from '../lifecycle/exit-error.ts';
import { addSettingFlags } from './setting-flags.ts';
import type { Tables } from './tables-access.ts';

interface CommonFlags {
  config?: string;
  adminUrl?: string;
  json?: true;
}

interface PropertyFlags extends CommonFlags {
  model?: TableModel;
  name?: string;
  readOnly?: boolean;
  ttlDefaultMs?: number;
  maxRowBytes?: number;
}

const usedSettings =
  /^(data-dir|admin\.token|admin\.token-file|redis\.databases|redis\.default-model)$/;

export function tableCommand(program: Command): void {
  const table = program
    .command('table')
    .description('Tables and their properties. Redis database n is table n.');

  withConnection(table.command('list').description('Show all tables.'), async (tables, flags) =>
    show(await tables.list(), flags.json),
  );
  withConnection(
    table.command('describe <table>').description('Show one table, by number or name.'),
    async (tables, flags, name) => showOne(await tables.describe(name!), flags.json),
  );
  withConnection(
    withProperties(
      table.command('create <table>').description('Give a database properties of its own.'),
    ),
    async (tables, flags, name) => showOne(await tables.create(name!, changeOf(flags)), flags.json),
  );
  withConnection(
    withProperties(
      table.command('alter <table>').description('Change properties of a table; at once.'),
    ),
    async (tables, flags, name) => {
      const change = changeOf(flags);
      if (Object.keys(change).length === 0) throw new ExitError('nothing to change was given', 2);
      await showOne(await tables.alter(name!, change), flags.json);
    },
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
  command
    .option('--json', 'answer in JSON')
    .option('--admin-url <url>', 'admin API of the server; else the one on the data directory')
    .option('--config <file>', 'TOML file with settings');
  const settings = addSettingFlags(command, (key) => usedSettings.test(key));
  command.action(async (...given: unknown[]) => {
    const table = typeof given[0] === 'string' ? given[0] : undefined;
    const flags = command.opts<PropertyFlags>();
    const { config } = resolveConfig({
      flags: settings(),
      environment: process.env,
      file: flags.config,
    });
    // Loaded only here: a start has no need of it.
    const { openTables } = await import('./tables-access.ts');
    const tables = await openTables(config, flags.adminUrl);
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

function size(text: string): number {
  const value = parseSize(text);
  if (Number.isNaN(value)) throw new InvalidArgumentError('It must be a number, as 1000 or 64mb.');
  return value;
}

async function show(tables: TableDescription[], asJson: true | undefined): Promise<void> {
  process.stdout.write(`${asJson ? JSON.stringify(tables) : await gridOf(tables)}\n`);
}

async function showOne(table: TableDescription, asJson: true | undefined): Promise<void> {
  process.stdout.write(`${asJson ? JSON.stringify(table) : await gridOf([table])}\n`);
}

async function gridOf(tables: TableDescription[]): Promise<string> {
  const { default: Table } = await import('cli-table3');
  const grid = new Table({
    head: ['table', 'name', 'model', 'rows', 'writes', 'default ttl', 'max row'],
    style: { head: [], border: [], compact: true },
  });
  for (const table of tables) {
    const { id, name, model, wantedModel, rows, readOnly, ttlDefaultMs, maxRowBytes } = table;
    grid.push([
      id,
      name,
      wantedModel === undefined ? model : `${model}, ${wantedModel} after a start if empty`,
      rows ?? '?',
      readOnly ? 'refused' : 'yes',
      ttlDefaultMs === 0 ? 'none' : `${ttlDefaultMs} ms`,
      maxRowBytes === 0 ? 'no limit' : `${maxRowBytes} B`,
    ]);
  }
  return grid.toString();
}
