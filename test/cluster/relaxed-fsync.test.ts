// Three nodes under `wal.fsync everysec`. Killed processes lose nothing. A machine restart is simulated by another boot id
// in the file that records it: the replicas are fenced although no data is missing.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { afterEach, expect, test } from 'vitest';
import { connectOnce, PolyrowCluster } from '../support/polyrow-cluster.ts';

let cluster: PolyrowCluster | undefined;
const clients: Redis[] = [];
afterEach(async () => {
  for (const client of clients.splice(0)) client.disconnect();
  await cluster?.remove();
  cluster = undefined;
});

const count = 300;

/** Repeats what was not done, or may not have been: a SET does no harm twice. */
async function again<T>(act: (client: Redis) => Promise<T>): Promise<T> {
  for (;;) {
    for (const client of clients) {
      try {
        return await act(client);
      } catch {
        await pause(100);
      }
    }
  }
}

async function write(from: number, to: number): Promise<void> {
  for (let n = from; n < to; n++) await again((client) => client.set(`key:${n}`, String(n)));
}

async function readAll(to: number): Promise<void> {
  for (let n = 0; n < to; n++) {
    expect(await again((client) => client.get(`key:${n}`))).toBe(String(n));
  }
}

/** Kills nodes, as if their machines were started anew. */
function stopMachines(indexes: readonly number[]): void {
  for (const index of indexes) {
    const file = join(cluster!.dataDir, `node-${index + 1}`, 'cluster', 'redis', 'wal', 'fences');
    cluster!.kill(index);
    const kept = JSON.parse(readFileSync(file, 'utf8')) as { boot: string; fences: unknown[] };
    expect(kept.boot).not.toBe('');
    writeFileSync(file, JSON.stringify({ ...kept, boot: 'an earlier one' }));
  }
}

async function logged(index: number, text: string): Promise<void> {
  const file = join(cluster!.dataDir, `node-${index + 1}.log`);
  while (!readFileSync(file, 'utf8').includes(text)) await pause(100);
}

const fencedText = 'the machine stopped before the log was synced';
const lostText = 'acknowledged writes of about the last two seconds before that may be lost';

test('killed processes lose nothing; machines that stop are fenced, and most of them are a loss that is told', {
  timeout: 600_000,
}, async () => {
  cluster = await PolyrowCluster.start(3, ['--', '--wal.fsync', 'everysec']);
  clients.push(...cluster.redisPorts.map((port) => connectOnce(port)));
  await write(0, count);
  for (const index of [0, 1, 2]) cluster.kill(index);
  await readAll(count);
  expect(cluster.output).not.toContain(fencedText);

  stopMachines([0]);
  await logged(0, fencedText);
  await write(count, 2 * count);
  await readAll(2 * count);
  await logged(0, 'a fenced replica has caught up');
  await cluster.settled();
  expect(await cluster.cliAt(1, 'doctor')).not.toContain('may have lost');

  stopMachines([0, 1, 2]);
  await readAll(2 * count);
  const told = [0, 1, 2].map((index) => logged(index, lostText));
  await Promise.any(told);
  // Nodes tell each other of their groups once in a while.
  const started = cluster;
  await expect
    .poll(() => started.cliAt(1, 'doctor'), { interval: 500 })
    .toContain('may have lost acknowledged writes');
  await write(2 * count, 3 * count);
  await readAll(3 * count);
});
