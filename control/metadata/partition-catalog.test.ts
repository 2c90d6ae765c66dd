import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { EmbeddedDocumentStore } from './embedded-document-store.ts';
import {
  PartitionCatalog,
  type PartitionChangeStatus,
  type PartitionHolder,
} from './partition-catalog.ts';
import { TableCatalog } from './table-catalog.ts';
import type { TableDefinition } from './table-definition.ts';

/** A data plane whose copies end when the test says so. */
class FakePlane implements PartitionHolder {
  readonly begun: TableDefinition[] = [];
  state: PartitionChangeStatus = { state: 'running', done: 0, total: 0 };

  async begin(table: TableDefinition): Promise<void> {
    this.begun.push(table);
  }

  async status(): Promise<PartitionChangeStatus> {
    return this.state;
  }

  async cancel(): Promise<void> {
    this.state = { state: 'failed', error: 'cancelled' };
  }

  async sizes(): Promise<{ number: number; rows: number }[]> {
    return [];
  }
}

let path: string;
let store: EmbeddedDocumentStore;
let plane: FakePlane;
let partitions: PartitionCatalog;

async function open(): Promise<void> {
  const tables = await TableCatalog.open(store, { databases: 2, defaultModel: 'memory' });
  plane = new FakePlane();
  partitions = new PartitionCatalog(tables, () => {});
  partitions.attach(plane);
}

beforeEach(async () => {
  path = mkdtempSync(join(tmpdir(), 'polyrow-partitions-'));
  store = await EmbeddedDocumentStore.open(path);
  await open();
});
afterEach(async () => {
  await partitions.close();
  await store.close();
  rmSync(path, { recursive: true });
});

async function split(): Promise<number[]> {
  const { change } = await partitions.order('0', { kind: 'split', partition: 0 });
  return change!.targets.map(({ number }) => number);
}

test('a change is made by its commit, and asking again changes nothing', async () => {
  const targets = await split();
  const made = await partitions.commit(0, targets);
  expect(made?.placement?.partitions.map(({ number }) => number)).toEqual(targets);
  expect(made?.placement?.epoch).toBe(2);
  // The answer was lost, and it is asked again.
  expect((await partitions.commit(0, targets))?.placement).toEqual(made?.placement);
});

test('a change that was withdrawn is not made', async () => {
  const targets = await split();
  await partitions.cancel('0');
  expect(await partitions.commit(0, targets)).toBeUndefined();
  const { partitions: left, failure } = await partitions.list('0');
  expect(left.map(({ number }) => number)).toEqual([0]);
  expect(failure).toBe('cancelled');
});

test('one change at a time', async () => {
  await split();
  await expect(split()).rejects.toThrow('being changed already');
});

test('a change under way begins again after a restart, and its numbers are not given out twice', async () => {
  const targets = await split();
  await partitions.close();
  await open();
  await expect.poll(() => plane.begun).toHaveLength(1);
  expect(plane.begun[0]!.placement?.change?.targets.map(({ number }) => number)).toEqual(targets);
  await partitions.cancel('0');
  expect(await split()).toEqual(targets.map((number) => number + 2));
});

/** The data planes of a cluster, whose changes have numbered attempts. */
class ClusterPlane extends FakePlane {
  runs(): boolean {
    return true;
  }
}

test.each([
  { before: 0, isWithdrawn: true },
  // Its next leader has begun it, and may succeed.
  { before: 1, isWithdrawn: false },
])(
  'a change of which $before attempts have begun since is withdrawn: $isWithdrawn',
  async ({ before, isWithdrawn }) => {
    await partitions.close();
    const tables = await TableCatalog.open(store, { databases: 2, defaultModel: 'memory' });
    plane = new ClusterPlane();
    partitions = new PartitionCatalog(tables, () => {});
    partitions.attach(plane);
    const { change } = await partitions.order('0', { kind: 'split', partition: 0 });
    const attempt = change!.attempt!;
    await tables.place(0, ({ placement }) => {
      return { ...placement!, change: { ...placement!.change!, attempt: attempt + before } };
    });
    plane.state = { state: 'failed', error: 'cancelled', attempt };
    await partitions.settled(0);
    const found = await partitions.list('0');
    expect(found.change === undefined).toBe(isWithdrawn);
    expect(found.failure).toBe(isWithdrawn ? 'cancelled' : undefined);
  },
);
