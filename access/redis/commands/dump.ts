// Values as bytes, in the RDB format of Redis.

import { Action } from '../../../universal-row/command.ts';
import { dump } from '../../../universal-row/transforms/redis/rdb/dump.ts';
import { restore } from '../../../universal-row/transforms/redis/rdb/restore.ts';
import { migratedKeys, migrateTransform } from '../../../universal-row/transforms/redis/migrate.ts';
import type { ClientCommand } from '../client.ts';
import { openMigration } from '../migration-link.ts';
import { firstKey } from './spec.ts';

const migrate = migrateTransform(openMigration);

export const dumpCommands: readonly ClientCommand[] = [
  {
    name: 'migrate',
    arity: -6,
    syntax:
      'host port:integer <key | ""> destination-db:integer timeout:integer [COPY] [REPLACE] [[AUTH password] | [AUTH2 username password]] [KEYS key [key ...]]',
    flags: ['write', 'movablekeys'],
    keys: migratedKeys,
    group: 'generic',
    since: '2.6.0',
    summary: 'Moves keys to another server.',
    complexity: 'O(N) for N bytes of the values, and what the target takes',
    action: Action.update,
    // The command makes the server connect to a given address.
    serverWide: true,
    mayNotQueue: true,
    bind: () => migrate,
    refusalElsewhere: () => 'ERR MIGRATE cannot run where the table is in another process',
  },
  {
    name: 'dump',
    arity: 2,
    syntax: 'key',
    flags: ['readonly'],
    keys: firstKey,
    group: 'generic',
    since: '2.6.0',
    summary: 'Returns the value of a key in the serialized form of RESTORE.',
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
