// Clients on all nodes read, write, compare and set, and append, while nodes are killed and stopped at random. The history
// of each key must be one that a single copy could have given; porcupine is the judge.
//
//   SECONDS=3600 npx vitest run test/cluster/linearizability.test.ts     the full form

import { setTimeout as pause } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { afterEach, expect, test } from 'vitest';
import { connectOnce, PolyrowCluster } from '../support/polyrow-cluster.ts';
import { Random } from '../support/random.ts';
import { seedFrom } from '../support/seed.ts';
import { judge, judgeTool, Workload } from './linearizability/workload.ts';

const seconds = Number(process.env['SECONDS'] ?? 12);
const seed = seedFrom('SEED');
const clientsPerNode = 3;

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

const tool = await judgeTool();

test.skipIf('missing' in tool)(
  `histories of ${seconds} s fit a single copy (seed ${seed})`,
  async () => {
    cluster = await PolyrowCluster.start(3);
    const { redisPorts } = cluster;
    const work = new Workload();
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
    await work.readAll(connect(redisPorts[0]!));
    const { path } = tool as { path: string };
    expect(await judge(path, work.history)).toBe('ok');
    expect(work.history.length).toBeGreaterThan(100);
  },
  (seconds * 2 + 300) * 1000,
);
