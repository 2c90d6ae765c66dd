// Queries of a tenant with a limit: on what was left over, in line, and out of it.

import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../universal-row/environment.ts';
import { type LimitedInflux, limitedInflux } from './limited-influx.ts';

let it: LimitedInflux;
beforeEach(async () => {
  it = await limitedInflux();
  it.server.control.addTenant('acme');
  await it.server.result('acme:acme', 'CREATE DATABASE d');
  const lines = Array.from({ length: 50_000 }, (_, i) => `m v=${i} ${i}`).join('\n');
  await it.server.write('acme:acme', lines);
  it.setLimits('acme', { ruPerSecond: 20 });
});
afterEach(() => it.close());

const heavy = 'SELECT median(v) FROM m';
const query = async (q = heavy, who = 'acme:acme') => {
  const start = performance.now();
  const { status, text, headers } = await it.server.query(who, q);
  return { status, text, ru: headers.get('x-polyrow-ru'), ms: performance.now() - start };
};
const account = () => it.meter.account(1);
const line = () => it.limiter('acme').queryLimiter;
const saved = () => it.limiter('acme').queries.units.balance;
/** Queries owe as much as this. */
const owe = (units: number): void => {
  it.limiter('acme').collect(systemClock.monotonic());
  it.limiter('acme').queries.units.settle(saved() + units);
};
interface Shown {
  series: { values: [number, string, string, string, string][] }[];
}
const shown = async (): Promise<[number, string][]> => {
  const { text } = await query('SHOW QUERIES');
  const { results } = JSON.parse(text) as { results: Shown[] };
  return results[0]!.series[0]!.values.filter(([, q]) => !q.startsWith('SHOW')).map(
    ([id, , , , status]) => [id, status],
  );
};

test('a query takes nothing from writes, and the next of its kind waits until there is enough', async () => {
  it.setLimits('acme', { ruPerSecond: 5 });
  const before = it.limiter('acme').balance(systemClock.monotonic());
  const first = await query();
  expect(first.status).toBe(200);
  const cost = Number(first.ru);
  expect(cost).toBeGreaterThan(3);
  // A request of its own would cost at least 1.
  expect(it.limiter('acme').balance(systemClock.monotonic())).toBeGreaterThan(before - 1);
  owe(5);
  const second = await query();
  expect(second.text).toContain('24999.5');
  const seconds = (cost + 5) / 5;
  expect(second.ms).toBeGreaterThan(800 * seconds);
  expect(line().counters).toMatchObject({ admitted: 2, refused: 0 });
  expect((await it.server.write('acme:acme', 'm v=1')).status).toBe(204);
});

describe('a query that waits', () => {
  test('is seen, and can be killed', async () => {
    owe(100);
    const waiting = query();
    await expect.poll(() => line().waiting).toBe(1);
    const before = account().lruOf(2);
    const [[id, status]] = (await shown()) as [[number, string]];
    expect(status).toBe('waiting');
    expect((await query(`KILL QUERY ${id}`)).text).toBe('{"results":[{"statement_id":0}]}\n');
    const { status: code, text, ru } = await waiting;
    expect([code, JSON.parse(text)]).toEqual([
      200,
      { results: [{ statement_id: 0, error: 'query interrupted' }] },
    ]);
    expect(ru).toBe('0');
    expect(line().waiting).toBe(0);
    expect(await shown()).toEqual([]);
    // The charges are those of the clients that listed and killed queries.
    expect(account().lruOf(2) - before).toBeLessThan(6);
  });

  test('goes when its client does', async () => {
    owe(100);
    const leaving = new AbortController();
    const path = `/query?db=d&q=${encodeURIComponent(heavy)}`;
    const left = Array.from({ length: 10 }, () =>
      it.server.send('acme:acme', path, { signal: leaving.signal }).catch(() => 'left'),
    );
    await expect.poll(() => line().waiting).toBe(10);
    const last = query('SELECT count(v) FROM m');
    await expect.poll(() => line().waiting).toBe(11);
    leaving.abort();
    expect(await Promise.all(left)).toEqual(left.map(() => 'left'));
    await expect.poll(() => line().waiting).toBe(1);
    it.setLimits('acme', { ruPerSecond: 10_000 });
    expect((await last).text).toContain('50000');
    expect(await shown()).toEqual([]);
  });

  test('goes on when the quota is raised or taken away', async () => {
    for (const ruPerSecond of [100_000, 0]) {
      it.setLimits('acme', { ruPerSecond: 20 });
      owe(100);
      const waiting = [query(), query(), query()];
      await expect.poll(() => line().waiting).toBe(3);
      it.setLimits('acme', { ruPerSecond });
      for (const { text } of await Promise.all(waiting)) expect(text).toContain('24999.5');
    }
  });

  test('is ended when the server stops', async () => {
    owe(100);
    const waiting = query();
    await expect.poll(() => line().waiting).toBe(1);
    await it.server.drain(2000);
    const { status, text } = await waiting;
    expect([status, JSON.parse(text)]).toEqual([
      200,
      { results: [{ statement_id: 0, error: 'the server is stopping' }] },
    ]);
  });

  test('ends for one who is nobody any more', async () => {
    owe(100);
    const waiting = query();
    await expect.poll(() => line().waiting).toBe(1);
    it.server.control.setTenant('acme', { state: 'suspended' });
    const { status, text } = await waiting;
    expect([status, text.trim()]).toEqual([401, '{"error":"authorization failed"}']);
    await expect.poll(() => line().waiting).toBe(0);
  });
});

test('a line has an end, and what is refused is answered in the result', async () => {
  it.admission.setRules({ queryQueueLength: 3 });
  owe(100);
  const waiting = [query(), query(), query()];
  await expect.poll(() => line().waiting).toBe(3);
  const { status, text, ru } = await query('SELECT count(v) FROM m; SHOW DATABASES');
  expect(status).toBe(200);
  const refused = {
    statement_id: 0,
    error: 'RU limit: tenant=acme: too many queries wait already',
  };
  expect(JSON.parse(text)).toMatchObject({ results: [refused] });
  expect(ru).toBe('0');
  it.setLimits('acme', { ruPerSecond: 0 });
  for (const { text: answer } of await Promise.all(waiting)) expect(answer).toContain('24999.5');
});

test('statements that change something are queries as well, and EXPLAIN ANALYZE', async () => {
  owe(20);
  const [made, explained] = await Promise.all([
    query('CREATE DATABASE made'),
    query('EXPLAIN ANALYZE SELECT count(v) FROM m'),
  ]);
  for (const { status, ms, text } of [made, explained]) {
    expect(status).toBe(200);
    expect(text).not.toContain('error');
    expect(ms).toBeGreaterThan(700);
  }
});

test('queries beyond the timeout wait no more', async () => {
  await it.close();
  it = await limitedInflux({}, { queries: { timeoutMs: 300 } });
  it.server.control.addTenant('acme', { ruPerSecond: 10 });
  owe(100);
  const { status, text, ms } = await query('SHOW DATABASES');
  expect([status, JSON.parse(text)]).toEqual([
    200,
    { results: [{ statement_id: 0, error: 'query-timeout limit exceeded' }] },
  ]);
  expect(ms).toBeGreaterThan(290);
});

test('dry, no query waits', async () => {
  it.admission.setRules({ dryRun: true });
  owe(100);
  for (let i = 0; i < 5; i++) await query();
  expect(line().counters).toMatchObject({ wouldWait: 5, waited: 0, refused: 0 });
});

test('many small writes go through while heavy queries wait their turn', async () => {
  it.setLimits('acme', { ruPerSecond: 100 });
  it.admission.setRules({ writeWaitMs: 4000 });
  let isOver = false;
  const waits: number[] = [];
  const writer = async (): Promise<void> => {
    while (!isOver) {
      const start = performance.now();
      const { status } = await it.server.write('acme:acme', 'w v=1');
      waits.push(performance.now() - start);
      expect(status).toBe(204);
      await sleep(40);
    }
  };
  // 4 of them want about half of the quota.
  const writers = Array.from({ length: 2 }, writer);
  const asked = [query(), query(), query(), query()];
  const answers = await Promise.all(asked);
  isOver = true;
  await Promise.all(writers);
  for (const { text } of answers) expect(text).toContain('24999.5');
  expect(it.limiter('acme').counters.refused).toBe(0);
  waits.sort((a, b) => a - b);
  expect(waits[Math.floor(waits.length / 2)]).toBeLessThan(200);
});
