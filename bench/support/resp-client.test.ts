import { createServer, type AddressInfo, type Server } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { request, RespClient } from './resp-client.ts';

let server: Server | undefined;
let client: RespClient | undefined;

afterEach(() => {
  client?.close();
  server?.close();
});

/** A client of a server that answers each PING-like request of `size` bytes as told. */
async function connected(size: number, answer: (i: number) => string): Promise<RespClient> {
  let bytes = 0;
  let answered = 0;
  const listening = createServer((socket) => {
    socket.on('data', (data) => {
      bytes += data.length;
      let text = '';
      while ((answered + 1) * size <= bytes) text += answer(answered++);
      // In two pieces, so that answers are torn.
      const middle = text.length >> 1;
      socket.write(text.slice(0, middle), () => socket.write(text.slice(middle)));
    });
    socket.on('error', () => {});
  });
  server = listening;
  await new Promise<void>((resolve) => listening.listen(0, '127.0.0.1', resolve));
  client = await RespClient.connect((listening.address() as AddressInfo).port);
  return client;
}

const ping = request('PING');

test('answers of every kind are awaited whole', async () => {
  const answers = ['+PONG\r\n', ':42\r\n', '$5\r\na\r\nbc\r\n', '$-1\r\n', '-ERR no\r\n'];
  const c = await connected(ping.length, (i) => answers[i]!);
  expect(await c.call('PING')).toBe('PONG');
  expect(await c.call('PING')).toBe('42');
  expect(await c.call('PING')).toBe('a\r\nbc');
  expect(await c.call('PING')).toBe('');
  await expect(c.call('PING')).rejects.toThrow('ERR no');
});

test('a pipeline ends when every command is answered', async () => {
  let answered = 0;
  const c = await connected(ping.length, (i) => {
    answered++;
    return i % 2 === 0 ? '+OK\r\n' : ':1\r\n';
  });
  await c.pipeline(50_000, () => ping);
  expect(answered).toBe(50_000);
});

test('an error within a pipeline is not lost', async () => {
  const c = await connected(ping.length, (i) => (i === 30_000 ? '-OOM full\r\n' : '+OK\r\n'));
  await expect(c.pipeline(50_000, () => ping)).rejects.toThrow('OOM full');
});
