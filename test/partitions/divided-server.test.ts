// A server whose time series are divided into partitions: listed, restarted, killed, backed up and restored by the commands
// that operators have.

import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { BackupScene, query, writeLines } from '../backup/backup-commands.ts';
import { isBuilt, PolyrowProcess } from '../cli/polyrow-process.ts';
import { Polyrow, StartError } from '../support/polyrow.ts';

const divided = ['--influx.partitions', '4'];

let scene: BackupScene;
beforeEach(() => {
  scene = new BackupScene();
});
afterEach(() => scene.remove());

const seconds = 1_600_000_000;

function lines(from: number, count: number): string {
  return Array.from(
    { length: count },
    (_, n) => `m,host=h${n % 100} v=${from + n},s="t${n}" ${seconds + from + n}000000000`,
  ).join('\n');
}

async function fill(server: Polyrow): Promise<void> {
  await query(server, 'CREATE DATABASE d');
  await query(server, 'CREATE RETENTION POLICY r ON d DURATION INF REPLICATION 1');
  await writeLines(server, 'd', lines(0, 2000));
}

interface Listed {
  partitions: { number: number; model: string; series: number }[];
}

describe.skipIf(!isBuilt)('a server with four partitions', () => {
  test('lists them, and is killed and started again with what it has answered', async () => {
    const server = await scene.server(divided);
    await fill(server);
    const { partitions } = (await scene.answer(server, 'partition', 'list', 'd')) as Listed;
    expect(partitions.map(({ number, model }) => [number, model])).toEqual([
      [1, 'series'],
      [2, 'series'],
      [3, 'series'],
      [4, 'series'],
    ]);
    expect(partitions.reduce((sum, { series }) => sum + series, 0)).toBe(100);
    expect(partitions.every(({ series }) => series > 0)).toBe(true);
    const rows = await query(server, 'SELECT * FROM m', 'd');
    await server.kill();
    await server.restart();
    expect(await query(server, 'SELECT * FROM m', 'd')).toEqual(rows);
  });

  test('is not started with another number', async () => {
    const server = await scene.server(divided);
    await server.stop();
    const again = Polyrow.start({ dataDir: server.dataDir, flags: ['--influx.partitions', '2'] });
    await expect(again).rejects.toThrow(StartError);
    await expect(again).rejects.toThrow(/influx.partitions is 2, and the time series of/);
  });

  test('is backed up, and restored into one that is divided alike, and into one that is not', async () => {
    const source = await scene.server(divided);
    await fill(source);
    const full = await scene.backup(source);
    const models = full.parts.map(({ model }) => model);
    expect(models.filter((model) => model.startsWith('tsm'))).toEqual([
      'tsm-1-of-4',
      'tsm-2-of-4',
      'tsm-3-of-4',
      'tsm-4-of-4',
    ]);
    await writeLines(source, 'd', lines(5000, 300));
    const part = await scene.backup(source, '--incremental');
    expect(part).toMatchObject({ kind: 'incremental', parent: full.id });
    const verified = await scene.verify();
    expect(verified.code).toBe(0);
    const rows = await query(source, 'SELECT * FROM m', 'd');

    const target = await scene.server(divided);
    await scene.restore(target);
    expect(await query(target, 'SELECT * FROM m', 'd')).toEqual(rows);
    const before = (await scene.answer(source, 'partition', 'list', 'd')) as Listed;
    expect(await scene.answer(target, 'partition', 'list', 'd')).toEqual(before);

    const into = `${scene.directory}/into`;
    const made = await new PolyrowProcess(['restore', scene.set, '--into', into]).finish();
    expect(made).toMatchObject({ code: 0, err: '' });
    const server = await Polyrow.start({ dataDir: into });
    scene.servers.push(server);
    expect(await query(server, 'SELECT * FROM m', 'd')).toEqual(rows);
    expect(await scene.answer(server, 'partition', 'list', 'd')).toEqual(before);

    const undivided = await scene.server();
    await scene.restore(undivided);
    expect(await query(undivided, 'SELECT * FROM m', 'd')).toEqual(rows);
  });
});
