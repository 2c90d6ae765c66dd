import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { ClusterDirectory } from './cluster-directory.ts';

let path: string;
beforeEach(() => {
  path = mkdtempSync(join(tmpdir(), 'polyrow-cluster-directory-'));
});
afterEach(() => {
  vi.restoreAllMocks();
  rmSync(path, { recursive: true });
});

test('ports follow from the base port, ten a node', async () => {
  const { nodes } = await ClusterDirectory.open(path, 2, 21_000);
  expect(nodes).toEqual([
    { redis: 21_000, influx: 21_001, admin: 21_002, cluster: 21_003 },
    { redis: 21_010, influx: 21_011, admin: 21_012, cluster: 21_013 },
  ]);
});

test('free ports are kept for the next start, and nodes can be added', async () => {
  const first = await ClusterDirectory.open(path, undefined, undefined);
  expect(first.nodes).toHaveLength(3);
  expect(new Set(first.nodes.map(({ redis }) => redis)).size).toBe(3);
  expect((await ClusterDirectory.open(path, undefined, undefined)).nodes).toEqual(first.nodes);
  const grown = await ClusterDirectory.open(path, 5, undefined);
  expect(grown.nodes.slice(0, 3)).toEqual(first.nodes);
  expect(grown.nodes).toHaveLength(5);
});

test('free ports of a cluster whose nodes have yet to start are not those of another one', async () => {
  const other = mkdtempSync(join(tmpdir(), 'polyrow-cluster-directory-'));
  try {
    const first = await ClusterDirectory.open(path, 3, undefined);
    const base = (first.nodes[0]!.redis + 1 - 20_000) / 12_000;
    // It tries the same ports first.
    vi.spyOn(Math, 'random').mockReturnValueOnce(base);
    const second = await ClusterDirectory.open(other, 3, undefined);
    const bases = [first, second].flatMap(({ nodes }) => nodes.map(({ redis }) => redis));
    expect(new Set(bases).size).toBe(6);
  } finally {
    rmSync(other, { recursive: true });
  }
});

test.each<[number | undefined, number | undefined, string]>([
  [0, undefined, '--nodes must be 1 to 20'],
  [21, undefined, '--nodes must be 1 to 20'],
  [2, undefined, 'is a cluster of 3 nodes'],
  [3, 22_000, 'begin at 21000, not at 22000'],
])(
  '--nodes %s --base-port %s on a cluster of three is refused',
  async (nodes, basePort, message) => {
    await ClusterDirectory.open(path, 3, 21_000);
    await expect(ClusterDirectory.open(path, nodes, basePort)).rejects.toThrow(message);
  },
);

test('ports beyond the last one, and a damaged file, are refused', async () => {
  await expect(ClusterDirectory.open(path, 2, 65_520)).rejects.toThrow(
    'there are no 10 ports from 65530 on',
  );
  writeFileSync(join(path, 'cluster.json'), '{"nodes": [{"redis": "x"}]}');
  await expect(ClusterDirectory.open(path, 3, undefined)).rejects.toThrow('is damaged');
});
