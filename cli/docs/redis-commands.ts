// docs/commands.md, made from the command table.

import { allCommands } from '../../access/redis/commands/all.ts';
import type { CommandGroup, CommandSpec } from '../../access/redis/commands/spec.ts';
import { Action } from '../../universal-row/command.ts';
import { differences, generalDifferences, missingCommands } from './redis-differences.ts';

/** A command or subcommand that can be called. */
interface CommandRow {
  /** `config|set` for a subcommand. */
  fullName: string;
  group: CommandGroup;
  spec: CommandSpec;
}

const titles: Readonly<Record<CommandGroup, string>> = {
  string: 'Strings',
  hash: 'Hashes',
  list: 'Lists',
  set: 'Sets',
  'sorted-set': 'Sorted sets',
  stream: 'Streams',
  bitmap: 'Bitmaps',
  hyperloglog: 'HyperLogLog',
  geo: 'Geographic positions',
  generic: 'Keys',
  scripting: 'Scripting',
  transactions: 'Transactions',
  pubsub: 'Publish and subscribe',
  connection: 'Connection',
  server: 'Server',
  cluster: 'Cluster',
};

const actionNames = Object.keys(Action) as (keyof typeof Action)[];

/** All of the table; a container without work of its own is there through its subcommands. */
export function commandRows(): CommandRow[] {
  return allCommands.flat().flatMap((spec) => {
    const rows: CommandRow[] = [];
    const { subcommands = [], group } = spec;
    const called = subcommands.length === 0 || takesWords(spec, 1);
    if (called) rows.push({ fullName: spec.name, group, spec });
    for (const sub of subcommands) {
      rows.push({ fullName: `${spec.name}|${sub.name}`, group, spec: sub });
    }
    return rows;
  });
}

function takesWords(spec: CommandSpec, count: number): boolean {
  return spec.arity < 0 ? count >= -spec.arity : count === spec.arity;
}

export function commandsDocs(): string {
  const rows = commandRows();
  const parts = [introduction(rows)];
  for (const group of Object.keys(titles) as CommandGroup[]) {
    const members = rows.filter((row) => row.group === group);
    if (members.length === 0) continue;
    parts.push(
      `\n## ${titles[group]}\n`,
      '| command | effect | arity | runs as | flags | since | differences from Redis |',
      '| --- | --- | --- | --- | --- | --- | --- |',
      ...members.sort((a, b) => (a.fullName < b.fullName ? -1 : 1)).map(tableRow),
    );
  }
  return `${parts.join('\n')}\n`;
}

function introduction(rows: readonly CommandRow[]): string {
  const commands = new Set(rows.map(({ fullName }) => fullName.split('|')[0]));
  return `# Redis commands

<!-- Made by \`polyrow commands docs\`. Change the command table in access/redis/commands, or
cli/docs/redis-differences.ts, instead. -->

${commands.size} commands, ${rows.length} with subcommands counted one by one. They answer as Redis 7.0 does but for what is
said here.

## What differs in general

${generalDifferences.map((text) => `- ${text}`).join('\n')}

## What is not there yet

${missingCommands.map(missingLine).join('\n')}

## How to read the tables

- *arity*: how many words, the command's own included; -n is n or more.
- *runs as*: for a command on rows its action (fetch, update, put, delete, scan, query), by which table
  properties and flows apply, and the transform that carries it out; \`connection\` for one about the
  connection or the server. "Every model" runs once for each model.
- *flags*: as \`COMMAND INFO\` has them.
- *since*: the Redis version that brought it.`;
}

function missingLine({ what, commands }: (typeof missingCommands)[number]): string {
  return `- ${what}: ${commands.map((name) => `\`${shown(name)}\``).join(', ')}`;
}

/** `CONFIG SET`. */
function shown(fullName: string): string {
  return fullName.replace('|', ' ').toUpperCase();
}

function tableRow({ fullName, spec }: CommandRow): string {
  const cells = [
    `\`${shown(fullName)}\``,
    spec.summary,
    String(spec.arity),
    runsAs(fullName, spec),
    spec.flags.join(' '),
    spec.since,
    differenceOf(fullName),
  ];
  return `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
}

function runsAs(fullName: string, spec: CommandSpec): string {
  if (spec.run === undefined) return 'connection';
  const action = actionNames.find((name) => Action[name] === (spec.action ?? Action.fetch));
  // A transform made by a function has no name of its own.
  const transform = spec.run.name || fullName;
  const notes = [
    ...(spec.blocks === undefined ? [] : ['may wait']),
    ...(spec.everyPod === true ? ['every model'] : []),
  ];
  return [`${action} \`${transform}\``, ...notes].join(', ');
}

function differenceOf(fullName: string): string {
  return differences
    .filter(({ commands }) => commands.includes(fullName))
    .map(({ text }) => `${text}.`)
    .join(' ');
}
