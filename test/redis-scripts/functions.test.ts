// FUNCTION and FCALL, beside redis-server.

import { expect, test } from 'vitest';
import { redisInstalled } from '../commands/redis-server.ts';
import { Polyrow } from '../support/polyrow.ts';
import { RedisProcess } from '../support/redis-server.ts';
import type { Word } from '../support/resp-client.ts';

const reader = `#!lua name=mylib
redis.register_function{function_name='ro', callback=function(keys, args)
  return redis.call('get', keys[1]) end, flags={'no-writes'}, description='desc'}`;
const several = `#!lua name=q
redis.register_function('g', function(k, a) return {k[1], a[1], #k} end)
redis.register_function('g2', function() return redis.call('nosuch') end)
redis.register_function('g3', function() x = 1 end)`;
const long = `#!lua name=q
local function spin() local x = 0 for i = 1, 10000000 do x = x + 1 end return x end
redis.register_function('w', function() local n = redis.call('incr', 'n') spin() return n end)`;

/** Globals during loading differ from those of its functions. */
const keeping = `#!lua name=keeping
local lib = redis
local function add(name, f) redis.register_function(name, f) end
lib.register_function('k1', function() lib.math = math return 1 end)
lib.register_function('k2', function() lib.register_function('k4', function() end) end)
add('k3', function() return math.floor(2.5) .. type(redis.call) .. type(lib.register_function) end)`;

const load = (code: string): Word[] => ['FUNCTION', 'LOAD', code];

const commands: readonly (readonly Word[])[] = [
  ['SET', 's', 'str'],
  load(reader),
  load(reader),
  ['FUNCTION', 'LOAD', 'REPLACE', reader],
  ['FCALL', 'ro', '1', 's'],
  ['FCALL_RO', 'ro', '1', 's'],
  ['FCALL', 'nosuch', '0'],
  ['FCALL', 'ro', 'x'],
  ['FCALL', 'ro', '-1'],
  ['FCALL', 'ro', '3'],
  ['FUNCTION', 'LIST'],
  ['FUNCTION', 'LIST', 'WITHCODE', 'LIBRARYNAME', 'my*'],
  ['FUNCTION', 'LIST', 'LIBRARYNAME', 'other*'],
  ['FUNCTION', 'STATS'],
  load('x'),
  load('#!lua\nreturn 1'),
  load('#!lua name=x y=1\n'),
  load('#!lua name=e\nreturn 1'),
  load('#!lua name=e\nif'),
  load('#!js name=e\nx'),
  load('#!lua name=a-b\nx'),
  load("#!lua name=other\nredis.register_function('ro', function() end)"),
  load("#!lua name=q\nredis.register_function('f-x', function() end)"),
  load("#!lua name=q\nredis.register_function('g', 1)"),
  load("#!lua name=q\nredis.register_function{function_name='g'}"),
  load("#!lua name=q\nredis.register_function{function_name='g', callback=print, x=1}"),
  load('#!lua name=q\nwhile true do end'),
  load('#!lua name=q\nreturn math.random()'),
  load('#!lua name=q\nlocal c = cjson'),
  load('#!lua name=q\nmt = getmetatable(_G)'),
  load('#!lua name=q\nredis.math.random()'),
  load("#!lua name=q\nredis.redis.call('ping')"),
  load("#!lua name=q\nredis.call('ping')"),
  load('#!lua name=q\nx = 1'),
  load(keeping),
  ['FCALL', 'k1', '0'],
  ['FCALL', 'k2', '0'],
  ['FCALL', 'k3', '0'],
  ['FUNCTION', 'DELETE', 'keeping'],
  load(several),
  ['FCALL', 'g', '1', 'a', 'b'],
  ['FCALL_RO', 'g', '0'],
  ['FCALL', 'g2', '0'],
  ['FCALL', 'g3', '0'],
  ['FUNCTION', 'DELETE', 'nosuch'],
  ['FUNCTION', 'DELETE', 'q'],
  ['FCALL', 'g', '0'],
  load(long),
  ['FCALL', 'w', '0'],
  ['GET', 'n'],
  ['FUNCTION', 'KILL'],
  ['FUNCTION', 'RESTORE', 'x'],
  ['FUNCTION', 'RESTORE', 'x', 'OTHER'],
  ['FUNCTION', 'RESTORE', 'x', 'FLUSH', 'y'],
  ['FCALL', 'W', '0'],
  ['MULTI'],
  ['FUNCTION', 'LOAD', 'REPLACE', several],
  ['FCALL', 'g', '1', 'a', 'b'],
  ['FUNCTION', 'DELETE', 'q'],
  ['EXEC'],
  ['FUNCTION', 'FLUSH', 'foo'],
  ['FUNCTION', 'FLUSH'],
  ['FUNCTION', 'LIST'],
  ['EVAL', "redis.register_function('g', function() end)", '0'],
];

test.skipIf(!redisInstalled).each([2, 3] as const)(
  'functions are answered as redis-server answers them, RESP%i',
  async (version) => {
    const redis = await RedisProcess.start();
    const polyrow = await Polyrow.start({ flags: [] });
    try {
      const ours = await polyrow.client(version);
      const theirs = await redis.client(version);
      for (const words of commands) {
        const expected = await theirs.text(...words);
        expect(`${words.join(' ')}: ${await ours.text(...words)}`).toBe(
          `${words.join(' ')}: ${expected}`,
        );
      }
    } finally {
      await redis.remove();
      await polyrow.stop();
      await polyrow.remove();
    }
  },
);
