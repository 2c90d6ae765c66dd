import { connect } from 'node:net';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { maxPipelined } from './pipelines.ts';
import { InfluxServer } from './server.ts';
import { MemorySeriesStore } from './testing/memory-series-store.ts';

let server: InfluxServer;
let port: number;

beforeEach(async () => {
  server = new InfluxServer({
    host: '127.0.0.1',
    port: 0,
    store: new MemorySeriesStore('d'),
    report: (_level, message) => {
      throw new Error(message);
    },
  });
  port = await server.listen();
});
afterEach(() => server.close());

/** The status lines that come before the server closes the connection, or after `count` of them. */
function statuses(request: string, count: number): Promise<string[]> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(request));
    let text = '';
    const found = (): string[] => text.match(/HTTP\/1\.1 \d+/g) ?? [];
    const end = (): void => {
      socket.destroy();
      resolve(found());
    };
    socket.on('data', (bytes) => {
      text += bytes.toString('latin1');
      if (found().length === count) end();
    });
    socket.on('error', reject);
    socket.on('close', end);
  });
}

const ping = 'GET /ping HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n';

test('a connection may send some requests ahead of their answers', async () => {
  const all = await statuses(ping.repeat(maxPipelined), maxPipelined);
  expect(all).toEqual(Array(maxPipelined).fill('HTTP/1.1 204'));
});

test('of more than that nothing is made, and the connection is closed', async () => {
  const all = await statuses(ping.repeat(1000), Infinity);
  expect(all).toEqual([...Array(maxPipelined).fill('HTTP/1.1 204'), 'HTTP/1.1 503']);
  expect(server.metrics().connections).toBe(0);
});

test('answered requests do not count', async () => {
  const all: string[] = [];
  await new Promise<void>((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(ping));
    socket.on('data', (bytes) => {
      all.push(...(bytes.toString('latin1').match(/HTTP\/1\.1 \d+/g) ?? []));
      if (all.length < 3 * maxPipelined) socket.write(ping);
      else {
        socket.destroy();
        resolve();
      }
    });
    socket.on('error', reject);
  });
  expect(new Set(all)).toEqual(new Set(['HTTP/1.1 204']));
});
