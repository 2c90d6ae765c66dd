import { connect } from 'node:net';
import { gunzipSync, gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Principal } from '../statements/principal.ts';
import { InfluxServer, type InfluxServerOptions } from './server.ts';
import { type Answer, HttpClient, type RequestOptions } from './testing/http-client.ts';
import { withGenerated } from './testing/generated-answers.ts';
import { MemorySeriesStore } from './testing/memory-series-store.ts';
import { PeopleAuthenticator } from './testing/people-authenticator.ts';

let store: MemorySeriesStore;
let server: InfluxServer;
let client: HttpClient;
let reports: string[];

async function start(more: Partial<InfluxServerOptions> = {}): Promise<void> {
  server = new InfluxServer({
    host: '127.0.0.1',
    port: 0,
    store,
    execute: withGenerated,
    report: (level, message) => reports.push(`${level}: ${message}`),
    ...more,
  });
  client = new HttpClient(await server.listen());
}

async function restart(more: Partial<InfluxServerOptions>): Promise<void> {
  client.close();
  await server.close();
  await start(more);
}

beforeEach(async () => {
  store = new MemorySeriesStore('d');
  reports = [];
  await start();
});

afterEach(async () => {
  client.close();
  await server.close();
  expect(reports).toEqual([]);
});

const write = (body: string) => client.send('/write?db=d', { body });

const path = (q: string, more: Record<string, string> = {}): string =>
  `/query?${new URLSearchParams({ db: 'd', q, ...more }).toString()}`;

const get = (q: string, more?: Record<string, string>, options?: RequestOptions): Promise<Answer> =>
  client.send(path(q, more), options);

const json = async (q: string, more?: Record<string, string>): Promise<unknown> => {
  const { status, text } = await get(q, more);
  expect(status).toBe(200);
  return JSON.parse(text) as unknown;
};

const until = async (condition: () => boolean): Promise<void> => {
  for (let i = 0; i < 1000 && !condition(); i++) await new Promise((go) => setTimeout(go, 5));
  expect(condition()).toBe(true);
};

/** Rows 1 to n of `m`, with a text that makes them long. */
async function fill(n: number): Promise<void> {
  let body = '';
  for (let i = 1; i <= n; i++) body += `m v=${i}i,s="${'x'.repeat(50)}${i}" ${i}\n`;
  expect((await write(body)).status).toBe(204);
}

describe('answers', () => {
  test('rows, with the headers of every answer', async () => {
    await write('m,h=a v=1.5 1000000000\nm,h=b v=2 2500000000');
    const { status, headers, text } = await get('select v from m');
    expect(status).toBe(200);
    expect(text).toBe(
      '{"results":[{"statement_id":0,"series":[{"name":"m","columns":["time","v"],' +
        '"values":[["1970-01-01T00:00:01Z",1.5],["1970-01-01T00:00:02.5Z",2]]}]}]}\n',
    );
    expect(headers).toMatchObject({
      'content-type': 'application/json',
      'x-influxdb-version': '1.8.10',
      'x-influxdb-build': 'OSS',
    });
  });

  test('nothing found', async () => {
    expect(await json('select v from nowhere')).toEqual({ results: [{ statement_id: 0 }] });
    expect(await json('select v from m', { db: 'nope' })).toEqual({
      results: [{ statement_id: 0, error: 'database not found: nope' }],
    });
  });

  test('times in the unit of the request', async () => {
    await write('m v=1 -1');
    const time = async (epoch: string, tz = '') => {
      const { text } = await get(`select v from m ${tz}`, { epoch });
      return /\[\[("[^"]*"|[^,]*),1/.exec(text)?.[1];
    };
    expect(await time('')).toBe('"1969-12-31T23:59:59.999999999Z"');
    expect(await time('ns')).toBe('-1');
    expect(await time('bogus')).toBe('-1');
    expect(await time('ms')).toBe('0');
    expect(await time('', "tz('Europe/Paris')")).toBe('"1970-01-01T00:59:59.999999999+01:00"');
  });

  test('wide integers and 19-digit times are exact', async () => {
    await write('m v=9007199254740993i 1451606400000000001');
    const { text } = await get('select v from m', { epoch: 'ns' });
    expect(text).toContain('[[1451606400000000001,9007199254740993]]');
  });

  test('several statements', async () => {
    await write('m v=1 1');
    const { text } = await get('select v from m; show databases', { epoch: 'ns' });
    expect(text).toBe(
      '{"results":[{"statement_id":0,"series":[{"name":"m","columns":["time","v"],"values":[[1,1]]}]},' +
        '{"statement_id":1,"series":[{"name":"databases","columns":["name"],"values":[["d"]]}]}]}\n',
    );
  });

  test('a failed statement, last and not', async () => {
    await write('m v=1 1');
    const good = 'select v from m';
    const bad = 'select v from nope..m';
    const rows = [{ name: 'm', columns: ['time', 'v'], values: [[1, 1]] }];
    const error = 'database not found: nope';
    expect(await json(`${good};${bad}`, { epoch: 'ns' })).toEqual({
      results: [
        { statement_id: 0, series: rows },
        { statement_id: 1, error },
      ],
    });
    expect(await json(`${bad};${good};${good}`)).toEqual({
      results: [{ statement_id: 0, error: 'not executed' }],
    });
    const { text } = await get(`${bad};${good};${good}`, { chunked: 'true' });
    expect(text).toBe(
      `{"results":[{"statement_id":0,"error":"${error}"}]}\n` +
        '{"results":[{"statement_id":0,"error":"not executed"}]}\n'.repeat(2),
    );
  });

  test('what cannot be understood', async () => {
    for (const [q, error] of [
      ['', 'missing required parameter "q"'],
      [
        'select v,',
        'error parsing query: found EOF, expected identifier, string, number, bool at line 1, char 11',
      ],
    ] as const) {
      const { status, headers, text } = await get(q);
      expect([status, text]).toEqual([400, `${JSON.stringify({ error })}\n`]);
      expect(headers['x-influxdb-error']).toBe(error);
    }
    const csv = await get('select v,', {}, { headers: { Accept: 'text/csv' } });
    expect([csv.status, csv.headers['content-type']]).toEqual([400, 'text/csv']);
    expect(csv.text).toMatch(/^error\n"error parsing query: .*"\n$/);
  });

  test('pretty', async () => {
    const { text } = await get('show databases', { pretty: 'true' });
    expect(text).toBe(`${JSON.stringify(JSON.parse(text), undefined, 4)}\n`);
    const failed = await get('select', { pretty: 'true' });
    expect(failed.text).toMatch(/^\{\n {4}"error": ".*"\n\}\n$/);
  });

  test('CSV', async () => {
    await write('m,h=a v=1.5 1000000000\nm,h=b v=2,s="a,b" 2');
    const { headers, text } = await get(
      'select s from m group by h; show databases',
      {},
      { headers: { Accept: 'application/csv' } },
    );
    expect(headers['content-type']).toBe('text/csv');
    expect(text).toBe('name,tags,time,s\nm,h=b,2,"a,b"\n\nname,tags,name\ndatabases,,d\n');
  });

  test('CSV of nothing', async () => {
    for (const q of ['select v from nowhere', 'select v from nope..m', ';']) {
      const { status, text } = await get(q, {}, { headers: { Accept: 'text/csv' } });
      expect([status, text]).toEqual([200, '']);
    }
  });

  test('no statement has an answer too', async () => {
    for (const more of [{}, { chunked: 'true' }]) {
      expect(await json(';', more)).toEqual({ results: [{ statement_id: 0 }] });
    }
  });

  test('JSON to who asks for MessagePack', async () => {
    const { headers } = await get(
      'show databases',
      {},
      { headers: { Accept: 'application/x-msgpack' } },
    );
    expect(headers['content-type']).toBe('application/json');
  });

  test('the mark of an answer of more than 10,000 rows', async () => {
    await fill(10_001);
    expect((await get('select v from m limit 10000')).text).not.toContain('partial');
    const { text } = await get('select v from m');
    expect(text.endsWith('10001]],"partial":true}]}]}\n')).toBe(true);
    expect(text.match(/partial/g)?.length).toBe(1);
  });

  test('an error in the middle, of which little or much was written', async () => {
    const error = 'broken behind its rows';
    expect(await json('select * from broken limit 5000; ')).toEqual({
      results: [{ statement_id: 0, error }],
    });
    const { results } = (await json('select * from broken limit 50000')) as {
      results: { series: { values: unknown[]; partial: boolean }[]; error: string }[];
    };
    expect(results.length).toBe(1);
    expect(results[0]!.error).toBe(error);
    expect(results[0]!.series[0]!.values.length).toBe(50_000);
    const { text } = await get('select * from broken limit 3', {
      chunked: 'true',
      chunk_size: '2',
    });
    expect(text.split('\n').at(-2)).toBe(`{"results":[{"statement_id":0,"error":"${error}"}]}`);
    expect(text.split('\n').length).toBe(4);
  });

  test('a bug is told to who runs the server, not to the client', async () => {
    expect(await json('select * from buggy')).toEqual({
      results: [{ statement_id: 0, error: 'internal error' }],
    });
    expect(reports).toEqual(['error: a query failed']);
    reports = [];
  });

  test('a query that is killed', async () => {
    const answer = json('select * from waiting');
    await until(() => server.metrics().queriesRunning === 1);
    const shown = (await json('show queries')) as {
      results: { series: { columns: string[]; values: unknown[][] }[] }[];
    };
    const { columns, values } = shown.results[0]!.series[0]!;
    const query = columns.indexOf('query');
    const row = values.find((each) => each[query] === 'select * from waiting')!;
    expect(row).toBeDefined();
    await get(`kill query ${String(row[columns.indexOf('qid')])}`, {}, { method: 'POST' });
    expect(await answer).toEqual({ results: [{ statement_id: 0, error: 'query interrupted' }] });
  });

  test('chunks', async () => {
    await fill(5);
    const { text } = await get('select v from m', {
      chunked: 'true',
      chunk_size: '2',
      epoch: 'ns',
    });
    expect(text).toBe(
      [
        '{"results":[{"statement_id":0,"series":[{"name":"m","columns":["time","v"],"values":[[1,1],[2,2]],"partial":true}],"partial":true}]}',
        '{"results":[{"statement_id":0,"series":[{"name":"m","columns":["time","v"],"values":[[3,3],[4,4]],"partial":true}],"partial":true}]}',
        '{"results":[{"statement_id":0,"series":[{"name":"m","columns":["time","v"],"values":[[5,5]]}]}]}',
        '',
      ].join('\n'),
    );
  });
});

describe('parameters', () => {
  const names = (answer: Answer) => /"values":(.*?\]\])/.exec(answer.text)?.[1];

  test('are merged from URL and form, empty ones being none', async () => {
    const headers = { 'Content-Type': 'application/x-www-form-urlencoded' };
    const merged = await client.send('/query?db=&epoch=&rp=&q=', {
      headers,
      body: 'q=show+measurements&db=d&chunked=',
    });
    expect(merged.text).toBe('{"results":[{"statement_id":0}]}\n');
    await write('m v=1');
    const stronger = await client.send('/query?q=show%20databases&db=nope', {
      headers,
      body: 'q=show%20measurements&db=d',
    });
    expect(names(stronger)).toBe('[["m"]]');
  });

  test('in a packed form, and with no body at all', async () => {
    const headers = {
      'Content-Type': 'application/x-www-form-urlencoded',
      'Content-Encoding': 'gzip',
    };
    const packed = await client.send('/query', { headers, body: gzipSync('q=show databases') });
    expect(names(packed)).toBe('[["d"]]');
    expect(
      names(await get('show databases', {}, { headers: { 'Content-Encoding': 'gzip' } })),
    ).toBe('[["d"]]');
    const empty = await get('show databases', {}, { method: 'POST', headers });
    expect(names(empty)).toBe('[["d"]]');
  });

  test('a query as a file', async () => {
    const body =
      '--XX\r\nContent-Disposition: form-data; name="db"\r\n\r\nd\r\n' +
      '--XX\r\nContent-Disposition: form-data; name="q"; filename="q.txt"\r\n' +
      'Content-Type: text/plain\r\n\r\nshow databases\n\r\n--XX--\r\n';
    const headers = { 'Content-Type': 'multipart/form-data; boundary=XX' };
    expect(names(await client.send('/query', { headers, body }))).toBe('[["d"]]');
  });

  test('are bound', async () => {
    await write('n,h=y v=1i 1\nn,h=x v=9007199254740993i 3');
    const params = JSON.stringify({ host: 'x' });
    const found = await get('select v from n where h = $host', { params, epoch: 'ns' });
    expect(names(found)).toBe('[[3,9007199254740993]]');
    const wide = '{"w":9007199254740993}';
    expect(names(await get('select v from n where v = $w', { params: wide, epoch: 'ns' }))).toBe(
      '[[3,9007199254740993]]',
    );
    for (const bad of ['{', '[1]', '1']) {
      const { status, text } = await get('select v from n', { params: bad });
      expect(status).toBe(400);
      expect(text).toContain('{"error":"error parsing query parameters: ');
    }
  });

  test('of any number and length are refused', async () => {
    const form = (body: string) =>
      client.send('/query', {
        headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
        body,
      });
    const check = async (answer: Promise<Answer>, text: string) => {
      const { status, text: body } = await answer;
      expect([status, body]).toEqual([400, `${JSON.stringify({ error: text })}\n`]);
    };
    await check(form('a=1&'.repeat(1001)), 'more than 1000 parameters');
    await check(client.send(`/query?${'a=1&'.repeat(1001)}`), 'more than 1000 parameters');
    const text = 'x'.repeat(1024 * 1024 + 1);
    await check(form(`q=${text}`), 'error parsing query: more than 1048576 characters');
    const statements = 'show databases;'.repeat(10_001);
    await check(form(`q=${statements}`), 'error parsing query: more than 10000 statements');
    const params = `{"a":"${'"'.repeat(70_000)}"}`;
    await check(
      form(`q=show databases&params=${params}`),
      'error parsing query parameters: more than 65536 characters',
    );
    const tokens = `select ${'v,'.repeat(20_000)}v from m`;
    await check(
      form(`q=${tokens}`),
      'error parsing query: statement of more than 32768 tokens at line 1, char 32776',
    );
  });

  test('other kinds of body are left alone', async () => {
    const headers = { 'Content-Type': 'text/plain' };
    expect((await get('drop database d', {}, { method: 'POST', headers, body: '' })).status).toBe(
      200,
    );
    expect(store.database('d')).toBeUndefined();
  });

  test('other methods are not allowed', async () => {
    const { status, headers } = await get('show databases', {}, { method: 'PUT' });
    expect([status, headers['allow']]).toEqual([405, 'OPTIONS, GET, POST']);
  });
});

describe('web pages', () => {
  const evil = { Origin: 'http://evil.example' };
  const own = { Origin: `http://127.0.0.1:0` };

  test('under a name of their own get nothing', async () => {
    for (const place of ['/ping', '/query?q=show%20databases', '/write?db=d', '/nothing']) {
      const { status, text } = await client.send(place, { headers: { Host: 'evil.example:8086' } });
      expect([status, text]).toEqual([
        403,
        '{"error":"not served as evil.example: use localhost, or set influx.allowed-hosts"}\n',
      ]);
    }
    await restart({ allowedHosts: ['db.example'] });
    const { status } = await client.send('/ping', { headers: { Host: 'db.example' } });
    expect(status).toBe(204);
  });

  test('of another origin change nothing', async () => {
    const refused = '{"error":"not done for web pages of another origin"}\n';
    const check = async (answer: Promise<Answer>) => {
      const { status, text, headers } = await answer;
      expect([status, text]).toEqual([403, refused]);
      expect(headers['access-control-allow-origin']).toBeUndefined();
    };
    const form = { 'Content-Type': 'application/x-www-form-urlencoded' };
    await check(client.send('/write?db=d', { headers: evil, body: 'm v=1' }));
    for (const method of ['GET', 'POST']) {
      for (const q of ['create database e', 'show databases; drop database d']) {
        await check(get(q, {}, { method, headers: evil }));
      }
    }
    await check(get('select v into x from m', {}, { headers: { 'Sec-Fetch-Site': 'cross-site' } }));
    await check(
      client.send('/query', { headers: { ...form, ...evil }, body: 'q=drop database d' }),
    );
    await check(get('create database e', {}, { headers: { 'User-Agent': 'Mozilla/5.0' } }));
    expect(store.databases().map(({ name }) => name)).toEqual(['d']);
    expect(await json('show measurements')).toEqual({ results: [{ statement_id: 0 }] });
  });

  test('may ask, without being shown the answer, and those of ours may change', async () => {
    const { status, headers } = await get('show databases', {}, { headers: evil });
    expect(status).toBe(200);
    expect(Object.keys(headers).filter((name) => name.startsWith('access-control'))).toEqual([]);
    const host = own.Origin.slice('http://'.length);
    const made = await get('create database e', {}, { headers: { ...own, Host: host } });
    expect(made.status).toBe(200);
    expect(store.database('e')).toBeDefined();
  });
});

describe('changes', () => {
  test('by GET come with a warning', async () => {
    expect(await json('create database g')).toEqual({
      results: [
        {
          statement_id: 0,
          messages: [
            {
              level: 'warning',
              text: "deprecated use of 'CREATE DATABASE g' in a read only context, please use a POST request instead",
            },
          ],
        },
      ],
    });
    expect(store.database('g')).toBeDefined();
    const posted = await get('create database h', {}, { method: 'POST' });
    expect(posted.text).toBe('{"results":[{"statement_id":0}]}\n');
  });

  test('wait for the log, other answers do not', async () => {
    store.holdsSync = true;
    let answered = false;
    const answer = get('create database g', {}, { method: 'POST' }).then(() => (answered = true));
    await until(() => store.ticks > 0);
    await json('show databases');
    expect(answered).toBe(false);
    store.sync();
    await answer;
  });

  test('SELECT INTO stores what it found', async () => {
    await write('m,h=a v=1.5 1000000000\nm,h=b v=2 2000000000');
    const { text } = await get(
      'select v into n from m group by *',
      { epoch: 'ns' },
      { method: 'POST' },
    );
    expect(text).toBe(
      '{"results":[{"statement_id":0,"series":[{"name":"result","columns":["time","written"],"values":[[0,2]]}]}]}\n',
    );
    expect(store.dump('d').filter((line) => line.startsWith('n'))).toEqual([
      'n,h=a v=1.5 1000000000',
      'n,h=b v=2 2000000000',
    ]);
  });
});

describe('gzip', () => {
  const headers = { 'Accept-Encoding': 'gzip' };

  test('for answers that are worth it', async () => {
    const small = await get('show databases', {}, { headers });
    expect(small.headers['content-encoding']).toBeUndefined();
    const plain = await get('select * from generated limit 3000');
    const packed = await get('select * from generated limit 3000', {}, { headers });
    expect(packed.headers['content-encoding']).toBe('gzip');
    expect(gunzipSync(packed.body).toString()).toBe(plain.text);
    const refused = await get(
      'select * from generated limit 3000',
      {},
      { headers: { 'Accept-Encoding': 'gzip;q=0' } },
    );
    expect(refused.text).toBe(plain.text);
  });

  test('for answers that are sent as they are made', async () => {
    const plain = await get('select * from generated limit 50000');
    expect(plain.headers['transfer-encoding']).toBe('chunked');
    const packed = await get('select * from generated limit 50000', {}, { headers });
    expect(gunzipSync(packed.body).equals(plain.body)).toBe(true);
  });
});

describe('clients that are slow, or leave', () => {
  test('one that reads nothing holds up nobody, and is let go', async () => {
    await restart({ stallTimeoutMs: 300 });
    const sockets = [1, 2, 3].map(() => {
      const socket = connect(client.port, '127.0.0.1');
      socket.on('error', () => undefined);
      socket.pause();
      // Enough for the sockets' buffers to be full.
      const q = encodeURIComponent(Array(10).fill('select * from generated limit 50000').join(';'));
      socket.write(`GET /query?db=d&q=${q} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
      return socket;
    });
    await until(() => server.metrics().queriesRunning === 3);
    expect((await get('show databases')).status).toBe(200);
    await until(() => server.metrics().queriesRunning === 0);
    for (const socket of sockets) socket.destroy();
  });

  test('one that leaves before there is an answer ends its query', async () => {
    const socket = connect(client.port, '127.0.0.1');
    socket.on('error', () => undefined);
    socket.write('GET /query?q=select%20*%20from%20waiting HTTP/1.1\r\nHost: localhost\r\n\r\n');
    await until(() => server.metrics().queriesRunning === 1);
    socket.resetAndDestroy();
    await until(() => server.metrics().queriesRunning === 0);
  });

  test('drain ends what has not ended by then', async () => {
    const answer = get('select * from waiting').catch(() => 'cut off');
    await until(() => server.metrics().queriesRunning === 1);
    await server.drain(50);
    expect(await answer).toBe('cut off');
    await until(() => server.metrics().queriesRunning === 0);
  });

  test('one that leaves ends its query', async () => {
    const socket = connect(client.port, '127.0.0.1');
    socket.on('error', () => undefined);
    const q = encodeURIComponent(Array(50).fill('select * from generated limit 50000').join(';'));
    socket.write(`GET /query?db=d&q=${q} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
    await new Promise((resolve) => socket.once('data', resolve));
    socket.resetAndDestroy();
    await until(() => server.metrics().queriesRunning === 0);
    expect(server.metrics().bytesOut).toBeLessThan(60_000_000);
  });

  test('queries beyond the limit wait', async () => {
    await restart({ queries: { maxConcurrent: 2 } });
    let most = 0;
    const timer = setInterval(() => (most = Math.max(most, server.metrics().queriesRunning)), 1);
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => get('select * from generated limit 50000')),
    );
    clearInterval(timer);
    expect(answers.every(({ status }) => status === 200)).toBe(true);
    expect(most).toBe(2);
    expect(server.metrics().queriesRun).toBe(8);
  });
});

describe('privileges', () => {
  const reader: Principal = {
    name: 'ro',
    isAdmin: false,
    mayRead: (database) => database === 'd',
    mayWrite: () => false,
  };

  test('refuse the whole query', async () => {
    store.change({ kind: 'createDatabase', database: 'e' });
    await restart({ authenticator: new PeopleAuthenticator(store, () => reader) });
    const headers = { Authorization: 'Token x' };
    const answer = async (q: string) => {
      const { status, text } = await get(q, {}, { headers });
      return [status, JSON.parse(text) as unknown];
    };
    const refused = (statement: string, required: string) => [
      403,
      {
        error:
          `error authorizing query: ro not authorized to execute statement ` +
          `'${statement}', requires ${required}`,
      },
    ];
    const needs = async (q: string, required: string) => {
      const [status, body] = await answer(q);
      expect(status).toBe(403);
      expect((body as { error: string }).error).toMatch(new RegExp(`', requires ${required}$`));
    };
    expect(await answer('show databases; create database zz')).toEqual(
      refused('CREATE DATABASE zz', 'admin privilege'),
    );
    expect(await answer('select v into n from m')).toEqual(
      refused('SELECT v INTO n FROM m', 'WRITE on d'),
    );
    await needs('select v from e..m', 'READ on e');
    await needs('select v from m, (select v from e..m)', 'READ on e');
    await needs('explain select v from e..m', 'READ on e');
    await needs('show measurements on e', 'READ on e');
    await needs('drop series from m', 'WRITE on d');
    await needs('delete from m', 'WRITE on d');
    await needs('drop measurement m', 'admin privilege');
    await needs('show users', 'admin privilege');
    await needs('show tag keys from e..m', 'READ on e');
    await needs('drop retention policy p on e', 'WRITE on e');
    expect(store.database('zz')).toBeUndefined();
    expect(await answer('show databases')).toEqual([
      200,
      {
        results: [
          {
            statement_id: 0,
            series: [{ name: 'databases', columns: ['name'], values: [['d']] }],
          },
        ],
      },
    ]);
  });
});
