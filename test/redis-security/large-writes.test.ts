// A client that writes much waits for the log until it has all of it; what others were answered in the same round of the
// event loop does not.

import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import { TenantsServer } from '../redis-tenants/tenants-server.ts';
import { encodeAll } from '../support/resp-client.ts';

let server: TenantsServer;

beforeAll(async () => {
  server = await TenantsServer.start();
});
afterEach(() => vi.restoreAllMocks());
afterAll(() => server.stop());

async function client(): Promise<{ socket: Socket; text: () => string }> {
  const socket = connect(server.redis.port, '127.0.0.1');
  let text = '';
  socket.on('data', (bytes) => (text += bytes.toString('latin1')));
  await once(socket, 'connect');
  socket.write('PING\r\n');
  await vi.waitUntil(() => text === '+PONG\r\n', { timeout: 60_000 });
  return { socket, text: () => text };
}

/** The log takes as long as the test likes with what was written since the last call of `wrote`. */
function slowLog(): { wrote: () => void; held: (() => void)[] } {
  const { pod } = server;
  let hasWritten = false;
  const endTick = pod.endTick.bind(pod);
  vi.spyOn(pod, 'endTick').mockImplementation(() => {
    endTick();
    const position = hasWritten ? 1 : -1;
    hasWritten = false;
    return position;
  });
  const held: (() => void)[] = [];
  vi.spyOn(pod, 'whenSettled').mockImplementation((_position, then) => {
    held.push(() => then('committed'));
  });
  return { wrote: () => (hasWritten = true), held };
}

const ping = Buffer.from('PING\r\n');
const large = encodeAll([['SET', 'k', Buffer.alloc(4 * 1024 * 1024)]]);

test('answers of the same round do not wait for the log of a large write', async () => {
  const pinging = await client();
  const writing = await client();
  const [pings, writes] = [...server.redis.connections.values()].slice(-2);
  const { pod } = server;
  const { wrote, held } = slowLog();
  const execute = pod.execute.bind(pod);
  vi.spyOn(pod, 'execute').mockImplementation((...given) => {
    wrote();
    return execute(...given);
  });
  const { tick } = server.redis;
  // However long they take here, the tick is not over.
  const clock = vi.spyOn(performance, 'now').mockReturnValue(performance.now());
  tick.schedule();
  tick.receive(pings!, ping, ping.length);
  tick.receive(writes!, large, large.length);
  tick.receive(pings!, ping, ping.length);
  clock.mockRestore();
  await vi.waitUntil(() => pinging.text() === '+PONG\r\n'.repeat(3), { timeout: 10_000 });
  expect(held).toHaveLength(1);
  expect(writing.text()).toBe('+PONG\r\n');
  held[0]!();
  await vi.waitUntil(() => writing.text() === '+PONG\r\n+OK\r\n', { timeout: 60_000 });
  for (const { socket } of [pinging, writing]) socket.destroy();
});

test('answers around the end of a long command do not wait for its entry', async () => {
  const pinging = await client();
  const writing = await client();
  const [pings, writes] = [...server.redis.connections.values()].slice(-2);
  const { wrote, held } = slowLog();
  const { tick } = server.redis;
  const endTick = server.endTick.bind(server);
  vi.spyOn(server, 'endTick').mockImplementation(() => {
    tick.schedule();
    tick.receive(pings!, ping, ping.length);
    endTick();
    wrote();
  });
  // Called when the command has been answered.
  const goOn = writes!.goOn.bind(writes);
  vi.spyOn(writes!, 'goOn').mockImplementation(() => {
    tick.schedule();
    tick.receive(pings!, ping, ping.length);
    goOn();
  });
  tick.receive(writes!, large, large.length);
  await vi.waitUntil(() => pinging.text() === '+PONG\r\n'.repeat(3), { timeout: 10_000 });
  expect(held).toHaveLength(1);
  expect(writing.text()).toBe('+PONG\r\n');
  held[0]!();
  await vi.waitUntil(() => writing.text() === '+PONG\r\n+OK\r\n', { timeout: 60_000 });
  for (const { socket } of [pinging, writing]) socket.destroy();
});
