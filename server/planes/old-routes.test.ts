// A gateway that does not learn where time series have moved to: it asks where they were, and finds them all the same.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import type { ClusterView, ReplicaState } from '../../contracts/cluster.ts';
import { Node, numbers, read, viewOf } from '../../test/support/series-nodes.ts';
import { until } from '../../test/support/until.ts';

let nodes: Node[] = [];
let root = '';
afterEach(async () => {
  for (const node of nodes) await node.stop();
  rmSync(root, { recursive: true, force: true });
});

/** The view in which a node's replica of a group is to go, or is gone. */
function without(view: ClusterView, group: number, node: number, isGone: boolean): ClusterView {
  const state: ReplicaState = 'leaving';
  const groups = view.groups.map((one) => {
    if (one.group !== group) return one;
    const replicas = isGone
      ? one.replicas.filter((replica) => replica.node !== node)
      : one.replicas.map((replica) => (replica.node === node ? { ...replica, state } : replica));
    return { ...one, replicas, epoch: one.epoch + 1 };
  });
  return { ...view, groups };
}

for (const partitions of [1, 4]) {
  test(`writes and reads follow ${partitions} of them, each write done once`, async () => {
    root = mkdtempSync(join(tmpdir(), 'polyrow-old-routes-'));
    let view = await viewOf(partitions);
    nodes = numbers.map((number) => new Node(number, root, view));
    for (const node of nodes) await node.start();
    // It has no replica, and is told nothing of the moves.
    const gateway = nodes[3]!;
    const informed = nodes.slice(0, 3);
    const made = await gateway.post(`/query?q=${encodeURIComponent('CREATE DATABASE db')}`, '');
    expect(made.text).toBe('{"results":[{"statement_id":0}]}\n');

    let isOver = false;
    let sent = 0;
    const stored: number[] = [];
    const unknown: number[] = [];
    const writing = (async () => {
      while (!isOver) {
        // Points without a time: one that is stored twice is two.
        const series = sent++;
        const { status, text } = await gateway.post('/write?db=db', `m,s=${series} v=1`);
        if (status === 204) stored.push(series);
        else {
          expect([status, text]).toEqual([503, expect.any(String)]);
          unknown.push(series);
        }
      }
    })();
    const reading = (async () => {
      while (!isOver) {
        const before = stored.length;
        const [[, count] = []] = await read(gateway, 'SELECT count(v) FROM m');
        expect(Number(count ?? 0)).toBeGreaterThanOrEqual(before);
        expect(Number(count ?? 0)).toBeLessThanOrEqual(sent);
      }
    })();

    for (const { group } of view.groups) {
      const leads = (node: Node): boolean => node.podOfGroup(group)?.role === 'leader';
      await until(() => nodes.some(leads));
      const from = nodes.find(leads)!;
      view = without(view, group, from.number, false);
      for (const node of informed) await node.setView(view);
      await until(() => {
        const { members } =
          nodes.find(leads)?.podOfGroup(group)!.parts.log.status().replication ?? {};
        return members !== undefined && members.voters.length === 2 && !leads(from);
      });
      view = without(view, group, from.number, true);
      for (const node of informed) await node.setView(view);
      expect(from.podOfGroup(group)).toBeUndefined();
      // Some more by the old route.
      const enough = stored.length + 10;
      while (stored.length < enough) await new Promise((resolve) => setTimeout(resolve, 5));
    }
    isOver = true;
    await Promise.all([writing, reading]);

    const rows = await read(gateway, 'SELECT count(v) FROM m');
    const count = Number(rows[0]![1]);
    expect(count).toBeGreaterThanOrEqual(stored.length);
    expect(count).toBeLessThanOrEqual(stored.length + unknown.length);
    for (const node of nodes) {
      expect(await read(node, 'SELECT count(v) FROM m')).toEqual([[0, count]]);
      expect(await read(node, 'SHOW SERIES CARDINALITY')).toEqual([[count]]);
    }
    expect(nodes.flatMap(({ failures }) => failures)).toEqual([]);
  }, 120_000);
}
