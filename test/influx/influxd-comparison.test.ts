// The same points and statements go to influxd and to us; what comes back must be the same.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { InfluxProcess } from '../support/influxd.ts';
import { Polyrow } from '../support/polyrow.ts';
import { expectedDifferences } from './differences.ts';
import { points } from './points.ts';
import { bodies, changes, queries } from './queries.ts';

const database = 'cmp';

interface Answer {
  status: number;
  body: unknown;
}

async function ask(url: string, parameters: Record<string, string>): Promise<Answer> {
  const form = new URLSearchParams(parameters);
  const response = await fetch(`${url}/query`, { method: 'POST', body: form });
  const text = await response.text();
  return { status: response.status, body: readable(text) };
}

/** Numbers as they are written: 64-bit integers would be rounded, and the text of floats is compared too. */
function readable(text: string): unknown {
  const quoted = text.replaceAll(/"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g, (token) =>
    token.startsWith('"') ? token : `"#${token}"`,
  );
  try {
    return JSON.parse(quoted);
  } catch {
    return text;
  }
}

async function write(url: string, db: string, body: string): Promise<Answer> {
  const response = await fetch(`${url}/write?db=${db}`, { method: 'POST', body });
  return { status: response.status, body: readable(await response.text()) };
}

describe.skipIf(!InfluxProcess.isInstalled)('as influxd answers', () => {
  let theirs: InfluxProcess;
  let ours: Polyrow;
  const both = async <T>(run: (url: string) => Promise<T>): Promise<[ours: T, theirs: T]> => [
    await run(ours.influx),
    await run(theirs.url),
  ];

  beforeAll(async () => {
    [theirs, ours] = await Promise.all([InfluxProcess.start(), Polyrow.start()]);
    for (const url of [ours.influx, theirs.url]) {
      await ask(url, { q: `CREATE DATABASE ${database}` });
      const { status, body } = await write(url, database, points.join('\n'));
      expect({ status, body }).toEqual({ status: 204, body: '' });
    }
  });

  afterAll(async () => {
    await Promise.all([theirs?.remove(), ours?.remove()]);
  });

  const compare = async (q: string, parameters: Record<string, string> = {}): Promise<void> => {
    const [mine, other] = await both((url) => ask(url, { q, db: database, ...parameters }));
    expect(mine, q).toEqual(other);
  };

  test.each(queries.filter((q) => !expectedDifferences.has(q)))('%s', async (q) => {
    await compare(q);
  });

  test.each(['ns', 'u', 'ms', 's', 'm', 'h', 'x'])('times as epoch=%s', async (epoch) => {
    await compare('SELECT * FROM old; SELECT user FROM cpu LIMIT 3', { epoch });
  });

  test('several statements, and what follows one that fails', async () => {
    await compare('SELECT v FROM one; SELECT v FROM irregular; SHOW DATABASES');
    await compare('SELECT nosuch(v) FROM one; SELECT v FROM irregular');
    await compare('SELECT v FROM one; SELECT nosuch(v) FROM one; SELECT v FROM irregular');
    await compare('SELECT v FROM one; SELECT nosuch(v) FROM one');
  });

  test('parameters of the statement', async () => {
    const params = JSON.stringify({ h: 'a', n: 50, f: 10.5, b: true });
    await compare('SELECT user FROM cpu WHERE host = $h AND user > $n LIMIT 3', { params });
    await compare('SELECT user FROM cpu WHERE user > $f AND up = $b LIMIT 3', { params });
    await compare('SELECT user FROM cpu WHERE host = $nosuch', { params });
  });

  test.each(bodies.map((body, i) => [JSON.stringify(body), body, i] as const))(
    'write of %s',
    async (_, body, i) => {
      const db = `w${i}`;
      await both((url) => ask(url, { q: `CREATE DATABASE ${db}` }));
      const [mine, other] = await both((url) => write(url, db, body));
      if (expectedDifferences.has(body)) return;
      expect(mine).toEqual(other);
      const shown = ['SHOW SERIES', 'SHOW FIELD KEYS', 'SELECT count(*) FROM /.*/'];
      for (const q of shown) {
        const [a, b] = await both((url) => ask(url, { q, db }));
        expect(a, q).toEqual(b);
      }
    },
  );

  // Last, as they change what is there.
  test('statements that change something', async () => {
    const wrong: unknown[] = [];
    for (const q of changes) {
      const [mine, other] = await both((url) => ask(url, { q, db: database }));
      if (!expectedDifferences.has(q) && !isSame(mine, other)) wrong.push({ q, mine, other });
    }
    expect(wrong).toEqual([]);
  });
});

function isSame(a: unknown, b: unknown): boolean {
  return textOf(a) === textOf(b);
}

/** influxd works on all shards at once, and names the one that was first to fail: any of them. */
function textOf(answer: unknown): string {
  return JSON.stringify(answer).replace(/"shard \d+: /g, '"shard: ');
}
