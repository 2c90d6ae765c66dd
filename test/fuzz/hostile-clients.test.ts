// Clients that behave as no client should. The server stays up, within its memory, and answers the others.

import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { Polyrow } from '../support/polyrow.ts';
import { encode } from '../support/resp-client.ts';
import { isError, textOf } from '../support/resp-value.ts';

const mib = 1024 * 1024;
const full = process.env['POLYROW_FULL'] === '1';
const openFiles = Number(
  /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1] ?? 1024,
);

let server: Polyrow;
/** By several tests. */
let isShared = false;
afterEach(async () => {
  if (!isShared) await server.remove();
});

async function start(...flags: string[]): Promise<void> {
  server = await Polyrow.start({ flags });
}

/** Others are answered. How soon is for `npm run bench -- hostile` to say. */
async function answersOthers(): Promise<void> {
  const client = await server.client();
  expect(await client.text('PING')).toBe('+PONG');
  client.close();
}

async function open(): Promise<Socket> {
  const socket = connect(server.redisPort, '127.0.0.1');
  socket.on('error', () => {});
  await once(socket, 'connect');
  return socket;
}

async function connectedClients(): Promise<number> {
  const client = await server.client();
  const info = textOf(await client.command('INFO', 'clients'));
  client.close();
  return Number(/connected_clients:(\d+)/.exec(info)![1]);
}

describe('with the default settings', () => {
  beforeEach(async () => {
    await start();
  });

  test('10,000 connections opened and dropped', async () => {
    // As many at once as this process and the server may have open.
    const atOnce = Math.min(2500, Math.floor(openFiles * 0.8));
    for (let done = 0; done < 10_000; done += atOnce) {
      const sockets = await Promise.all(Array.from({ length: atOnce }, open));
      sockets.forEach((socket, i) => {
        if (i % 3 === 0) socket.write('PING\r\n');
        if (i % 3 === 1) socket.write('*2\r\n$3\r\nGET\r\n$100\r\nhalf');
      });
      await answersOthers();
      sockets.forEach((socket, i) => (i % 2 === 0 ? socket.resetAndDestroy() : socket.destroy()));
    }
    await expect.poll(connectedClients).toBe(1);
    expect(server.residentBytes()).toBeLessThan(400 * mib);
    await server.stop();
  });

  test('a client that never reads its large answers', async () => {
    const client = await server.client();
    await client.command('SET', 'large', 'x'.repeat(mib));
    const before = server.residentBytes();
    const deaf = await open();
    deaf.pause();
    // Replies of 10 GB if all were made.
    const get = Buffer.from('GET large\r\n'.repeat(1000));
    for (let i = 0; i < 10; i++) deaf.write(get);
    const until = Date.now() + 3000;
    while (Date.now() < until) {
      await answersOthers();
      expect(server.residentBytes() - before).toBeLessThan(300 * mib);
      await sleep(100);
    }
    // The client reads again: all replies are still there, in order.
    let received = 0;
    deaf.on('data', (chunk) => (received += chunk.length));
    deaf.resume();
    await expect.poll(() => received).toBeGreaterThan(500 * mib);
    await answersOthers();
    deaf.destroy();
    await expect.poll(connectedClients).toBeLessThanOrEqual(2);
    client.close();
    await server.stop();
  });

  test('a promise of much and then silence costs nothing', async () => {
    const before = server.residentBytes();
    const sockets = await Promise.all(Array.from({ length: 200 }, open));
    for (const socket of sockets) socket.write(`*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$${16 * mib}\r\n`);
    // As many arguments as Redis would wait for.
    for (const socket of await Promise.all(Array.from({ length: 200 }, open))) {
      socket.write('*1000000000\r\n$4\r\nMGET\r\n');
      sockets.push(socket);
    }
    await sleep(500);
    await answersOthers();
    expect(server.residentBytes() - before).toBeLessThan(200 * mib);
    for (const socket of sockets) socket.destroy();
    await server.stop();
  });

  test('CLIENT KILL in the middle of things', async () => {
    const killer = await server.client();
    const victims = await Promise.all([server.client(), server.client(), server.client()]);
    const ids = await Promise.all(victims.map((client) => client.command('CLIENT', 'ID')));
    victims[0]!.send('*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$100\r\nhalf');
    const waiting = victims[1]!.command('BLPOP', 'nothing', 0).catch(() => 'lost');
    await victims[2]!.command('SUBSCRIBE', 'channel');
    await sleep(50);
    for (const id of ids) {
      expect(await killer.text('CLIENT', 'KILL', 'ID', textOf(id))).toBe(':1');
    }
    await Promise.all(victims.map((client) => client.ended));
    expect(await waiting).toBe('lost');
    expect(await killer.text('PUBLISH', 'channel', 'x')).toBe(':0');
    // An element the killed client waited for is not lost to it.
    expect(await killer.text('RPUSH', 'nothing', 'x')).toBe(':1');
    expect(await killer.text('LLEN', 'nothing')).toBe(':1');
    expect(await killer.text('EXISTS', 'k')).toBe(':0');
    // And oneself.
    expect(
      await killer.text(
        'CLIENT',
        'KILL',
        'ID',
        textOf(await killer.command('CLIENT', 'ID')),
        'SKIPME',
        'no',
      ),
    ).toBe(':1');
    await killer.ended;
    await server.stop();
  });

  test('an endless pipeline does not keep the others waiting', async () => {
    const greedy = await open();
    let ending = false;
    greedy.on('data', () => {});
    const commands = Buffer.concat(
      Array.from({ length: 20_000 }, (_, i) => encode(['LPUSH', 'l', `value ${i}`])),
    );
    const pump = (async () => {
      while (!ending) if (!greedy.write(commands)) await once(greedy, 'drain');
    })();
    const until = Date.now() + (full ? 20_000 : 2000);
    while (Date.now() < until) {
      await answersOthers();
      await sleep(50);
    }
    ending = true;
    await pump;
    greedy.destroy();
  });
});

describe('one server, whatever is sent', () => {
  beforeAll(async () => {
    await start();
    isShared = true;
  });
  afterAll(async () => {
    isShared = false;
    await server.remove();
  });

  test.each([
    ['too many arguments', '*2147483648\r\n', 'ERR Protocol error: invalid multibulk length'],
    ['a count that is no number', '*x\r\n', 'ERR Protocol error: invalid multibulk length'],
    ['a bulk of a terabyte', '*1\r\n$1000000000000\r\n', 'ERR Protocol error: invalid bulk length'],
    ['a bulk of -1', '*1\r\n$-1\r\n', 'ERR Protocol error: invalid bulk length'],
    ['a bulk beyond the limit', '*1\r\n$536870913\r\n', 'ERR Protocol error: invalid bulk length'],
    ['no bulk', '*1\r\n!4\r\nPING\r\n', "ERR Protocol error: expected '$', got '!'"],
    [
      'unbalanced quotes',
      'SET "unbalanced\r\n',
      'ERR Protocol error: unbalanced quotes in request',
    ],
    ['an endless line', `${'x'.repeat(70_000)}`, 'ERR Protocol error: too big inline request'],
    [
      'an endless count',
      `*${'1'.repeat(70_000)}`,
      'ERR Protocol error: too big mbulk count string',
    ],
    [
      'an endless length',
      `*1\r\n$${'1'.repeat(70_000)}`,
      'ERR Protocol error: too big bulk count string',
    ],
  ])('%s ends the connection with the reason', async (_, bytes, reason) => {
    const client = await server.client();
    const before = server.residentBytes();
    client.send(bytes);
    const [reply] = await client.replies(1);
    expect(isError(reply!) && textOf(reply!)).toBe(reason);
    await client.ended;
    expect(server.residentBytes() - before).toBeLessThan(100 * mib);
    await answersOthers();
  });
});

test('more clients than allowed are told so', async () => {
  await start('--redis.maxclients', '10');
  const clients = await Promise.all(Array.from({ length: 10 }, () => server.client()));
  for (const client of clients) expect(await client.text('PING')).toBe('+PONG');
  const eleventh = await server.client();
  const [reply] = await eleventh.replies(1);
  expect(textOf(reply!)).toBe('ERR max number of clients reached');
  await eleventh.ended;
  clients[0]!.close();
  await expect
    .poll(async () => {
      const client = await server.client();
      return client.text('PING').catch(() => 'lost');
    })
    .toBe('+PONG');
});

test('idle clients are closed after the timeout, waiting and subscribed ones not', async () => {
  await start('--redis.timeout', '1');
  const idle = await server.client();
  const half = await server.client();
  half.send('*2\r\n$3\r\nGET\r\n');
  const waiting = await server.client();
  const popped = waiting.command('BLPOP', 'queue', 0);
  const listening = await server.client();
  await listening.command('SUBSCRIBE', 'channel');
  await idle.ended;
  await half.ended;
  await sleep(500);
  const client = await server.client();
  expect(await client.text('PUBLISH', 'channel', 'x')).toBe(':1');
  expect(await client.text('RPUSH', 'queue', 'x')).toBe(':1');
  expect(textOf(await popped)).toContain('queue');
});

test('a slow reader is closed at its output limit, when there is one', async () => {
  await start('--redis.client-output-buffer-limit', 'pubsub 1mb 0 0');
  const deaf = await open();
  deaf.write('SUBSCRIBE news\r\n');
  await once(deaf, 'data');
  deaf.pause();
  const publisher = await server.client();
  const message = 'x'.repeat(100_000);
  await expect
    .poll(async () => {
      for (let i = 0; i < 20; i++) await publisher.command('PUBLISH', 'news', message);
      return await publisher.text('PUBLISH', 'news', message);
    })
    .toBe(':0');
  await answersOthers();
});

test('a value of 512 MB goes in and comes out', async () => {
  // With the default no tenant has as much for what comes in part, and for answers.
  await start(
    ...['--redis.max-request-memory', '4gb', '--redis.proto-max-bulk-len', '512mb'],
    ...['--redis.client-query-buffer-limit', '1gb'],
  );
  const size = 512 * mib;
  const socket = await open();
  const chunk = Buffer.alloc(8 * mib, 'abcdefgh');
  socket.write(`*3\r\n$3\r\nSET\r\n$3\r\nbig\r\n$${size}\r\n`);
  for (let i = 0; i < size; i += chunk.length) {
    if (!socket.write(chunk)) await once(socket, 'drain');
  }
  socket.write('\r\n');
  const [answer] = (await once(socket, 'data')) as [Buffer];
  expect(answer.toString()).toBe('+OK\r\n');
  await answersOthers();
  socket.write('GET big\r\n');
  const head = `$${size}\r\n`;
  let received = 0;
  let wrong = 0;
  await new Promise<void>((resolve) => {
    socket.on('data', (bytes: Buffer) => {
      const start = Math.max(0, head.length - received);
      const at = received + start - head.length;
      const rest = bytes.subarray(start, Math.min(bytes.length, start + size - at));
      const phase = at % 8;
      if (!rest.equals(chunk.subarray(phase, phase + rest.length))) wrong++;
      received += bytes.length;
      if (received >= head.length + size + 2) resolve();
    });
  });
  expect({ received, wrong }).toEqual({ received: head.length + size + 2, wrong: 0 });
  socket.write('STRLEN big\r\n');
  const [length] = (await once(socket, 'data')) as [Buffer];
  expect(length.toString()).toBe(`:${size}\r\n`);
  socket.destroy();
  const client = await server.client();
  expect(await client.text('DEL', 'big')).toBe(':1');
  client.close();
  await server.stop();
});
