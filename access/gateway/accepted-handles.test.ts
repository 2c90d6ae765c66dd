import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, connect, type Server, type Socket } from 'node:net';
import { afterEach, expect, test, vi } from 'vitest';
import { until } from '../../test/support/until.ts';
import { AcceptQueue } from './accept-queue.ts';
import { AcceptedHandle, acceptInSlices, type Arrival, socketOf } from './accepted-handles.ts';
import { Listeners } from '../redis/listeners.ts';
import { readShared } from '../redis/shared-read.ts';

const open: { destroy(): void }[] = [];
afterEach(() => {
  vi.restoreAllMocks();
  for (const one of open.splice(0)) one.destroy();
});

const clients = 300;

/** A listener that keeps what it is given, and so many clients that have connected. */
async function withArrivals(): Promise<{ arrivals: Arrival[]; sockets: Socket[] }> {
  const arrivals: Arrival[] = [];
  const listeners = new Listeners({ host: '127.0.0.1', port: 0, backlog: 511 }, (arrival) =>
    arrivals.push(arrival),
  );
  await listeners.listen();
  open.push({ destroy: () => listeners.close() });
  const sockets = Array.from({ length: clients }, () => connect(listeners.port, '127.0.0.1'));
  open.push(...sockets);
  // Connections that are never served are reset in the end.
  for (const socket of sockets) socket.on('error', () => {});
  await Promise.all(sockets.map((socket) => once(socket, 'connect')));
  await until(() => arrivals.length === clients);
  return { arrivals, sockets };
}

test('clients that connect together are no sockets until they are served', async () => {
  const { arrivals } = await withArrivals();
  expect(arrivals.filter((arrival) => arrival instanceof AcceptedHandle)).toHaveLength(clients);
});

test('each is served when its time comes, with what it has sent before', async () => {
  const { arrivals, sockets } = await withArrivals();
  for (const [n, socket] of sockets.entries()) socket.write(`${n};`);
  const answers = sockets.map(async (socket) => String((await once(socket, 'data'))[0]));
  const queue = new AcceptQueue<Arrival>((arrival) => {
    const socket: Socket = readShared(arrival, {
      isHeldBack: false,
      receive: (chunk, length) => socket.write(chunk.toString('latin1', 0, length)),
    });
    open.push(socket);
    socket.on('error', () => {});
    expect(socket.remoteAddress).toBe('127.0.0.1');
    socket.resume();
  });
  for (const arrival of arrivals) queue.add(arrival);
  expect(await Promise.all(answers)).toEqual(sockets.map((_, n) => `${n};`));
});

test('one that is not served is told so', async () => {
  const { arrivals, sockets } = await withArrivals();
  for (const arrival of arrivals) {
    const socket = socketOf(arrival);
    socket.on('error', () => {});
    socket.end('no\r\n');
  }
  const [told] = (await once(sockets[7]!, 'data')) as [Buffer];
  expect(String(told)).toBe('no\r\n');
});

async function listening(server: Server): Promise<number> {
  server.listen({ host: '127.0.0.1', port: 0, backlog: 511 });
  open.push({ destroy: () => server.close() });
  await once(server, 'listening');
  acceptInSlices(server);
  return (server.address() as AddressInfo).port;
}

test('a server that makes its own sockets makes some in each round', async () => {
  const server = createHttpServer((_request, response) => response.end('here'));
  let now = 0;
  vi.spyOn(performance, 'now').mockImplementation(() => now);
  let inRound = 0;
  let most = 0;
  let made = 0;
  server.on('connection', () => {
    now += 1;
    made++;
    most = Math.max(most, ++inRound);
  });
  const next = (): void => {
    inRound = 0;
    if (made < clients) setImmediate(next);
  };
  next();
  const port = await listening(server);
  const sockets = Array.from({ length: clients }, () => connect(port, '127.0.0.1'));
  open.push(...sockets);
  const answers = sockets.map(async (socket) => {
    socket.write('GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
    let text = '';
    for await (const piece of socket) text += String(piece);
    return text.slice(-4);
  });
  expect(await Promise.all(answers)).toEqual(sockets.map(() => 'here'));
  // 4 ms as they come, and 4 ms of those that wait.
  expect(most).toBeLessThanOrEqual(8);
});
