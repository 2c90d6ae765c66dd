import { afterEach, expect, test } from 'vitest';
import { InfluxServer } from './server.ts';
import { HttpClient } from './testing/http-client.ts';
import { MemorySeriesStore } from './testing/memory-series-store.ts';

let server: InfluxServer;
let client: HttpClient;

async function start(slowRequestMs: number): Promise<void> {
  server = new InfluxServer({
    host: '127.0.0.1',
    port: 0,
    store: new MemorySeriesStore('d'),
    slowRequestMs,
    report: () => {},
  });
  client = new HttpClient(await server.listen());
}
afterEach(async () => {
  client.close();
  await server.close();
});

const texts = (): string[] => server.slow.newest(1000).map(({ text }) => text);

test('writes and queries are kept, the newest first, without passwords', async () => {
  await start(0);
  await client.send('/write?db=d&u=ann&p=secret', { method: 'POST', body: 'm v=1 1' });
  await client.send(`/query?db=d&q=${encodeURIComponent('SELECT v FROM m')}`);
  const q = encodeURIComponent(`CREATE USER ann WITH PASSWORD 'secret'`);
  await client.send(`/query?q=${q}`, { method: 'POST' });
  await client.send('/ping');
  await expect.poll(texts).toHaveLength(3);
  expect(texts().join()).not.toContain('secret');
  expect(texts().slice(1)).toEqual(['SELECT v FROM m', 'POST /write d']);
  const [newest] = server.slow.newest(1, 0);
  expect(newest).toMatchObject({ id: 3, tenant: 0 });
  expect(newest!.address).toMatch(/^127\.0\.0\.1:\d+$/);
  expect(newest!.spentMs).toBeGreaterThan(0);
  expect(server.slow.newest(9, 5)).toEqual([]);
  server.slow.forget(0);
  expect(texts()).toEqual([]);
});

test('what is faster is not kept, and only so many are', async () => {
  await start(60_000);
  await client.send('/query?q=SHOW+DATABASES');
  server.slow.thresholdMs = 0;
  for (let n = 0; n < 140; n++) await client.send(`/query?q=SHOW+DATABASES+--+${n}`);
  await expect.poll(() => server.slow.newest(1)[0]?.text).toContain('139');
  expect(texts()).toHaveLength(128);
  expect(texts().at(-1)).toContain('12');
});
