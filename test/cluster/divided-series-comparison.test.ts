// Time series of a cluster in four groups answer as those of a single server, whichever node is asked: random bodies,
// deletions and queries, and the statements of the comparison with influxd.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Node, numbers, viewOf } from '../support/series-nodes.ts';
import { TenantServer } from '../influx-tenants/tenant-server.ts';
import { points } from '../influx/points.ts';
import { queries } from '../influx/queries.ts';
import { randomBody, randomDeletion, randomQuery } from '../influx/random-work.ts';
import { Random } from '../support/random.ts';
import { seedFrom } from '../support/seed.ts';

const full = process.env['POLYROW_FULL'] === '1';
const root = mkdtempSync(join(tmpdir(), 'polyrow-divided-comparison-'));
let nodes: Node[] = [];
let one: TenantServer;

beforeAll(async () => {
  const view = await viewOf(4);
  nodes = numbers.map((number) => new Node(number, root, view));
  one = await TenantServer.start({}, 1);
  for (const node of nodes) await node.start();
}, 300_000);

afterAll(async () => {
  for (const node of nodes) await node.stop();
  await one?.close();
  rmSync(root, { recursive: true, force: true });
}, 300_000);

function nodeAt(random: Random): Node {
  return nodes[random.below(nodes.length)]!;
}

/** A node and the single server are asked; the answers must be the same, byte by byte. */
async function compare(node: Node, q: string, db: string): Promise<void> {
  const mine = await node.post(`/query?${new URLSearchParams({ db, q }).toString()}`, '');
  const { status, text } = await one.query('', q, { db });
  expect(mine, `node ${node.number}: ${q}`).toEqual({ status, text });
}

async function write(node: Node, body: string, db: string): Promise<void> {
  const mine = await node.post(`/write?db=${db}`, body);
  const { status, text } = await one.write('', body, db);
  expect(mine, `node ${node.number}`).toEqual({ status, text });
}

test('statements', { timeout: 600_000 }, async () => {
  const random = new Random(1);
  await compare(nodes[0]!, 'CREATE DATABASE cmp', 'cmp');
  await write(nodes[1]!, points.join('\n'), 'cmp');
  // Without the control plane of the single server there is no user.
  const asked = queries.filter((q) => !q.includes('USERS'));
  for (const q of asked) await compare(nodeAt(random), q, 'cmp');
});

const firstSeed = seedFrom('DIVIDED_SEED');

test.each(Array.from({ length: full ? 10 : 1 }, (_, n) => firstSeed + n))(
  'random work, seed %i',
  { timeout: 600_000 },
  async (seed) => {
    const random = new Random(seed);
    const db = `r${seed}`;
    await compare(nodeAt(random), `CREATE DATABASE ${db}`, db);
    for (let step = 0; step < (full ? 1000 : 100); step++) {
      const node = nodeAt(random);
      if (random.chance(0.4)) await write(node, randomBody(random), db);
      else if (random.chance(0.1)) await compare(node, randomDeletion(random), db);
      else await compare(node, randomQuery(random), db);
    }
    await compare(nodeAt(random), 'SELECT * FROM /.*/', db);
    await compare(nodeAt(random), 'SELECT sum(i), count(f) FROM /.*/ GROUP BY *', db);
  },
);
