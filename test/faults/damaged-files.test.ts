// Files after a crash of the machine or on a bad disk: a log torn at its end is truncated; damage
// to acknowledged data is reported, and none of it is served.

import {
  closeSync,
  openSync,
  readdirSync,
  readFileSync,
  statSync,
  truncateSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { Polyrow, StartError } from '../support/polyrow.ts';
import type { RespClient } from '../support/resp-client.ts';
import { itemsOf, textOf } from '../support/resp-value.ts';

let server: Polyrow | undefined;
afterEach(async () => {
  await server?.remove();
  server = undefined;
});

const perFrame = 5;
const segmentFlags = ['--wal.segment-bytes', '64kb', '--wal.fsync', 'always'];

async function filled(model: string, writes: number, flags = segmentFlags): Promise<Polyrow> {
  server = await Polyrow.start({ flags: [...flags, '--redis.default-model', model] });
  const client = await server.client();
  await push(client, 1, writes);
  client.close();
  return server;
}

/** Appends numbers to the list `all`, a few in each tick, which makes a frame. */
async function push(client: RespClient, from: number, to: number): Promise<void> {
  for (let n = from; n <= to; n += perFrame) {
    const some = Array.from({ length: Math.min(perFrame, to - n + 1) }, (_, i) => n + i);
    await client.pipeline(some.map((k) => ['RPUSH', 'all', `${k}:${'x'.repeat(100)}`]));
  }
}

/** The numbers in the list, which must be 1, 2, 3 ... without a gap; how many there are. */
async function count(client: RespClient): Promise<number> {
  const numbers = itemsOf(await client.command('LRANGE', 'all', 0, -1)).map((n) =>
    parseInt(textOf(n)),
  );
  expect(numbers).toEqual(numbers.map((_, i) => i + 1));
  return numbers.length;
}

function files(model: string, folder: 'wal' | 'data', pattern: RegExp): string[] {
  const path = join(server!.dataDir, 'redis', model, folder);
  const names = readdirSync(path).filter((name) => pattern.test(name));
  return names.sort().map((name) => join(path, name));
}

const segments = (model: string) => files(model, 'wal', /^seg-/);

function flip(path: string, at: number): void {
  const byte = readFileSync(path)[at]!;
  const file = openSync(path, 'r+');
  writeSync(file, Buffer.of(byte ^ 0x55), 0, 1, at);
  closeSync(file);
}

/** Where the bytes that were written end: a segment may be longer than that. */
function contentEnd(path: string): number {
  const bytes = readFileSync(path);
  let end = bytes.length;
  while (end > 0 && bytes[end - 1] === 0) end--;
  return end;
}

describe.each(['memory', 'kv'])('the %s model', (model) => {
  test('a log torn at its end is cut there, and goes on', async () => {
    const polyrow = await filled(model, 300);
    await polyrow.kill();
    let former = 300;
    for (const bytes of [1, 7, 60, 200]) {
      const newest = segments(model).at(-1)!;
      truncateSync(newest, contentEnd(newest) - bytes);
      await polyrow.restart();
      const client = await polyrow.client();
      const left = await count(client);
      // The engine may hold what its log lost: then nothing is lost at all.
      expect(left).toBeLessThanOrEqual(former);
      expect(left).toBeGreaterThanOrEqual(former - 2 * perFrame);
      await push(client, left + 1, left + 20);
      expect(await count(client)).toBe(left + 20);
      former = left + 20;
      client.close();
      await polyrow.kill();
    }
  });

  test('rubbish behind the end is cut off', async () => {
    const polyrow = await filled(model, 100);
    await polyrow.kill();
    const newest = segments(model).at(-1)!;
    const file = openSync(newest, 'r+');
    writeSync(file, Buffer.alloc(3000, 'rubbish'), 0, 3000, contentEnd(newest) + 8);
    closeSync(file);
    await polyrow.restart();
    const client = await polyrow.client();
    expect(await count(client)).toBe(100);
    await push(client, 101, 120);
    client.close();
    await polyrow.restart();
    expect(await count(await polyrow.client())).toBe(120);
  });

  test('damage in the middle of the log is told, and nothing is served', async () => {
    const polyrow = await filled(model, 1500);
    await polyrow.kill();
    const [first, second] = segments(model);
    expect(second).toBeDefined();
    for (const path of [second!, first!]) {
      flip(path, statSync(path).size >> 1);
      const error = await failedStart(polyrow);
      expect(error.code).toBe(1);
      expect(error.output).toContain(path.split('/').at(-1));
      expect(error.output).toMatch(/damaged|corrupt/i);
      expect(error.output).toMatch(/\b\d{3,}\b/);
      flip(path, statSync(path).size >> 1);
    }
    // With the files restored, all data is there: the failed starts have changed nothing.
    await polyrow.restart();
    expect(await count(await polyrow.client())).toBe(1500);
  });

  test('a missing segment is told', async () => {
    const polyrow = await filled(model, 1500);
    await polyrow.kill();
    const middle = segments(model)[1]!;
    truncateSync(middle, 0);
    const error = await failedStart(polyrow);
    expect(error.code).toBe(1);
    expect(error.output).toContain(middle.split('/').at(-1));
  });
});

test('a damaged snapshot is told, and nothing is served', async () => {
  const polyrow = await filled('memory', 500);
  const client = await polyrow.client();
  expect(await client.text('SAVE')).toBe('+OK');
  await push(client, 501, 510);
  client.close();
  await polyrow.kill();
  const snapshot = files('memory', 'data', /^snapshot-\d+$/).at(-1)!;
  for (const at of [20, statSync(snapshot).size >> 1, statSync(snapshot).size - 3]) {
    flip(snapshot, at);
    const error = await failedStart(polyrow);
    expect(error.code, `byte ${at}`).toBe(1);
    expect(error.output).toContain(snapshot.split('/').at(-1));
    expect(error.output).toMatch(/damaged|corrupt/i);
    flip(snapshot, at);
  }
  await polyrow.restart();
  expect(await count(await polyrow.client())).toBe(510);
});

test('damaged LevelDB files are told, or the log makes up for them', async () => {
  const polyrow = await filled('kv', 500);
  const client = await polyrow.client();
  expect(await client.text('SAVE')).toBe('+OK');
  client.close();
  await polyrow.stop();
  const manifest = files('kv', 'data', /^MANIFEST/).at(-1)!;
  for (let at = 0; at < Math.min(statSync(manifest).size, 40); at++) flip(manifest, at);
  const error = await failedStart(polyrow);
  expect(error.code).toBe(1);
  expect(error.output).toMatch(/corrupt|damaged|LEVEL_/i);
});

async function failedStart(polyrow: Polyrow): Promise<StartError> {
  try {
    await polyrow.restart();
  } catch (error) {
    if (error instanceof StartError) return error;
    throw error;
  }
  throw new Error(`it started:\n${polyrow.lifeOutput}`);
}
