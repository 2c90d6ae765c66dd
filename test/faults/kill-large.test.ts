// kill -9 while a large value is restored or renamed. Each of these is one entry of the log: after a restart all of it is
// there, or nothing.

import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, test } from 'vitest';
import { Polyrow } from '../support/polyrow.ts';
import { Random } from '../support/random.ts';
import type { RespClient } from '../support/resp-client.ts';
import { seedFrom } from '../support/seed.ts';

const full = process.env['POLYROW_FULL'] === '1';
const kills = Number(process.env['KILLS'] ?? (full ? 100 : 2));
const seed = seedFrom('KILL_SEED');
const fields = 30_000;

let server: Polyrow | undefined;
afterEach(async () => {
  await server?.remove();
  server = undefined;
});

async function bytesOf(client: RespClient, key: string): Promise<Buffer> {
  const dumped = await client.command('DUMP', key);
  if (!('text' in dumped)) throw new Error(`no ${key}`);
  return Buffer.from(dumped.text, 'latin1');
}

describe.each(['memory', 'kv'])('the %s model', (model) => {
  test(`${kills} kills while a large hash and a large stream are restored and renamed`, {
    timeout: 3_600_000,
  }, async () => {
    const random = new Random(seed);
    server = await Polyrow.start({ flags: ['--redis.default-model', model] });
    let client = await server.client();
    for (let at = 0; at < fields; at += 1000) {
      const words = Array.from({ length: 1000 }, (_, i) => [`field ${at + i}`, `value ${at + i}`]);
      await client.command('HSET', 'hash', ...words.flat());
      await client.pipeline(words.map((pair) => ['XADD', 'stream', '*', ...pair]));
    }
    await client.command('XGROUP', 'CREATE', 'stream', 'g', '0');
    await client.command(
      'XREADGROUP',
      'GROUP',
      'g',
      'c',
      'COUNT',
      '20000',
      'STREAMS',
      'stream',
      '>',
    );
    const payloads = {
      hash: await bytesOf(client, 'hash'),
      stream: await bytesOf(client, 'stream'),
    };
    for (let kill = 1; kill <= kills; kill++) {
      const where = `seed ${seed}, kill ${kill}`;
      const type = kill % 2 === 0 ? 'hash' : 'stream';
      const sizeOf = type === 'hash' ? 'HLEN' : 'XLEN';
      let answered = '';
      const commands = [
        ['DEL', 'to', 'renamed'],
        ['RESTORE', 'to', '0', payloads[type]],
        ['RENAME', 'to', 'renamed'],
        ['COPY', 'renamed', 'to'],
      ];
      const running = (async () => {
        for (const command of commands) {
          await client.command(...command);
          answered = String(command[0]);
        }
      })().catch(() => {});
      await sleep(random.below(kill % 4 < 2 ? 60 : 400));
      await server.kill();
      await running;
      await server.restart();
      client = await server.client();
      const sizes = [await client.text(sizeOf, 'to'), await client.text(sizeOf, 'renamed')];
      for (const size of sizes) expect([':0', `:${fields}`], where).toContain(size);
      const there = sizes.filter((size) => size !== ':0').length;
      const least = { RESTORE: 1, RENAME: 1, COPY: 2 }[answered] ?? 0;
      expect(there, `${where}, after ${answered}`).toBeGreaterThanOrEqual(least);
      if (sizes[1] !== ':0') {
        expect((await bytesOf(client, 'renamed')).length, where).toBe(payloads[type].length);
      }
      await client.command('DEL', 'to', 'renamed');
    }
    await server.stop();
  });
});
