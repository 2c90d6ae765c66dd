// Backups of running servers by the commands an operator has, restored into others.

import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { isBuilt } from '../cli/polyrow-process.ts';
import { Polyrow } from '../support/polyrow.ts';
import { BackupScene, query, writeLines } from './backup-commands.ts';

let scene: BackupScene;
beforeEach(() => {
  scene = new BackupScene();
});
afterEach(() => scene.remove());

async function fill(server: Polyrow, tag: string): Promise<void> {
  const client = await server.client();
  for (const database of [0, 1]) {
    await client.text('SELECT', String(database));
    for (let i = 0; i < 200; i++) await client.text('SET', `${tag}:${i}`, `${database} ${i}`);
    await client.text('SET', `${tag}:expiring`, '1', 'EX', '10000');
    await client.text('RPUSH', `${tag}:list`, ...Array.from({ length: 500 }, (_, i) => `${i}`));
    await client.text('HSET', `${tag}:hash`, 'a', '1', 'b', '2');
    await client.text('ZADD', `${tag}:zset`, '1', 'x', '2.5', 'y');
  }
  client.close();
}

const reads: Record<string, (key: string) => string[]> = {
  '+string': (key) => ['GET', key],
  '+list': (key) => ['LRANGE', key, '0', '-1'],
  '+hash': (key) => ['HMGET', key, 'a', 'b'],
  '+zset': (key) => ['ZRANGE', key, '0', '-1', 'WITHSCORES'],
};

/** Every row of the first databases, written down. */
async function rowsOf(server: Polyrow): Promise<string[]> {
  const client = await server.client();
  const rows: string[] = [];
  for (const database of [0, 1]) {
    await client.text('SELECT', database);
    const keys = await client.command('KEYS', '*');
    const names = (keys as { items: { text: string }[] }).items.map(({ text }) => text);
    for (const key of names.sort()) {
      const read = reads[await client.text('TYPE', key)]!;
      const value = await client.text(...read(key));
      rows.push(`${database} ${key} ${value} ${await client.text('PEXPIRETIME', key)}`);
    }
  }
  client.close();
  return rows;
}

describe.skipIf(!isBuilt)('a whole server', () => {
  test('goes into another one, with rows of both engines, time series and tables', async () => {
    const source = await scene.server();
    const kv = ['--model', 'kv', '--name', 'orders', '--partitions', '16'];
    await scene.answer(source, 'table', 'create', '1', ...kv);
    await fill(source, 'a');
    await query(source, 'CREATE DATABASE d');
    await query(source, 'CREATE RETENTION POLICY r ON d DURATION 520w REPLICATION 1');
    const now = Date.now();
    const lines = Array.from(
      { length: 1000 },
      (_, i) => `m,h=${i % 5} v=${i},s="t${i}" ${now - i}000000`,
    );
    await writeLines(source, 'd', lines.join('\n'));
    await scene.answer(source, 'table', 'alter', 'd', '--read-only', '--max-row-bytes', '1kb');

    const full = await scene.backup(source);
    expect(full).toMatchObject({ kind: 'full', interrupted: [] });
    expect(full.parts.map(({ model, kind }) => [model, kind])).toEqual([
      ['memory', 'all'],
      ['kv', 'all'],
      ['tsm', 'all'],
    ]);
    const verified = await scene.verify();
    expect(verified).toMatchObject({ code: 0, backups: [{ id: full.id, problems: [] }] });

    const target = await scene.server();
    const restored = await scene.restore(target);
    expect(restored.tenants).toMatchObject([{ name: 'default', created: false }]);
    expect(await rowsOf(target)).toEqual(await rowsOf(source));
    const all = 'SELECT * FROM m';
    expect(await query(target, all, 'd')).toEqual(await query(source, all, 'd'));
    const policies = 'SHOW RETENTION POLICIES ON d';
    expect(await query(target, policies)).toEqual(await query(source, policies));
    expect(await scene.answer(target, 'table', 'describe', 'orders')).toMatchObject({
      model: 'kv',
      partitions: 16,
    });
    expect(await scene.answer(target, 'table', 'describe', 'd')).toMatchObject({
      model: 'series',
      readOnly: true,
      maxRowBytes: 1024,
    });
    await target.kill();
    await target.restart();
    expect(await rowsOf(target)).toEqual(await rowsOf(source));

    const dataDir = join(scene.directory, 'new');
    await scene.answer(source, 'restore', scene.set, '--into', dataDir);
    const made = await Polyrow.start({ dataDir });
    scene.servers.push(made);
    expect(await rowsOf(made)).toEqual(await rowsOf(source));
    expect(await query(made, all, 'd')).toEqual(await query(source, all, 'd'));
    const again = await scene.run(source, 'restore', scene.set, '--into', dataDir);
    expect([again.code, again.err]).toEqual([4, expect.stringContaining('is not empty')]);
  });

  test('is backed up step by step', async () => {
    const source = await scene.server(['--wal.checkpoint-bytes', '1mb']);
    await fill(source, 'a');
    const first = await scene.backup(source, '--incremental');
    expect(first.kind).toBe('full');
    expect(first.parts[0]!.reason).toContain('no earlier backup');
    await fill(source, 'b');
    const second = await scene.backup(source, '--incremental');
    expect(second).toMatchObject({ kind: 'incremental', parent: first.id });
    await source.restart();
    const client = await source.client();
    await client.text('DEL', 'a:1', 'b:list');
    await client.text('SWAPDB', '0', '1');
    client.close();
    const third = await scene.backup(source, '--incremental');
    expect(third).toMatchObject({ kind: 'incremental', parent: second.id });
    const before = await rowsOf(source);
    await fill(source, 'c');

    const target = await scene.server();
    await scene.restore(target);
    expect(await rowsOf(target)).toEqual(before);
    const refused = await scene.run(target, 'restore', scene.set);
    expect([refused.code, refused.err]).toEqual([1, expect.stringContaining('--replace')]);
    await scene.restore(target, '--replace', '--backup', first.id);
    expect((await rowsOf(target)).length).toBe(408);
    expect(await scene.verify()).toMatchObject({ code: 0 });
  });
});

test.skipIf(!isBuilt)('what cannot be done is said', async () => {
  const server = await scene.server();
  const check = async (words: string[], what: string) => {
    const { code, err } = await scene.run(server, ...words);
    expect([code, err]).toEqual([1, expect.stringContaining(what)]);
  };
  await check(['backup', '--to', server.dataDir], 'is in the data directory');
  await check(['backup', '--to', scene.set, '--tenant', 'nobody'], 'no tenant nobody');
  await check(['restore', scene.set], 'there is no backup in');
  expect(existsSync(scene.set) ? readdirSync(scene.set) : []).toEqual([]);
});
