// Writes over the quota of their tenant.

import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../universal-row/environment.ts';
import { type LimitedInflux, limitedInflux } from './limited-influx.ts';

let it: LimitedInflux;
beforeEach(async () => {
  it = await limitedInflux({ writeWaitMs: 400 });
  it.server.control.addTenant('acme');
  it.server.control.addTenant('rival');
  for (const who of ['acme:acme', 'rival:rival']) await it.server.result(who, 'CREATE DATABASE d');
  // Passwords are known from here on, and nothing of what was done before counts.
  it.setLimits('acme', { ruPerSecond: 100 });
});
afterEach(() => it.close());

const timed = async <T>(what: Promise<T>): Promise<[T, number]> => {
  const start = performance.now();
  return [await what, performance.now() - start];
};
const write = (lines = 'm v=1 1', who = 'acme:acme') => it.server.write(who, lines);
const countOf = async (who = 'rival:rival'): Promise<unknown> => {
  const [series] = (await it.server.result(who, 'SELECT count(v) FROM m')) as {
    values: unknown[][];
  }[];
  return series?.values[0]?.[1];
};
const account = (tenant: number) => it.meter.account(tenant);

describe('over the quota a write', () => {
  test('waits, and is then let in', async () => {
    it.indebt('acme', 20);
    const [{ status, headers }, ms] = await timed(write());
    expect(status).toBe(204);
    expect(Number(headers.get('x-polyrow-ru'))).toBeGreaterThan(0);
    expect(ms).toBeGreaterThan(150);
    // Others are not held up.
    expect((await write('m v=1 1', 'rival:rival')).status).toBe(204);
  });

  test('is refused over 1.x by 500 and the word timeout', async () => {
    it.indebt('acme', 300);
    const before = account(1).lru;
    const [{ status, text, headers }, ms] = await timed(write());
    expect([status, JSON.parse(text)]).toEqual([
      500,
      { error: 'timeout: RU limit, tenant=acme retry after 3 s' },
    ]);
    expect(headers.get('retry-after')).toBe('3');
    expect(headers.get('x-polyrow-ru')).toBe('0');
    expect(ms).toBeGreaterThan(380);
    expect([account(1).rejected, account(1).lru]).toEqual([1, before]);
  });

  test('is refused over 2.x by 429', async () => {
    it.indebt('acme', 300);
    const { status, text, headers } = await it.server.send(
      'acme:acme',
      '/api/v2/write?org=o&bucket=d',
      { method: 'POST', body: 'm v=1 1' },
    );
    expect([status, JSON.parse(text)]).toEqual([
      429,
      { code: 'too many requests', message: 'RU limit, tenant=acme retry after 3 s' },
    ]);
    expect(headers.get('retry-after')).toBe('3');
    expect(headers.get('x-platform-error-code')).toBe('too many requests');
  });

  test('is told of other faults at once', async () => {
    it.indebt('acme', 300);
    const { status } = await it.server.write('acme:acme', 'm v=1', 'nosuch');
    expect(status).toBe(404);
    expect(it.limiter('acme').counters.waited).toBe(0);
  });

  test('keeps its body in the socket', async () => {
    it.indebt('acme', 300);
    const body = Buffer.alloc(64 * 1024 * 1024, 'm v=1 1\n');
    const socket = connect(it.server.port, '127.0.0.1');
    await once(socket, 'connect');
    socket.write(
      `POST /write?db=d&u=acme&p=acme HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${body.length}\r\n\r\n`,
    );
    socket.write(body);
    await sleep(250);
    // The buffers of the system and the parser, and no more.
    expect(socket.bytesWritten - socket.writableLength).toBeLessThan(16 * 1024 * 1024);
    expect(it.limiter('acme').waiting).toBe(1);
    const [answer] = (await once(socket, 'data')) as [Buffer];
    expect(String(answer)).toMatch(/^HTTP\/1.1 500 /);
    socket.destroy();
  });

  test('is forgotten when its client leaves', async () => {
    it.admission.setRules({ writeWaitMs: 60_000 });
    it.indebt('acme', 300);
    const leaving = new AbortController();
    const clients = Array.from({ length: 20 }, () =>
      it.server
        .send('acme:acme', '/write?db=d', {
          method: 'POST',
          body: 'm v=1 1',
          signal: leaving.signal,
        })
        .catch(() => 'left'),
    );
    await expect.poll(() => it.limiter('acme').waiting).toBe(20);
    leaving.abort();
    expect(await Promise.all(clients)).toEqual(clients.map(() => 'left'));
    await expect.poll(() => it.limiter('acme').waiting).toBe(0);
    expect(it.limiter('acme').counters.refused).toBe(0);
    expect(await countOf('acme:acme').catch(() => undefined)).toBeUndefined();
  });

  test('is let in when the quota is raised, or taken away', async () => {
    it.admission.setRules({ writeWaitMs: 60_000 });
    for (const ruPerSecond of [1_000_000, 0]) {
      it.setLimits('acme', { ruPerSecond: 1 });
      it.indebt('acme', 100);
      const written = write();
      await expect.poll(() => it.limiter('acme').waiting).toBe(1);
      it.setLimits('acme', { ruPerSecond });
      const { status } = await written;
      expect(status).toBe(204);
    }
  });

  test('waits longer when the quota is cut', async () => {
    it.admission.setRules({ writeWaitMs: 1000 });
    it.indebt('acme', 50);
    const [{ status }, ms] = await timed(
      Promise.all([write(), sleep(50).then(() => it.setLimits('acme', { ruPerSecond: 1 }))]).then(
        ([answer]) => answer,
      ),
    );
    expect(status).toBe(500);
    expect(ms).toBeGreaterThan(980);
  });
});

test('a large body is let in whole, and what it cost is owed', async () => {
  it.setLimits('acme', { ruPerSecond: 2 });
  const lines = Array.from({ length: 100_000 }, (_, i) => `m,h=a v=${i} ${i}`).join('\n');
  const { status, headers } = await write(lines);
  expect(status).toBe(204);
  const cost = Number(headers.get('x-polyrow-ru'));
  expect(cost).toBeGreaterThan(10);
  const owed = -it.limiter('acme').balance(systemClock.monotonic());
  expect(owed).toBeGreaterThan(cost - 5);
  const { text } = await write();
  const [, seconds] = /retry after (\d+) s/.exec(text)!;
  expect(Number(seconds)).toBeGreaterThan((cost - 6) / 2);
});

test('what is let in in the long run is the quota, with many clients at once', async () => {
  it.admission.setRules({ writeWaitMs: 4000 });
  it.setLimits('acme', { ruPerSecond: 100 });
  it.indebt('acme', 0);
  const before = account(1).lru;
  const until = performance.now() + 5000;
  const client = async (): Promise<void> => {
    while (performance.now() < until) {
      const { status } = await write('m v=1\nm v=2\nm v=3');
      expect([204, 500]).toContain(status);
    }
  };
  await Promise.all(Array.from({ length: 16 }, client));
  const seconds = 5 + (performance.now() - until) / 1000;
  const spent = account(1).lru - before;
  expect(spent / seconds).toBeLessThan(100 * 1.05);
  // A busy machine does not get to all that it may; `token-bucket.test.ts` has the exact rate.
  expect(spent / seconds).toBeGreaterThan(100 * 0.1);
});

test('dry, nothing waits and what would have is counted', async () => {
  it.setLimits('acme', { ruPerSecond: 5 });
  it.admission.setRules({ dryRun: true });
  const answers = await Promise.all(Array.from({ length: 30 }, () => write()));
  expect(answers.every(({ status }) => status === 204)).toBe(true);
  const { wouldWait, wouldRefuse, refused } = it.limiter('acme').counters;
  expect(wouldWait).toBeGreaterThan(0);
  expect(wouldRefuse).toBeGreaterThan(5);
  expect(refused).toBe(0);
});

test('a server that stops lets in who waits', async () => {
  it.admission.setRules({ writeWaitMs: 60_000 });
  it.indebt('acme', 300);
  const written = Array.from({ length: 5 }, () => write('m v=1'));
  await expect.poll(() => it.limiter('acme').waiting).toBe(5);
  await it.server.drain(2000);
  for (const { status } of await Promise.all(written)) expect(status).toBe(204);
});

test('whatever becomes of quotas and rules under load, each write is answered and none is lost', async () => {
  it.admission.setRules({ writeWaitMs: 300 });
  let isOver = false;
  const acknowledged = new Set<number>();
  let refused = 0;
  let next = 0;
  const client = async (): Promise<void> => {
    while (!isOver) {
      const id = ++next;
      const { status } = await write(`m v=${id} ${id}`);
      if (status === 204) acknowledged.add(id);
      else {
        expect(status).toBe(500);
        refused++;
      }
    }
  };
  const clients = Array.from({ length: 30 }, client);
  const changes: (() => void)[] = [
    () => it.setLimits('acme', { ruPerSecond: 1 }),
    () => it.setLimits('acme', { ruPerSecond: 5000, burstRu: 100 }),
    () => it.admission.setRules({ dryRun: true }),
    () => it.setLimits('acme', { ruPerSecond: 20, burstRu: 0 }),
    () => it.admission.setRules({ dryRun: false }),
    () => it.setLimits('acme', { ruPerSecond: 0 }),
    () => it.setLimits('acme', { ruPerSecond: 10 }),
    () => it.admission.setRules({ enabled: false }),
    () => it.admission.setRules({ enabled: true }),
    () => it.setLimits('acme', { ruPerSecond: 1e-6 }),
  ];
  for (const change of changes) {
    change();
    await sleep(350);
  }
  // A request waits at a limiter without units; it is refused when its time is up.
  await sleep(400);
  isOver = true;
  await Promise.all(clients);
  expect(refused).toBeGreaterThan(10);
  expect(acknowledged.size).toBeGreaterThan(100);
  it.setLimits('acme', { ruPerSecond: 0 });
  expect(await countOf('acme:acme')).toBe(acknowledged.size);
  expect(it.admission.limiterOf(1)).toBeUndefined();
});
