import fc from 'fast-check';
import { geoCommands } from '../../access/redis/commands/geo.ts';
import { keysCommands } from '../../access/redis/commands/keys.ts';
import { sortedSetCommands } from '../../access/redis/commands/sorted-set.ts';
import { stringCommands } from '../../access/redis/commands/string.ts';
import { oneOf, several, testDifferential, words } from './differential.ts';
import { testTranscript } from './transcript.ts';

const specs = [...geoCommands, ...sortedSetCommands, ...keysCommands, ...stringCommands];

testTranscript(`${import.meta.dirname}/testdata/geo.txt`, specs);

const key = oneOf('a', 'b', 'c');
const degrees = (most: number) =>
  // Distances to places that mirror each other differ by rounding only, so -most is not among them.
  fc.oneof(
    fc.double({ min: -most, max: most, noNaN: true }),
    fc.double({ min: -most, max: most, noNaN: true }),
    fc.integer({ min: 0, max: Math.floor(most) }),
    fc.constantFrom(most, 0),
  );
// As JavaScript never prints them: no exponent.
const longitude = degrees(180).map((n) => n.toFixed(12));
const latitude = degrees(85.05112878).map((n) => n.toFixed(8));
const name = fc.nat(30).map((n) => `p${n}`);
const place = words(longitude, latitude, name);
const position = words(longitude, latitude);
const unit = oneOf('m', 'km', 'ft', 'mi');
const distance = fc
  .oneof(
    fc.nat(100),
    fc.nat(30_000),
    fc.nat(30_000_000),
    fc.double({ min: 0, max: 9, noNaN: true }),
  )
  .map((n) => n.toFixed(3));
const from = fc.oneof(words('FROMMEMBER', name), words('FROMLONLAT', position));
const by = fc.oneof(words('BYRADIUS', distance, unit), words('BYBOX', distance, distance, unit));
const order = oneOf('', 'ASC', 'DESC');
const also = oneOf('', 'WITHDIST', 'WITHCOORD', 'WITHHASH', 'WITHDIST WITHCOORD WITHHASH');

testDifferential(
  specs,
  fc.oneof(
    words('GEOADD', key, oneOf('', 'NX', 'XX', 'CH', 'XX CH'), several(place, 20)),
    words('GEOADD', key, several(place, 20)),
    words('GEOADD', key, several(place, 20)),
    words('GEOPOS', key, several(name)),
    words('GEOHASH', key, several(name)),
    words('GEODIST', key, name, name, unit),
    words('GEOSEARCH', key, from, by, order, also),
    words('GEOSEARCH', key, from, by, order, also),
    words('GEOSEARCH', key, from, by, 'COUNT', oneOf('1', '3'), 'ANY'),
    words('GEOSEARCHSTORE', key, key, from, by),
    // The last of a distance's 17 digits depends on the library that computes sines.
    words('GEOSEARCHSTORE far', key, from, by, 'STOREDIST'),
    words('GEORADIUS', key, position, distance, unit, order, also),
    words('GEORADIUSBYMEMBER', key, name, distance, unit, 'STORE', key),
    words('GEORADIUSBYMEMBER', key, name, distance, unit, 'STOREDIST far'),
    words('ZRANGE far 0 -1'),
    words('ZRANGE', key, '0 -1 WITHSCORES'),
    words('DEL', key),
  ),
);
