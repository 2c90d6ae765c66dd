// Places on earth: the commands, and where each is carried out.

import { Action } from '../../../universal-row/command.ts';
import {
  geoadd,
  geodist,
  geohash,
  geopos,
} from '../../../universal-row/transforms/redis/geo/places.ts';
import {
  georadius,
  georadiusbymember,
  georadiusbymemberRo,
  georadiusRo,
  geosearch,
  geosearchstore,
} from '../../../universal-row/transforms/redis/geo/search.ts';
import { type CommandSpec, firstKey, type KeyFinder } from './spec.ts';

/** The key that is searched, and the one stored to: the last STORE or STOREDIST counts. */
function radiusKeys(firstOption: number): KeyFinder {
  return (args) => {
    let storeWord = 0;
    for (let i = firstOption; i + 1 < args.count; i++) {
      if (args.is(i, 'STORE') || args.is(i, 'STOREDIST')) storeWord = ++i;
    }
    return storeWord === 0 ? [1] : [1, storeWord];
  };
}

export const geoCommands: readonly CommandSpec[] = [
  {
    name: 'geoadd',
    arity: -5,
    syntax:
      'key [NX | XX] [CH] longitude:double latitude:double member [longitude:double latitude:double member ...]',
    flags: ['write', 'denyoom'],
    keys: firstKey,
    group: 'geo',
    since: '3.2.0',
    summary: 'Adds places to a sorted set, or moves them.',
    complexity: 'O(log N) for each place',
    action: Action.update,
    run: geoadd,
  },
  {
    name: 'geopos',
    arity: -2,
    syntax: 'key member [member ...]',
    flags: ['readonly'],
    keys: firstKey,
    group: 'geo',
    since: '3.2.0',
    summary: 'Returns the longitudes and latitudes of places.',
    complexity: 'O(1) for each place',
    action: Action.fetch,
    run: geopos,
  },
  {
    name: 'geodist',
    arity: -4,
    syntax: 'key member1 member2 [M | KM | FT | MI]',
    flags: ['readonly'],
    keys: firstKey,
    group: 'geo',
    since: '3.2.0',
    summary: 'Returns the distance between two places.',
    complexity: 'O(1)',
    action: Action.fetch,
    run: geodist,
  },
  {
    name: 'geohash',
    arity: -2,
    syntax: 'key member [member ...]',
    flags: ['readonly'],
    keys: firstKey,
    group: 'geo',
    since: '3.2.0',
    summary: 'Returns the standard geohashes of places.',
    complexity: 'O(1) for each place',
    action: Action.fetch,
    run: geohash,
  },
  {
    name: 'geosearch',
    arity: -7,
    syntax:
      'key <FROMMEMBER member | FROMLONLAT <longitude:double latitude:double>> <BYRADIUS <radius:double <M | KM | FT | MI>> | BYBOX <width:double height:double <M | KM | FT | MI>>> [ASC | DESC] [COUNT count [ANY]] [WITHCOORD] [WITHDIST] [WITHHASH]',
    flags: ['readonly'],
    keys: firstKey,
    group: 'geo',
    since: '6.2.0',
    summary: 'Finds the places within a circle or a box.',
    complexity: 'O(N+log M) for N places in the cells around the area, of M in all',
    action: Action.query,
    run: geosearch,
  },
  {
    name: 'geosearchstore',
    arity: -8,
    syntax:
      'destination source <FROMMEMBER member | FROMLONLAT <longitude:double latitude:double>> <BYRADIUS <radius:double <M | KM | FT | MI>> | BYBOX <width:double height:double <M | KM | FT | MI>>> [ASC | DESC] [COUNT count [ANY]] [STOREDIST]',
    flags: ['write', 'denyoom'],
    keys: { first: 1, last: 2, step: 1 },
    group: 'geo',
    since: '6.2.0',
    summary: 'Stores the places within a circle or a box.',
    complexity: 'O(N+log M) for N places in the cells around the area, of M in all',
    action: Action.update,
    run: geosearchstore,
  },
  {
    name: 'georadius',
    arity: -6,
    syntax:
      'key longitude:double latitude:double radius:double <M | KM | FT | MI> [WITHCOORD] [WITHDIST] [WITHHASH] [COUNT count [ANY]] [ASC | DESC] [STORE key] [STOREDIST key]',
    flags: ['write', 'denyoom', 'movablekeys'],
    keys: radiusKeys(6),
    group: 'geo',
    since: '3.2.0',
    summary: 'Finds the places within a circle around a position, and may store them.',
    complexity: 'O(N+log M) for N places in the cells around the area, of M in all',
    action: Action.update,
    run: georadius,
  },
  {
    name: 'georadius_ro',
    arity: -6,
    syntax:
      'key longitude:double latitude:double radius:double <M | KM | FT | MI> [WITHCOORD] [WITHDIST] [WITHHASH] [COUNT count [ANY]] [ASC | DESC]',
    flags: ['readonly'],
    keys: firstKey,
    group: 'geo',
    since: '3.2.10',
    summary: 'Finds the places within a circle around a position.',
    complexity: 'O(N+log M) for N places in the cells around the area, of M in all',
    action: Action.query,
    run: georadiusRo,
  },
  {
    name: 'georadiusbymember',
    arity: -5,
    syntax:
      'key member radius:double <M | KM | FT | MI> [WITHCOORD] [WITHDIST] [WITHHASH] [COUNT count [ANY]] [ASC | DESC] [STORE key] [STOREDIST key]',
    flags: ['write', 'denyoom', 'movablekeys'],
    keys: radiusKeys(5),
    group: 'geo',
    since: '3.2.0',
    summary: 'Finds the places within a circle around another, and may store them.',
    complexity: 'O(N+log M) for N places in the cells around the area, of M in all',
    action: Action.update,
    run: georadiusbymember,
  },
  {
    name: 'georadiusbymember_ro',
    arity: -5,
    syntax:
      'key member radius:double <M | KM | FT | MI> [WITHCOORD] [WITHDIST] [WITHHASH] [COUNT count [ANY]] [ASC | DESC]',
    flags: ['readonly'],
    keys: firstKey,
    group: 'geo',
    since: '3.2.10',
    summary: 'Finds the places within a circle around another.',
    complexity: 'O(N+log M) for N places in the cells around the area, of M in all',
    action: Action.query,
    run: georadiusbymemberRo,
  },
];
