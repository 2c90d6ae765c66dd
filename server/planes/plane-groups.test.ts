// Replicas that leave their node, and come back, while it is not running.

import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { GroupDefinition } from '../../contracts/cluster.ts';
import { MemoryEngine } from '../../engines/memory/memory-engine.ts';
import { applySlice } from '../../storage-node/apply-slice.ts';
import { realDisk } from '../../storage-node/disk/real-disk.ts';
import type { Pod } from '../../storage-node/pod.ts';
import { openReplica } from '../../storage-node/replica-host.ts';
import { replicaId } from '../../storage-node/replicator/raft/replica-id.ts';
import { noRules } from '../../storage-node/table-rules.ts';
import { freePort } from '../../test/support/free-port.ts';
import { until } from '../../test/support/until.ts';
import { systemClock, systemRng } from '../../universal-row/environment.ts';
import { RecordBatchWriter } from '../../universal-row/record-batch.ts';
import { PlaneGroups } from './plane-groups.ts';
import { realMachine } from './plane-machine.ts';

const secret = randomBytes(32);
const [node, group] = [1, 16];
const first = replicaId(node, 1);

let root = '';
let lives = 0;
let open: PlaneGroups<Pod> | undefined;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'polyrow-plane-groups-'));
  lives = 0;
});
afterEach(async () => {
  await open?.close();
  open = undefined;
  rmSync(root, { recursive: true, force: true });
});

function definition(change: Partial<GroupDefinition>): GroupDefinition {
  return {
    ...{ group, tenant: 0, model: 'memory', epoch: 1, initial: [first] },
    replicas: [],
    ...change,
  };
}

const alone = definition({ replicas: [{ replica: first, node, state: 'voter' }] });
/** Of a group that was made later. */
const later = definition({ group: group + 1, initial: [replicaId(2, 1)] });
const gone = definition({
  epoch: 3,
  replicas: [{ replica: replicaId(2, 2), node: 2, state: 'voter' }],
});
const back = definition({
  epoch: 4,
  replicas: [...gone.replicas, { replica: replicaId(node, 4), node, state: 'voter' }],
});

async function start(groups: readonly GroupDefinition[]): Promise<PlaneGroups<Pod>> {
  const failed = (error: unknown): void => {
    throw error as Error;
  };
  open = await PlaneGroups.open<Pod>({
    data: {
      ...{ id: 1, node, incarnation: ++lives, secret, host: '127.0.0.1', port: await freePort() },
      ...{ view: { nodes: [], groups: [] }, maxWriteBytes: 2 ** 20, silenceMs: undefined },
    },
    machine: {
      ...realMachine,
      raftOptions: () => ({ ...realMachine.raftOptions(), limits: { keptEntries: 2 } }),
    },
    directory: root,
    isHere: () => true,
    addressOf: () => '127.0.0.1:1',
    open: async ({ definition: of, replica, directory, raft, report }) => {
      const engine = new MemoryEngine({ directory: join(directory, 'data'), disk: realDisk });
      const tables = new Map([[0, noRules]]);
      const opened = await openReplica({
        ...{ engine, raft, definition: of, replica, report, tables },
        ...{ clock: systemClock, rng: systemRng },
        ...{ maxMemoryBytes: Infinity, checkpointBytes: Infinity },
      });
      opened.pod.start();
      return opened;
    },
    sizeOf: () => ({ rows: 0, bytes: 0 }),
    takeUnits: () => 0,
    changed: () => {},
    ...{ fsync: 'everysec', segmentBytes: 2 ** 20, acceptLoss: false },
    report: () => {},
    fatal: failed,
  });
  await open.setGroups(groups);
  return open;
}

async function stop(): Promise<void> {
  await open?.close();
  open = undefined;
}

/** A replica with a log that begins after its first entries. */
async function fill(): Promise<void> {
  const groups = await start([alone]);
  const pod = groups.pod(group)!;
  await until(() => pod.role === 'leader');
  for (let i = 0; i < 10; i++) {
    const writer = new RecordBatchWriter();
    const key = Buffer.from(`key ${i}`);
    writer.value(0, key, 0, key.length, key, 0, key.length, 0);
    await applySlice(pod, writer.buf.subarray(0, writer.pos));
    await pod.durable();
  }
  await pod.checkpoint();
  await until(() => groups.log(group)!.status().firstIndex > 2);
  await stop();
}

const directoryOf = (replica: number): string => join(root, 'groups', `${group}-${replica}`);

test('a replica that was removed meanwhile leaves nothing, and another one may come in its place', async () => {
  await fill();
  await start([gone, later]);
  await until(() => !existsSync(directoryOf(first)));
  await stop();
  const groups = await start([back, later]);
  expect(groups.pod(group)?.tableSize(0).rows).toBe(0);
});

test('a replica that was removed and came back meanwhile begins with nothing', async () => {
  await fill();
  const groups = await start([back, later]);
  expect(groups.pod(group)?.tableSize(0).rows).toBe(0);
  await until(() => !existsSync(directoryOf(first)));
  await stop();
  await start([back, later]);
});

test('replicas stay where the metadata of this node are older than they are', async () => {
  await fill();
  await start([]);
  expect(existsSync(directoryOf(first))).toBe(true);
  await stop();
  const groups = await start([alone, later]);
  expect(groups.pod(group)?.tableSize(0).rows).toBe(10);
});

test('a replica of which only the directory is there begins with nothing, too', async () => {
  await fill();
  rmSync(directoryOf(first), { recursive: true });
  mkdirSync(directoryOf(replicaId(node, 4)), { recursive: true });
  const groups = await start([back, later]);
  expect(groups.pod(group)?.tableSize(0).rows).toBe(0);
});

test('an earlier replica is not opened over the log of a later one', async () => {
  await fill();
  await start([back, later]);
  await stop();
  const groups = await start([alone, later]);
  expect(groups.pod(group)).toBeUndefined();
  await groups.setGroups([back, later]);
  expect(groups.pod(group)).toBeDefined();
});
