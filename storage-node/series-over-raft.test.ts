// Three pods of time series in one process, over the replicas of one log, while nodes are cut off, leaders are asked to go,
// nodes start again, and one of them is away for so long that it gets a snapshot.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import { maxTime, minTime, UnavailableError } from '../contracts/series-store.ts';
import { batchOf, TestSeriesCache } from '../engines/tsm/testing/point-batches.ts';
import { readAll } from '../engines/tsm/testing/read-points.ts';
import { TsmEngine } from '../engines/tsm/tsm-engine.ts';
import { systemClock } from '../universal-row/environment.ts';
import { inOneGo, whenFinished } from '../universal-row/slices.ts';
import { realDisk } from './disk/real-disk.ts';
import { loadEngineModule, WasmRaftEngine } from './replicator/engine/wasm-engine.ts';
import { RaftHost } from './replicator/raft/raft-host.ts';
import { replicaId } from './replicator/raft/replica-id.ts';
import { Random } from './replicator/simulation/timeline.ts';
import { Links } from './replicator/transport/links-fixture.ts';
import { openSeriesReplica } from './series-replica-host.ts';
import type { SeriesPod } from './series-pod.ts';
import { until } from '../test/support/until.ts';

const module = loadEngineModule();
const nodeNumbers = [1, 2, 3];
const group = 9;
const week = 7n * 86_400n * 1_000_000_000n;

class Node {
  readonly number: number;
  readonly failures: string[] = [];
  engine!: TsmEngine;
  pod!: SeriesPod;
  host!: RaftHost;
  snapshots = 0;
  readonly cache = new TestSeriesCache();
  readonly #root: string;
  readonly #links: Links;

  constructor(number: number, root: string, links: Links) {
    this.number = number;
    this.#root = join(root, String(number));
    this.#links = links;
  }

  async start(): Promise<void> {
    const engine = new TsmEngine({ directory: join(this.#root, 'data'), disk: realDisk });
    this.engine = engine;
    const install = engine.importSnapshot.bind(engine);
    engine.importSnapshot = (entries, index) => {
      this.snapshots++;
      return install(entries, index);
    };
    realDisk.makeDirectory(this.#root);
    this.host = await RaftHost.open({
      disk: realDisk,
      directory: join(this.#root, 'wal'),
      ids: { cluster: 1, node: this.number },
      transport: this.#links.of(this.number),
      onFatal: (error) => this.failures.push(error.message),
      tickMs: 5,
      electionTicks: 10,
      heartbeatTicks: 2,
      engine: new WasmRaftEngine(module),
      limits: { keptEntries: 5, readTicks: 40 },
    });
    const { pod } = await openSeriesReplica({
      engine,
      raft: this.host.pod,
      definition: { group, initial: nodeNumbers.map((number) => replicaId(number)) },
      replica: replicaId(this.number),
      checkpointBytes: Infinity,
      retentionIntervalMs: 1 << 30,
      clock: systemClock,
      report: (level, message, fields) => {
        if (level === 'info') return;
        this.failures.push(`${message} ${String((fields as { err?: Error } | undefined)?.err)}`);
      },
    });
    this.pod = pod;
    this.pod.start();
  }

  async stop(): Promise<void> {
    await this.pod.close();
    await this.host.close();
  }
}

let nodes: Node[] = [];
let root = '';
afterEach(async () => {
  for (const node of nodes) await node.stop();
  rmSync(root, { recursive: true, force: true });
});

const leader = (): Node | undefined => nodes.find(({ pod }) => pod.role === 'leader');

/** Points 1 to 3 of body `n`: a series, a field and a shard of their own now and then. */
function pointsOf(n: number) {
  return [1, 2, 3].map((k) => ({
    series: `m,s=${n % 7},k=${k}`,
    fields: { [`f${n % 3}`]: n, v: k },
    time: BigInt(n) + BigInt(n % 4) * week,
  }));
}

const scanned = {
  database: 'db',
  retentionPolicy: '',
  measurement: 'm',
  fields: ['v'],
  from: minTime,
  to: maxTime,
  descending: false,
};

async function retried(act: (node: Node) => Promise<unknown>): Promise<void> {
  for (let left = 1000; left > 0; left--) {
    const node = leader();
    try {
      if (node !== undefined) {
        await act(node);
        return;
      }
    } catch (error) {
      if (!(error instanceof UnavailableError)) throw error;
    }
    await pause(10);
  }
  throw new Error('never done');
}

async function faults(random: Random, links: Links): Promise<void> {
  if (random.chance(0.02)) links.cut.add(random.pick(nodeNumbers));
  if (random.chance(0.06)) links.cut.clear();
  const node = random.pick(nodes);
  if (random.chance(0.03)) node.pod.parts.log.transfer(replicaId(random.pick(nodeNumbers)));
  if (random.chance(0.03)) await node.pod.checkpoint();
  if (random.chance(0.01)) {
    await node.stop();
    await node.start();
  }
}

test('pods agree, and every point that was acknowledged is read from each, once', async () => {
  root = mkdtempSync(join(tmpdir(), 'polyrow-series-raft-'));
  const links = new Links();
  const random = new Random(11);
  nodes = nodeNumbers.map((number) => new Node(number, root, links));
  for (const node of nodes) await node.start();
  await retried(async ({ pod }) => pod.change({ kind: 'createDatabase', database: 'db' }));
  const acknowledged = new Set<string>();
  const errors = new Set<string>();
  const sent: Promise<void>[] = [];
  let bodies = 0;
  const send = async ({ pod, cache }: Node): Promise<void> => {
    const points = pointsOf(++bodies);
    try {
      const outcome = await pod.write('db', '', batchOf(cache, points));
      expect(outcome).toMatchObject({ written: 3, dropped: 0 });
      for (const { series, time } of points) acknowledged.add(`${series} ${time}`);
    } catch (error) {
      if (!(error instanceof UnavailableError)) throw error;
      errors.add(error.message.replace(/\d+/, 'N'));
    }
  };
  /** Writes acknowledged before the query are in a leader's answer. */
  const read = async ({ pod }: Node): Promise<void> => {
    const before = [...acknowledged];
    try {
      const scan = await whenFinished(pod.scan(scanned));
      const found = new Set(readAll(scan, ['v']).map(([series, time]) => `${series} ${time}`));
      expect(before.filter((point) => !found.has(point))).toEqual([]);
    } catch (error) {
      if (!(error instanceof UnavailableError)) throw error;
    }
  };
  for (let step = 0; step < 400; step++) {
    await faults(random, links);
    const node = random.chance(0.8) ? (leader() ?? nodes[0]!) : random.pick(nodes);
    if (random.chance(0.8)) sent.push(send(node));
    if (random.chance(0.1)) sent.push(read(node));
    await pause(random.below(5));
  }
  links.cut.clear();
  await Promise.all(sent);
  // One is away until the others have its next entries no more.
  await until(() => leader() !== undefined);
  const away = nodes.find((node) => node !== leader())!;
  const before = away.snapshots;
  links.cut.add(away.number);
  for (let i = 0; i < 30; i++) await retried(send);
  for (const node of nodes) if (node !== away) await node.pod.checkpoint();
  for (let i = 0; i < 10; i++) await retried(send);
  links.cut.clear();
  await until(() => away.snapshots > before);
  await retried(send);
  await until(() => new Set(nodes.map(({ engine }) => engine.appliedIndex)).size === 1);
  await away.stop();
  await away.start();
  await until(() => new Set(nodes.map(({ engine }) => engine.appliedIndex)).size === 1);
  const contents = nodes.map(({ engine }) =>
    readAll(inOneGo(engine.scan(scanned)), ['v']).map((point) => point.join(' ')),
  );
  for (const one of contents) expect(one).toEqual(contents[0]);
  const found = contents[0]!.map((line) => line.split(' ').slice(0, 2).join(' '));
  expect(new Set(found).size).toBe(found.length);
  expect([...acknowledged].filter((point) => !found.includes(point))).toEqual([]);
  expect(acknowledged.size).toBeGreaterThan(300);
  // The outcome of every write is known in the end: other errors occur only when a replica was
  // stopped.
  expect([...errors].filter((text) => !/no leader|leads|leader|unknown/.test(text))).toEqual([]);
  expect(nodes.flatMap(({ failures }) => failures)).toEqual([]);
});
