// What Redis would say about how it keeps a row, told from the row's contents by the limits that CONFIG has.

import { Action } from '../../../universal-row/command.ts';
import { type CommandSpec, type KeyRange, noKeys } from './spec.ts';
import { helpOf } from './support/help.ts';
import {
  objectEncoding,
  objectFreq,
  objectIdletime,
  objectRefcount,
} from '../../../universal-row/transforms/redis/object.ts';

const secondWord: KeyRange = { first: 2, last: 2, step: 1 };

const objectSubcommands: readonly CommandSpec[] = [
  {
    name: 'encoding',
    arity: 3,
    syntax: 'key',
    flags: ['readonly'],
    keys: secondWord,
    group: 'generic',
    since: '2.2.3',
    summary: 'Returns how Redis would keep what is under a key.',
    complexity: 'O(N) for N elements, up to a few hundred',
    action: Action.fetch,
    run: objectEncoding,
  },
  {
    name: 'freq',
    arity: 3,
    syntax: 'key',
    flags: ['readonly'],
    keys: secondWord,
    group: 'generic',
    since: '4.0.0',
    summary: 'Returns the logarithmic access frequency counter of a key.',
    complexity: 'O(1)',
    action: Action.fetch,
    run: objectFreq,
  },
  {
    name: 'idletime',
    arity: 3,
    syntax: 'key',
    flags: ['readonly'],
    keys: secondWord,
    group: 'generic',
    since: '2.2.3',
    summary: 'Returns the time since the last access to a key.',
    complexity: 'O(1)',
    action: Action.fetch,
    run: objectIdletime,
  },
  {
    name: 'refcount',
    arity: 3,
    syntax: 'key',
    flags: ['readonly'],
    keys: secondWord,
    group: 'generic',
    since: '2.2.3',
    summary: 'Returns how many references Redis would hold to what is under a key.',
    complexity: 'O(1)',
    action: Action.fetch,
    run: objectRefcount,
  },
];

export const objectCommands: readonly CommandSpec[] = [
  {
    name: 'object',
    arity: -2,
    flags: [],
    keys: noKeys,
    group: 'generic',
    since: '2.2.3',
    summary: 'Tells how what is under a key is kept.',
    complexity: 'Depends on the subcommand',
    subcommands: [...objectSubcommands, helpOf('object', objectSubcommands)],
  },
];
