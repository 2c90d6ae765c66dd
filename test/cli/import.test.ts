// `polyrow import`: RDB files and running redis-servers into a server, writers going on; interrupted and resumed.
//
//   POLYROW_FULL=1    100 kills of each kind of import instead of a few
//   KILLS=n           that many; KILL_SEED=n repeats the moments of a run

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  copyFileSync,
  existsSync,
  mkdtempSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { redisInstalled } from '../commands/redis-server.ts';
import { Polyrow } from '../support/polyrow.ts';
import { Random } from '../support/random.ts';
import { RedisProcess } from '../support/redis-server.ts';
import { seedFrom } from '../support/seed.ts';
import type { RespClient, Word } from '../support/resp-client.ts';
import { type RespValue, show } from '../support/resp-value.ts';

const full = process.env['POLYROW_FULL'] === '1';
const kills = Number(process.env['KILLS'] ?? (full ? 100 : 3));
const seed = seedFrom('KILL_SEED');
const main = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function redis(...flags: string[]): Promise<RedisProcess> {
  const started = await RedisProcess.start(flags);
  cleanups.push(() => started.remove());
  return started;
}

async function polyrow(model = 'memory'): Promise<Polyrow> {
  const started = await Polyrow.start({ flags: ['--redis.default-model', model] });
  cleanups.push(() => started.remove());
  return started;
}

function folder(): string {
  const made = mkdtempSync(join(tmpdir(), 'import-test-'));
  cleanups.push(() => rmSync(made, { recursive: true, force: true }));
  return made;
}

class Import {
  readonly child: ChildProcess;
  output = '';
  readonly #exit: Promise<unknown[]>;

  constructor(...flags: string[]) {
    this.child = spawn(process.execPath, [main, 'import', ...flags], { stdio: 'pipe' });
    this.child.stdout!.on('data', (chunk) => (this.output += chunk));
    this.child.stderr!.on('data', (chunk) => (this.output += chunk));
    this.#exit = once(this.child, 'close');
    cleanups.push(() => this.child.kill('SIGKILL'));
  }

  async code(): Promise<number | null> {
    return (await this.#exit)[0] as number | null;
  }

  async kill(): Promise<void> {
    this.child.kill('SIGKILL');
    await this.#exit;
  }

  async says(text: string): Promise<void> {
    while (!this.output.includes(text)) {
      if (this.child.exitCode !== null) throw new Error(`ended without ${text}:\n${this.output}`);
      await sleep(5);
    }
  }
}

const reads: Record<string, (key: Buffer) => Word[]> = {
  string: (key) => ['GET', key],
  list: (key) => ['LRANGE', key, '0', '-1'],
  zset: (key) => ['ZRANGE', key, '0', '-1', 'WITHSCORES'],
  stream: (key) => ['XINFO', 'STREAM', key, 'FULL', 'COUNT', '0'],
  set: (key) => ['SMEMBERS', key],
  hash: (key) => ['HGETALL', key],
};

/** All that a database holds. */
async function contents(client: RespClient, db: number): Promise<Map<string, string>> {
  await client.command('SELECT', db);
  const found = await client.command('KEYS', '*');
  const keys = 'items' in found ? found.items.map((item) => ('text' in item ? item.text : '')) : [];
  const all = new Map<string, string>();
  keys.sort();
  const atOnce = 1000;
  for (let at = 0; at < keys.length; at += atOnce) {
    const names = keys.slice(at, at + atOnce).map((key) => Buffer.from(key, 'latin1'));
    const types = await client.pipeline(names.map((name) => ['TYPE', name]));
    const times = await client.pipeline(names.map((name) => ['PTTL', name]));
    const kinds = types.map((type) => show(type).slice(1));
    // A key that has expired since it was listed is of type none.
    const values = await client.pipeline(
      names.map((name, i) => reads[kinds[i]!]?.(name) ?? ['EXISTS', name]),
    );
    for (const [i, value] of values.entries()) {
      const type = kinds[i]!;
      if (type === 'none') continue;
      let text = type === 'set' || type === 'hash' ? unordered(value, type) : show(value);
      text = text.replaceAll(/"radix-tree-(keys|nodes)" :\d+/g, '');
      const expires = show(times[i]!) === ':-1' ? '' : 'expires ';
      all.set(keys[at + i]!, `${type} ${expires}${text}`);
    }
  }
  return all;
}

/** Members or fields in an order of their own. */
function unordered(value: RespValue, type: 'set' | 'hash'): string {
  const items = 'items' in value ? value.items.map(show) : [];
  if (type === 'set') return items.sort().join(' ');
  const pairs = items.flatMap((item, i) => (i % 2 === 0 ? [`${item} ${items[i + 1]}`] : []));
  return pairs.sort().join(' ');
}

async function expectSame(
  theirs: RespClient,
  ours: RespClient,
  pairs: [number, number][],
): Promise<void> {
  for (const [from, to] of pairs) {
    const expected = await contents(theirs, from);
    const found = await contents(ours, to);
    expect([...found.keys()]).toEqual([...expected.keys()]);
    for (const [key, value] of expected) {
      if (found.get(key) === value) continue;
      // Values may be megabytes.
      expect(`${key} ${found.get(key)!.slice(0, 300)}`).toBe(`${key} ${value.slice(0, 300)}`);
      expect(found.get(key)!.length).toBe(value.length);
      expect.fail(`${key} differs`);
    }
  }
}

async function fill(client: RespClient): Promise<void> {
  const many = (n: number, of: (i: number) => Word[]): Word[] =>
    Array.from({ length: n }, (_, i) => of(i)).flat();
  const commands: Word[][] = [
    ['SET', 's', 'value'],
    ['SET', 'n', '12345'],
    ['SET', 'compressed', 'abc'.repeat(1000)],
    ['SET', 'expiring', 'x', 'EX', '5000'],
    ['SET', 'expired', 'x', 'PX', '1'],
    ['SET', Buffer.from('binary \xff\x00\r\n', 'latin1'), Buffer.from([0, 255, 13, 10])],
    ['SET', 'large', 'y'.repeat(6_000_000)],
    ['RPUSH', 'list', ...many(3000, (i) => [`element ${i}`, i])],
    ['SADD', 'ints', ...many(300, (i) => [i * 1000])],
    ['SADD', 'set', ...many(3000, (i) => [`member ${i}`])],
    ['ZADD', 'small zset', '1.5', 'a', '-inf', 'b'],
    ['ZADD', 'zset', ...many(3000, (i) => [i / 7, `member ${i}`])],
    ['HSET', 'small hash', 'f', 'v'],
    ['HSET', 'hash', ...many(3000, (i) => [`field ${i}`, i])],
    ...Array.from({ length: 40 }, (_, i): Word[] => [
      'HSET',
      'huge',
      `f${i}`,
      String(i).repeat(100_000),
    ]),
    ...Array.from({ length: 300 }, (_, i): Word[] => [
      'XADD',
      'stream',
      `${i + 1}-1`,
      'f',
      `v${i}`,
    ]),
    ['XGROUP', 'CREATE', 'stream', 'g', '0'],
    ['XREADGROUP', 'GROUP', 'g', 'c', 'COUNT', '10', 'STREAMS', 'stream', '>'],
    ['PFADD', 'hll', 'a', 'b', 'c'],
    ['FUNCTION', 'LOAD', "#!lua name=lib\nredis.register_function('f', function() return 7 end)"],
    ['SELECT', '3'],
    ['SET', 'in three', '3'],
    ['SELECT', '0'],
  ];
  await client.pipeline(commands);
}

describe.skipIf(!redisInstalled)('polyrow import', { timeout: 400_000 }, () => {
  const saved = async (server: RedisProcess, client: RespClient): Promise<string> => {
    await client.command('SAVE');
    return join(server.folder, 'dump.rdb');
  };

  /** Filled and saved, for the tests that import its file; none of them changes it. */
  let source: RedisProcess;
  let dump: string;
  beforeAll(async () => {
    source = await RedisProcess.start([]);
    const client = await source.client();
    await fill(client);
    dump = await saved(source, client);
  });
  afterAll(() => source.remove());

  /** A copy of the file, as an import keeps its state beside it. */
  const copied = (): string => {
    const file = join(folder(), 'dump.rdb');
    copyFileSync(dump, file);
    return file;
  };

  test.each(['memory', 'kv'])('an RDB file, into the %s model', async (model) => {
    const theirs = await source.client();
    const target = await polyrow(model);
    const file = copied();
    const run = new Import('--rdb', file, '--to', `redis://127.0.0.1:${target.redisPort}`);
    expect(`${run.output}${await run.code()}`).toBe('0');
    expect(run.output).toContain('1 function libraries');
    const ours = await target.client();
    await expectSame(theirs, ours, [
      [0, 0],
      [3, 3],
    ]);
    expect(await ours.text('FCALL', 'f', '0')).toBe(':7');
    await ours.command('SELECT', '0');
    expect(await ours.text('TTL', 'expiring')).toMatch(/:(5000|4\d\d\d)/);
    expect(existsSync(`${file}.import`)).toBe(false);
  });

  test('only the databases that are named, under other numbers', async () => {
    const theirs = await source.client();
    const target = await polyrow();
    const file = copied();
    const to = `redis://127.0.0.1:${target.redisPort}`;
    const run = new Import('--rdb', file, '--to', to, '--db', '3:5', '--no-functions');
    expect(await run.code()).toBe(0);
    const ours = await target.client();
    await expectSame(theirs, ours, [[3, 5]]);
    expect((await contents(ours, 0)).size).toBe(0);
    expect(await ours.text('FUNCTION', 'LIST')).toBe('*[]');
  });

  test(`an import of a file that is killed goes on where it was, ${kills} kills`, {
    timeout: 3_600_000,
  }, async () => {
    const random = new Random(seed);
    const large = await redis();
    const theirs = await large.client();
    await fill(theirs);
    await theirs.command('DEBUG', 'POPULATE', '60000', 'key', '40');
    const target = await polyrow();
    const ours = await target.client();
    const file = await saved(large, theirs);
    const state = `${file}.import`;
    const words = ['--rdb', file, '--to', `redis://127.0.0.1:${target.redisPort}`];
    const savedAt = (): number => (existsSync(state) ? statSync(state).mtimeMs : 0);
    const compare = async (): Promise<void> => {
      await expectSame(theirs, ours, [
        [0, 0],
        [3, 3],
      ]);
      expect(existsSync(state)).toBe(false);
      await ours.command('FLUSHALL');
    };
    let killed = 0;
    while (killed < kills) {
      // At any moment of a start now and then, and otherwise some time after the next note of its progress.
      const before = savedAt();
      const isEarly = random.below(4) === 0;
      const run = new Import(...words);
      while (!isEarly && run.child.exitCode === null && savedAt() === before) await sleep(2);
      await Promise.race([sleep(random.below(isEarly ? 1000 : 300)), run.code()]);
      if (run.child.exitCode === null) {
        await run.kill();
        killed++;
        continue;
      }
      expect(`${run.child.exitCode} ${run.output}`).toMatch(/^0 /);
      await compare();
    }
    const isBegun = existsSync(state);
    const last = new Import(...words);
    expect(`seed ${seed}: ${await last.code()} ${last.output}`).toMatch(/^seed \d+: 0 /);
    expect(last.output.includes('resumes at')).toBe(isBegun);
    await compare();
  });

  describe('damage', () => {
    let target: Polyrow;
    beforeAll(async () => {
      target = await Polyrow.start();
    });
    afterAll(() => target.remove());

    test.each([
      [
        'cut off',
        (file: string) => truncateSync(file, statSync(file).size - 20),
        'ends in the middle',
      ],
      ['no RDB file', (file: string) => writeFileSync(file, 'something else'), 'no RDB file'],
      [
        'another byte',
        (file: string) => {
          const text = Buffer.from('value');
          const bytes = Buffer.alloc(statSync(file).size, 'REDIS0010');
          text.copy(bytes, 100);
          writeFileSync(file, bytes);
        },
        'RDB data is damaged',
      ],
    ])('a file that is damaged is refused: %s', async (_, damage, message) => {
      const file = copied();
      damage(file);
      const run = new Import('--rdb', file, '--to', `redis://127.0.0.1:${target.redisPort}`);
      expect(await run.code()).toBe(1);
      expect(run.output).toContain(message);
      expect(run.output).not.toContain('\n    at ');
    });
  });

  /** Changes of all kinds, most of which show when they are done twice or left out. */
  async function write(client: RespClient, random: Random, until: () => boolean): Promise<number> {
    let written = 0;
    while (!until()) {
      const batch: Word[][] = [];
      for (let i = 0; i < 20; i++) {
        const k = random.below(50);
        batch.push(
          ['INCR', `counter ${k}`],
          ['RPUSH', `list ${k}`, String(written++)],
          ['HINCRBY', `hash ${k}`, `f${random.below(5)}`, '1'],
          ['XADD', `stream ${k % 5}`, 'MAXLEN', '~', '200', '*', 'n', String(written)],
          ['ZINCRBY', `zset ${k}`, '1', `m${random.below(5)}`],
          ['SPOP', `set ${k}`],
          ['SADD', `set ${k}`, String(written), String(written + 1)],
          ['SET', `string ${k}`, 'v', 'PX', '100000000'],
          ['MULTI'],
          ['INCR', 'both'],
          ['SELECT', String(random.below(3))],
          ['INCR', 'both'],
          ['EXEC'],
          ['DEL', `list ${random.below(50)}`],
          [
            'EVAL',
            "redis.call('INCR', KEYS[1]) return redis.call('APPEND', 'script', 'x')",
            '1',
            'e',
          ],
        );
      }
      await client.pipeline(batch);
      await sleep(10);
    }
    return written;
  }

  test.each([
    ['memory', []],
    ['kv', ['--repl-diskless-sync', 'no']],
  ])(
    `a redis-server whose writers go on, into the %s model; killed ${kills} times, and resumed`,
    { timeout: 3_600_000 },
    async (model, flags) => {
      const random = new Random(seed);
      const master = await redis(
        ...['--repl-backlog-size', '64mb', '--repl-diskless-sync-delay', '0'],
        ...flags,
      );
      const theirs = await master.client();
      await theirs.command('DEBUG', 'POPULATE', '20000', 'filler', '40');
      const target = await polyrow(model);
      const state = join(folder(), 'state');
      const words = [
        '--from',
        `redis://127.0.0.1:${master.port}`,
        '--to',
        `redis://127.0.0.1:${target.redisPort}`,
        '--state',
        state,
      ];
      let isOver = false;
      const writing = write(await master.client(), new Random(seed), () => isOver);
      try {
        for (let kill = 0; kill < kills; kill++) {
          const run = new Import(...words, '--json');
          if (kill % 3 === 0) {
            // While the snapshot is loaded, or at any moment of a start that resumes.
            while (!existsSync(state)) await sleep(2);
            await sleep(random.below(kill === 0 ? 20 : 1000));
          } else {
            await run.says('"phase":"live"');
            await sleep(random.below(400));
          }
          await run.kill();
        }
        const last = new Import(...words, '--json');
        await last.says('"phase":"live"');
        await sleep(300);
        isOver = true;
        expect(await writing).toBeGreaterThan(100);
        last.child.kill('SIGINT');
        expect(`seed ${seed}: ${await last.code()} ${last.output}`).toMatch(/^seed \d+: 0 /);
      } finally {
        isOver = true;
        await writing;
      }
      const ours = await target.client();
      await expectSame(theirs, ours, [
        [0, 0],
        [1, 1],
        [2, 2],
        [3, 3],
      ]);
      expect(existsSync(state)).toBe(false);
    },
  );

  test('a redis-server that accepts no replica is copied key by key', async () => {
    const master = await redis('--rename-command', 'PSYNC', '');
    const theirs = await master.client();
    await fill(theirs);
    const target = await polyrow();
    const run = new Import(
      '--from',
      `redis://127.0.0.1:${master.port}`,
      '--to',
      `redis://127.0.0.1:${target.redisPort}`,
      '--state',
      join(folder(), 'state'),
    );
    expect(`${await run.code()} ${run.output}`).toMatch(/^0 /);
    expect(run.output).toContain('accepts no replica');
    const ours = await target.client();
    await expectSame(theirs, ours, [
      [0, 0],
      [3, 3],
    ]);
    expect(await ours.text('FCALL', 'f', '0')).toBe(':7');
  });
});
