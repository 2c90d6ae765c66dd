// Values as bytes, in the RDB format of Redis.

import { Action } from '../../../universal-row/command.ts';
import { dump } from '../../../universal-row/transforms/redis/rdb/dump.ts';
import { restore } from '../../../universal-row/transforms/redis/rdb/restore.ts';
import { type CommandSpec, firstKey } from './spec.ts';

export const dumpCommands: readonly CommandSpec[] = [
  {
    name: 'dump',
    arity: 2,
    syntax: 'key',
    flags: ['readonly'],
    keys: firstKey,
    group: 'generic',
    since: '2.6.0',
    summary: 'Returns what is under a key as bytes that RESTORE takes.',
    complexity: 'O(N) for N bytes of the value',
    action: Action.query,
    run: dump,
  },
  {
    name: 'restore',
    arity: -4,
    syntax:
      'key ttl:integer serialized-value [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ frequency:integer]',
    flags: ['write', 'denyoom'],
    keys: firstKey,
    group: 'generic',
    since: '2.6.0',
    summary: 'Makes a key of the bytes that DUMP returned.',
    complexity: 'O(N) for N bytes of the value',
    action: Action.update,
    run: restore,
  },
];
