// Clients on all nodes read, write, compare and set, and append, while nodes are killed and stopped at random. The history
// of each key must be one that a single copy could have given; porcupine is the judge.
//
//   SECONDS=3600 npx vitest run test/cluster/linearizability.test.ts     the full form

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Redis } from 'ioredis';
import { afterEach, expect, test } from 'vitest';
import { goTool } from '../support/go-tools.ts';
import { connectOnce, PolyrowCluster } from '../support/polyrow-cluster.ts';
import { Random } from '../support/random.ts';

const seconds = Number(process.env['SECONDS'] ?? 25);
const seed = Number(process.env['SEED'] ?? Math.floor(Math.random() * 2 ** 31));
const module = fileURLToPath(new URL('linearizability', import.meta.url));
/** More make a key's history slow to judge. */
const operationsPerKey = 150;
const clientsPerNode = 3;

interface Operation {
  client: number;
  key: string;
  op: 'set' | 'get' | 'cas' | 'append' | 'list';
  value?: string;
  expected?: string;
  result?: string;
  call: number;
  return?: number;
}

let cluster: PolyrowCluster | undefined;
const clients: Redis[] = [];
afterEach(async () => {
  for (const client of clients.splice(0)) client.disconnect();
  await cluster?.remove();
  cluster = undefined;
});

function connect(port: number): Redis {
  const client = connectOnce(port);
  clients.push(client);
  return client;
}

const nanoseconds = (): number => Math.round(performance.now() * 1e6);

/** Errors that say that nothing was done. */
const notDone = /^CLUSTERDOWN|isn't writeable/;

class Clients {
  readonly history: Operation[] = [];
  isOver = false;
  #begun = 0;
  #value = 0;

  /** Key and values are new ones now and then, so that no history gets too long. */
  #keyOf(kind: string, random: Random): string {
    const era = Math.floor(this.#begun / (operationsPerKey * 6));
    return `${kind}:${era}:${random.below(3)}`;
  }

  async run(number: number, redis: Redis, random: Random): Promise<void> {
    while (!this.isOver) {
      this.#begun++;
      const operation = this.#choose(number, random);
      const { key, op } = operation;
      try {
        const result = await this.#send(redis, operation);
        if (result !== undefined)
          this.history.push({ ...operation, result, return: nanoseconds() });
      } catch (error) {
        const isRead = op === 'get' || op === 'list';
        if (!isRead && !notDone.test((error as Error).message)) this.history.push(operation);
        await pause(20, key);
      }
      await pause(random.below(8));
    }
  }

  #choose(client: number, random: Random): Operation {
    const call = nanoseconds();
    const op = random.pick<Operation['op']>(['set', 'get', 'get', 'cas', 'append', 'list']);
    const isList = op === 'append' || op === 'list';
    const key = this.#keyOf(isList ? 'list' : 'register', random);
    const value = op === 'set' || op === 'cas' || op === 'append' ? String(++this.#value) : '';
    return { client, key, op, call, ...(value === '' ? {} : { value }) };
  }

  /** The result; undefined where nothing was done and nothing learned. */
  async #send(redis: Redis, operation: Operation): Promise<string | undefined> {
    const { key, op, value } = operation;
    switch (op) {
      case 'set':
        await redis.set(key, value!);
        return '';
      case 'get':
        return (await redis.get(key)) ?? '';
      case 'append':
        return String(await redis.rpush(key, value!));
      case 'list':
        return (await redis.lrange(key, 0, -1)).join(',');
      case 'cas': {
        await redis.watch(key);
        operation.expected = (await redis.get(key)) ?? '';
        operation.call = nanoseconds();
        const answer = await redis.multi().set(key, value!).exec();
        if (answer === null) return undefined;
        const [error] = answer[0]!;
        if (error) throw error;
        return '1';
      }
    }
  }
}

async function harm(of: PolyrowCluster, random: Random, isOver: () => boolean): Promise<void> {
  while (!isOver()) {
    await pause(1500 + random.below(3000));
    const node = random.below(3);
    if (random.chance(0.5)) {
      of.kill(node);
      await pause(2500);
    } else if (of.pause(node)) {
      await pause(500 + random.below(4000));
      of.resume(node);
    }
  }
}

async function judge(program: string, history: readonly Operation[]): Promise<string> {
  const child = spawn(program, { stdio: ['pipe', 'pipe', 'inherit'] });
  let verdict = '';
  child.stdout.on('data', (chunk: Buffer) => (verdict += chunk.toString()));
  const closed = once(child, 'close');
  child.stdin.end(history.map((one) => JSON.stringify(one)).join('\n'));
  await closed;
  return verdict.trim();
}

const tool = await goTool({ module, program: 'polyrow/test/linearizability' });

test.skipIf('missing' in tool)(
  `histories of ${seconds} s fit a single copy (seed ${seed})`,
  async () => {
    cluster = await PolyrowCluster.start(3);
    const { redisPorts } = cluster;
    const work = new Clients();
    const random = new Random(seed);
    const running = redisPorts.flatMap((port, node) =>
      Array.from({ length: clientsPerNode }, (_, i) => {
        const number = node * clientsPerNode + i;
        return work.run(number, connect(port), new Random(seed + number + 1));
      }),
    );
    const harming = harm(cluster, random, () => work.isOver);
    await pause(seconds * 1000);
    work.isOver = true;
    await Promise.all([...running, harming]);
    const { path } = tool as { path: string };
    expect(await judge(path, work.history)).toBe('ok');
    expect(work.history.length).toBeGreaterThan(100);
  },
  (seconds * 2 + 300) * 1000,
);
