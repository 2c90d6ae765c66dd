// Clients on all nodes read, write, compare and set, append, add to sets, write points of time series, and move amounts
// between accounts, while nodes are killed, stopped and cut off from each other at random. The history of each key must be
// one that a single copy could have given; porcupine is the judge. Nothing may be in two accounts at once, or in none. At
// the end every replica has the same rows.
//
//   SECONDS=3600 npx vitest run test/cluster/linearizability.test.ts     the full form
//
// Time series are in one group or in two, as the seed has it. Where `CI` is set it takes two minutes, with fewer requests a second: other tests run beside it.

import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Redis } from 'ioredis';
import { afterEach, expect, test } from 'vitest';
import { LocalNodes } from '../../bench/cluster/local-nodes.ts';
import { connectOnce } from '../support/polyrow-cluster.ts';
import { Random } from '../support/random.ts';
import { seedFrom } from '../support/seed.ts';
import { Accounts } from './linearizability/accounts.ts';
import { harm, type HarmDone } from './linearizability/harms.ts';
import { SeriesClient } from './linearizability/series-client.ts';
import {
  type Connections,
  judge,
  judgeTool,
  type Operation,
  Workload,
} from './linearizability/workload.ts';

const dist = process.env['DIST_DIR'] ?? fileURLToPath(new URL('../../dist', import.meta.url));
const isCi = process.env['CI'] !== undefined;
const seconds = Number(process.env['SECONDS'] ?? (isCi ? 240 : 8));
const isFull = seconds > 60;
/** Longest pause of a client between its requests, milliseconds. */
const pauseMs = isCi ? 80 : 8;
const seed = seedFrom('SEED');
/** With one, nodes forward bodies of points whole; with two, they ask the groups themselves. */
const seriesPartitions = 1 + (seed % 2);
const clientsPerNode = 3;
/** Within this, what all nodes must be able to answer once all faults are over. */
const patienceMs = 60_000;
/** Milliseconds that a harm lasts at most. */
const longestHarm = isFull ? 20_000 : 3000;

let cluster: LocalNodes | undefined;
const clients: Redis[] = [];
afterEach(async () => {
  for (const client of clients.splice(0)) client.disconnect();
  await cluster?.stop();
  cluster = undefined;
});

function connect(node: number): Redis {
  const client = connectOnce(cluster!.redisPort(node));
  clients.push(client);
  return client;
}

function connections(node: number, consistency?: string): Connections {
  const series = new SeriesClient(cluster!.influxUrl(node), consistency);
  return { redis: connect(node), series };
}

/** A history is not made a second time by its seed: all that may tell what went wrong. */
function explain(
  history: readonly Operation[],
  keys: readonly string[],
  harms: readonly HarmDone[],
  directory: string,
): void {
  const operations = history.filter(({ key }) => keys.includes(key));
  for (const one of [...harms, ...operations]) console.log(JSON.stringify(one));
  console.log(`the nodes' directories are in ${directory}`);
}

const tool = await judgeTool();

test.skipIf('missing' in tool)(
  `histories of ${seconds} s fit a single copy (seed ${seed})`,
  async () => {
    const flags = ['--influx.partitions', String(seriesPartitions)];
    cluster = await LocalNodes.start({ nodes: 3, proxied: true, dist, flags });
    const nodes = cluster.numbers;
    const work = new Workload(pauseMs);
    const accounts = new Accounts(pauseMs);
    await accounts.open(connect(nodes[0]!));
    await connections(nodes[0]!).series.createDatabase();
    const random = new Random(seed);
    const isOver = (): boolean => work.isOver;
    const running = nodes.flatMap((node, index) => [
      ...Array.from({ length: clientsPerNode }, (_, i) => {
        const number = index * clientsPerNode + i;
        return work.run(number, connections(node), new Random(seed + number + 1));
      }),
      accounts.move(connect(node), new Random(seed - index), isOver),
    ]);
    const harming = harm(cluster, random, longestHarm, isOver);
    // A harm that fails, as when a node does not come back, ends the test at once.
    await Promise.race([pause(seconds * 1000), harming]);
    // A slow machine needs longer for as many as can show something.
    while (work.history.length <= 100 || accounts.moves <= 10) await pause(100);
    work.isOver = true;
    const [harms] = await Promise.all([harming, ...running]);
    await work.readAll(connections(nodes[0]!), patienceMs);
    await accounts.close(connect(nodes[1]!));
    const differing: string[] = [];
    for (const node of nodes) {
      differing.push(...(await work.differing(connections(node, 'eventual'), patienceMs)));
    }
    const { path } = tool as { path: string };
    const counts: Record<string, number> = {};
    for (const one of harms) counts[one.harm] = (counts[one.harm] ?? 0) + 1;
    const found = {
      verdict: await judge(path, work.history),
      wrong: accounts.wrong,
      differing,
      operations: work.history.length,
      moves: accounts.moves,
      harms: counts,
      seriesPartitions,
    };
    if (isFull) console.log(JSON.stringify(found));
    const isWrong = found.verdict !== 'ok' || found.wrong.length > 0 || differing.length > 0;
    const keys = [...found.verdict.split(' ').slice(1), ...differing];
    if (isWrong) explain(work.history, keys, harms, cluster.keep());
    expect(found).toMatchObject({ verdict: 'ok', wrong: [], differing: [] });
  },
  (seconds * 2 + 300) * 1000,
);
