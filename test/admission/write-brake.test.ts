// Writes that wait because the engine has too much left to compact: reads go on, and each client has its answers in
// order. What the engine says of itself is made up here.

import { afterEach, beforeEach, expect, test } from 'vitest';
import { WriteBrake } from '../../storage-node/admission/write-brake.ts';
import { systemClock } from '../../universal-row/environment.ts';
import { TenantsServer } from '../redis-tenants/tenants-server.ts';
import { show } from '../support/resp-value.ts';

const mib = 1024 * 1024;
let skipped: number;
let brake: WriteBrake;
let server: TenantsServer;
const level = { files: 0, flushedBytes: 0, compactedBytes: 0 };

beforeEach(async () => {
  skipped = 0;
  Object.assign(level, { files: 0, flushedBytes: 0, compactedBytes: 0 });
  const clock = { monotonic: () => systemClock.monotonic() + skipped };
  brake = new WriteBrake({ clock, levelZero: () => level });
  server = await TenantsServer.start({ brake });
  server.tenant('acme');
});
afterEach(() => server.stop());

/** Five seconds go by in which a mebibyte is written and compacted, and there are so many files in the end. */
function period(files: number): void {
  level.files = files;
  level.flushedBytes += mib;
  level.compactedBytes += mib;
  skipped += 5000;
  brake.look();
}

/** Few tokens are left, and a debt that takes about a second. */
function overload(): void {
  for (let i = 0; i < 4; i++) period(14);
  expect(brake.score).toBe(2);
  brake.wrote(mib / 8);
  expect(brake.holds()).toBe(true);
}

test('writes wait, reads go on, and answers keep their order', async () => {
  const [writer, reader] = [await server.client('acme'), await server.client('acme')];
  await writer.pipeline([['SET', 'a', 'before']]);
  overload();
  const began = performance.now();
  const written = writer.pipeline([
    ['GET', 'a'],
    ['SET', 'a', 'after'],
    ['DEL', 'none'],
    ['GET', 'a'],
  ]);
  await expect.poll(() => brake.waiting).toBe(1);
  expect((await reader.pipeline([['GET', 'a']])).map(show)).toEqual(['"before"']);
  expect(performance.now() - began).toBeLessThan(500);
  expect(brake.waiting).toBe(1);
  expect((await written).map(show)).toEqual(['"before"', '+OK', ':0', '"after"']);
  expect(performance.now() - began).toBeGreaterThan(300);
  expect(brake.waited).toBeGreaterThan(0);
});

test('transactions wait if they write, and who leaves harms nobody', async () => {
  const [writer, reader, gone] = [
    await server.client('acme'),
    await server.client('acme'),
    await server.client('acme'),
  ];
  overload();
  const reads = await reader.pipeline([['MULTI'], ['GET', 'a'], ['EXEC']]);
  expect(show(reads.at(-1)!)).toContain('nil');
  const writes = writer.pipeline([['MULTI'], ['SET', 'a', 'x'], ['GET', 'a'], ['EXEC']]);
  void gone.pipeline([['SET', 'b', 'x']]).catch(() => {});
  await expect.poll(() => brake.waiting).toBe(2);
  gone.socket.destroy();
  expect(show((await writes).at(-1)!)).toContain('x');
  await expect.poll(() => brake.waiting).toBe(0);
});

test('switched off, everybody goes on at once', async () => {
  const clients = await Promise.all(Array.from({ length: 20 }, () => server.client('acme')));
  overload();
  brake.wrote(100 * mib);
  const all = clients.map((client, i) => client.pipeline([['SET', `k${i}`, 'x']]));
  await expect.poll(() => brake.waiting).toBe(20);
  brake.enabled = false;
  for (const answers of await Promise.all(all)) expect(answers.map(show)).toEqual(['+OK']);
});
