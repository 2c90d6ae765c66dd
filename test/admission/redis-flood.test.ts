// A tenant that wants much more than its quota: it gets its quota, and no other tenant is refused
// for it.

import { connect } from 'node:net';
import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { RespClient } from '../support/resp-client.ts';
import { show } from '../support/resp-value.ts';
import { LimitedPolyrow } from './limited-polyrow.ts';

let server: LimitedPolyrow;
beforeAll(async () => {
  server = await LimitedPolyrow.start();
  await server.tenant('red', 2000);
  await server.tenant('blue', 0);
  // A server that does not run for seconds loses nothing of this one's.
  await server.tenant('steady', 1000, 9000);
});
afterAll(() => server.stop());

const set = '*3\r\n$3\r\nSET\r\n$5\r\nflood\r\n$5\r\nvalue\r\n';

/** Sends commands of one tenant all the time, so many at once that most are refused. */
class Flood {
  served = 0;
  refused = 0;
  other: string[] = [];
  readonly #clients: RespClient[];
  #stopped = false;

  constructor(clients: RespClient[]) {
    this.#clients = clients;
  }

  static async start(name: string, clients: number, ahead: number): Promise<Flood> {
    const opened = await Promise.all(Array.from({ length: clients }, () => server.client(name)));
    const flood = new Flood(opened);
    for (const client of opened) {
      let due = ahead;
      client.onReply = (reply) => {
        const text = show(reply);
        if (text === '+OK') flood.served++;
        else if (text.startsWith(`-TRYAGAIN RU limit: tenant=${name} `)) flood.refused++;
        else flood.other.push(text);
        if (--due > 0 || flood.#stopped) return;
        due = ahead;
        client.send(set.repeat(ahead));
      };
      client.send(set.repeat(ahead));
    }
    return flood;
  }

  stop(): void {
    this.#stopped = true;
    for (const client of this.#clients) client.close();
  }
}

async function sleep(ms: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, ms));
}

describe('twenty times over its quota', () => {
  test.each([
    { clients: 400, ahead: 1, refuses: false },
    { clients: 20, ahead: 2000, refuses: true },
  ])('$clients clients with $ahead commands at once get the quota', async (load) => {
    const flood = await Flood.start('steady', load.clients, load.ahead);
    const watcher = await server.client('steady');
    const balance = async (): Promise<number> =>
      (await LimitedPolyrow.stats(watcher)).get('balance')!;
    // The initial balance is spent first.
    await expect.poll(balance).toBeLessThan(0);
    const before = await LimitedPolyrow.stats(watcher);
    await sleep(6000);
    const after = await LimitedPolyrow.stats(watcher);
    flood.stop();
    watcher.close();
    const seconds = after.get('seconds')! - before.get('seconds')!;
    const spent = after.get('ru')! - before.get('ru')!;
    // On a machine that keeps the server from running there is something left at the end.
    const left = Math.max(0, after.get('balance')!);
    expect((spent + left) / seconds).toBeGreaterThan(1000 * 0.95);
    expect(spent / seconds).toBeLessThan(1000 * 1.05);
    expect(flood.other).toEqual([]);
    expect(flood.refused > 0).toBe(load.refuses);
  });

  test('others are not refused, and wait for nothing', async () => {
    const flood = await Flood.start('red', 20, 2000);
    const blue = await server.client('blue');
    await sleep(500);
    for (let i = 0; i < 2000; i++) {
      expect(await blue.text('SET', `k${i}`, i)).toBe('+OK');
    }
    flood.stop();
    const stats = await LimitedPolyrow.stats(blue);
    expect(stats.get('rejected')).toBe(0);
    expect(stats.has('waited')).toBe(false);
    blue.close();
  });
});

describe('a pipeline of a million commands', () => {
  test('comes to its end soon, all answered in order', async () => {
    const total = 1_000_000;
    const socket = connect(server.port, '127.0.0.1');
    await once(socket, 'connect');
    socket.write('AUTH red red\r\n');
    let lines = -1;
    let order = 0;
    let refused = 0;
    let rest = '';
    const done = new Promise<void>((resolve, reject) => {
      socket.on('error', reject);
      socket.on('close', () => reject(new Error(`closed after ${lines} answers`)));
      socket.on('data', (chunk) => {
        const parts = (rest + chunk.toString('latin1')).split('\r\n');
        rest = parts.pop()!;
        for (const line of parts) {
          if (++lines === 0) continue;
          // Each tenth command is an ECHO that tells its number.
          if (line.startsWith('$')) lines--;
          else if (line.startsWith('-TRYAGAIN ')) refused++;
          else if (line !== '+OK') {
            if (Number(line) !== order * 10) reject(new Error(`${line} is not ${order * 10}`));
            order++;
          }
        }
        if (lines === total) resolve();
      });
    });
    const write = async (): Promise<void> => {
      for (let i = 0; i < total; i += 1000) {
        let text = '';
        for (let n = i; n < i + 1000; n++) {
          const number = String(n);
          text += n % 10 === 0 ? `*2\r\n$4\r\nECHO\r\n$${number.length}\r\n${number}\r\n` : set;
        }
        if (!socket.write(text)) await once(socket, 'drain');
      }
    };
    await Promise.all([write(), done]);
    expect(order).toBe(total / 10);
    expect(refused).toBeGreaterThan(total / 2);
    const resident = Number(
      /^process_resident_memory_bytes (\S+)/m.exec(await server.metrics())![1],
    );
    expect(resident).toBeLessThan(600 * 1024 * 1024);
    socket.removeAllListeners('close');
    socket.destroy();
  });

  test('leaves nothing behind when its client goes in the middle', async () => {
    const socket = connect(server.port, '127.0.0.1');
    await once(socket, 'connect');
    socket.write(`AUTH red red\r\n${set.repeat(200_000)}`);
    // It is logged in, and its commands are in progress.
    await once(socket, 'data');
    socket.destroy();
    const watcher = await server.client('red');
    const clients = async (): Promise<number | undefined> =>
      (await watcher.text('CLIENT', 'LIST')).match(/ fd=/g)?.length;
    await expect.poll(clients).toBe(1);
    expect((await LimitedPolyrow.stats(watcher)).get('waiting')).toBe(0);
    watcher.close();
  });
});

test('is seen in the metrics', async () => {
  const metrics = await server.metrics();
  const value = (name: string): number =>
    Number(
      new RegExp(`^polyrow_tenant_${name}\\{tenant="red",plane="redis"\\} (\\S+)`, 'm').exec(
        metrics,
      )?.[1],
    );
  expect(value('quota_ru')).toBe(2000);
  expect(value('waiting')).toBe(0);
  for (const name of ['waited_total', 'waited_seconds_total', 'refused_total']) {
    expect(value(name), name).toBeGreaterThan(0);
  }
  for (const name of [
    'burst_ru_total',
    'spare_ru_total',
    'would_wait_total',
    'would_refuse_total',
  ]) {
    expect(value(name), name).toBe(0);
  }
  expect(metrics).not.toContain('polyrow_tenant_quota_ru{tenant="blue"');
});

test('limits can be counted only, or switched off, while the server runs', async () => {
  const set = async (key: string, value: string): Promise<void> => {
    const answer = await server.server.askAdmin('PATCH', '/v1/config', { [key]: value });
    expect(answer.status, JSON.stringify(answer.body)).toBe(200);
  };
  const client = await server.client('red');
  const commands = Array.from({ length: 5000 }, () => ['SET', 'k', 'v']);
  const refusals = async (): Promise<number> =>
    (await client.pipeline(commands)).filter((reply) => show(reply).startsWith('-')).length;
  await set('admission.mode', 'dry-run');
  await expect.poll(() => client.text('INFO', 'ru')).toContain('ru_limits:dry-run');
  const before = await LimitedPolyrow.stats(client);
  for (let i = 0; i < 5; i++) expect(await refusals()).toBe(0);
  const after = await LimitedPolyrow.stats(client);
  expect(after.get('would_wait')! + after.get('would_refuse')!).toBeGreaterThan(
    before.get('would_wait')! + before.get('would_refuse')!,
  );
  expect(after.get('refused')).toBe(before.get('refused'));
  await set('admission.mode', 'off');
  await expect.poll(() => client.text('INFO', 'ru')).toContain('ru_limits:none');
  expect(await refusals()).toBe(0);
  await set('admission.mode', 'enforce');
  await set('admission.command-wait-ms', '100');
  await expect.poll(() => client.text('INFO', 'ru')).toContain('ru_limits:enforced');
  const answers = await client.pipeline(commands);
  expect(show(answers.at(-1)!)).toMatch(/^-TRYAGAIN RU limit: tenant=red kind=write /);
  // Without metering, costs are unknown.
  await set('ru.metering', 'off');
  await expect.poll(async () => show((await client.pipeline([['SET', 'k', 'v']]))[0]!)).toBe('+OK');
  expect(await refusals()).toBe(0);
  client.close();
});
