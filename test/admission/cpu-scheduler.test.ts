// Tenants that take turns with the thread: as it is when every batch of every client has to wait for its own.

import { afterEach, beforeEach, expect, test } from 'vitest';
import { AdmissionController } from '../../storage-node/admission/admission-controller.ts';
import { systemClock } from '../../universal-row/environment.ts';
import { TenantsServer } from '../redis-tenants/tenants-server.ts';
import { encode, type RespClient } from '../support/resp-client.ts';
import { show } from '../support/resp-value.ts';

let server: TenantsServer;
let podAdmission: AdmissionController;

beforeEach(async () => {
  podAdmission = new AdmissionController({
    clock: systemClock,
    sliceMs: 0,
    aloneMs: Infinity,
  });
  server = await TenantsServer.start({ podAdmission });
  server.tenant('acme');
  server.tenant('bolt');
});
afterEach(() => server.stop());

/** `count` commands in pieces that end anywhere; the answers in order. */
async function count(client: RespClient, key: string, total: number): Promise<string[]> {
  const one = encode(['INCR', key]);
  const bytes = Buffer.concat(Array.from({ length: total }, () => one));
  const answers = client.replies(total);
  for (let from = 0; from < bytes.length; from += 10_007) {
    client.send(bytes.subarray(from, from + 10_007));
    await new Promise(setImmediate);
  }
  return (await answers).map(show);
}

const numbers = (total: number): string[] => Array.from({ length: total }, (_, i) => `:${i + 1}`);

test('each client has its answers in order', async () => {
  const clients = await Promise.all(
    ['acme', 'bolt', 'acme', 'bolt', 'acme'].map((name) => server.client(name)),
  );
  const all = await Promise.all(clients.map((client, i) => count(client, `n${i}`, 5000)));
  for (const answers of all) expect(answers).toEqual(numbers(5000));
  expect(podAdmission.cpu.queued).toBeGreaterThan(10);
  expect(podAdmission.cpu.length).toBe(0);
});

test('blocked clients, transactions and large words wait their turns as well', async () => {
  const [a, b] = [await server.client('acme'), await server.client('bolt')];
  const [waits, other] = [await server.client('acme'), await server.client('acme')];
  const busy = Promise.all([count(a, 'a', 20_000), count(b, 'b', 20_000)]);
  const popped = waits.command('BLPOP', 'queue', 0);
  const large = 'x'.repeat(3_000_000);
  const answers = await other.pipeline([
    ['MULTI'],
    ['SET', 'large', large],
    ['STRLEN', 'large'],
    ['EXEC'],
    ['RPUSH', 'queue', 'one'],
  ]);
  expect(answers.map(show)).toEqual(['+OK', '+QUEUED', '+QUEUED', expect.anything(), ':1']);
  expect(show(answers[3]!)).toContain('3000000');
  expect(show(await popped)).toContain('one');
  await busy;
});

test('clients that leave while they wait leave nothing behind', async () => {
  const stays = await server.client('bolt');
  const busy = count(stays, 'stays', 30_000);
  for (let i = 0; i < 50; i++) {
    const client = await server.client('acme');
    client.send(encode(['INCR', 'left']));
    client.socket.destroy();
  }
  expect((await busy).at(-1)).toBe(':30000');
  await expect.poll(() => podAdmission.cpu.length).toBe(0);
  await expect.poll(() => server.redis.connections.size).toBe(1);
});

test('who is revoked while it waits gets nothing any more', async () => {
  const [a, b] = [await server.client('acme'), await server.client('bolt')];
  const busy = count(b, 'b', 10_000);
  a.send(encode(['SET', 'late', 'x']));
  server.alter('acme', { state: 'suspended' });
  await a.ended;
  expect((await busy).at(-1)).toBe(':10000');
});

test('each client gets its answers in the order of its commands', async () => {
  const names = Array.from({ length: 12 }, (_, i) => (i % 3 === 0 ? 'bolt' : 'acme'));
  const clients = await Promise.all(names.map((name) => server.client(name)));
  const all = await Promise.all(clients.map((client, i) => count(client, `o${i}`, 5000)));
  for (const answers of all) expect(answers).toEqual(numbers(5000));
  expect(podAdmission.cpu.length).toBe(0);
});
