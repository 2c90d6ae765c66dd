import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { RequestMemory } from '../../admission/request-memory.ts';
import { withGenerated } from './testing/generated-answers.ts';
import { HttpClient } from './testing/http-client.ts';
import { MemorySeriesStore } from './testing/memory-series-store.ts';
import { InfluxServer } from './server.ts';

const megabyte = 1024 * 1024;

let memory: RequestMemory;
let store: MemorySeriesStore;
let server: InfluxServer;
let client: HttpClient;

beforeEach(async () => {
  memory = new RequestMemory({ maxBytes: 32 * megabyte });
  store = new MemorySeriesStore('d');
  server = new InfluxServer({
    host: '127.0.0.1',
    port: 0,
    store,
    memory,
    execute: withGenerated,
    report: () => {},
  });
  client = new HttpClient(await server.listen());
});

afterEach(async () => {
  client.close();
  await server.close();
  expect(memory.usedBytes).toBe(0);
});

const write = (body: Buffer | string, path = '/write?db=d') =>
  client.send(path, {
    headers: typeof body === 'string' ? {} : { 'Content-Encoding': 'gzip' },
    body,
  });

/** Fills the budget as far as one tenant may. */
function fill(tenant: number): () => void {
  let bytes = 0;
  while (memory.reserve(tenant, 'request', 4096)) bytes += 4096;
  return () => memory.release(tenant, 'request', bytes);
}

describe('packed bodies', () => {
  test('that unpack to much are unpacked in pieces, side by side', async () => {
    const line = `# ${'x'.repeat(1000)}\n`;
    const packed = gzipSync(`${line.repeat((12 * megabyte) / 1000)}m v=1 1`);
    expect(packed.length).toBeLessThan(100_000);
    const answers = await Promise.all(Array.from({ length: 14 }, () => write(packed)));
    expect(answers.map(({ status }) => status)).toEqual(Array(14).fill(204));
    expect(memory.refused).toBe(0);
    expect(memory.peakBytes).toBeGreaterThan(14 * 256 * 1024);
    expect(memory.peakBytes).toBeLessThan(16 * megabyte);
  });

  test('with a line that grows beyond the memory there is are refused', async () => {
    const packed = gzipSync(`m s="${'x'.repeat(7 * megabyte)}" 1\n`);
    expect(await write(packed)).toMatchObject({ status: 204 });
    memory.maxBytes = 2 * megabyte;
    const { status, text, headers } = await write(gzipSync(`m s="${'x'.repeat(20 * megabyte)}`));
    expect([status, text, headers['retry-after']]).toEqual([
      500,
      '{"error":"timeout: the server has no memory for this request at the moment"}\n',
      '1',
    ]);
  });

  test('that tell the wrong size are unpacked all the same', async () => {
    const packed = gzipSync('m v=1i 1\n'.repeat(100_000));
    packed.writeUInt32LE(10, packed.length - 4);
    expect((await write(packed)).status).toBe(400);
    expect(memory.peakBytes).toBeLessThan(2 * megabyte);
  });
});

test('bodies are refused where the tenant has its part, and the client may come again', async () => {
  const release = fill(0);
  const v1 = await write('m v=1 1');
  expect([v1.status, v1.text, v1.headers['retry-after']]).toEqual([
    500,
    '{"error":"timeout: the server has no memory for this request at the moment"}\n',
    '1',
  ]);
  const v2 = await write('m v=1 1', '/api/v2/write?bucket=d');
  expect([v2.status, v2.text]).toEqual([
    503,
    '{"code":"unavailable","message":"the server has no memory for this request at the moment"}\n',
  ]);
  release();
  expect((await write('m v=1 1')).status).toBe(204);
});

test('queries are answered by an error in their result', async () => {
  const release = fill(0);
  const headers = { 'Content-Type': 'application/x-www-form-urlencoded' };
  const form = await client.send('/query', { headers, body: 'q=show databases' });
  const error = 'timeout: the server has no memory for this request at the moment';
  expect([form.status, JSON.parse(form.text)]).toEqual([
    200,
    { results: [{ statement_id: 0, error }] },
  ]);
  release();
  expect((await client.send('/query', { headers, body: 'q=show databases' })).status).toBe(200);
});
