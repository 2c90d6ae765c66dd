// Random commands over few keys, run here and on redis-server: every answer must be the same, and in the
// end so must every key. A failure shows the seed and the shortest run that fast-check finds.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import fc from 'fast-check';
import { keysCommands } from '../../access/redis/commands/keys.ts';
import { listCommands } from '../../access/redis/commands/list.ts';
import { stringCommands } from '../../access/redis/commands/string.ts';
import { formatDouble } from '../../universal-row/transforms/redis/support/format-double.ts';
import { MemoryEngine } from '../../engines/memory/memory-engine.ts';
import { shortWork } from '../../universal-row/steps.ts';
import { Harness } from './harness.ts';
import { RedisServer, redisInstalled } from './redis-server.ts';

const specs = [...stringCommands, ...keysCommands, ...listCommands];

const key = fc.constantFrom('a', 'a', 'b', 'c', 'd');
const word = fc.constantFrom('x', 'y', 'z', 'xy', '', '1', '-7', '9007199254740993', '2.5', 'a');
const small = fc.integer({ min: -6, max: 6 }).map(String);
// Few, so that lists hold them several times.
const item = fc.constantFrom('x', 'y', 'z', '1', '22');
const end = fc.constantFrom('LEFT', 'RIGHT');

type Words = readonly fc.Arbitrary<string | string[]>[];

/** `SET key word` and so on, each word an arbitrary or itself. */
function commands(...shapes: (readonly (string | fc.Arbitrary<string | string[]>)[])[]) {
  return fc.oneof(
    ...shapes.map((shape) => {
      const words: Words = shape.map((w) => (typeof w === 'string' ? fc.constant(w) : w));
      return fc.tuple(...words).map((parts) => parts.flat());
    }),
  );
}

const several = (one: fc.Arbitrary<string>) => fc.array(one, { minLength: 1, maxLength: 4 });
const some = (...options: string[]) => fc.subarray(options);

const stringShapes = commands(
  ['SET', key, word, some('NX', 'GET')],
  ['SET', key, word, some('XX', 'KEEPTTL')],
  ['SET', key, word, 'EXAT', '3900000000'],
  ['GET', key],
  ['GETSET', key, word],
  ['GETDEL', key],
  ['GETEX', key, fc.constantFrom('PERSIST', [])],
  ['MGET', several(key)],
  ['MSET', key, word, key, word],
  ['MSETNX', key, word, key, word],
  ['APPEND', key, word],
  ['STRLEN', key],
  ['INCRBY', key, fc.oneof(small, word)],
  ['DECRBY', key, fc.oneof(small, word)],
  ['GETRANGE', key, small, small],
  ['SETRANGE', key, small, word],
  ['LCS', key, key, fc.constantFrom(['IDX', 'WITHMATCHLEN'], 'LEN', [])],
);

const listShapes = commands(
  ['LPUSH', key, several(item)],
  ['LPUSH', key, item, item, item, several(item)],
  ['RPUSH', key, item, item, item, several(item)],
  ['RPUSH', key, several(item)],
  ['RPUSHX', key, several(item)],
  ['LPOP', key],
  ['RPOP', key],
  ['LPOP', key, small],
  ['RPOP', key, small],
  ['LLEN', key],
  ['LINDEX', key, small],
  ['LSET', key, small, item],
  ['LRANGE', key, small, small],
  ['LTRIM', key, small, small],
  ['LREM', key, small, item],
  ['LINSERT', key, fc.constantFrom('BEFORE', 'AFTER'), word, item],
  ['LPOS', key, item, 'RANK', small],
  ['LPOS', key, item, 'RANK', small, 'COUNT', small, 'MAXLEN', small],
  ['RPOPLPUSH', key, key],
  ['LMOVE', key, key, end, end],
  ['LMPOP', '2', key, key, end, 'COUNT', small],
  ['SORT', key, 'ALPHA', some('DESC'), 'LIMIT', small, small],
  ['SORT', key, 'BY', '*', some('ALPHA'), 'GET', '#', 'GET', '*'],
  ['SORT', key, some('DESC'), 'ALPHA', 'STORE', key],
);

// Seconds since 1970, in this century's last decades: the same whatever the clock says.
const farOff = fc.constantFrom('3900000000', '4000000000', '4100000000');

const keyShapes = commands(
  ['DEL', several(key)],
  ['EXISTS', several(key)],
  ['TYPE', key],
  ['RENAME', key, key],
  ['RENAMENX', key, key],
  ['COPY', key, key, some('REPLACE')],
  ['COPY', key, key, 'DB', '1', some('REPLACE')],
  ['MOVE', key, '1'],
  ['SWAPDB', '0', '1'],
  ['EXPIREAT', key, farOff, fc.constantFrom('NX', 'XX', 'GT', 'LT', [])],
  ['EXPIRE', key, fc.constantFrom('-1', '0')],
  ['PERSIST', key],
  ['EXPIRETIME', key],
  ['DBSIZE'],
);

const lookAtAll = ['a', 'b', 'c', 'd'].flatMap((k) => [
  ['TYPE', k],
  ['GET', k],
  ['LRANGE', k, '0', '-1'],
  ['EXPIRETIME', k],
]);

describe.skipIf(!redisInstalled)('random commands, as redis-server 7.0 answers them', () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await RedisServer.start();
  });
  afterAll(() => server.stop());

  const check = async (words: fc.Arbitrary<string[]>) => {
    await fc.assert(
      fc.asyncProperty(fc.array(words, { minLength: 20, maxLength: 60 }), async (run) => {
        await server.run('FLUSHALL');
        const strict = new Harness(specs);
        const inMemory = new Harness(specs, new MemoryEngine());
        for (const command of [...run, ...lookAtAll]) {
          const there = `${command.join(' ')}: ${await server.command(command)}`;
          expect(`${command.join(' ')}: ${strict.command(command)}`).toBe(there);
          expect(`${command.join(' ')}: ${inMemory.command(command)}`).toBe(there);
        }
      }),
      { numRuns: 100 },
    );
  };

  test('strings', () => check(fc.oneof(stringShapes, stringShapes, keyShapes)));
  test('lists', () => check(fc.oneof(listShapes, listShapes, keyShapes)));
  test('both', () => check(fc.oneof(stringShapes, listShapes, keyShapes)));
  test('both, in the long form of every command that has one', async () => {
    const usual = { ...shortWork };
    Object.assign(shortWork, { elements: 0, bytes: 0 });
    try {
      await check(fc.oneof(stringShapes, listShapes, keyShapes));
    } finally {
      Object.assign(shortWork, usual);
    }
  });

  test('INCRBYFLOAT', async () => {
    const number = fc.oneof(
      fc.double({ noNaN: true, noDefaultInfinity: true }).map(String),
      fc.double({ min: -1e6, max: 1e6, noNaN: true }).map(String),
      fc.tuple(fc.integer({ min: -999, max: 999 }), fc.nat(9999)).map(([a, b]) => `${a}.${b}`),
      fc.bigInt({ min: -(2n ** 70n), max: 2n ** 70n }).map(String),
    );
    await fc.assert(
      fc.asyncProperty(number, fc.array(number, { maxLength: 5 }), async (first, more) => {
        const harness = new Harness(specs);
        const lines = [['SET', 'n', first], ...more.map((by) => ['INCRBYFLOAT', 'n', by])];
        for (const line of lines) expect(harness.command(line)).toBe(await server.command(line));
      }),
      { numRuns: 500 },
    );
  });

  test('scores are printed as C prints them', async () => {
    const tie = fc.integer({ min: 1e7, max: 9e7 }).map((n) => n + 2 ** -10);
    const score = fc.oneof(
      fc.double({ noNaN: true }),
      fc.double({ min: 0, max: 1e18, noNaN: true }),
      tie,
    );
    await fc.assert(
      fc.asyncProperty(score, async (value) => {
        await server.command(['ZADD', 'z', String(value).replace('Infinity', 'inf'), 'm']);
        const printed = await server.command(['ZSCORE', 'z', 'm']);
        expect(`"${formatDouble(value)}"`.replace('"-0"', '"0"')).toBe(
          printed.replace('"-0"', '"0"'),
        );
      }),
      { numRuns: 1000 },
    );
  });

  test('KEYS', async () => {
    const atom = fc.constantFrom('*', '?', 'a', 'b', 'A', '[', ']', '^', '-', '\\', '[ab]', '[^a]');
    const pattern = fc.array(atom, { maxLength: 7 }).map((atoms) => atoms.join(''));
    const names = fc.array(fc.constantFrom('a', 'b', 'A', '-', ']', '^', '\\'), { maxLength: 4 });
    const keys = fc.array(
      names.map((parts) => parts.join('')),
      { minLength: 1, maxLength: 12 },
    );
    await fc.assert(
      fc.asyncProperty(keys, fc.array(pattern, { minLength: 5 }), async (all, patterns) => {
        await server.run('FLUSHALL');
        const harness = new Harness(specs);
        const mset = ['MSET', ...all.flatMap((k) => [k, 'v'])];
        expect(harness.command(mset)).toBe(await server.command(mset));
        for (const p of patterns) {
          const line = ['KEYS', p];
          const here = `${p}: ${harness.command(line, true)}`;
          expect(here).toBe(`${p}: ${await server.command(line, true)}`);
        }
      }),
      { numRuns: 200 },
    );
  });
});
