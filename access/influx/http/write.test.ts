import { connect, type Socket } from 'node:net';
import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { InfluxServer, type InfluxServerOptions } from './server.ts';
import { type Answer, HttpClient, type RequestOptions } from './testing/http-client.ts';
import { MemorySeriesStore } from './testing/memory-series-store.ts';

const hour = 3_600_000_000_000n;

let store: MemorySeriesStore;
let server: InfluxServer;
let client: HttpClient;
let reports: string[];

async function start(more: Partial<InfluxServerOptions> = {}): Promise<void> {
  server = new InfluxServer({
    host: '127.0.0.1',
    port: 0,
    store,
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

const write = (body: RequestOptions['body'], more: RequestOptions = {}): Promise<Answer> =>
  client.send('/write?db=d', { body: body ?? '', ...more });

const gzipped = { 'Content-Encoding': 'gzip' };

/** `n` lines of about 60 bytes. */
function lines(n: number, from = 0): string {
  let text = '';
  for (let i = from; i < from + n; i++) text += `cpu,host=h${i % 100} usage=${i}i,idle=0.5 ${i}\n`;
  return text;
}

/** Output of the server on a connection of its own until it closes it. */
function raw(socket: Socket): Promise<string> {
  return new Promise((resolve) => {
    let text = '';
    socket.on('data', (piece) => (text += piece.toString()));
    socket.on('error', () => undefined);
    socket.on('close', () => resolve(text));
  });
}

const until = async (condition: () => boolean): Promise<void> => {
  for (let i = 0; i < 1000 && !condition(); i++) await new Promise((go) => setTimeout(go, 5));
  expect(condition()).toBe(true);
};

describe('answers', () => {
  const fails = async (
    path: string,
    body: string,
    status: number,
    error: string,
    stored: string[] = [],
  ) => {
    const answer = await client.send(path, { body });
    expect({ status: answer.status, body: JSON.parse(answer.text) }).toEqual({
      status,
      body: { error },
    });
    expect(answer.text.endsWith('}\n')).toBe(true);
    expect(answer.headers['x-influxdb-error']).toBe(error.replace(/\n/g, ' '));
    expect(answer.headers['content-type']).toBe('application/json');
    expect(store.dump('d')).toEqual(stored);
  };

  test('204 with the headers of every answer', async () => {
    const { status, headers, text } = await write('m,h=a v=1 10\nm v=2 20');
    expect([status, text]).toEqual([204, '']);
    expect(headers).toMatchObject({
      'content-type': 'application/json',
      'x-influxdb-version': '1.8.10',
      'x-influxdb-build': 'OSS',
    });
    expect(headers['request-id']).toMatch(/^[0-9a-f]{8}-/);
    expect(headers['x-request-id']).toBe(headers['request-id']);
    expect(headers['x-influxdb-error']).toBeUndefined();
    expect(store.dump('d')).toEqual(['m v=2 20', 'm,h=a v=1 10']);
  });

  test('keeps the request id it is given', async () => {
    const { headers } = await write('', { headers: { 'X-Request-Id': 'mine' } });
    expect(headers['request-id']).toBe('mine');
  });

  test('204 for nothing, comments and blank lines', async () => {
    for (const body of ['', '\n', '# comment\n', '  \n#x\n']) {
      expect((await write(body)).status).toBe(204);
    }
    expect((await write('', { headers: gzipped })).status).toBe(204);
  });

  test('a leading space, a missing newline, empty parameters', async () => {
    const path = '/write?consistency=all&db=d&precision=&rp=';
    expect((await client.send(path, { body: ' m,host=cli v=9 1' })).status).toBe(204);
    expect(store.dump('d')).toEqual(['m,host=cli v=9 1']);
  });

  test('what is wrong with the request', async () => {
    await fails('/write', 'm v=1', 400, 'database is required');
    await fails('/write?db=nope', 'm v=1', 404, 'database not found: "nope"');
    await fails('/write?db=d&rp=x', 'm v=1', 500, 'retention policy not found: x');
    await fails('/write?db=d&consistency=x', 'm v=1', 400, 'invalid consistency level');
  });

  test('what is wrong with all lines, or some', async () => {
    await fails('/write?db=d', 'a b 1', 400, "unable to parse 'a b 1': invalid field format");
    await fails(
      '/write?db=d',
      'm v=1 1\nbad v= 2\nm v=3 3',
      400,
      "partial write: unable to parse 'bad v= 2': missing field value dropped=0",
      ['m v=1 1', 'm v=3 3'],
    );
  });

  test('what is wrong with some points, the others being stored', async () => {
    await write('ftc v=1i 1');
    await fails(
      '/write?db=d',
      'ftc v=1.5 2\nftc v=2i 3\nftc v=2.5 4',
      400,
      'partial write: field type conflict: input field "v" on measurement "ftc" is type float, ' +
        'already exists as type integer dropped=2',
      ['ftc v=1 1', 'ftc v=2 3'],
    );
  });

  test('the error header is fit for Node and not too long', async () => {
    const { headers, text } = await write(`m\u0001é\r\n${'x'.repeat(3000)}`);
    expect(JSON.parse(text).error).toContain("unable to parse 'm\u0001é");
    const header = String(headers['x-influxdb-error']);
    expect(Buffer.from(header, 'latin1').toString()).toContain("unable to parse 'm é");
    expect(header.length).toBeLessThan(2500);
  });

  test('precisions, and times of its own', async () => {
    await restart({ clock: { now: () => 1_600_000_000_123, monotonic: () => 0 } });
    const cases = {
      s: 5_000_000_000n,
      ms: 5_000_000n,
      u: 5000n,
      ns: 5n,
      n: 5n,
      bogus: 5n,
      h: 5n * hour,
    };
    for (const precision of Object.keys(cases)) {
      await client.send(`/write?db=d&precision=${precision}`, { body: `${precision} v=1 5` });
    }
    expect(store.dump('d')).toEqual(
      Object.entries(cases)
        .map(([precision, time]) => `${precision} v=1 ${time}`)
        .sort(),
    );
    await client.send('/write?db=d&precision=s', { body: 'now v=1' });
    await client.send('/write?db=d', { body: 'now v=2' });
    expect(store.dump('d').filter((line) => line.startsWith('now'))).toEqual([
      'now v=1 1600000000000000000',
      'now v=2 1600000000123000000',
    ]);
  });

  test('other methods', async () => {
    const { status, headers, text } = await client.send('/write?db=d');
    expect([status, headers['allow'], text]).toEqual([
      405,
      'OPTIONS, POST',
      'Method Not Allowed\n',
    ]);
  });
});

describe('v2', () => {
  const v2 = (query: string, body = 'm v=1 1') => client.send(`/api/v2/write?${query}`, { body });
  const fails = async (
    query: string,
    status: number,
    code: string,
    message: string,
    body?: string,
  ) => {
    const answer = await v2(query, body);
    expect({ status: answer.status, body: JSON.parse(answer.text) }).toEqual({
      status,
      body: { code, message },
    });
    expect(answer.headers['x-platform-error-code']).toBe(code);
  };

  test('writes to buckets', async () => {
    store.change({ kind: 'createRetentionPolicy', database: 'd', name: 'week', policy: {} });
    expect((await v2('org=o&bucket=d&precision=s')).status).toBe(204);
    expect((await v2('org=o&bucket=d/week')).status).toBe(204);
    expect((await v2('org=o&bucket=d/')).status).toBe(204);
    expect(store.dump('d')).toEqual(['m v=1 1', 'm v=1 1000000000']);
    expect(store.dump('d', 'week')).toEqual(['m v=1 1']);
  });

  test('fails in its own form', async () => {
    await fails('org=o', 400, 'invalid', 'bucket is required');
    await fails('bucket=x', 404, 'not found', 'bucket "x" not found');
    await fails('bucket=d/x', 404, 'not found', 'bucket "d/x" not found');
    const precision = 'invalid precision; valid precision units are ns, us, ms, and s';
    await fails('bucket=d&precision=h', 400, 'invalid', precision);
    await fails('bucket=d', 400, 'invalid', "unable to parse 'm v': invalid field format", 'm v');
    await v2('bucket=d');
    const conflict =
      'partial write: field type conflict: input field "v" on measurement "m" is type integer, ' +
      'already exists as type float dropped=1';
    await fails('bucket=d', 422, 'unprocessable entity', conflict, 'm v=1i 2');
  });
});

describe('gzip', () => {
  test('small and large, in one piece and in many', async () => {
    const text = lines(1000);
    for (const level of [0, 1, 9]) {
      expect((await write(gzipSync(text, { level }), { headers: gzipped })).status).toBe(204);
    }
    const packed = gzipSync(text);
    const pieces = [packed.subarray(0, 10), packed.subarray(10, 11), packed.subarray(11)];
    expect((await write(pieces, { headers: gzipped })).status).toBe(204);
    expect(store.dump('d').length).toBe(1000);
  });

  test('two members are one body', async () => {
    const body = Buffer.concat([gzipSync(lines(10)), gzipSync(lines(10, 10))]);
    expect((await write(body, { headers: gzipped })).status).toBe(204);
    expect(store.dump('d').length).toBe(20);
  });

  test('what is not well packed is a bad request', async () => {
    const packed = gzipSync(lines(100));
    const flipped = Buffer.from(packed);
    flipped[flipped.length - 6]! ^= 1;
    const cases: [Buffer, string][] = [
      [packed.subarray(0, packed.length - 20), 'unexpected EOF'],
      [Buffer.from('this is no gzip at all'), 'gzip: invalid header'],
      [flipped, 'gzip: invalid checksum'],
    ];
    for (const [body, error] of cases) {
      const answer = await write(body, { headers: gzipped });
      expect([answer.status, JSON.parse(answer.text)]).toEqual([400, { error }]);
    }
    expect(store.dump('d')).toEqual([]);
  });

  test('a size that lies costs nothing', async () => {
    const packed = gzipSync(lines(10));
    packed.writeUInt32LE(0xffffffff, packed.length - 4);
    const before = process.memoryUsage().arrayBuffers;
    const answer = await write(packed, { headers: gzipped });
    expect(answer.status).toBe(400);
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(64 * 1024 * 1024);
  });

  test('a bomb is refused when it has grown too large', async () => {
    await restart({ maxUnpackedBytes: 40_000_000 });
    const bomb = gzipSync(Buffer.alloc(100_000_000, '#\n'));
    expect(bomb.length).toBeLessThan(200_000);
    const answer = await write(bomb, { headers: gzipped });
    expect([answer.status, answer.text]).toEqual([413, '{"error":"Request Entity Too Large"}\n']);
    const small = gzipSync(Buffer.alloc(30_000_000, '#\n'));
    expect((await write(small, { headers: gzipped })).status).toBe(204);
  });
});

describe('large bodies', () => {
  test('are refused by their length, before they are read', async () => {
    await restart({ maxBodyBytes: 1000 });
    const answer = await write(lines(1000));
    expect([answer.status, answer.text]).toEqual([413, '{"error":"Request Entity Too Large"}\n']);
    expect(answer.headers['connection']).toBe('close');
    expect((await write(lines(10))).status).toBe(204);
  });

  test('are refused when they grow too large', async () => {
    await restart({ maxBodyBytes: 1000 });
    const pieces = Array.from({ length: 100 }, (_, i) => Buffer.from(lines(10, i * 10)));
    expect((await write(pieces)).status).toBe(413);
  });

  test('flow through without being held', async () => {
    await restart({ maxBodyBytes: 0 });
    // All of them lines of few points, so that the store stays small.
    const piece = Buffer.from(`# ${'x'.repeat(98)}\n`.repeat(2560) + lines(100));
    const count = 400;
    let peak = 0;
    async function* body(): AsyncGenerator<Buffer> {
      for (let i = 0; i < count; i++) {
        yield piece;
        peak = Math.max(peak, process.memoryUsage().arrayBuffers);
      }
    }
    const before = process.memoryUsage().arrayBuffers;
    expect((await write(body())).status).toBe(204);
    expect(piece.length * count).toBeGreaterThan(100_000_000);
    expect(peak - before).toBeLessThan(60_000_000);
    expect(store.dump('d').length).toBe(100);
    expect(server.metrics()).toMatchObject({
      pointsWritten: 100 * count,
      bytesIn: piece.length * count,
    });
  });

  test('wait for the store', async () => {
    await restart({ maxBodyBytes: 0, writeTimeoutMs: 0 });
    let open = () => {};
    store.gate = new Promise((resolve) => (open = resolve));
    let sent = 0;
    async function* body(): AsyncGenerator<Buffer> {
      for (let i = 0; i < 150; i++) {
        const piece = Buffer.from(`# ${'x'.repeat(98)}\n`.repeat(3000) + lines(500, i * 500));
        sent += piece.length;
        yield piece;
      }
    }
    const answer = write(body());
    let last = -1;
    await until(() => sent > 8_000_000);
    while (last !== sent) {
      last = sent;
      await new Promise((go) => setTimeout(go, 200));
    }
    // The collected part, and the sockets' buffers.
    expect(sent).toBeLessThan(30_000_000);
    store.gate = undefined;
    open();
    expect((await answer).status).toBe(204);
    expect(server.metrics().pointsWritten).toBe(75_000);
  });

  test('packed ones flow too', async () => {
    const packed = gzipSync(lines(400_000), { level: 0 });
    expect(packed.length).toBeGreaterThan(14_000_000);
    await restart({ maxBodyBytes: 0 });
    expect((await write(packed, { headers: gzipped })).status).toBe(204);
    expect(server.metrics().pointsWritten).toBe(400_000);
    const answer = await write(packed.subarray(0, 10_000_000), { headers: gzipped });
    expect(JSON.parse(answer.text)).toEqual({ error: 'unexpected EOF' });
  });

  test('100 Continue is only said to who may go on', async () => {
    const headers = { Expect: '100-continue' };
    expect((await write(lines(10), { headers })).status).toBe(204);
    const socket = connect(client.port, '127.0.0.1');
    const heard = raw(socket);
    socket.write(
      'POST /write?db=nope HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 1000\r\n\r\n',
    );
    const text = await heard;
    expect(text).toMatch(/^HTTP\/1.1 404 /);
    expect(text).not.toContain('100 Continue');
  });
});

describe('safety', () => {
  test('no answer before the log is on disk', async () => {
    store.holdsSync = true;
    let answered = false;
    const answer = write('m v=1 1').then((value) => {
      answered = true;
      return value;
    });
    await until(() => store.ticks > 0);
    await new Promise((go) => setTimeout(go, 50));
    expect(answered).toBe(false);
    store.sync();
    expect((await answer).status).toBe(204);
  });

  test('bad lines wait for the good ones among them', async () => {
    store.holdsSync = true;
    let answered = false;
    const answer = write('m v=1 1\nbad').then((value) => {
      answered = true;
      return value;
    });
    await until(() => store.ticks > 0);
    await new Promise((go) => setTimeout(go, 50));
    expect(answered).toBe(false);
    store.sync();
    expect((await answer).status).toBe(400);
  });

  test('a log that fails is a failed write', async () => {
    store.logFailure = new Error('no space');
    const answer = await write('m v=1 1');
    expect([answer.status, JSON.parse(answer.text)]).toEqual([500, { error: 'internal error' }]);
    expect(reports).toEqual(['error: POST /write failed']);
    reports = [];
  });

  test('a store that keeps waiting is a timeout, and the next write is none', async () => {
    await restart({ writeTimeoutMs: 50 });
    let open = () => {};
    store.gate = new Promise((resolve) => (open = resolve));
    const answer = await write('m v=1 1');
    expect([answer.status, answer.text]).toEqual([500, '{"error":"timeout"}\n']);
    expect(answer.headers['retry-after']).toBe('1');
    const v2 = await client.send('/api/v2/write?bucket=d', { body: 'm v=2 2' });
    expect([v2.status, JSON.parse(v2.text)]).toEqual([
      503,
      { code: 'unavailable', message: 'timeout' },
    ]);
    store.gate = undefined;
    open();
    expect((await write('m v=3 3')).status).toBe(204);
    expect(store.dump('d')).toEqual(['m v=1 1', 'm v=2 2', 'm v=3 3']);
  });

  test('a database that is dropped meanwhile is not found', async () => {
    let open = () => {};
    store.gate = new Promise((resolve) => (open = resolve));
    const answer = write('m v=1 1');
    await until(() => server.metrics().bytesIn > 0);
    store.change({ kind: 'dropDatabase', database: 'd' });
    open();
    expect([(await answer).status, (await answer).text]).toEqual([
      404,
      '{"error":"database not found: \\"d\\""}\n',
    ]);
  });

  test('writes of a turn share it', async () => {
    const together = () => Promise.all(Array.from({ length: 50 }, (_, i) => write(`m v=1 ${i}`)));
    // Connections are accepted one in a turn.
    await together();
    const before = store.ticks;
    const answers = await together();
    expect(answers.every(({ status }) => status === 204)).toBe(true);
    expect(store.ticks - before).toBeLessThan(25);
  });
});

describe('clients that misbehave', () => {
  test('one that leaves in the middle', async () => {
    const socket = connect(client.port, '127.0.0.1');
    socket.on('error', () => undefined);
    socket.write(
      `POST /write?db=d HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n${lines(5)}`,
    );
    await until(() => server.metrics().bytesIn > 0);
    socket.resetAndDestroy();
    await until(() => server.metrics().connections === 0);
    expect((await write('m v=1 1')).status).toBe(204);
    expect(store.dump('d')).toEqual(['m v=1 1']);
  });

  test('one that leaves in the middle of a large body', async () => {
    await restart({ maxBodyBytes: 0 });
    const socket = connect(client.port, '127.0.0.1');
    socket.on('error', () => undefined);
    socket.write(
      'POST /write?db=d HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99000000\r\n\r\n',
    );
    for (let i = 0; i < 50; i++) {
      if (!socket.write(lines(10_000, i * 10_000))) {
        await new Promise((go) => socket.once('drain', go));
      }
    }
    await until(() => server.metrics().pointsWritten > 0);
    socket.resetAndDestroy();
    await until(() => server.metrics().connections === 0);
    expect((await write('m v=1 1')).status).toBe(204);
  });

  test('one that sends nothing more', async () => {
    await restart({ bodyTimeoutMs: 100 });
    const socket = connect(client.port, '127.0.0.1');
    const heard = raw(socket);
    socket.write(
      'POST /write?db=d HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\nm v=1 1\n',
    );
    await heard;
    expect(store.dump('d')).toEqual([]);
  });

  test('one that speaks no HTTP, or too much of it', async () => {
    const answers = async (text: string) => {
      const socket = connect(client.port, '127.0.0.1');
      const heard = raw(socket);
      socket.write(text);
      return (await heard).split('\r\n', 1)[0];
    };
    expect(await answers('hello\r\n\r\n')).toBe('HTTP/1.1 400 Bad Request');
    const long = 'x'.repeat(300_000);
    expect(await answers(`GET /ping?${long} HTTP/1.1\r\nHost: localhost\r\n\r\n`)).toBe(
      'HTTP/1.1 431 Request Header Fields Too Large',
    );
  });

  test('one connection too many is closed', async () => {
    await restart({ maxConnections: 2 });
    const sockets = [1, 2, 3].map(() => connect(client.port, '127.0.0.1'));
    const closed = sockets.map((socket) => raw(socket));
    await closed[2];
    expect(server.metrics()).toMatchObject({ connections: 2, rejectedConnections: 1 });
    for (const socket of sockets) socket.destroy();
  });

  test('an answer before the body has come leaves the connection usable', async () => {
    const body = 'x'.repeat(3_000_000);
    const answers: number[] = [];
    for (let i = 0; i < 3; i++) {
      answers.push((await client.send('/write?db=nope', { body })).status);
      answers.push((await write('m v=1 1')).status);
    }
    expect(answers).toEqual([404, 204, 404, 204, 404, 204]);
    expect(server.metrics().connections).toBe(1);
  });
});

test('drain lets a write end, and closes its connection', async () => {
  let open = () => {};
  store.gate = new Promise((resolve) => (open = resolve));
  const answer = write('m v=1 1');
  await until(() => server.metrics().bytesIn > 0);
  const drained = server.drain(5000);
  open();
  const { status, headers } = await answer;
  expect([status, headers['connection']]).toEqual([204, 'close']);
  await drained;
  await expect(write('m v=2 2')).rejects.toThrow();
});

test('counts', async () => {
  await write('m v=1 1\nbad\nm v=2 2');
  await write('m v=3 3');
  await client.send('/write');
  await client.send('/nothing');
  await until(() => server.metrics().requests['other'] !== undefined);
  const metrics = server.metrics();
  expect(metrics).toMatchObject({
    requests: { write: { '2xx': 1, '4xx': 2 }, other: { '4xx': 1 } },
    pointsWritten: 3,
    linesRejected: 1,
    connections: 1,
  });
  expect(metrics.writeSeconds.count).toBe(2);
});
