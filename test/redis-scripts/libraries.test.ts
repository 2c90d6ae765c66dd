// Function libraries are data: they survive restarts and crashes, move between servers, and are in backups.

import { afterEach, expect, test } from 'vitest';
import { BackupScene } from '../backup/backup-commands.ts';
import { isBuilt } from '../cli/polyrow-process.ts';
import { redisInstalled } from '../commands/redis-server.ts';
import { Polyrow } from '../support/polyrow.ts';
import { RedisProcess } from '../support/redis-server.ts';
import type { RespClient } from '../support/resp-client.ts';

const code = (name: string, answer: number): string =>
  `#!lua name=${name}\nredis.register_function('${name}_f', function() return ${answer} end)`;

const ends: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0)) await end();
});

async function server(flags: readonly string[]): Promise<Polyrow> {
  const polyrow = await Polyrow.start({ flags });
  ends.push(() => polyrow.remove());
  return polyrow;
}

async function payloadOf(client: RespClient): Promise<Buffer> {
  const reply = await client.command('FUNCTION', 'DUMP');
  return Buffer.from((reply as { text: string }).text, 'latin1');
}

/** Results of the functions of some libraries. */
async function answers(client: RespClient, ...names: string[]): Promise<string[]> {
  const found: string[] = [];
  for (const name of names) found.push(await client.text('FCALL', `${name}_f`, '0'));
  return found;
}

test.skipIf(!isBuilt).each(['memory', 'kv'])(
  'libraries survive a restart and a crash, with %s as the default model',
  async (model) => {
    const polyrow = await server(['--redis.default-model', model, '--wal.fsync', 'always']);
    let client = await polyrow.client();
    await client.text('FUNCTION', 'LOAD', code('a', 1));
    await client.text('FUNCTION', 'LOAD', code('b', 2));
    await client.text('FUNCTION', 'LOAD', code('c', 3));
    expect(await client.text('DBSIZE')).toBe(':0');
    await polyrow.restart();
    client = await polyrow.client();
    expect(await answers(client, 'a', 'b', 'c')).toEqual([':1', ':2', ':3']);
    await client.text('FUNCTION', 'LOAD', 'REPLACE', code('a', 11));
    await client.text('FUNCTION', 'DELETE', 'b');
    await client.text('FLUSHALL');
    await polyrow.kill();
    await polyrow.restart();
    client = await polyrow.client();
    expect(await answers(client, 'a', 'b', 'c')).toEqual([':11', '-ERR Function not found', ':3']);
    await client.text('FUNCTION', 'FLUSH');
    await polyrow.restart();
    client = await polyrow.client();
    expect(await client.text('FUNCTION', 'LIST')).toBe('*[]');
  },
);

test.skipIf(!isBuilt)('libraries follow the default model', async () => {
  const polyrow = await server(['--redis.default-model', 'memory']);
  let client = await polyrow.client();
  await client.text('FUNCTION', 'LOAD', code('a', 1));
  await polyrow.restart(['--redis.default-model', 'kv']);
  client = await polyrow.client();
  expect(await answers(client, 'a')).toEqual([':1']);
});

test.skipIf(!isBuilt || !redisInstalled)(
  'a payload of FUNCTION DUMP moves libraries to redis-server and back',
  async () => {
    const redis = await RedisProcess.start();
    ends.push(() => redis.remove());
    const theirs = await redis.client();
    const ours = await (await server([])).client();
    await ours.text('FUNCTION', 'LOAD', code('a', 1));
    // Long enough for redis-server to compress it.
    await ours.text('FUNCTION', 'LOAD', `${code('b', 2)}\n${'-- again and again\n'.repeat(1000)}`);
    expect(await theirs.text('FUNCTION', 'RESTORE', await payloadOf(ours))).toBe('+OK');
    expect(await answers(theirs, 'a', 'b')).toEqual([':1', ':2']);
    await theirs.text('FUNCTION', 'LOAD', code('c', 3));
    const payload = await payloadOf(theirs);
    expect(await ours.text('FUNCTION', 'RESTORE', payload)).toMatch(/^-ERR Library . already/);
    expect(await answers(ours, 'c')).toEqual(['-ERR Function not found']);
    await ours.text('FUNCTION', 'LOAD', code('d', 4));
    expect(await ours.text('FUNCTION', 'RESTORE', payload, 'REPLACE')).toBe('+OK');
    expect(await answers(ours, 'a', 'b', 'c', 'd')).toEqual([':1', ':2', ':3', ':4']);
    expect(await ours.text('FUNCTION', 'RESTORE', payload, 'FLUSH')).toBe('+OK');
    expect(await answers(ours, 'a', 'd')).toEqual([':1', '-ERR Function not found']);
    payload[5]! ^= 1;
    expect(await ours.text('FUNCTION', 'RESTORE', payload)).toMatch(/checksum are wrong$/);
  },
);

test.skipIf(!isBuilt)('libraries are in backups, each tenant with its own', async () => {
  const scene = new BackupScene();
  ends.push(() => scene.remove());
  const source = await scene.server();
  const made = await scene.answer<{ password: string }>(source, 'tenant', 'create', 'shop');
  const login = async (at: Polyrow, name: string): Promise<RespClient> => {
    const client = await at.client();
    expect(await client.text('AUTH', name, made.password)).toBe('+OK');
    return client;
  };
  await (await source.client()).text('FUNCTION', 'LOAD', code('a', 1));
  const shop = await login(source, 'shop');
  expect(await answers(shop, 'a')).toEqual(['-ERR Function not found']);
  await shop.text('FUNCTION', 'LOAD', code('a', 2));
  await scene.backup(source);

  const target = await scene.server();
  await (await target.client()).text('SET', 'unrelated', '1');
  await scene.restore(target, '--tenant', 'shop');
  expect(await answers(await login(target, 'shop'), 'a')).toEqual([':2']);
  expect(await answers(await target.client(), 'a')).toEqual(['-ERR Function not found']);
  await scene.restore(target, '--tenant', 'default', '--replace');
  expect(await answers(await target.client(), 'a')).toEqual([':1']);
  await scene.answer(target, 'tenant', 'drop', 'shop', '--yes');
  await target.restart();
  expect(await answers(await target.client(), 'a')).toEqual([':1']);
});
