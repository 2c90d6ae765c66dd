// Fields of hashes that expire.

import { Action } from '../../../universal-row/command.ts';
import {
  hexpire,
  hexpireat,
  hexpiretime,
  hgetdel,
  hgetex,
  hpersist,
  hpexpire,
  hpexpireat,
  hpexpiretime,
  hpttl,
  hsetex,
  httl,
} from '../../../universal-row/transforms/redis/hash-times/commands.ts';
import { type CommandSpec, firstKey } from './spec.ts';

const common = { keys: firstKey, group: 'hash', complexity: 'O(N) for N fields' } as const;
const fields = 'FIELDS numfields:integer field [field ...]';
const condition = '[NX | XX | GT | LT]';

const setters = [
  ['hexpire', 'seconds:integer', hexpire, 'after so many seconds'],
  ['hpexpire', 'milliseconds:integer', hpexpire, 'after so many milliseconds'],
  ['hexpireat', 'unix-time-seconds:integer', hexpireat, 'at a time in seconds'],
  ['hpexpireat', 'unix-time-milliseconds:integer', hpexpireat, 'at a time in milliseconds'],
] as const;

const getters = [
  ['httl', httl, 'how many seconds fields have left'],
  ['hpttl', hpttl, 'how many milliseconds fields have left'],
  ['hexpiretime', hexpiretime, 'when fields expire, in seconds since 1970'],
  ['hpexpiretime', hpexpiretime, 'when fields expire, in milliseconds since 1970'],
] as const;

export const hashTimeCommands: readonly CommandSpec[] = [
  ...setters.map(
    ([name, time, run, when]): CommandSpec => ({
      ...common,
      name,
      arity: -6,
      syntax: `key ${time} ${condition} ${fields}`,
      flags: ['write', 'denyoom', 'fast'],
      since: '7.4.0',
      summary: `Has fields of a hash expire ${when}.`,
      action: Action.update,
      run,
    }),
  ),
  ...getters.map(
    ([name, run, what]): CommandSpec => ({
      ...common,
      name,
      arity: -5,
      syntax: `key ${fields}`,
      flags: ['readonly', 'fast'],
      since: '7.4.0',
      summary: `Returns ${what}.`,
      action: Action.fetch,
      run,
    }),
  ),
  {
    ...common,
    name: 'hpersist',
    arity: -5,
    syntax: `key ${fields}`,
    flags: ['write', 'fast'],
    since: '7.4.0',
    summary: 'Has fields of a hash expire no more.',
    action: Action.update,
    run: hpersist,
  },
  {
    ...common,
    name: 'hgetdel',
    arity: -5,
    syntax: `key ${fields}`,
    flags: ['write', 'fast'],
    since: '8.0.0',
    summary: 'Returns values of fields of a hash, and removes the fields.',
    action: Action.update,
    run: hgetdel,
  },
  {
    ...common,
    name: 'hgetex',
    arity: -5,
    syntax: `key [EX seconds:integer | PX milliseconds:integer | EXAT unix-time-seconds:integer | PXAT unix-time-milliseconds:integer | PERSIST] ${fields}`,
    flags: ['write', 'fast'],
    since: '8.0.0',
    summary: 'Returns values of fields of a hash, and sets when the fields expire.',
    action: Action.update,
    run: hgetex,
  },
  {
    ...common,
    name: 'hsetex',
    arity: -6,
    syntax:
      'key [FNX | FXX] [EX seconds:integer | PX milliseconds:integer | EXAT unix-time-seconds:integer | PXAT unix-time-milliseconds:integer | KEEPTTL] FIELDS numfields:integer field value [field value ...]',
    flags: ['write', 'denyoom', 'fast'],
    since: '8.0.0',
    summary: 'Sets fields of a hash, and when they expire.',
    action: Action.update,
    run: hsetex,
  },
];
