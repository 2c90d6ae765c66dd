import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { type Reader, readShared } from './shared-read.ts';

const open: { destroy(): void }[] = [];
afterEach(() => {
  for (const one of open.splice(0)) one.destroy();
});

/** A client, and what is read of it. */
async function connected(reader: Reader): Promise<{ client: Socket; socket: Socket }> {
  const server = createServer({ pauseOnConnect: true }).listen(0, '127.0.0.1');
  open.push({ destroy: () => server.close() });
  await once(server, 'listening');
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
  const [accepted] = (await once(server, 'connection')) as [Socket];
  const socket = readShared(accepted, reader);
  open.push(client, socket);
  return { client, socket };
}

test('all that comes is read, whether its client is held back or not', async () => {
  const sent = Buffer.from(Array.from({ length: 1_000_003 }, (_, i) => (i * 31) % 251));
  const pieces: Buffer[] = [];
  let size = 0;
  let whenAll = (): void => {};
  const all = new Promise<void>((resolve) => (whenAll = resolve));
  const reader = {
    isHeldBack: false,
    receive(chunk: Buffer, length: number) {
      pieces.push(Buffer.from(chunk.subarray(0, length)));
      reader.isHeldBack = pieces.length % 3 === 0;
      if ((size += length) === sent.length) whenAll();
    },
  };
  const { client, socket } = await connected(reader);
  socket.resume();
  client.write(sent);
  await all;
  expect(Buffer.concat(pieces).equals(sent)).toBe(true);
});

test('of a client that is held back little is read at a time', async () => {
  const reads: number[] = [];
  const reader = {
    isHeldBack: false,
    receive(_chunk: Buffer, length: number) {
      reads.push(length);
    },
  };
  const { client, socket } = await connected(reader);
  client.write(Buffer.alloc(4_000_000));
  socket.resume();
  await expect.poll(() => reads.some((length) => length > 16 * 1024)).toBe(true);
  reader.isHeldBack = true;
  const before = reads.length;
  client.write(Buffer.alloc(4_000_000));
  await expect.poll(() => reads.length).toBeGreaterThan(before + 10);
  // One read was under way.
  for (const length of reads.slice(before + 1)) expect(length).toBeLessThanOrEqual(16 * 1024);
});
