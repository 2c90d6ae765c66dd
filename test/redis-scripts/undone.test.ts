// Scripts whose changes are undone: with the flag `rollback` where they fail, and dry runs always.

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { isBuilt } from '../cli/polyrow-process.ts';
import { Polyrow } from '../support/polyrow.ts';
import type { RespClient } from '../support/resp-client.ts';
import { itemsOf, textOf } from '../support/resp-value.ts';

/** Rows of every type, small and large. */
const setup: readonly string[] = `
SET s value
SET bits value PX 100000000
SETBIT bits 70 1
PFADD sketch a b c
RPUSH l a b c d e
RPUSH queue only
HSET h a 1 b 2 c 3
HSET times a 1 b 2
HPEXPIRE times 100000000 FIELDS 1 a
SADD set a b c
SADD numbers 1 2 3
ZADD z 1 a 2 b 3 c
GEOADD places 13.36 38.11 Palermo 15.08 37.50 Catania
XADD x 1-1 f v
XADD x 2-1 f w
XGROUP CREATE x g 0
XREADGROUP GROUP g one COUNT 1 STREAMS x >
SET once gone
`
  .trim()
  .split('\n');

/** Changes of all of them, as a script calls them. */
const changes = `
local function c(line)
  local words = {}
  for word in line:gmatch('%S+') do words[#words + 1] = word end
  return redis.call(unpack(words))
end
for line in ([[
APPEND s more
SETRANGE s 100 far
SETBIT bits 3000 1
PERSIST bits
BITFIELD bits SET u8 0 200
PFADD sketch d e f
LPUSH l z
LSET l 2 other
LINSERT l BEFORE d between
LTRIM l 1 4
RPOP queue
RPUSH queue again
LMOVE l queue LEFT RIGHT
HSET h a 9 d 4
HDEL h b c
HDEL times a
HSET times c 3
HPEXPIRE times 5000 FIELDS 1 b
SREM set a b c
SADD numbers word
ZADD z 9 a 4 d
ZREM z b
ZREMRANGEBYRANK z 0 0
ZADD places 7 nowhere
XADD x 3-1 f u other 1
XDEL x 1-1
XREADGROUP GROUP g two STREAMS x >
XACK x g 1-1
XGROUP CREATE x other 0
XTRIM x MAXLEN 1
DEL once
RENAME h renamed
RENAME z l
SUNIONSTORE copy numbers
SET new value
EXPIRE new 100
SUNIONSTORE set numbers copy
SORT numbers BY nosort STORE sorted
FLUSHDB
SET new other
RPUSH l 1
DEL new
HSET s field value
]]):gmatch('[^\\n]+') do c(line) end
`;

const failing = `#!lua flags=rollback\n${changes}\nerror('no')`;

describe.skipIf(!isBuilt).each([
  ['memory', ''],
  ['kv', ''],
  ['memory', 'tcp'],
] as const)('on the %s model %s', (model, carrier) => {
  let server: Polyrow;
  let client: RespClient;

  const call = async (...words: string[]): Promise<string> => await client.text(...words);

  beforeAll(async () => {
    const flags = ['--redis.default-model', model, '--kv.cache-bytes', '1mb'];
    server = await Polyrow.start({ flags, env: { TEST_POD_CARRIER: carrier } });
  });
  afterAll(() => server.remove());
  beforeEach(async () => {
    client = await server.client();
    await call('FLUSHALL');
    for (const line of setup) {
      const answer = await call(...line.split(' '));
      expect(`${line}: ${answer}`).not.toContain('ERR');
    }
  });
  afterEach(() => client.close());

  /** All rows, as RESTORE would have them, with their times. */
  async function contents(): Promise<string[]> {
    const keys = itemsOf(await client.command('KEYS', '*')).map(textOf);
    const rows: string[] = [];
    for (const key of keys.toSorted()) {
      const type = textOf(await client.command('TYPE', key));
      const dump =
        type === 'hash' || type === 'set' ? await elements(key, type) : await call('DUMP', key);
      rows.push(`${key} ${await call('PEXPIRETIME', key)} ${dump}`);
    }
    return rows;
  }

  /** The order of hashes and sets is no matter. */
  async function elements(key: string, type: 'hash' | 'set'): Promise<string> {
    if (type === 'set')
      return itemsOf(await client.command('SMEMBERS', key))
        .map(textOf)
        .toSorted()
        .join(' ');
    const fields = itemsOf(await client.command('HKEYS', key))
      .map(textOf)
      .toSorted();
    const times = await call('HPEXPIRETIME', key, 'FIELDS', String(fields.length), ...fields);
    return `${fields.join(' ')} ${await call('HMGET', key, ...fields)} ${times}`;
  }

  test('without the flag what a script has written before an error stays', async () => {
    expect(await call('EVAL', "redis.call('SET', 'a', 1) error('no')", '0')).toContain('no');
    expect(await call('GET', 'a')).toBe('"1"');
  });

  test('with the flag all is undone, rows of every type', async () => {
    const before = await contents();
    expect(await call('EVAL', failing, '0')).toMatch(/^-ERR user_script:\d+: no/);
    expect(await contents()).toEqual(before);
    // The same script without an error at its end does change them.
    expect(await call('EVAL', failing.replace("error('no')", 'return 1'), '0')).toBe(':1');
    expect(await contents()).not.toEqual(before);
  });

  test('an error that is returned, or that pcall has met and raised, undoes as well', async () => {
    const flag = '#!lua flags=rollback\n';
    const set = "redis.call('SET', KEYS[1], 'changed') ";
    for (const end of [
      "return redis.error_reply('MY no')",
      "return redis.pcall('INCR', KEYS[1])",
      "return redis.call('INCR', KEYS[1])",
      'return nothing',
    ]) {
      expect(await call('EVAL', flag + set + end, '1', 's')).toMatch(/^-/);
      expect(await call('GET', 's')).toBe('"value"');
    }
    expect(await call('EVAL', `${flag + set}return 'fine'`, '1', 's')).toBe('"fine"');
    expect(await call('GET', 's')).toBe('"changed"');
  });

  test('a function with the flag is undone, and an unknown flag is refused', async () => {
    const library = (flag: string): string => `#!lua name=undoing
      redis.register_function{function_name='fails', flags={'${flag}'}, callback=function(keys)
        redis.call('SET', keys[1], 'changed') error('no')
      end}`;
    expect(await call('FUNCTION', 'LOAD', 'REPLACE', library('rolback'))).toContain('unknown flag');
    expect(await call('FUNCTION', 'LOAD', 'REPLACE', library('rollback'))).toBe('"undoing"');
    expect(await call('FUNCTION', 'LIST')).toContain('rollback');
    expect(await call('FCALL', 'fails', '1', 's')).toMatch(/^-/);
    expect(await call('GET', 's')).toBe('"value"');
    expect(await call('EVAL', '#!lua flags=rolback\nreturn 1', '0')).toContain('Unexpected flag');
  });

  test('in a transaction its own changes alone are undone', async () => {
    const before = await contents();
    await client.pipeline([
      ['MULTI'],
      ['SET', 'before', '1'],
      ['EVAL', failing, '0'],
      ['SET', 'after', '1'],
      ['EXEC'],
    ]);
    expect(await call('GET', 'before')).toBe('"1"');
    expect(await call('GET', 'after')).toBe('"1"');
    await call('DEL', 'before', 'after');
    expect(await contents()).toEqual(before);
  });

  test('what takes many steps is undone, too, and can be killed although it has written', async () => {
    const before = await contents();
    const long = `#!lua flags=rollback
      redis.call('DEL', 'z')
      for i = 1, 60000 do redis.call('RPUSH', 'long', i) redis.call('SET', 'k' .. i % 1000, i) end `;
    expect(await call('EVAL', `${long} error('no')`, '0')).toContain('no');
    expect(await contents()).toEqual(before);
    const other = await server.client();
    const endless = client.text('EVAL', `${long} while true do end`, '0');
    await expect.poll(async () => await other.text('SCRIPT', 'KILL')).toBe('+OK');
    expect(await endless).toContain('killed by user');
    other.close();
    expect(await contents()).toEqual(before);
  });

  test.skipIf(carrier !== '')(
    'nothing of it leaves: no message, no element for a blocked client',
    async () => {
      const other = await server.client();
      expect(await other.text('SUBSCRIBE', 'news')).toContain('news');
      const waiting = await server.client();
      const popped = waiting.text('BLPOP', 'wanted', '0');
      await expect.poll(async () => await call('INFO', 'clients')).toContain('blocked_clients:1');
      const body = `redis.call('PUBLISH', 'news', ARGV[1]) redis.call('RPUSH', 'wanted', ARGV[1])`;
      await call('EVAL', `#!lua flags=rollback\n${body} error('no')`, '0', 'undone');
      expect(await call('RU', 'EXPLAIN', 'EVAL', body, '0', 'tried')).toContain('"messages" :1');
      expect(await call('LLEN', 'wanted')).toBe(':0');
      const message = other.replies(1);
      await call('EVAL', body, '0', 'done');
      expect(await popped).toContain('"done"');
      expect(textOf(itemsOf((await message)[0]!)[2]!)).toBe('done');
      other.close();
      waiting.close();
    },
  );

  /** Fields of RU EXPLAIN. */
  async function explained(...words: string[]): Promise<Map<string, string>> {
    const items = itemsOf(await client.command('RU', 'EXPLAIN', ...words));
    return new Map(
      items.flatMap((item, i) => (i % 2 === 1 ? [] : [[textOf(item), textOf(items[i + 1]!)]])),
    );
  }

  test('a dry run tells what a run costs and writes, and leaves nothing', async () => {
    const before = await contents();
    const logged = async (): Promise<string | undefined> =>
      /rdb_changes_since_last_save:\d+/.exec(await call('INFO', 'persistence'))?.[0];
    const changesBefore = await logged();
    const source = `
      for i = 1, 50 do redis.call('HSET', 'h', 'field' .. i, ARGV[1]) end
      redis.call('DEL', 'l') redis.call('SET', 'new', ARGV[1])
      return redis.call('HGETALL', 'h')`;
    const tried = await explained('EVAL', source, '0', 'x'.repeat(100));
    expect(tried.get('command')).toBe('eval');
    expect(tried.get('calls')).toBe('53');
    expect(tried.get('writes')).toBe('52');
    expect(tried.get('rows')).toBe('3');
    expect(await contents()).toEqual(before);
    if (carrier === '') expect(await logged()).toBe(changesBefore);
    await call('EVAL', source, '0', 'x'.repeat(100));
    const last = itemsOf(await client.command('RU', 'LAST')).map(textOf);
    // Over a link the answer is counted as it crosses the link.
    const compared = carrier === '' ? ['ru', 'cpu', 'io', 'network'] : ['ru', 'cpu', 'io'];
    for (const name of compared) {
      const cost = Number(last[last.indexOf(name) + 1]);
      expect(Number(tried.get(name)) / cost, name).toBeCloseTo(1, 1);
    }
  });

  test('a dry run of many steps is undone as well', async () => {
    const before = await contents();
    const long =
      "for i = 1, 50000 do redis.call('RPUSH', 'long', i) end return redis.call('LLEN', 'long')";
    const tried = await explained('EVAL', long, '0');
    expect(tried.get('writes')).toBe('50001');
    expect(tried.get('rows')).toBe('1');
    expect(await contents()).toEqual(before);
  });

  test('a dry run of a function, of a digest, and of one that fails', async () => {
    const library = `#!lua name=tried
      redis.register_function('tries', function(keys) return redis.call('INCR', keys[1]) end)`;
    await call('FUNCTION', 'LOAD', 'REPLACE', library);
    expect((await explained('FCALL', 'tries', '1', 'count')).get('writes')).toBe('1');
    const sha = textOf(
      await client.command('SCRIPT', 'LOAD', "return redis.call('INCR', KEYS[1])"),
    );
    expect((await explained('EVALSHA', sha, '1', 'count')).get('writes')).toBe('1');
    expect((await explained('EVALSHA', sha, '1', 'count')).get('error')).toBe('(nil)');
    expect((await explained('EVALSHA', sha, '1', 's')).get('error')).toContain('not an integer');
    expect(await call('EXISTS', 'count')).toBe(':0');
    expect(await call('RU', 'EXPLAIN', 'EVALSHA', '0'.repeat(40), '0')).toContain('NOSCRIPT');
  });

  test('RU EXPLAIN is refused in a transaction', async () => {
    const answers = await client.pipeline([
      ['MULTI'],
      ['SET', 'a', '1'],
      ['RU', 'EXPLAIN', 'GET', 'a'],
      ['EXEC'],
    ]);
    expect(answers.map((one) => ('text' in one ? one.text.split(' ')[0] : ''))).toEqual([
      'OK',
      'QUEUED',
      'ERR',
      'EXECABORT',
    ]);
  });
});
