// Commands on rows of any shape.

import { Action } from '../../../universal-row/command.ts';
import { databaseCommands } from './databases.ts';
import { expireCommands } from './expire.ts';
import { objectCommands } from './object.ts';
import { scanCommands } from './scan.ts';
import { sortCommands } from './sort.ts';
import { allKeys, type CommandSpec, firstKey, type KeyRange } from './spec.ts';
import {
  del,
  exists,
  rename,
  renamenx,
  type,
} from '../../../universal-row/transforms/redis/keys.ts';

const sourceAndTarget: KeyRange = { first: 1, last: 2, step: 1 };

export const keysCommands: readonly CommandSpec[] = [
  {
    name: 'del',
    arity: -2,
    syntax: 'key [key ...]',
    flags: ['write'],
    keys: allKeys,
    group: 'generic',
    since: '1.0.0',
    summary: 'Removes keys.',
    complexity: 'O(N) for N keys',
    action: Action.delete,
    run: del,
  },
  {
    name: 'unlink',
    arity: -2,
    syntax: 'key [key ...]',
    flags: ['write', 'fast'],
    keys: allKeys,
    group: 'generic',
    since: '4.0.0',
    summary: 'Removes keys, and reclaims their memory later.',
    complexity: 'O(N) for N keys',
    action: Action.delete,
    run: del,
  },
  {
    name: 'exists',
    arity: -2,
    syntax: 'key [key ...]',
    flags: ['readonly', 'fast'],
    keys: allKeys,
    group: 'generic',
    since: '1.0.0',
    summary: 'Returns how many of the keys there are.',
    complexity: 'O(N) for N keys',
    action: Action.fetch,
    run: exists,
  },
  {
    name: 'touch',
    arity: -2,
    syntax: 'key [key ...]',
    flags: ['readonly', 'fast'],
    keys: allKeys,
    group: 'generic',
    since: '3.2.1',
    summary: 'Returns how many of the keys there are.',
    complexity: 'O(N) for N keys',
    action: Action.fetch,
    run: exists,
  },
  {
    name: 'type',
    arity: 2,
    syntax: 'key',
    flags: ['readonly', 'fast'],
    keys: firstKey,
    group: 'generic',
    since: '1.0.0',
    summary: 'Returns the type of the value of a key.',
    complexity: 'O(1)',
    action: Action.fetch,
    run: type,
  },
  {
    name: 'rename',
    arity: 3,
    syntax: 'key newkey',
    flags: ['write'],
    keys: sourceAndTarget,
    group: 'generic',
    since: '1.0.0',
    summary: 'Renames a key, replacing any key of the new name.',
    complexity: 'O(1)',
    action: Action.update,
    run: rename,
  },
  {
    name: 'renamenx',
    arity: 3,
    syntax: 'key newkey',
    flags: ['write', 'fast'],
    keys: sourceAndTarget,
    group: 'generic',
    since: '1.0.0',
    summary: 'Gives a key another name that no key has.',
    complexity: 'O(1)',
    action: Action.update,
    run: renamenx,
  },
  ...expireCommands,
  ...scanCommands,
  ...databaseCommands,
  ...sortCommands,
  ...objectCommands,
];
