// MIGRATE: to a redis-server, to another Polyrow, and to targets that fail.

import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { Polyrow } from '../support/polyrow.ts';
import { RedisProcess } from '../support/redis-server.ts';
import type { RespClient } from '../support/resp-client.ts';
import { redisInstalled } from './redis-server.ts';

const values: readonly (readonly string[])[] = [
  ['SET', 'text', 'x'.repeat(1000)],
  ['SET', 'number', '12'],
  ['HSET', 'hash', 'f', 'v', 'g', 'w'],
  ['RPUSH', 'list', 'a', 'b', 'c'],
  ['SADD', 'set', 'a', '1'],
  ['SADD', 'integers', '1', '2', '300000'],
  ['ZADD', 'ranked', '1', 'a', '2.5', 'b'],
  ['XADD', 'stream', '1-1', 'f', 'v'],
  ['PFADD', 'sketch', 'a', 'b'],
  ['SET', 'expires', 'v', 'PX', '100000000'],
];
const reads: readonly (readonly string[])[] = [
  ['GET', 'text'],
  ['GET', 'number'],
  ['HGET', 'hash', 'g'],
  ['LRANGE', 'list', '0', '-1'],
  ['SISMEMBER', 'set', 'a'],
  ['SCARD', 'integers'],
  ['ZRANGE', 'ranked', '0', '-1', 'WITHSCORES'],
  ['XRANGE', 'stream', '-', '+'],
  ['PFCOUNT', 'sketch'],
  ['GET', 'expires'],
];
const keys = values.map(([, key]) => key!);

async function answers(client: RespClient, commands: readonly (readonly string[])[]) {
  const all: string[] = [];
  for (const words of commands) all.push(await client.text(...words));
  return all;
}

/** Answers what it is told to, once for each command that has come. */
class FakeTarget {
  readonly server: Server;
  readonly commands: string[] = [];
  #sockets: Socket[] = [];

  private constructor(answer: (name: string, socket: Socket, count: number) => void) {
    this.server = createServer((socket) => {
      this.#sockets.push(socket);
      socket.on('error', () => {});
      let text = '';
      socket.on('data', (chunk) => {
        text += chunk.toString('latin1');
        for (;;) {
          const found = /^\*(\d+)\r\n((?:\$\d+\r\n[^\r]*\r\n)*)/.exec(text);
          const words = found?.[2]!.match(/\r\n[^\r]*\r\n/g) ?? [];
          if (found === null || words.length < Number(found[1])) return;
          text = text.slice(found[0].length);
          const name = words[0]!.trim();
          this.commands.push(name);
          answer(name, socket, this.commands.length);
        }
      });
    });
  }

  static async start(answer: (name: string, socket: Socket, count: number) => void) {
    const target = new FakeTarget(answer);
    await new Promise<void>((resolve) => {
      target.server.listen(0, '127.0.0.1', resolve);
    });
    return target;
  }

  get port(): string {
    return String((this.server.address() as AddressInfo).port);
  }

  close(): void {
    for (const socket of this.#sockets) socket.destroy();
    this.server.close();
  }
}

describe.each(['memory', 'kv'] as const)('from %s', (model) => {
  let source: Polyrow;
  let client: RespClient;
  beforeAll(async () => {
    source = await Polyrow.start({ flags: ['--redis.default-model', model] });
    client = await source.client();
  });
  afterAll(() => source.remove());
  beforeEach(() => client.command('FLUSHALL'));

  async function movesAll(to: RespClient, port: string, auth: readonly string[]): Promise<void> {
    await to.command('FLUSHALL');
    await answers(client, values);
    const before = await answers(client, reads);
    const migrate = ['MIGRATE', '127.0.0.1', port];
    expect(await client.text(...migrate, '', '0', '5000', ...auth, 'KEYS', ...keys, 'no')).toBe(
      '+OK',
    );
    expect(await client.text('DBSIZE')).toBe(':0');
    expect(await answers(to, reads)).toEqual(before);
    expect(Number((await to.text('PTTL', 'expires')).slice(1))).toBeGreaterThan(99_000_000);
    expect(await client.text(...migrate, 'text', '0', '5000', ...auth)).toBe('+NOKEY');
    // One that is there is left alone, unless it is to be replaced; a copy stays.
    await client.command('SET', 'number', '13');
    expect(await client.text(...migrate, 'number', '0', '5000', ...auth)).toContain(
      'Target instance replied with error: BUSYKEY',
    );
    expect(await to.text('GET', 'number')).toContain('12');
    const again = [...migrate, 'number', '0', '5000', 'COPY', 'REPLACE', ...auth];
    expect(await client.text(...again)).toBe('+OK');
    expect(await to.text('GET', 'number')).toContain('13');
    expect(await client.text('GET', 'number')).toContain('13');
    const elsewhere = [...migrate, 'number', '3', '5000', ...auth];
    expect(await client.text(...elsewhere)).toBe('+OK');
    expect(await client.text('EXISTS', 'number')).toBe(':0');
    expect(await client.text('SET', 'k', 'v')).toBe('+OK');
    expect(await client.text(...migrate, 'k', '99', '5000', ...auth)).toContain(
      'DB index is out of range',
    );
    expect(await client.text('GET', 'k')).toContain('v');
  }

  test('to another Polyrow, as one of its users', async () => {
    const other = await Polyrow.start({ flags: ['--redis.password', 'secret'] });
    const to = await other.client();
    await to.command('AUTH', 'secret');
    await movesAll(to, String(other.redisPort), ['AUTH2', 'default', 'secret']);
    await client.command('SET', 'k', 'v');
    expect(
      await client.text(
        'MIGRATE',
        '127.0.0.1',
        String(other.redisPort),
        'k',
        '0',
        '5000',
        'AUTH',
        'no',
      ),
    ).toContain('Target instance replied with error: WRONGPASS');
    expect(await client.text('GET', 'k')).toContain('v');
    await other.remove();
  });

  test.skipIf(!redisInstalled)('to a redis-server with a password', async () => {
    const real = await RedisProcess.start();
    const to = await real.client();
    await to.command('CONFIG', 'SET', 'requirepass', 'secret');
    await movesAll(to, String(real.port), ['AUTH', 'secret']);
    await real.remove();
  });

  test('no write to a key is lost while the target thinks', async () => {
    let release: (() => void) | undefined;
    const slow = await FakeTarget.start((name, socket) => {
      if (name === 'RESTORE') release = () => socket.write('+OK\r\n');
      else socket.write('+OK\r\n');
    });
    await client.command('SET', 'count', '5');
    await client.command('SET', 'other', '5');
    const migrating = client.text('MIGRATE', '127.0.0.1', slow.port, 'count', '0', '5000');
    const writer = await source.client();
    await expect.poll(() => release !== undefined).toBe(true);
    const counted = writer.text('INCR', 'count');
    // Another database goes on.
    const elsewhere = await source.client();
    await elsewhere.command('SELECT', '1');
    expect(await elsewhere.text('INCR', 'count')).toBe(':1');
    release!();
    expect(await migrating).toBe('+OK');
    expect(await counted).toBe(':1');
    slow.close();
  });

  test('keys that the target has not taken stay', async () => {
    const broken = await FakeTarget.start((name, socket, count) => {
      if (count === 4) socket.destroy();
      else socket.write(name === 'RESTORE' && count === 3 ? '-ERR no\r\n' : '+OK\r\n');
    });
    await client.command('MSET', 'a', '1', 'b', '2', 'c', '3');
    const keysOf = ['KEYS', 'a', 'b', 'c'];
    expect(
      await client.text('MIGRATE', '127.0.0.1', broken.port, '', '0', '5000', ...keysOf),
    ).toContain('IOERR error or timeout reading from target instance');
    expect(await client.text('MGET', 'a', 'b', 'c')).toBe(
      await client.text('EVAL', "return {false, '2', '3'}", '0'),
    );
    broken.close();
  });

  test('a target that says nothing is waited for no longer than was said', async () => {
    const silent = await FakeTarget.start(() => {});
    await client.command('SET', 'k', 'v');
    expect(await client.text('MIGRATE', '127.0.0.1', silent.port, 'k', '0', '50')).toContain(
      'IOERR error or timeout writing to target instance',
    );
    expect(await client.text('GET', 'k')).toContain('v');
    const { port } = silent;
    silent.close();
    expect(await client.text('MIGRATE', '127.0.0.1', port, 'k', '0', '5000')).toContain(
      'IOERR error or timeout connecting to the client',
    );
  });

  test.each([
    [['h', '1', 'k', '0', 'soon'], 'not an integer'],
    [['h', '1', 'k', 'zero', '1'], 'not an integer'],
    [['h', '1', 'k', '0', '1', 'KEYS', 'k'], 'must be set to the empty string'],
    [['h', '1', 'k', '0', '1', 'SOON'], 'syntax error'],
    [['h', '1', 'k', '0', '1', 'AUTH'], 'syntax error'],
    [['127.0.0.1', '99999', 'k', '0', '1'], 'IOERR'],
    [['/tmp/x', '1', 'k', '0', '1'], 'IOERR'],
  ])('MIGRATE %s', async (words, problem) => {
    await client.command('SET', 'k', 'v');
    expect(await client.text('MIGRATE', ...words)).toContain(problem);
    expect(await client.text('EXISTS', 'k')).toBe(':1');
  });
});
