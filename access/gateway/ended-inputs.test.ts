import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { afterEach, expect, test, vi } from 'vitest';
import { EndedInputs } from './ended-inputs.ts';

afterEach(() => vi.restoreAllMocks());

test('of sockets that end together few end in each round of the event loop, and all end', {
  timeout: 300_000,
}, async () => {
  const count = 60;
  const ended = new EndedInputs();
  const accepted: Socket[] = [];
  const server = createServer((socket) => {
    ended.follow(socket);
    accepted.push(socket);
    socket.resume();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const clients = await Promise.all(
    Array.from({ length: count }, async () => {
      const client = connect(port, '127.0.0.1');
      await once(client, 'connect');
      return client;
    }),
  );
  while (accepted.length < count) await new Promise(setImmediate);
  // Each look at the clock takes a millisecond, so that few ends fit into a round.
  let now = 0;
  vi.spyOn(performance, 'now').mockImplementation(() => now++);
  let inRound = 0;
  let most = 0;
  let closed = 0;
  for (const socket of accepted) {
    socket.on('end', () => (most = Math.max(most, ++inRound)));
    socket.on('close', () => closed++);
  }
  for (const client of clients) client.destroy();
  while (closed < count) {
    await new Promise(setImmediate);
    inRound = 0;
  }
  // Some at once, in the round in which they came, and some of those that waited.
  expect(most).toBeLessThanOrEqual(10);
  server.close();
});
