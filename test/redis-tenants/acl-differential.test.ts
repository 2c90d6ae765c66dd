// ACL beside redis-server: the same rules, and the same is allowed and refused, in the same words.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { allLines } from '../differential/commands.ts';
import { Random } from '../support/random.ts';
import { RedisProcess } from '../support/redis-server.ts';
import { itemsOf, show, textOf } from '../support/resp-value.ts';
import type { RespClient, Word } from '../support/resp-client.ts';
import { spawnSync } from 'node:child_process';
import { TenantsServer } from './tenants-server.ts';

const isInstalled = spawnSync('redis-server', ['--version']).status === 0;
if (!isInstalled) console.warn('skipped: no redis-server');

describe.skipIf(!isInstalled)('ACL as redis-server has it', () => {
  let polyrow: TenantsServer;
  let redis: RedisProcess;
  let ours: RespClient;
  let theirs: RespClient;

  beforeAll(async () => {
    polyrow = await TenantsServer.start();
    redis = await RedisProcess.start();
    ours = await polyrow.client();
    theirs = await redis.client();
  });
  afterAll(async () => {
    await polyrow?.stop();
    await redis?.remove();
  });

  /** The same answer of both, which is returned. */
  async function same(...words: Word[]): Promise<string> {
    const answers = await Promise.all([ours.text(...words), theirs.text(...words)]);
    // Possible passwords are not repeated in errors.
    const [mine, other] = answers.map((text) =>
      text.replace(/(modifier '[#!<>]).*'/, "$1(redacted)'"),
    );
    expect(mine, words.join(' ')).toBe(other);
    return mine!;
  }
  const line = (text: string) => same(...text.split(' '));

  async function names(client: RespClient, ...words: string[]): Promise<string[]> {
    return itemsOf(await client.command(...words)).map(textOf);
  }

  test('categories hold the same commands', async () => {
    await line('ACL CAT');
    await line('ACL CAT nothing');
    const all = async (client: RespClient) => {
      const found = new Map<string, string[]>();
      for (const category of await names(client, 'ACL', 'CAT')) {
        found.set(category, await names(client, 'ACL', 'CAT', category));
      }
      return found;
    };
    const [mine, other] = [await all(ours), await all(theirs)];
    const known = (lists: Map<string, string[]>) => new Set([...lists.values()].flat());
    const common = new Set([...known(mine)].filter((name) => known(other).has(name)));
    expect(common.size).toBeGreaterThan(200);
    for (const [category, list] of mine) {
      const both = (words: string[]) => words.filter((name) => common.has(name)).sort();
      expect(both(list), category).toEqual(both(other.get(category)!));
    }
  });

  test('users are shown the same way', async () => {
    await line('ACL LIST');
    await line('ACL USERS');
    await line('ACL WHOAMI');
    await line('ACL GETUSER default');
    await line('ACL GETUSER nobody');
    const check = async (rules: string) => {
      await line(`ACL SETUSER shown ${rules}`);
      await line('ACL LIST');
      await line('ACL GETUSER shown');
      await line('ACL DELUSER shown');
    };
    await same('ACL', 'SETUSER', 'shown');
    await line('ACL LIST');
    await check('on nopass');
    await check('on nopass ~* &* +@all');
    await check('on allkeys allchannels allcommands nopass');
    await check('~a* ~b:* %R~c* %W~d* %RW~e* &f* &g');
    await check('~a* ~a* %R~b %W~b');
    await check('~* resetkeys ~a &* resetchannels &b');
    await check('+@all -@all +get');
    await check('+config|get');
    await check('+select|0');
    await check('+get (~a* +set) (&c %R~d -@all +publish)');
    await check('(~a* +set) clearselectors');
    // Payloads are always looked through here, so that there is nothing to show of it.
    await line('ACL SETUSER shown on sanitize-payload skip-sanitize-payload');
    await line('ACL DELUSER shown nobody');
    await line('ACL DELUSER default');
  });

  test('wrong rules are refused in the same words', async () => {
    const wrong = [
      ...['+nothing', '-nothing', '+@nothing', '-@nothing', '+', '-', '+@', 'nothing', '%~a'],
      ...['%X~a', 'ON off bad', '+get|', '+config|nothing', '+config|', '+config|get|x'],
      ...['~* ~a', 'allkeys ~a', '&* &a', 'allchannels &a', '#abc', '!abc', '+select +select|1'],
      ...[`!${'a'.repeat(64)}`, `#${'A'.repeat(64)}`, '<none', '(+get', '(+nothing)', '+get)'],
      ...['(~* ~a)', '~a(b', '-select|0', '+nothing|x', '()', '(', '( +get )', 'x(+get)'],
    ];
    for (const rule of wrong) await line(`ACL SETUSER wrong ${rule}`);
    await same('ACL', 'SETUSER', 'with space', 'on');
    await same('ACL', 'SETUSER', 'wrong', '~a b');
    await same('ACL', 'SETUSER', 'wrong', '&a b');
    await line('ACL SETUSER');
    await line('ACL GETUSER');
    await line('ACL NOTHING');
    await line('ACL LOG 1 2');
    await line('ACL LOG x');
    await line('ACL GENPASS 0');
    await line('ACL GENPASS 4097');
    await line('ACL GENPASS x');
    await line('ACL SAVE');
    await line('ACL LOAD');
    await line('ACL HELP');
    await line('ACL DRYRUN nobody get a');
    await line('ACL DRYRUN default nothing');
    await line('ACL DRYRUN default get');
    await line('ACL DRYRUN default');
    await line('ACL DELUSER wrong');
  });

  test('random rules allow and refuse the same', async () => {
    const seed = Number(process.env['ACL_SEED'] ?? 20_26);
    const rounds = Number(process.env['ACL_ROUNDS'] ?? 60);
    const random = new Random(seed);
    let refused = 0;
    let allowed = 0;
    for (let round = 0; round < rounds; round++) {
      const rules = Array.from({ length: 1 + random.below(7) }, () => randomRule(random));
      const user = `u${round}`;
      const [mine, other] = [ours, theirs].map((client) =>
        client.text('ACL', 'SETUSER', user, 'on', 'nopass', ...rules),
      );
      expect(await mine, `seed ${seed}: ${rules.join(' ')}`).toBe(await other);
      const asked = Array.from({ length: 40 }, () => ['ACL', 'DRYRUN', user, ...asks(random)]);
      const [answers, expected] = await Promise.all([ours.pipeline(asked), theirs.pipeline(asked)]);
      asked.forEach((words, i) => {
        const text = show(answers[i]!);
        expect(text, `seed ${seed}: ${rules.join(' ')}: ${words.join(' ')}`).toBe(
          show(expected[i]!),
        );
        if (text === '+OK') allowed++;
        else if (text.includes('no permissions')) refused++;
      });
      await Promise.all([ours, theirs].map((client) => client.text('ACL', 'DELUSER', user)));
    }
    expect(allowed).toBeGreaterThan(rounds);
    expect(refused).toBeGreaterThan(rounds);
  });

  test('a restricted client is told the same', async () => {
    await line(
      'ACL SETUSER bob on nopass ~b:* &news +@read +@connection +publish +set +multi +exec +@pubsub +sort',
    );
    const [mine, other] = [await RespClientOf(polyrow), await redis.client()];
    const both = async (text: string) => {
      const words = text.split(' ');
      expect(await mine.text(...words), text).toBe(await other.text(...words));
    };
    for (const text of [
      'AUTH bob any',
      ...['GET a', 'GET b:1', 'MGET b:1 a', 'SET b:1 v', 'SET a v', 'DEL b:1', 'KEYS b:*'],
      ...['PUBLISH news x', 'PUBLISH old x', 'CONFIG GET maxclients', 'ACL WHOAMI', 'ACL LIST'],
      ...['FLUSHALL', 'NOTHING', 'GET', 'EVIL SUB', 'CONFIG NOTHING', 'SELECT 3', 'SELECT 0'],
      ...['MULTI', 'GET b:1', 'DEL b:1', 'EXEC', 'MULTI', 'GET b:1', 'EXEC'],
      ...['SORT b:2', 'SORT b:2 STORE a', 'SORT b:2 BY w_* GET x_*', 'SORT b:2 BY nosort'],
      'SUBSCRIBE old',
      'PSUBSCRIBE news',
      'PSUBSCRIBE news*',
    ]) {
      await both(text);
    }
    // Rights revoked while a transaction is queued.
    const [a, b] = [await RespClientOf(polyrow), await redis.client()];
    for (const client of [a, b]) {
      await client.pipeline([['AUTH', 'bob', 'x'], ['MULTI'], ['SET', 'b:1', '1'], ['GET', 'b:1']]);
    }
    await line('ACL SETUSER bob -set');
    expect(await a.text('EXEC')).toBe(await b.text('EXEC'));
    await line('ACL DELUSER bob');
    await Promise.all([a.ended, b.ended]);
  });

  test('the log has the same entries', async () => {
    await line('ACL LOG RESET');
    await line('ACL SETUSER carl on nopass ~c:* +get +set +multi +exec');
    const [mine, other] = [await RespClientOf(polyrow), await redis.client()];
    for (const client of [mine, other]) {
      await client.pipeline([
        ['AUTH', 'carl', 'x'],
        ['GET', 'secret'],
        ['GET', 'secret'],
        ['DEL', 'c:1'],
        ['MULTI'],
        ['SET', 'secret', '1'],
        ['EXEC'],
        ['AUTH', 'nobody', 'x'],
      ]);
    }
    const shown = async (client: RespClient) => {
      const entries = itemsOf(await client.command('ACL', 'LOG')).map((entry) => {
        const words = itemsOf(entry).map(textOf);
        return words.slice(0, 10).join(' ');
      });
      return entries;
    };
    expect(await shown(ours)).toEqual(await shown(theirs));
    await line('ACL DELUSER carl');
  });

  async function RespClientOf(server: TenantsServer): Promise<RespClient> {
    return await server.client();
  }
});

const commands = [
  ...[
    'get',
    'set',
    'del',
    'mget',
    'mset',
    'rename',
    'copy',
    'sort',
    'hset',
    'lpush',
    'sinterstore',
  ],
  ...['zadd', 'expire', 'exists', 'publish', 'subscribe', 'keys', 'scan', 'config', 'config|get'],
  ...[
    'client',
    'client|list',
    'multi',
    'ping',
    'lmove',
    'getset',
    'incr',
    'type',
    'watch',
    'object',
  ],
];
const categories = [
  ...['all', 'read', 'write', 'keyspace', 'string', 'hash', 'list', 'set', 'sortedset', 'fast'],
  ...['slow', 'dangerous', 'admin', 'pubsub', 'connection', 'transaction', 'blocking'],
];
const patterns = ['string*', 'hash*', '*', 'list1', '*[1-3]', 'set?', '{tag}*', 'zset2', 'z*'];

function randomRule(random: Random): string {
  const pick = random.below(10);
  if (pick < 3) return `${random.chance(0.7) ? '+' : '-'}${random.pick(commands)}`;
  if (pick < 6) return `${random.chance(0.7) ? '+' : '-'}@${random.pick(categories)}`;
  if (pick < 8) return `${random.pick(['', '', '%R', '%W', '%RW'])}~${random.pick(patterns)}`;
  if (pick < 9) return `&${random.pick(['*', 'news', 'n*', 'old'])}`;
  if (random.chance(0.3))
    return random.pick(['resetkeys', 'resetchannels', 'allkeys', 'nocommands']);
  const inner = Array.from({ length: 1 + random.below(3) }, () => simpleRule(random));
  return `(${inner.join(' ')})`;
}

function simpleRule(random: Random): string {
  for (;;) {
    const rule = randomRule(random);
    if (!rule.startsWith('(')) return rule;
  }
}

const elsewhere: readonly Word[][] = [
  ['PUBLISH', 'news', 'x'],
  ['PUBLISH', 'old', 'x'],
  ['SUBSCRIBE', 'news', 'old'],
  ['PSUBSCRIBE', 'n*'],
  ['SPUBLISH', 'news', 'x'],
  ['CONFIG', 'GET', 'x'],
  ['CONFIG', 'SET', 'x', 'y'],
  ['CLIENT', 'LIST'],
  ['CLIENT', 'ID'],
  ['OBJECT', 'ENCODING', 'list1'],
  ['MEMORY', 'USAGE', 'list1'],
  ['ACL', 'WHOAMI'],
  ['PING'],
  ['MULTI'],
  ['AUTH', 'x'],
  ['WATCH', 'list1', 'set1'],
  ['INFO'],
  ['COMMAND', 'COUNT'],
  ['SWAPDB', '0', '1'],
];

function asks(random: Random): Word[] {
  if (random.chance(0.3)) return [...random.pick(elsewhere)];
  for (;;) {
    const words = random.pick(allLines).pattern.make(random);
    // Where the number of keys is not a number, the keys are unknown.
    const name = String(words[0]).toUpperCase();
    if (!/^(?:[A-Z]*M?POP|Z?S?(?:INTER|UNION|DIFF|INTERCARD).*|SORT.*)$/.test(name)) return words;
  }
}
