// kill -9 while a stream is written, read by a group and acknowledged: what was answered is there afterwards.
//
//   POLYROW_FULL=1    100 kills for each model instead of a few
//   KILLS=n           that many; KILL_SEED=n repeats the moments of a run

import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import { isBuilt } from '../cli/polyrow-process.ts';
import { Polyrow } from '../support/polyrow.ts';
import { Random } from '../support/random.ts';
import type { RespClient } from '../support/resp-client.ts';
import type { RespValue } from '../support/resp-value.ts';
import { seedFrom } from '../support/seed.ts';

const full = process.env['POLYROW_FULL'] === '1';
const kills = Number(process.env['KILLS'] ?? (full ? 100 : 2));
const seed = seedFrom('KILL_SEED');

let server: Polyrow | undefined;
afterEach(async () => {
  await server?.remove();
  server = undefined;
});

/** Replies of the stream that clients received. */
class Told {
  readonly added = new Map<string, string>();
  readonly delivered = new Set<string>();
  readonly acknowledged = new Set<string>();
  /** Whether XACK did anything is not known. */
  readonly unsure = new Set<string>();
}

const textOf = (value: RespValue): string => ('text' in value ? value.text : '');
const itemsOf = (value: RespValue): RespValue[] => ('items' in value ? value.items : []);
/** Ids of entries, from lists of them that are `depth` levels in. */
const idsIn = (value: RespValue): string[] => itemsOf(value).map((one) => textOf(itemsOf(one)[0]!));

/** Runs until the connection is lost. */
async function untilLost(work: () => Promise<void>): Promise<void> {
  try {
    for (;;) await work();
  } catch (error) {
    if ((error as Error).name !== 'ConnectionLost') throw error;
  }
}

function write(client: RespClient, told: Told, name: string): Promise<void> {
  let n = 0;
  return untilLost(async () => {
    const value = `${name}:${n++}`;
    const replies = await client.pipeline(
      Array.from({ length: 5 }, (_, i) => ['XADD', 's', '*', 'v', `${value}.${i}`]),
    );
    for (const [i, reply] of replies.entries()) told.added.set(textOf(reply), `${value}.${i}`);
  });
}

function consume(client: RespClient, told: Told, name: string): Promise<void> {
  return untilLost(async () => {
    const words = ['XREADGROUP', 'GROUP', 'g', name, 'COUNT', '7', 'BLOCK', '1000'];
    const reply = await client.command(...words, 'STREAMS', 's', '>');
    const ids = itemsOf(reply).flatMap((stream) => idsIn(itemsOf(stream)[1]!));
    for (const id of ids) told.delivered.add(id);
    // Some stay pending.
    const done = ids.filter((_, i) => i % 3 !== 0);
    if (done.length === 0) return;
    for (const id of done) told.unsure.add(id);
    expect(textOf(await client.command('XACK', 's', 'g', ...done))).toBe(String(done.length));
    for (const id of done) {
      told.unsure.delete(id);
      told.acknowledged.add(id);
    }
  });
}

async function verify(client: RespClient, told: Told, where: string): Promise<void> {
  const entries = itemsOf(await client.command('XRANGE', 's', '-', '+'));
  const values = new Map(
    entries.map((one) => {
      const [id, fields] = itemsOf(one);
      return [textOf(id!), textOf(itemsOf(fields!)[1]!)];
    }),
  );
  for (const [id, value] of told.added) expect(values.get(id), `${where}: entry ${id}`).toBe(value);
  const pending = new Set(idsIn(await client.command('XPENDING', 's', 'g', '-', '+', '1000000')));
  for (const id of told.acknowledged)
    expect(pending.has(id), `${where}: acknowledged ${id}`).toBe(false);
  for (const id of told.delivered) {
    if (told.acknowledged.has(id) || told.unsure.has(id)) continue;
    expect(pending.has(id), `${where}: delivered ${id}`).toBe(true);
  }
  // The group and its pending entries agree with each other.
  const [count] = itemsOf(await client.command('XPENDING', 's', 'g'));
  expect(textOf(count!), where).toBe(String(pending.size));
  expect(textOf(await client.command('XLEN', 's')), where).toBe(String(values.size));
}

test.skipIf(!isBuilt).each(['memory', 'kv'])(
  `a stream of the %s model survives ${kills} kills`,
  { timeout: 3_600_000 },
  async (model) => {
    const random = new Random(seed);
    const small = ['--wal.segment-bytes', '256kb', '--wal.checkpoint-bytes', '1mb'];
    const flags = ['--wal.fsync', 'always', '--redis.default-model', model, ...small];
    server = await Polyrow.start({ flags });
    const told = new Told();
    const first = await server.client();
    expect(await first.text('XGROUP', 'CREATE', 's', 'g', '0', 'MKSTREAM')).toBe('+OK');
    first.close();
    for (let kill = 1; kill <= kills; kill++) {
      const before = told.acknowledged.size;
      const clients = await Promise.all(Array.from({ length: 5 }, () => server!.client()));
      const working = [
        ...clients.slice(0, 2).map((client, i) => write(client, told, `${kill}-${i}`)),
        ...clients.slice(2).map((client, i) => consume(client, told, `c${i}`)),
      ];
      while (told.acknowledged.size === before) await sleep(10);
      await sleep(random.below(500));
      await server.kill();
      await Promise.all(working);
      await server.restart();
      const reader = await server.client();
      await verify(reader, told, `seed ${seed}, kill ${kill}`);
      reader.close();
    }
    await server.stop();
  },
);
