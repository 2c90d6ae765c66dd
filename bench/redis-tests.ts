// Tests of `bench -- redis` that redis-benchmark does not have.

import { createHash } from 'node:crypto';

export const quickTests = ['set', 'get', 'incr', 'lpush', 'rpop', 'sadd', 'hset', 'zadd', 'xadd'];

interface CommandTest {
  /** Run before each round, on both servers. */
  readonly setup: readonly (readonly string[])[];
  /** The command, in whose words `__rand_int__` stands for a random number. */
  readonly words: readonly string[];
  /** Run as often as the command before each round, and not measured. */
  readonly filler?: readonly string[];
  /** Run as often as the command, beside it, by as many clients. */
  readonly feeder?: readonly string[];
}

const tenCommands = `redis.call('set', KEYS[1], ARGV[1]) redis.call('get', KEYS[1]) redis.call('incr', 'n')
  redis.call('hset', 'h', 'f', ARGV[1]) redis.call('hget', 'h', 'f') redis.call('zadd', 'z', 1, 'm')
  redis.call('zscore', 'z', 'm') redis.call('sadd', 's', 'm') redis.call('sismember', 's', 'm')
  return redis.call('get', KEYS[1])`;

export const commandTests = new Map<string, CommandTest>([
  [
    'xadd',
    {
      setup: [['DEL', 'stream:bench']],
      words: ['XADD', 'stream:bench', '*', 'field', 'value:__rand_int__'],
    },
  ],
  [
    'xreadgroup',
    {
      setup: [['DEL', 'stream'], words('XGROUP CREATE stream group $ MKSTREAM')],
      filler: ['XADD', 'stream', '*', 'field', 'value:__rand_int__'],
      words: words('XREADGROUP GROUP group consumer COUNT 1 STREAMS stream >'),
    },
  ],
  [
    'zrange',
    { setup: [['DEL', 'ranks'], membersOf('ranks', 10_000)], words: words('ZRANGE ranks 100 199') },
  ],
  ['pfadd', { setup: [['DEL', 'sketch']], words: ['PFADD', 'sketch', '__rand_int__'] }],
  ['bitcount', { setup: [['SETRANGE', 'bits', '65535', 'x']], words: ['BITCOUNT', 'bits'] }],
  // Each element is handed to a client that waits for it.
  [
    'blpop',
    {
      setup: [['DEL', 'queue']],
      words: words('BLPOP queue 0'),
      feeder: words('LPUSH queue element'),
    },
  ],
  ['eval', scriptTest(tenCommands)],
  ['eval-loop', scriptTest('local x = 0 for i = 1, 10000 do x = x + i end return x')],
  [
    'geosearch',
    {
      setup: [['GEOADD', 'places', ...placesAround(10_000)]],
      words: words('GEOSEARCH places FROMLONLAT 15 37 BYRADIUS 20 km ASC'),
    },
  ],
]);

function words(text: string): string[] {
  return text.split(' ');
}

function membersOf(key: string, count: number): string[] {
  const members = Array.from({ length: count }, (_, i) => [String(i), `member:${i}`]);
  return ['ZADD', key, ...members.flat()];
}

/** A test that runs a script by its digest: redis-benchmark's output has the words in it, which commas would break. */
function scriptTest(script: string): CommandTest {
  const sha = createHash('sha1').update(script).digest('hex');
  return { setup: [['SCRIPT', 'LOAD', script]], words: ['EVALSHA', sha, '1', 'key', 'value'] };
}

/** Longitudes, latitudes and names, evenly over 10 by 10 degrees around Sicily. */
function placesAround(count: number): string[] {
  const side = Math.sqrt(count);
  return Array.from({ length: count }, (_, i) => {
    const longitude = 10 + (10 * (i % side)) / side;
    const latitude = 32 + (10 * Math.floor(i / side)) / side;
    return [longitude.toFixed(6), latitude.toFixed(6), `place ${i}`];
  }).flat();
}
