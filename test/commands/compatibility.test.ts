// docs/redis-compatibility.md says what both servers answer. UPDATE_COMPATIBILITY=1 writes it anew.

import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Polyrow } from '../support/polyrow.ts';
import { RedisProcess } from '../support/redis-server.ts';
import { compatibilityPage } from './compatibility-page.ts';
import { redisInstalled } from './redis-server.ts';

const file = `${import.meta.dirname}/../../docs/redis-compatibility.md`;

/** Commands that tell all there is of what commands do to their keys. */
const commandsWithKeys = `
SET k v|SET k v GET|MSET k 1 k2 2|MSETNX k 1 k2 2|GET k|STRLEN k|APPEND k v|INCR k|GETDEL k|GETEX k
SETBIT k 1 1|BITFIELD k GET u8 0|BITFIELD k SET u8 0 1|BITOP AND k k2 k3|DEL k k2|EXISTS k k2|EXPIRE k 1
RENAME k k2|RENAMENX k k2|COPY k k2|SORT k STORE k2|SORT k|LMOVE k k2 LEFT RIGHT|BLPOP k k2 0|LPUSH k v|LREM k 1 v
LSET k 0 v|LLEN k|SADD k m|SMOVE k k2 m|SINTERSTORE k k2 k3|SUNIONSTORE k k2 k3|SISMEMBER k m|HSET k f v|HDEL k f
HGET k f|HSETNX k f v|ZADD k 1 m|ZREM k m|ZUNIONSTORE k 1 k2|ZRANGESTORE k k2 0 -1|ZPOPMIN k|ZMPOP 2 k k2 MIN
PFADD k e|PFMERGE k k2|PFCOUNT k k2|XADD k * f v|XDEL k 1-1|XACK k g 1-1|XREADGROUP GROUP g c STREAMS k k2 > >
XGROUP CREATE k g $|XGROUP DESTROY k g|XINFO STREAM k|GEOADD k 1 1 m|GEOSEARCHSTORE k k2 FROMMEMBER m BYRADIUS 1 m
EVAL x 2 k k2|OBJECT ENCODING k|MEMORY USAGE k|TOUCH k|TYPE k|WATCH k k2|LCS k k2|PING|SET k
`
  .trim()
  .split(/[|\n]/);

describe.skipIf(!redisInstalled)('beside redis-server', () => {
  let redis: RedisProcess;
  let polyrow: Polyrow;
  beforeAll(async () => {
    redis = await RedisProcess.start();
    polyrow = await Polyrow.start();
  });
  afterAll(async () => {
    await redis.remove();
    await polyrow.stop();
    await polyrow.remove();
  });

  test('docs/redis-compatibility.md is what the servers say', async () => {
    const before = existsSync(file) ? readFileSync(file, 'utf8') : '';
    const page = await compatibilityPage(await redis.client(), await polyrow.client(), before);
    if (process.env['UPDATE_COMPATIBILITY'] === '1') writeFileSync(file, page);
    else expect(before).toBe(page);
  });

  test('COMMAND GETKEYSANDFLAGS tells what a command does to each key', async () => {
    const [theirs, ours] = [await redis.client(), await polyrow.client()];
    for (const line of commandsWithKeys) {
      const words = ['COMMAND', 'GETKEYSANDFLAGS', ...line.split(' ')];
      const expected = await theirs.text(...words);
      expect(`${line}: ${await ours.text(...words)}`).toBe(`${line}: ${expected}`);
    }
  });
});
