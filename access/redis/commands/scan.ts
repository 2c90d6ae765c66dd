// Walking over keys.

import { Action } from '../../../universal-row/command.ts';
import { type CommandSpec, noKeys } from './spec.ts';
import { keys, randomkey, scan } from '../../../universal-row/transforms/redis/scan.ts';

export const scanCommands: readonly CommandSpec[] = [
  {
    name: 'keys',
    arity: 2,
    syntax: 'pattern',
    flags: ['readonly'],
    keys: noKeys,
    group: 'generic',
    since: '1.0.0',
    summary: 'Returns all keys that match a pattern.',
    complexity: 'O(N) for N keys in the database',
    action: Action.scan,
    run: keys,
  },
  {
    name: 'scan',
    arity: -2,
    syntax: 'cursor [MATCH pattern] [COUNT count] [TYPE type]',
    flags: ['readonly'],
    keys: noKeys,
    group: 'generic',
    since: '2.8.0',
    summary: 'Walks the keys of the database, some at a time.',
    complexity: 'O(1) a call, O(N) for a whole walk over N keys',
    action: Action.scan,
    run: scan,
  },
  {
    name: 'randomkey',
    arity: 1,
    flags: ['readonly'],
    keys: noKeys,
    group: 'generic',
    since: '1.0.0',
    summary: 'Returns a random key.',
    complexity: 'O(1)',
    action: Action.scan,
    run: randomkey,
  },
];
