// Union, intersection and difference of sorted sets, answered, counted or stored. Plain sets take part
// as well, each of their members with a score of 1.

import { Action } from '../../../universal-row/command.ts';
import type { CommandSpec } from './spec.ts';
import { countedKeys } from './support/counted-keys.ts';
import {
  zdiff,
  zdiffstore,
  zinter,
  zintercard,
  zinterstore,
  zunion,
  zunionstore,
} from '../../../universal-row/transforms/redis/sorted-set-algebra.ts';

const costOfUnion = 'O(N) + O(M*log(M)) for N members in all and M in the result';
const costOfInter =
  'O(N*K) + O(M*log(M)) for K sets, the smallest of N members, and M in the result';
const costOfDiff = 'O(N*K) + O(M*log(M)) for K sets, the first of N members, and M in the result';

export const sortedSetAlgebraCommands: readonly CommandSpec[] = [
  {
    name: 'zunion',
    arity: -3,
    syntax:
      'numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE <SUM | MIN | MAX>] [WITHSCORES]',
    flags: ['readonly', 'movablekeys'],
    keys: countedKeys(1),
    group: 'sorted-set',
    since: '6.2.0',
    summary: 'Returns the members that are in any of the sorted sets.',
    complexity: costOfUnion,
    action: Action.query,
    run: zunion,
  },
  {
    name: 'zinter',
    arity: -3,
    syntax:
      'numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE <SUM | MIN | MAX>] [WITHSCORES]',
    flags: ['readonly', 'movablekeys'],
    keys: countedKeys(1),
    group: 'sorted-set',
    since: '6.2.0',
    summary: 'Returns the members that are in all of the sorted sets.',
    complexity: costOfInter,
    action: Action.query,
    run: zinter,
  },
  {
    name: 'zdiff',
    arity: -3,
    syntax: 'numkeys key [key ...] [WITHSCORES]',
    flags: ['readonly', 'movablekeys'],
    keys: countedKeys(1),
    group: 'sorted-set',
    since: '6.2.0',
    summary: 'Returns the members of the first sorted set that are in no other.',
    complexity: costOfDiff,
    action: Action.query,
    run: zdiff,
  },
  {
    name: 'zunionstore',
    arity: -4,
    syntax:
      'destination numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE <SUM | MIN | MAX>]',
    flags: ['write', 'denyoom', 'movablekeys'],
    keys: countedKeys(2, 1),
    group: 'sorted-set',
    since: '2.0.0',
    summary: 'Stores the members that are in any of the sorted sets.',
    complexity: costOfUnion,
    action: Action.update,
    run: zunionstore,
  },
  {
    name: 'zinterstore',
    arity: -4,
    syntax:
      'destination numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE <SUM | MIN | MAX>]',
    flags: ['write', 'denyoom', 'movablekeys'],
    keys: countedKeys(2, 1),
    group: 'sorted-set',
    since: '2.0.0',
    summary: 'Stores the members that are in all of the sorted sets.',
    complexity: costOfInter,
    action: Action.update,
    run: zinterstore,
  },
  {
    name: 'zdiffstore',
    arity: -4,
    syntax: 'destination numkeys key [key ...]',
    flags: ['write', 'denyoom', 'movablekeys'],
    keys: countedKeys(2, 1),
    group: 'sorted-set',
    since: '6.2.0',
    summary: 'Stores the members of the first sorted set that are in no other.',
    complexity: costOfDiff,
    action: Action.update,
    run: zdiffstore,
  },
  {
    name: 'zintercard',
    arity: -3,
    syntax: 'numkeys key [key ...] [LIMIT limit]',
    flags: ['readonly', 'movablekeys'],
    keys: countedKeys(1),
    group: 'sorted-set',
    since: '7.0.0',
    summary: 'Counts the members that are in all of the sorted sets, up to a limit.',
    complexity: 'O(N*K) for K sets, the smallest of N members',
    action: Action.query,
    run: zintercard,
  },
];
