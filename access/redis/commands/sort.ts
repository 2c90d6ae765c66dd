// SORT: the elements of a list, set or sorted set, ordered by their own value or by values of other
// rows, returned as they are or as values of other rows, or stored as a list.

import { Action } from '../../../universal-row/command.ts';
import { type CommandSpec, firstKey, type KeyFinder } from './spec.ts';
import { sort, sortRo } from '../../../universal-row/transforms/redis/sort.ts';

/** The row sorted, and the one stored to: the last STORE counts. */
const sortKeys: KeyFinder = (args) => {
  let storeWord = 0;
  for (let i = 2; i < args.count; i++) {
    if (args.is(i, 'LIMIT')) i += 2;
    else if (args.is(i, 'GET') || args.is(i, 'BY')) i++;
    else if (args.is(i, 'STORE') && i + 1 < args.count) storeWord = ++i;
  }
  return storeWord === 0 ? [1] : [1, storeWord];
};

export const sortCommands: readonly CommandSpec[] = [
  {
    name: 'sort',
    arity: -2,
    syntax:
      'key [BY pattern:key-pattern] [LIMIT offset count] [GET pattern:key-pattern [GET pattern:key-pattern ...]] [ASC | DESC] [ALPHA] [STORE destination]',
    flags: ['write', 'denyoom', 'movablekeys'],
    keys: sortKeys,
    group: 'generic',
    since: '1.0.0',
    summary: 'Sorts the elements of a list, set or sorted set, and may store them.',
    complexity: 'O(N*log(N)) for N elements',
    action: Action.update,
    run: sort,
  },
  {
    name: 'sort_ro',
    arity: -2,
    syntax:
      'key [BY pattern:key-pattern] [LIMIT offset count] [GET pattern:key-pattern [GET pattern:key-pattern ...]] [ASC | DESC] [ALPHA]',
    flags: ['readonly', 'movablekeys'],
    keys: firstKey,
    group: 'generic',
    since: '7.0.0',
    summary: 'Sorts the elements of a list, set or sorted set.',
    complexity: 'O(N*log(N)) for N elements',
    action: Action.query,
    run: sortRo,
  },
];
