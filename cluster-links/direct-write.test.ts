import { once } from 'node:events';
import { type AddressInfo, connect, createServer, Socket } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { DirectWrites } from './direct-write.ts';

const open: { destroy(): void }[] = [];
afterEach(() => {
  for (const one of open.splice(0)) one.destroy();
});

interface Pair {
  client: Socket;
  socket: Socket;
  /** What the client has read. */
  pieces: Buffer[];
}

async function connected(): Promise<Pair> {
  const server = createServer().listen(0, '127.0.0.1');
  open.push({ destroy: () => server.close() });
  await once(server, 'listening');
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
  const [socket] = (await once(server, 'connection')) as [Socket];
  socket.on('error', () => {});
  open.push(client, socket);
  const pieces: Buffer[] = [];
  client.on('data', (piece: Buffer) => pieces.push(piece));
  return { client, socket, pieces };
}

/** As a connection's output: past the stream where that can be. */
function send(direct: DirectWrites, socket: Socket, bytes: Buffer): boolean {
  const isDirect = socket.writableLength === 0 && direct.write(bytes, 0, bytes.length);
  if (!isDirect) socket.write(bytes);
  return isDirect;
}

function received({ pieces }: Pair): string {
  return Buffer.concat(pieces).toString('latin1');
}

test('the first write of a thread goes through the stream, later ones past it, in order', async () => {
  const pair = await connected();
  const direct = new DirectWrites(pair.socket, () => {});
  const ways = [...Array(20).keys()].map((i) => {
    const text = `${i}:${'x'.repeat(i * 20)} `;
    return send(direct, pair.socket, Buffer.from(text));
  });
  expect(ways).toEqual([false, ...Array<boolean>(19).fill(true)]);
  const all = [...Array(20).keys()].map((i) => `${i}:${'x'.repeat(i * 20)} `).join('');
  await expect.poll(() => received(pair)).toBe(all);
  expect(direct.waiting).toBe(0);
});

test('a part of a buffer is written, which may change afterwards', async () => {
  const pair = await connected();
  const direct = new DirectWrites(pair.socket, () => {});
  const buffer = Buffer.alloc(2000, 'abcdefghij');
  send(direct, pair.socket, Buffer.from('-'));
  expect(direct.write(buffer, 3, 10)).toBe(true);
  expect(direct.write(buffer, 1000, 1500)).toBe(true);
  buffer.fill('?');
  await expect.poll(() => received(pair)).toBe(`-defghij${'abcdefghij'.repeat(50)}`);
});

test('bytes that cannot leave at once are counted, and what comes behind them keeps its order', async () => {
  const pair = await connected();
  let left = 0;
  const direct = new DirectWrites(pair.socket, () => left++);
  send(direct, pair.socket, Buffer.from('first'));
  pair.client.pause();
  const large = Buffer.alloc(64 * 1024 * 1024, 'l');
  expect(send(direct, pair.socket, large)).toBe(true);
  expect([direct.waiting, direct.isCopied, left]).toEqual([large.length, false, 0]);
  const ways = ['second', 'third'].map((text) => send(direct, pair.socket, Buffer.from(text)));
  expect(ways).toEqual([false, false]);
  expect(pair.socket.writableLength).toBe('secondthird'.length);
  pair.client.resume();
  await expect.poll(() => left).toBe(1);
  expect(direct.waiting).toBe(0);
  await expect.poll(() => pair.socket.writableLength).toBe(0);
  expect(send(direct, pair.socket, Buffer.from('last'))).toBe(true);
  const size = large.length + 'firstsecondthirdlast'.length;
  await expect.poll(() => pair.pieces.reduce((sum, { length }) => sum + length, 0)).toBe(size);
  const text = received(pair);
  expect([text.slice(0, 6), text.slice(-16)]).toEqual(['firstl', 'lsecondthirdlast']);
});

test('a write that is over before it is told so has its request until then', async () => {
  const pair = await connected();
  let left = 0;
  // As where the peer reads between the first try to write and the second: nothing waits then, but the write is not over.
  const { _handle: handle } = pair.socket as unknown as { _handle: object };
  Object.defineProperty(handle, 'writeQueueSize', { get: () => 0 });
  const direct = new DirectWrites(pair.socket, () => left++);
  send(direct, pair.socket, Buffer.from('first'));
  pair.client.pause();
  const large = Buffer.alloc(8 * 1024 * 1024, 'l');
  expect(send(direct, pair.socket, large)).toBe(true);
  expect(direct.waiting).toBe(large.length);
  // With the same request, Node would end the process.
  expect(send(direct, pair.socket, Buffer.from('second'))).toBe(false);
  pair.client.resume();
  await expect.poll(() => left).toBe(1);
  expect(direct.waiting).toBe(0);
  await expect.poll(() => received(pair).slice(-7)).toBe('lsecond');
});

test('a small reply that waits is a copy of its own', async () => {
  const pair = await connected();
  send(new DirectWrites(pair.socket, () => {}), pair.socket, Buffer.from('the class is known now'));
  const requests: { oncomplete(status: number): void }[] = [];
  const written: Buffer[] = [];
  let isFull = false;
  const handle = {
    writeQueueSize: 0,
    // With a request, or as from Node 24.22 on without one.
    writeBuffer(given: (typeof requests)[number] | null, bytes: Buffer) {
      const request = given ?? { oncomplete: () => {} };
      requests.push(request);
      if (isFull) Object.assign(request, { getAsyncId: () => 7 });
      written.push(bytes);
      return given === null && isFull ? request : 0;
    },
  };
  let left = 0;
  const direct = new DirectWrites({ _handle: handle } as unknown as Socket, () => left++);
  expect(direct.write(Buffer.from('abc'), 0, 3)).toBe(true);
  isFull = true;
  expect(direct.write(Buffer.from('def'), 0, 3)).toBe(true);
  expect([direct.waiting, direct.isCopied, written[0] === written[1]]).toEqual([3, true, true]);
  isFull = false;
  const other = new DirectWrites({ _handle: handle } as unknown as Socket, () => {});
  expect(other.write(Buffer.from('ghi'), 0, 3)).toBe(true);
  expect(written.slice(1).map(String)).toEqual(['def', 'ghi']);
  expect(requests[2]).not.toBe(requests[1]);
  requests[1]!.oncomplete(0);
  expect([direct.waiting, left]).toEqual([0, 1]);
});

test('a socket whose client is gone is destroyed', async () => {
  const pair = await connected();
  const direct = new DirectWrites(pair.socket, () => {});
  const closed = new Promise((resolve) => pair.socket.on('close', resolve));
  send(direct, pair.socket, Buffer.from('x'));
  pair.client.resetAndDestroy();
  await expect
    .poll(() => {
      send(direct, pair.socket, Buffer.from('x'));
      return pair.socket.destroyed;
    })
    .toBe(true);
  await closed;
  expect(direct.write(Buffer.from('x'), 0, 1)).toBe(false);
});

test('after its end, and without a handle, all goes through the stream', async () => {
  const pair = await connected();
  const direct = new DirectWrites(pair.socket, () => {});
  send(direct, pair.socket, Buffer.from('a'));
  send(direct, pair.socket, Buffer.from('b'));
  direct.end();
  expect(send(direct, pair.socket, Buffer.from('c'))).toBe(false);
  pair.socket.end();
  await once(pair.client, 'end');
  expect(received(pair)).toBe('abc');
  const without = new DirectWrites(new Socket(), () => {});
  expect(without.write(Buffer.from('x'), 0, 1)).toBe(false);
});
