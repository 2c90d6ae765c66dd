// How a SELECT goes about its work: what it asks of the store, its pauses, and how it ends.

import { expect, test } from 'vitest';
import { matchWork, maxMatchWork } from '../parser/match-work.ts';
import { NaiveStore } from './testing/naive-store.ts';
import { contextOf, run, shown } from './testing/select.ts';

const second = 1_000_000_000n;

function manyRows(rows: number, hosts = 1): NaiveStore {
  const store = new NaiveStore({ chunkRows: 64 });
  for (let host = 0; host < hosts; host++) {
    const points = Array.from({ length: rows }, (_, i) => ({
      time: BigInt(i) * second,
      fields: new Map([['v', { type: 'float' as const, value: i }]]),
    }));
    const series = store.data.get('m') ?? new Map();
    store.data.set('m', series);
    series.set(`m,h=${host}`, {
      key: `m,h=${host}`,
      tags: new Map([
        ['h', String(host)],
        ['dc', 'x'],
      ]),
      points,
    });
  }
  return store;
}

test('the last point of each series takes one row of each', async () => {
  const store = manyRows(100, 3);
  const text = await shown('SELECT * FROM m GROUP BY "h" ORDER BY time DESC LIMIT 1', store);
  expect(text).toBe([2, 1, 0].map((host) => `m{h=${host}} time dc v: 99 x 99`).join('\n'));
  expect(store.rowsRead).toBe(3);
});

test('the first buckets do not need the rest', async () => {
  const store = manyRows(10_000);
  const text = await shown(
    'SELECT max(v) FROM m WHERE time < 9000s GROUP BY time(1m) LIMIT 5',
    store,
  );
  expect(text).toBe('m time max: 0 59; 60 119; 120 179; 180 239; 240 299');
  expect(store.rowsRead).toBeLessThan(310);
});

test('buckets to the end of time cost what is shown of them', async () => {
  const store = new NaiveStore().load('m v=1 0');
  const over = { now: 4_000_000_000n * second };
  expect(await shown('SELECT max(v) FROM m GROUP BY time(1s) LIMIT 2', store, over)).toBe(
    'm time max: 0 1; 1 ',
  );
});

test('conditions on tags and fields reach the store', async () => {
  const store = manyRows(10);
  await shown(`SELECT v FROM m WHERE h = '1' AND v > 3 AND 7 >= v AND time < 5s`, store);
  const [scan] = store.scans;
  expect(scan!.filter).toEqual({ kind: 'equal', tag: 'h', value: '1' });
  expect(scan!.bounds).toEqual([
    { field: 0, op: '>', value: 3 },
    { field: 0, op: '<=', value: 7 },
  ]);
  expect(scan!.to).toBe(5n * second - 1n);
});

test('summaries are asked for only where they will do', async () => {
  const asked = async (text: string): Promise<boolean> => {
    const store = manyRows(4);
    await shown(text, store);
    return store.scans.some(({ summaries }) => summaries !== undefined);
  };
  expect(await asked('SELECT count(v), mean(v), last(v) FROM m')).toBe(true);
  expect(await asked('SELECT max(v) FROM m WHERE time < 9s GROUP BY time(1s)')).toBe(true);
  // The row itself is wanted, or rows that meet a condition.
  expect(await asked('SELECT max(v) FROM m')).toBe(false);
  expect(await asked('SELECT last(v), h FROM m')).toBe(false);
  expect(await asked('SELECT count(v) FROM m WHERE v > 1')).toBe(false);
  expect(await asked('SELECT median(v) FROM m')).toBe(false);
  expect(await asked('SELECT sum(v::integer) FROM m')).toBe(false);
});

test('it pauses while it works, and ends when it is told to', async () => {
  const store = manyRows(20_000, 4);
  let pauses = 0;
  let isKilled = false;
  const context = contextOf(store, {
    yieldNow: () => {
      pauses++;
      isKilled = pauses === 3;
      return Promise.resolve();
    },
    task: {
      throwIfKilled: () => {
        if (isKilled) throw new Error('query interrupted');
      },
    },
  });
  const read = async (): Promise<void> => {
    for await (const piece of run('SELECT v, v*2, sqrt(v) FROM m', context).series) {
      // A slow reader.
      for (const end = performance.now() + 1; performance.now() < end; );
      expect(piece.rows).toBeLessThanOrEqual(4096);
    }
  };
  await expect(read()).rejects.toThrow('query interrupted');
  expect(pauses).toBe(3);
  expect(store.openScans).toBe(0);
});

test('an answer that nobody reads to its end is let go', async () => {
  const store = manyRows(10_000);
  for await (const piece of run('SELECT v FROM m', contextOf(store)).series) {
    expect(piece.rows).toBeGreaterThan(0);
    break;
  }
  expect(store.openScans).toBe(0);
});

test('it takes no longer than it may', async () => {
  const limits = { maxMemoryBytes: 0, timeoutMs: 5 };
  const yieldNow = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 10));
  const text = await shown('SELECT stddev(v) FROM m GROUP BY h', manyRows(50_000, 2), {
    limits,
    yieldNow,
  });
  expect(text).toBe('error: query-timeout limit exceeded');
});

test('SELECT INTO writes line protocol', async () => {
  const store = new NaiveStore().load(
    'm,h=a v=1,i=2i,s="x y",t=true 1000000000\nm,h=a v=2.5 2000000000',
  );
  const written: string[] = [];
  const over = {
    writePoints: (database: string, policy: string, lines: string) => {
      written.push(`${database}.${policy}`, ...lines.split('\n'));
      return { written: 1, dropped: 0, error: undefined };
    },
  };
  expect(await shown('SELECT * INTO target FROM m GROUP BY *', store, over)).toBe(
    'result time written: 0 2',
  );
  expect(written).toEqual([
    'db.',
    'target,h=a i=2i,s="x y",t=true,v=1 1000000000',
    'target,h=a v=2.5 2000000000',
  ]);
  written.length = 0;
  await shown('SELECT mean(v) INTO db.autogen.:MEASUREMENT FROM /m/', store, over);
  expect(written).toEqual(['db.autogen', 'm mean=1.75 0']);
});

test('a write that is refused fails SELECT INTO', async () => {
  const store = new NaiveStore().load('m v=1 0');
  const writePoints = () => ({ written: 0, dropped: 1, error: 'field type conflict' });
  expect(await shown('SELECT v INTO t FROM m', store, { writePoints })).toBe(
    'error: partial write: field type conflict dropped=1',
  );
});

test('EXPLAIN says what will be read', async () => {
  const store = manyRows(10, 2);
  const text = await shown('EXPLAIN SELECT mean(v) FROM m WHERE v > 1 GROUP BY h', store);
  expect(text).toContain('EXPRESSION: mean(v); GROUP BY: h; ');
  expect(text).toContain('SOURCE: db.autogen.m; FILTER ON: v; GROUPS: 2');
  const analyzed = await shown('EXPLAIN ANALYZE SELECT mean(v) FROM m GROUP BY h', store);
  expect(analyzed).toMatch(/GROUPS: 2; SERIES: 2; BLOCKS: 2; POINTS: 20; ROWS: 2; planning_time: /);
});

test('a regular expression that takes long on many rows stops for others', async () => {
  const store = new NaiveStore();
  let seed = 1;
  const letter = (): string => {
    seed = (Math.imul(seed, 1103515245) + 12345) >>> 0;
    return seed & 0x10000 ? 'a' : 'b';
  };
  const lines = Array.from({ length: 400 }, (_, i) => {
    const text = Array.from({ length: 300 }, letter).join('');
    return `m s="${text}${i === 7 ? `a${'b'.repeat(60)}c` : ''}" ${i}`;
  });
  store.load(lines.join('\n'));
  let most = 0;
  let since = matchWork.total;
  const started = matchWork.total;
  const found = await shown(`SELECT count(s) FROM m WHERE s =~ /a[ab]{60}c$/`, store, {
    yieldNow: async () => {
      most = Math.max(most, matchWork.total - since);
      await new Promise(setImmediate);
      since = matchWork.total;
    },
    isCrowded: () => true,
  });
  expect(found).toBe('m time count: 0 1');
  expect(matchWork.total - started).toBeGreaterThan(2 * maxMatchWork);
  expect(most).toBeLessThan(maxMatchWork / 2);
});
