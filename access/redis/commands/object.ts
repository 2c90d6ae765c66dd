// OBJECT: the encoding Redis would use for a row, from its contents and the limits in CONFIG.

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
    summary: 'Returns the encoding Redis would use for the value of a key.',
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
    summary: 'Returns the reference count Redis would have for the value of a key.',
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
    summary: 'Reports the internals of the value of a key.',
    complexity: 'Depends on the subcommand',
    subcommands: [...objectSubcommands, helpOf('object', objectSubcommands)],
  },
];
