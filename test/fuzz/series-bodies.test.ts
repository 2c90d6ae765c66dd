// Damaged bodies of /write and damaged texts of /query, against a live server. It may answer what it likes,
// but in HTTP, with a body that is what its head says, and must neither die nor hang nor fail inside.
//
//   POLYROW_FULL=1    a million bodies instead of a few seconds of them;  FUZZ_SEED=n repeats a run

import { Agent, request as httpRequest, type IncomingMessage } from 'node:http';
import { gzipSync } from 'node:zlib';
import { afterEach, expect, test } from 'vitest';
import { points } from '../influx/points.ts';
import { queries } from '../influx/queries.ts';
import { Polyrow } from '../support/polyrow.ts';
import { Random } from '../support/random.ts';
import { seedFrom } from '../support/seed.ts';

const full = process.env['POLYROW_FULL'] === '1';
const bodies = full ? 1_000_000 : Infinity;
const durationMs = full ? Infinity : 4000;
const seed = seedFrom('FUZZ_SEED');
const clients = 8;
const patienceMs = 30_000;

let server: Polyrow | undefined;
const agent = new Agent({ keepAlive: true, maxSockets: clients + 2 });
afterEach(async () => {
  await server?.remove();
  server = undefined;
});

interface Answer {
  status: number;
  type: string;
  body: Buffer;
}

interface Sent {
  path: string;
  method?: string;
  headers?: Record<string, string>;
  body?: Buffer;
}

/** Rejects when no whole answer comes in time. */
function send({ path, method = 'POST', headers = {}, body }: Sent): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const options = { method, headers, agent, timeout: patienceMs };
    const request = httpRequest(`${server!.influx}${path}`, options, (response) => {
      collect(response).then(resolve, reject);
    });
    request.on('timeout', () => request.destroy(new Error(`no answer in ${patienceMs} ms`)));
    request.on('error', reject);
    request.end(body);
  });
}

async function collect(response: IncomingMessage): Promise<Answer> {
  const parts: Buffer[] = [];
  for await (const part of response) parts.push(part as Buffer);
  if (!response.complete) throw new Error('the answer broke off');
  const type = response.headers['content-type'] ?? '';
  return { status: response.statusCode!, type, body: Buffer.concat(parts) };
}

/** Invariants of every answer. */
function check({ status, type, body }: Answer): void {
  const text = body.toString();
  expect(status).toBeGreaterThanOrEqual(200);
  expect(status).toBeLessThan(600);
  if (status === 204) expect(body.length).toBe(0);
  expect(text).not.toMatch(/internal error/);
  if (!type.includes('json')) return;
  // One document, or in a chunked answer one in each line.
  for (const line of text.split('\n')) if (line !== '') JSON.parse(line);
}

const lineParts = [
  ...['m', 'cpu,host=a', ',', ' ', '=', '\\', '"', '\n', '\r\n', '\0', '#', 'i', 'u', 't', 'true'],
  ...['1e400', '-0', '1.', '.5', '9223372036854775808i', '18446744073709551615u', '-1u', 'NaN'],
  ...['time=1', 'm v=1 9223372036854775807', 'm v=1 -9223372036854775808', '\\"', '\\\\', '\xff'],
  ...['a=', '=b', ',,', ', ', '  ', 'v="', 'v=""', '😀', '\u2028', '_field=1', 'm,t=1,t=2 v=1'],
];

const queryParts = [
  ...['SELECT', 'FROM', 'WHERE', 'GROUP BY', 'time(1s)', 'time(1ns)', 'fill(', ')', '(', ',', '*'],
  ...['"', "'", '\\', '/', '/.*/', '=~', '!~', 'AND', 'OR', 'LIMIT', 'OFFSET', 'SLIMIT', '-1'],
  ...['now()', '1h', '9223372036854775807', '1e999', ';', '--', '/*', '*/', '\0', '::', '::tag'],
  ...['count(*)', 'percentile(v,', 'top(v,3)', 'derivative(', 'INTO', 'x', '"db"."rp"."m"', '..m'],
  ...[
    'SHOW TAG VALUES',
    'WITH KEY IN (',
    'DELETE',
    'DROP SERIES',
    'CREATE DATABASE',
    '$p',
    '%',
    '|',
  ],
  ...['time', '<', '>', '>=', '-', '+', '((((((((((', 'ORDER BY time DESC', 'tz(', "'UTC'", 'FOR'],
];

/** Beginnings of all documented statements, so that the whole parser is reached. */
const statements = [
  ...queries.map((q) => q.replaceAll(' T ', " time > '2015-01-01' ").replace(/ T$/, ' time > 0')),
  'SHOW DATABASES',
  'SHOW RETENTION POLICIES ON fuzz',
  "SHOW SERIES FROM cpu WHERE host = 'a' LIMIT 3",
  'SHOW TAG VALUES ON fuzz FROM cpu WITH KEY IN ("host", "region") WHERE host =~ /a|b/',
  'SHOW FIELD KEYS FROM /c.*/',
  'SHOW MEASUREMENTS ON fuzz WITH MEASUREMENT =~ /c/ LIMIT 5 OFFSET 1',
  'CREATE RETENTION POLICY p ON fuzz DURATION 7d REPLICATION 1 SHARD DURATION 1h DEFAULT',
  'ALTER RETENTION POLICY p ON fuzz DURATION 5d',
  'DROP RETENTION POLICY p ON fuzz',
  'CREATE DATABASE other WITH DURATION 2d NAME p',
  'DROP DATABASE other',
  "DELETE FROM cpu WHERE host = 'a' AND time < '2016-01-01T00:10:00Z'",
  "DROP SERIES FROM cpu WHERE host = 'nosuch'",
  'SELECT mean(v) INTO fuzz..copy FROM tie GROUP BY time(1s), *',
];

function mutate(bytes: Buffer, parts: readonly string[], random: Random): Buffer {
  let mutated = Buffer.from(bytes);
  for (let times = random.below(5); times > 0; times--) {
    const at = random.below(mutated.length + 1);
    const [head, tail] = [mutated.subarray(0, at), mutated.subarray(at)];
    switch (random.below(6)) {
      case 0:
        if (at < mutated.length) mutated[at] = random.below(256);
        break;
      case 1:
        mutated = Buffer.concat([head, tail.subarray(random.below(20))]);
        break;
      case 2:
        mutated = Buffer.concat([head, tail.subarray(0, random.below(60)), tail]);
        break;
      case 3:
        mutated = Buffer.concat([head, Buffer.from(random.pick(parts), 'latin1'), tail]);
        break;
      case 4:
        mutated = Buffer.from(head);
        break;
      default:
        mutated = Buffer.concat([tail, head]);
    }
  }
  return mutated;
}

function someBody(random: Random): Sent {
  const lines = Array.from({ length: 1 + random.below(6) }, () => random.pick(points));
  const plain = mutate(Buffer.from(lines.join('\n')), lineParts, random);
  const precision = random.chance(0.2)
    ? `&precision=${random.pick(['ns', 'u', 's', 'h', 'x'])}`
    : '';
  const path = `/write?db=${random.chance(0.95) ? 'fuzz' : 'nosuch'}${precision}`;
  if (random.chance(0.9)) return { path, body: plain };
  const packed = gzipSync(plain);
  const body = random.chance(0.5) ? packed : mutate(packed, lineParts, random);
  return { path, body, headers: { 'content-encoding': 'gzip' } };
}

function someQuery(random: Random): Sent {
  const text = mutate(Buffer.from(random.pick(statements)), queryParts, random);
  const q = text.toString(random.chance(0.5) ? 'utf8' : 'latin1');
  const parameters = new URLSearchParams({ q, db: 'fuzz' });
  if (random.chance(0.2)) parameters.set('epoch', random.pick(['ns', 'ms', 'h', 'x']));
  if (random.chance(0.1)) parameters.set('chunked', 'true');
  if (random.chance(0.05)) parameters.set('chunk_size', random.pick(['1', '0', '-5', 'x']));
  if (random.chance(0.05))
    parameters.set('params', random.pick(['{"p":1}', '{', '[]', '{"p":{}}']));
  const headers: Record<string, string> = random.chance(0.1) ? { accept: 'application/csv' } : {};
  if (random.chance(0.3) && q.length < 2000) {
    return { path: `/query?${String(parameters)}`, method: 'GET', headers };
  }
  headers['content-type'] = 'application/x-www-form-urlencoded';
  return { path: '/query', headers, body: Buffer.from(String(parameters)) };
}

test.each([
  { name: 'bodies of /write', make: someBody, limit: bodies },
  { name: 'texts of /query', make: someQuery, limit: bodies / 10 },
])('$name harm nothing', { timeout: 7_200_000 }, async ({ make, limit }) => {
  server = await Polyrow.start({
    flags: [
      ...['--log.level', 'warn', '--tsm.head-bytes', '1mb', '--tsm.cold-after', '1'],
      ...['--wal.fsync', 'no', '--wal.checkpoint-bytes', '4mb', '--influx.query-timeout', '10'],
    ],
  });
  const polyrow = server;
  check(await send({ path: '/query?q=CREATE+DATABASE+fuzz' }));
  const written = await send({ path: '/write?db=fuzz', body: Buffer.from(points.join('\n')) });
  expect(written.status).toBe(204);
  const random = new Random(seed);
  const until = Date.now() + durationMs;
  let sent = 0;
  const client = async (): Promise<void> => {
    while ((Date.now() < until || sent <= 200) && sent < limit) {
      sent++;
      const one = make(random);
      const told = `seed ${seed}: ${one.path} ${JSON.stringify(one.body?.toString('latin1'))}`;
      try {
        check(await send(one));
      } catch (error) {
        throw new Error(`${told}\n${String(error)}\n${polyrow.lifeOutput.slice(-2000)}`, {
          cause: error,
        });
      }
    }
  };
  await Promise.all(Array.from({ length: clients }, client));
  expect(polyrow.running).toBe(true);
  expect(polyrow.lifeOutput).not.toMatch(/unhandled|assert|TypeError|RangeError|Cannot read/i);
  // The data is there after a restart, and usable.
  const counted = { path: '/query?db=fuzz&q=SHOW+SERIES' };
  const before = await send(counted);
  await polyrow.restart();
  const after = await send(counted);
  expect(after.body.equals(before.body)).toBe(true);
  check(await send({ path: '/write?db=fuzz', body: Buffer.from('late v=1 1') }));
  await polyrow.stop();
});
