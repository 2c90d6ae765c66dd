// `polyrow start --processes`: several processes behind the same ports, which are one server to clients.

import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Random } from '../support/random.ts';
import { isBuilt, polyrow, PolyrowProcess } from './polyrow-process.ts';

const free = ['--redis.port', '0', '--influx.port', '0', '--admin.port', '0'];
const keys = Array.from({ length: 40 }, (_, i) => `key:${i}`);

describe.skipIf(!isBuilt)('two processes', () => {
  let path: string;
  let server: PolyrowProcess;
  let client: Redis;

  async function start(): Promise<void> {
    server = new PolyrowProcess(['start', '--processes', '2', '--data-dir', path, ...free]);
    await server.ready();
    client = new Redis({ port: server.port('redis'), enableReadyCheck: false });
  }

  async function stop(): Promise<void> {
    client.disconnect();
    server.kill('SIGTERM');
    expect((await server.finish()).code).toBe(0);
  }

  /** Pid of the process that runs in the directory of a node; read from the lock. */
  function pidOf(node: number): number {
    const lock = readFileSync(join(path, 'processes', `node-${node}`, 'lock'), 'utf8');
    return (JSON.parse(lock) as { pid: number }).pid;
  }

  beforeAll(async () => {
    path = mkdtempSync(join(tmpdir(), 'polyrow-processes-'));
    await start();
    for (const key of keys) await client.set(key, key);
  });

  afterAll(async () => {
    await stop();
    rmSync(path, { recursive: true });
  });

  test('rows are spread over both, and every connection sees all of them', async () => {
    expect(await client.dbsize()).toBe(keys.length);
    const groupsOfRows = async () => {
      const report = await polyrow(['cluster', 'status', '--data-dir', path, '--json']);
      const { groups } = JSON.parse(report.out) as {
        groups: { partition?: number; leader: number; replicas: { rows: number }[] }[];
      };
      return groups.filter(({ partition }) => partition !== undefined);
    };
    let divided = await groupsOfRows();
    // A process is asked what it leads, and may not answer in time once.
    while (divided.some(({ leader }) => leader === 0)) divided = await groupsOfRows();
    expect(new Set(divided.map(({ leader }) => leader))).toEqual(new Set([1, 2]));
    for (const { replicas } of divided) expect(replicas[0]!.rows).toBeGreaterThan(0);
    const found = await Promise.all(
      Array.from({ length: 8 }, async () => {
        const other = new Redis({ port: server.port('redis'), enableReadyCheck: false });
        const values = await Promise.all(keys.map((key) => other.get(key)));
        other.disconnect();
        return values;
      }),
    );
    for (const values of found) expect(values).toEqual(keys);
  });

  test('commands of a pipeline are answered in order, wherever their keys are', async () => {
    const random = new Random(7);
    const strings = new Map<string, string>();
    const counts = new Map<string, number>();
    for (let round = 0; round < 40; round++) {
      const pipeline = client.pipeline();
      const expected: unknown[] = [];
      for (let n = random.below(60); n >= 0; n--) {
        const key = `p:${random.below(50)}`;
        const value = 'v'.repeat(random.below(20) === 0 ? 300_000 : random.below(20));
        switch (random.below(7)) {
          case 0:
            pipeline.set(key, value);
            strings.set(key, value);
            expected.push('OK');
            break;
          case 1:
            pipeline.incr(`n:${key}`);
            counts.set(key, (counts.get(key) ?? 0) + 1);
            expected.push(counts.get(key));
            break;
          case 2:
            pipeline.lpush(key, 'x');
            expected.push(strings.has(key) ? /^WRONGTYPE/ : undefined);
            break;
          case 3:
            pipeline.echo(key);
            expected.push(key);
            break;
          case 4:
            pipeline.mget(`{${key}}a`, `{${key}}b`);
            expected.push([null, null]);
            break;
          case 5:
            pipeline.del(key);
            strings.delete(key);
            expected.push(undefined);
            break;
          default:
            pipeline.get(key);
            expected.push(strings.get(key));
        }
      }
      const answers = (await pipeline.exec())!;
      expect(answers).toHaveLength(expected.length);
      for (const [i, [error, answer]] of answers.entries()) {
        const wanted = expected[i];
        if (wanted instanceof RegExp) expect(error?.message).toMatch(wanted);
        else if (wanted !== undefined) expect(answer).toEqual(wanted);
      }
    }
  });

  test('points are written and read through one port', async () => {
    const url = server.url('influx');
    await fetch(`${url}/query?q=CREATE+DATABASE+d`, { method: 'POST' });
    const body = 'cpu,host=a value=1 1000000000';
    expect((await fetch(`${url}/write?db=d`, { method: 'POST', body })).status).toBe(204);
    const answer = await fetch(`${url}/query?db=d&q=SELECT+value+FROM+cpu`);
    expect(await answer.text()).toContain('[["1970-01-01T00:00:01Z",1]]');
  });

  test('a process that is killed is started again with its rows', async () => {
    const pid = pidOf(2);
    process.kill(pid, 'SIGKILL');
    client.disconnect();
    await expect.poll(() => pidOf(2)).not.toBe(pid);
    client = new Redis({ port: server.port('redis'), enableReadyCheck: false });
    client.on('error', () => {});
    const read = () => Promise.all(keys.map((key) => client.get(key))).catch(() => []);
    await expect.poll(read).toEqual(keys);
  });

  test('the rows are there after a stop and a start', async () => {
    await stop();
    const alone = await polyrow(['start', '--data-dir', path, ...free]);
    expect(alone).toMatchObject({ code: 1 });
    expect(alone.err).toContain('that of several processes');
    await start();
    expect(await Promise.all(keys.map((key) => client.get(key)))).toEqual(keys);
  });

  test('FLUSHALL in a transaction tells when another process does not answer', async () => {
    // Databases from 1 on are in one process.
    await client.select(1);
    await client.set('k', 'v');
    const report = await polyrow(['cluster', 'status', '--data-dir', path, '--json']);
    const { groups } = JSON.parse(report.out) as {
      groups: { partition?: number; model: string; leader: number }[];
    };
    const home = groups.find(({ partition, model }) => partition === undefined && model !== 'tsm')!;
    const near = pidOf(home.leader);
    const far = pidOf(3 - home.leader);
    let here = client;
    while (Number(/process_id:(\d+)/.exec(await here.info('server'))![1]) !== near) {
      if (here !== client) here.disconnect();
      here = new Redis({ port: server.port('redis'), db: 1, enableReadyCheck: false });
    }
    process.kill(far, 'SIGSTOP');
    try {
      const exec = here.multi().get('k').flushall().exec();
      await expect(exec).rejects.toThrow(
        /^ERR the transaction was done, but not for all databases: ERR outcome unknown$/,
      );
      expect(await here.get('k')).toBeNull();
    } finally {
      process.kill(far, 'SIGCONT');
      if (here !== client) here.disconnect();
    }
  });
});

test.skipIf(!isBuilt).each([
  [['--processes', '2', '--cluster.listen', '127.0.0.1:7373'], 'goes without cluster.listen'],
  [['--processes', '21'], '--processes must be 1 to 20'],
])('%j is refused', async (words, message) => {
  const { code, err } = await polyrow(['start', '--data-dir', '/nowhere', ...free, ...words]);
  expect(code).toBe(2);
  expect(err).toContain(message);
});
