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
// In order only with the distances: how two places that are equally far follow each other says nothing.
const order = oneOf('ASC', 'DESC');
const ordered = words(order, 'WITHDIST', oneOf('', 'WITHCOORD', 'WITHCOORD WITHHASH'));
const also = fc.oneof(
  ordered,
  oneOf('', 'WITHDIST', 'WITHCOORD', 'WITHHASH', 'WITHDIST WITHCOORD'),
);

/**
 * Whether two answers with distances are the same but for the last digits of those, which depend on the library that
 * computes sines. Places that are equally far but for that may stand in another order.
 */
function nearlyAlike(command: string, ours: string, theirs: string): boolean {
  if (command.startsWith('GEODIST'))
    return near(Number(ours.slice(1, -1)), Number(theirs.slice(1, -1)));
  const way = / DESC/.test(command) ? -1 : / ASC|^ZRANGE far/.test(command) ? 1 : 0;
  const [here, there] = [placesOf(ours), placesOf(theirs)];
  if (!/WITHDIST|^ZRANGE far/.test(command) || here.length !== there.length) return false;
  const byName = new Map(there.map((found) => [found.name, found]));
  return here.every((found, i) => {
    const other = byName.get(found.name);
    const next = here[i + 1];
    return (
      other !== undefined &&
      found.rest === other.rest &&
      near(found.distance, other.distance) &&
      (next === undefined || way * (next.distance - found.distance) >= 0) &&
      (way === 0 ? other === there[i] : near(found.distance, there[i]!.distance))
    );
  });
}

const near = (a: number, b: number) => Math.abs(a - b) <= Math.max(1.0001e-4, Math.abs(a) * 1e-9);

/** The places of an answer, each with its distance and what follows. */
function placesOf(answer: string) {
  const found = answer.matchAll(/"(p\d+)", "?([-+.\de]+)"?((?:(?!"p).)*)/g);
  return [...found].map(([, name, distance, rest]) => ({
    name: name!,
    distance: Number(distance),
    rest: rest!.replace(/[\], ["]*$/, ''),
  }));
}

testDifferential(
  specs,
  fc.oneof(
    words('GEOADD', key, oneOf('', 'NX', 'XX', 'CH', 'XX CH'), several(place, 20)),
    words('GEOADD', key, several(place, 20)),
    words('GEOADD', key, several(place, 20)),
    words('GEOPOS', key, several(name)),
    words('GEOHASH', key, several(name)),
    words('GEODIST', key, name, name, unit),
    words('GEOSEARCH', key, from, by, also),
    words('GEOSEARCH', key, from, by, also),
    words('GEOSEARCH', key, from, by, 'COUNT', oneOf('1', '3'), 'ANY'),
    words('GEOSEARCHSTORE', key, key, from, by),
    words('GEOSEARCHSTORE far', key, from, by, 'STOREDIST'),
    words('GEORADIUS', key, position, distance, unit, also),
    words('GEORADIUSBYMEMBER', key, name, distance, unit, 'STORE', key),
    words('GEORADIUSBYMEMBER', key, name, distance, unit, 'STOREDIST far'),
    words('ZRANGE far 0 -1 WITHSCORES'),
    words('ZRANGE', key, '0 -1 WITHSCORES'),
    words('DEL', key),
  ),
  {
    alike: nearlyAlike,
    examples: [
      [
        'GEOADD b 0 0.00000254 p11 68 0 p10 0 0 p0',
        'GEORADIUSBYMEMBER b p10 7564 km STOREDIST far',
        'ZRANGE far 0 -1 WITHSCORES',
      ],
    ],
  },
);
