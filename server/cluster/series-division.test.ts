import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ownLevel } from '../../contracts/cluster.ts';
import { EmbeddedDocumentStore } from '../../control/metadata/embedded-document-store.ts';
import { admitNode } from './join.ts';
import { divisionOf, divisionProblem, recordDivision, seriesDivision } from './series-division.ts';

let directory: string;
let store: EmbeddedDocumentStore;
beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'polyrow-division-'));
  store = await EmbeddedDocumentStore.open(join(directory, 'metadata'));
});
afterEach(async () => {
  await store.close();
  rmSync(directory, { recursive: true });
});

test('it is recorded once', async () => {
  await recordDivision(store, 1);
  expect(await seriesDivision(store)).toBe(1);
  await recordDivision(store, 4);
  await recordDivision(store, 4);
  expect(await seriesDivision(store)).toBe(4);
});

test('of a new directory it is as wanted', () => {
  expect([0, 1, 4].map((wanted) => divisionOf(directory, wanted))).toEqual([1, 1, 4]);
});

test('the directory of a single server keeps its number', () => {
  mkdirSync(join(directory, 'influx', 'data'), { recursive: true });
  expect(divisionOf(directory, 0)).toBe(1);
  expect(() => divisionOf(directory, 4)).toThrow(
    /influx.partitions is 4, and the time series of .*influx are in one partition/,
  );
  writeFileSync(join(directory, 'influx', 'divided'), '3\n');
  expect([0, 3].map((wanted) => divisionOf(directory, wanted))).toEqual([3, 3]);
  expect(() => divisionOf(directory, 1)).toThrow('are in 3 partitions');
});

test('a node that wants another number is told so', async () => {
  await recordDivision(store, 4);
  const addresses = {
    ...{ control: 'h:1', redis: '', influx: '', redisClients: '', influxClients: '', admin: '' },
  };
  const join = (seriesPartitions: number, id: string) =>
    admitNode(store, 7, {
      joinId: id.repeat(32),
      zone: '',
      addresses,
      level: ownLevel,
      seriesPartitions,
    });
  await expect(join(2, 'a')).rejects.toMatchObject({
    outcome: 'refused',
    code: 'DIVISION',
    message: expect.stringContaining('the time series of the cluster are in 4 partitions'),
  });
  expect(await join(0, 'b')).toMatchObject({ node: 1 });
  expect(await join(4, 'c')).toMatchObject({ node: 2 });
  expect([0, 1, 4, 5].map((wanted) => divisionProblem(wanted, 4) !== undefined)).toEqual([
    false,
    true,
    false,
    true,
  ]);
});
