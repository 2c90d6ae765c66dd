// The categories of ACL rules (`+@read`) and the commands in them.

import type { CommandGroup, CommandSpec } from '../commands/spec.ts';

/** All of Redis's, in its order; some have no command here. */
export const categoryNames = [
  'keyspace',
  'read',
  'write',
  'set',
  'sortedset',
  'list',
  'hash',
  'string',
  'bitmap',
  'hyperloglog',
  'geo',
  'stream',
  'pubsub',
  'admin',
  'fast',
  'slow',
  'blocking',
  'dangerous',
  'connection',
  'transaction',
  'scripting',
] as const;

export type Category = (typeof categoryNames)[number];

const ofGroup: Readonly<Record<CommandGroup, readonly Category[]>> = {
  string: ['string'],
  hash: ['hash'],
  list: ['list'],
  set: ['set'],
  'sorted-set': ['sortedset'],
  stream: ['stream'],
  bitmap: ['bitmap'],
  hyperloglog: ['hyperloglog'],
  geo: ['geo'],
  generic: ['keyspace'],
  pubsub: ['pubsub'],
  transactions: ['transaction'],
  connection: ['connection'],
  server: [],
  scripting: ['scripting'],
  cluster: [],
};

const sorting = ['set', 'sortedset', 'list', 'dangerous'] as const;

// Where a command's group does not tell, by its own name or its container's.
const exceptions: Readonly<Record<string, readonly Category[]>> = {
  wait: ['connection'],
  waitaof: ['connection'],
  keys: ['keyspace', 'dangerous'],
  dbsize: ['keyspace'],
  flushdb: ['keyspace', 'dangerous'],
  flushall: ['keyspace', 'dangerous'],
  swapdb: ['keyspace', 'dangerous'],
  restore: ['keyspace', 'dangerous'],
  migrate: ['keyspace', 'dangerous'],
  sort: sorting,
  sort_ro: sorting,
  info: ['dangerous'],
  lastsave: ['admin', 'dangerous'],
  role: ['admin', 'dangerous'],
  asking: ['connection'],
  readonly: ['connection'],
  readwrite: ['connection'],
  command: ['connection'],
};

/** `container` is the name of the command that this is a subcommand of. */
export function categoriesOf(spec: CommandSpec, container?: string): Category[] {
  const { flags } = spec;
  const has = new Set<Category>();
  // A container runs nothing itself.
  const plain = spec.subcommands === undefined || spec.name === 'command';
  if (plain)
    for (const category of exceptions[container ?? spec.name] ?? ofGroup[spec.group])
      has.add(category);
  if (flags.includes('write')) has.add('write');
  // A script reads as the commands in it do.
  if (flags.includes('readonly') && spec.group !== 'scripting') has.add('read');
  if (flags.includes('pubsub')) has.add('pubsub');
  else if (container === undefined && spec.subcommands !== undefined) has.delete('pubsub');
  // PUBSUB HELP touches no channel.
  if (container === 'pubsub' && spec.name === 'help') has.delete('pubsub');
  if (flags.includes('admin')) has.add('admin').add('dangerous');
  if (flags.includes('blocking')) has.add('blocking');
  has.add(flags.includes('fast') ? 'fast' : 'slow');
  return categoryNames.filter((name) => has.has(name));
}

export function isCategory(name: string): name is Category {
  return (categoryNames as readonly string[]).includes(name);
}
