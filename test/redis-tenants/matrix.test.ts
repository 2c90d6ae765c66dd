// Every command there is, by everyone who is not blue: blue's data stay as they are, its clients notice nothing, and
// no answer holds anything of blue's. What blue has is marked, so that a trace of it in an answer can be seen.

import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { CommandEntry } from '../../access/redis/commands/registry.ts';
import { allLines } from '../differential/commands.ts';
import { Random } from '../support/random.ts';
import type { RespClient, Word } from '../support/resp-client.ts';
import { itemsOf, show, textOf } from '../support/resp-value.ts';
import { quickSecret } from '../support/quick-secret.ts';
import { databases, TenantsServer } from './tenants-server.ts';
import { stringLimit } from '../../universal-row/transforms/redis/support/string-limit.ts';

const mark = 'BLUE';
/** Milliseconds that a command may take before its client is given up: it waits for something. */
const patienceMs = 60;
const rounds = Number(process.env['MATRIX_ROUNDS'] ?? 2);
const seed = Number(process.env['MATRIX_SEED'] ?? 17);

// Words that mean something to some command or other, blue's keys and channels among them.
const pool = [
  ...['string1', 'hash1', 'list1', 'set1', 'zset1', '{tag}string', 'missing', '*', 's*'],
  ...['0', '1', '2', '15', '16', '-1', '4096', '4112', '4111', '4128', '100', '1.5', 'x', ''],
  ...['news', 'n*', 'LEFT', 'RIGHT', 'GET', 'MATCH', 'COUNT', 'DB', 'REPLACE', 'STORE', 'BY', 'NX'],
  ...['default', 'blue', 'default@blue', 'ann', 'ID', 'USER', 'ADDR', 'TYPE', 'normal', 'pubsub'],
  ...[
    'yes',
    'no',
    'RESET',
    'on',
    '+@all',
    '~*',
    'LAST',
    'STATS',
    'KEYS',
    'set',
    'get',
    'everything',
  ],
];

let server: TenantsServer;
const alarms: string[] = [];

async function fill(blue: RespClient): Promise<void> {
  const v = `${mark}-value`;
  for (let db = 0; db < databases; db++) {
    await blue.pipeline([
      ['SELECT', db],
      ['MSET', 'string1', v, '{tag}string', `${v}${db}`, `${mark}-key`, v],
      ['HSET', 'hash1', 'a', v, mark, v],
      ['RPUSH', 'list1', v, v],
      ['SADD', 'set1', v, 'a'],
      ['ZADD', 'zset1', 1, v, 2, 'a'],
    ]);
  }
}

/** All that blue has, as one text. */
async function contents(blue: RespClient): Promise<string> {
  const lines: string[] = [];
  for (let db = 0; db < databases; db++) {
    await blue.command('SELECT', db);
    const keys = itemsOf(await blue.command('KEYS', '*')).map(textOf);
    for (const key of keys.sort()) {
      const type = textOf(await blue.command('TYPE', key));
      const read: Record<string, Word[]> = {
        string: ['GET', key],
        hash: ['HGETALL', key],
        list: ['LRANGE', key, 0, -1],
        set: ['SMEMBERS', key],
        zset: ['ZRANGE', key, 0, -1, 'WITHSCORES'],
      };
      lines.push(`${db} ${key} ${await blue.text(...read[type]!)} ${await blue.text('PTTL', key)}`);
    }
  }
  return lines.join('\n');
}

/** Clients of blue that would notice if anything happened to them. */
async function watchers(): Promise<RespClient[]> {
  const clients: RespClient[] = [];
  const add = async (...commands: Word[][]): Promise<void> => {
    const client = await server.client('blue');
    await client.pipeline([['CLIENT', 'SETNAME', `${mark}-client`], ...commands]);
    client.onReply = (reply) => alarms.push(show(reply));
    client.socket.on('close', () => alarms.push('closed'));
    clients.push(client);
  };
  await add(['SUBSCRIBE', 'news', `${mark}-channel`]);
  await add(['PSUBSCRIBE', '*']);
  await add(['SSUBSCRIBE', 'news']);
  await add(['MONITOR']);
  await add(['WATCH', 'string1', 'list1'], ['MULTI'], ['GET', 'string1']);
  await add();
  clients.at(-1)!.send('*3\r\n$5\r\nBLPOP\r\n$6\r\nqueue1\r\n$1\r\n0\r\n');
  // The monitor has seen what the others began with, and the last one waits.
  await expect.poll(() => alarms.join('')).toContain('BLPOP');
  alarms.length = 0;
  return clients;
}

/** The users of red as they are before a command, which may have changed or dropped them: ACL is for its users, too. */
function restoreUsers(): void {
  const usual = { enabled: true, open: false };
  const ann = { ...usual, secrets: [quickSecret('ann')], rules: '~* &* +@all -flushall' };
  const few = { ...usual, secrets: [quickSecret('few')], rules: '%R~s* resetchannels +@read' };
  server.user('red', 'ann', ann);
  server.user('red', 'few', few);
}

beforeEach(async () => {
  server = await TenantsServer.start();
  server.tenant('red');
  server.tenant('blue');
  restoreUsers();
  server.user('blue', `${mark}-user`, { secrets: [quickSecret('x')], rules: '-@all' });
  server.redis.slowlogMs = 0;
});
afterEach(() => server.stop());

/** Argument lists for a command: as its grammar has them, and at random. */
function requests(entry: CommandEntry, random: Random): Word[][] {
  const names = entry.fullName.split('|');
  const lists: Word[][] = [];
  const own = allLines.filter(
    ({ pattern }) => pattern.text.split(' ')[0]!.toLowerCase() === entry.fullName,
  );
  for (const { pattern } of own) {
    for (let i = 0; i < rounds; i++) lists.push(pattern.make(random));
  }
  for (let i = 0; i < rounds * 2; i++) {
    const least = Math.abs(entry.arity) - names.length;
    const more = entry.arity < 0 ? random.below(4) : 0;
    const words = Array.from({ length: Math.max(0, least) + more }, () => random.pick(pool));
    lists.push([...names, ...words]);
  }
  return lists;
}

/** Everything that a client is told for a while after its requests. */
async function answersTo(client: RespClient, lists: readonly Word[][]): Promise<string> {
  let seen = '';
  let left = lists.length;
  let done: () => void;
  const all = new Promise<void>((resolve) => (done = resolve));
  client.onReply = (reply) => {
    seen += `${show(reply)}\n`;
    if (--left === 0) done();
  };
  client.replies(lists.length).catch(() => {});
  void client.ended.then(() => done());
  for (const words of lists) if (!client.closed) client.socket.write(encodeOne(words));
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, patienceMs)));
  await Promise.race([all, late]);
  clearTimeout(timer);
  client.close();
  return seen;
}

function encodeOne(words: readonly Word[]): Buffer {
  const parts = [Buffer.from(`*${words.length}\r\n`)];
  for (const word of words) {
    const bytes = Buffer.from(word instanceof Uint8Array ? word : String(word));
    parts.push(Buffer.from(`$${bytes.length}\r\n`), bytes, Buffer.from('\r\n'));
  }
  return Buffer.concat(parts);
}

interface Actor {
  name: string;
  login?: [string, string];
  /** Commands that are not tried: they would end the test. */
  spares: readonly string[];
}

const actors: readonly Actor[] = [
  { name: 'red', login: ['red', 'red'], spares: [] },
  { name: 'a user of red', login: ['ann@red', 'ann'], spares: [] },
  { name: 'a user of red with few rights', login: ['few@red', 'few'], spares: [] },
  // A server administrator may stop the server, and pause all clients.
  {
    name: 'tenant default',
    spares: ['shutdown', 'debug', 'debug|sleep', 'client|pause', 'acl|setuser', 'acl|deluser'],
  },
];

describe.each(actors)('$name', ({ login, spares }) => {
  test('every command leaves blue alone, and tells nothing of it', async () => {
    const blue = await server.client('blue');
    await blue.command('FLUSHALL');
    await fill(blue);
    const before = await contents(blue);
    const listening = await watchers();
    const random = new Random(seed);
    let answered = 0;
    for (const entry of server.redis.registry.entries()) {
      if (spares.includes(entry.fullName)) continue;
      if (login?.[0].endsWith('@red') === true) restoreUsers();
      const client = await server.client(...(login ?? []));
      const lists = requests(entry, random);
      const seen = await answersTo(client, lists);
      answered += seen.split('\n').length;
      const sent = lists.map((words) => words.join(' ')).join('\n');
      expect(seen.includes(mark), `seed ${seed}: after ${sent}:\n${seen}`).toBe(false);
      // MONITOR of blue shows what blue itself did; nothing else of blue did anything.
      expect(alarms, `seed ${seed}: after ${sent}`).toEqual([]);
    }
    expect(answered).toBeGreaterThan(300);
    for (const client of listening) {
      expect(client.closed).toBe(false);
      client.onReply = undefined;
      client.socket.removeAllListeners('close');
    }
    const [exec] = await listening[4]!.pipeline([['EXEC']]);
    expect(show(exec!)).toContain(mark);
    expect(await contents(blue)).toBe(before);
    for (const client of listening) client.close();
  });
});

test('before logging in, nothing is done at all', async () => {
  const closed = await TenantsServer.start({ defaultPassword: 'secret' });
  const random = new Random(seed);
  const allowed = new Set(['auth', 'hello', 'quit', 'reset']);
  for (const entry of closed.redis.registry.entries()) {
    if (allowed.has(entry.fullName)) continue;
    const client = await closed.client();
    const [words] = requests(entry, random).slice(-1);
    expect(await client.text(...words!), words!.join(' ')).toMatch(/^-(NOAUTH|ERR unknown)/);
    client.close();
  }
  await closed.stop();
});

// A bit far out makes a string that long, which other commands then copy.
stringLimit.bytes = 64 * 1024;

test('answers are the same as if there were no other tenant', async () => {
  const alone = await TenantsServer.start();
  alone.tenant('red');
  const crowded = await TenantsServer.start();
  crowded.tenant('red');
  crowded.tenant('blue');
  await fill(await crowded.client('blue'));
  await fill(await crowded.client());
  const [one, other] = [await alone.client('red'), await crowded.client('red')];
  const random = new Random(seed);
  const quiet = allLines.filter(({ waits }) => !waits);
  for (let i = 0; i < 1500; i++) {
    const words = random.pick(quiet).pattern.make(random);
    const [a, b] = await Promise.all([one.text(...words), other.text(...words)]);
    const isTime = /^P?(TTL|EXPIRETIME)$/i.test(String(words[0]));
    // The servers run it at different milliseconds.
    if (isTime && Number(a.slice(1)) > 0) expect(Number(b.slice(1))).toBeGreaterThan(0);
    else expect(b, `seed ${seed}: ${words.join(' ')}`).toBe(a);
  }
  await alone.stop();
  await crowded.stop();
});
