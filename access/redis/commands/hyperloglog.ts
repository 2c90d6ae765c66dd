// HyperLogLog: the commands, and where each is carried out.

import { Action } from '../../../universal-row/command.ts';
import {
  pfadd,
  pfcount,
  pfdebug,
  pfmerge,
} from '../../../universal-row/transforms/redis/hyperloglog/commands.ts';
import { pfselftest } from '../../../universal-row/transforms/redis/hyperloglog/self-test.ts';
import { allKeys, type CommandSpec, firstKey, noKeys } from './spec.ts';

export const hyperloglogCommands: readonly CommandSpec[] = [
  {
    name: 'pfadd',
    arity: -2,
    syntax: 'key [element [element ...]]',
    flags: ['write', 'denyoom', 'fast'],
    keys: firstKey,
    group: 'hyperloglog',
    since: '2.8.9',
    summary: 'Adds elements to a HyperLogLog, making it if there is none.',
    complexity: 'O(1) for each element',
    action: Action.update,
    run: pfadd,
  },
  {
    name: 'pfcount',
    arity: -2,
    syntax: 'key [key ...]',
    flags: ['readonly', 'may_replicate'],
    keys: allKeys,
    group: 'hyperloglog',
    since: '2.8.9',
    summary: 'Estimates how many different elements were added to HyperLogLogs.',
    complexity: 'O(N) for N keys',
    action: Action.query,
    run: pfcount,
  },
  {
    name: 'pfmerge',
    arity: -2,
    syntax: 'destkey sourcekey [sourcekey ...]',
    flags: ['write', 'denyoom'],
    keys: allKeys,
    group: 'hyperloglog',
    since: '2.8.9',
    summary: 'Merges HyperLogLogs into one.',
    complexity: 'O(N) for N keys',
    action: Action.update,
    run: pfmerge,
  },
  {
    name: 'pfdebug',
    arity: 3,
    syntax: 'subcommand key',
    flags: ['write', 'denyoom', 'admin'],
    keys: { first: 2, last: 2, step: 1 },
    group: 'hyperloglog',
    since: '2.8.9',
    summary: 'Shows how a HyperLogLog is kept.',
    complexity: 'O(1)',
    action: Action.update,
    run: pfdebug,
  },
  {
    name: 'pfselftest',
    arity: 1,
    flags: ['admin'],
    keys: noKeys,
    group: 'hyperloglog',
    since: '2.8.9',
    summary: 'Checks that HyperLogLogs are kept and estimated as they should be.',
    complexity: 'O(1)',
    action: Action.query,
    run: pfselftest,
  },
];
