// Attacks on the InfluxDB plane by HTTP.

import type { Attack, Target } from './attack.ts';
import {
  almostMatching,
  badLine,
  bareQuotes,
  countedPattern,
  dashedForm,
  digits,
  exponents,
  longCondition,
  manyStatements,
  type MultipartForm,
  multipartForm,
  nestedQuery,
  packedLine,
  packedLines,
  quotedParams,
} from './payloads.ts';
import { gzipSync } from 'node:zlib';
import { http, influxStatement, influxWrite, Wire } from './wire.ts';

const database = 'attacked';

async function withDatabase({ influxPort }: Target): Promise<void> {
  await influxStatement(influxPort, `CREATE DATABASE ${database}`);
}

/** A query whose answer does not matter. */
async function query({ influxPort }: Target, q: string): Promise<void> {
  await http(influxPort, {
    method: 'POST',
    path: `/query?db=${database}`,
    headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
    body: `q=${encodeURIComponent(q)}`,
  });
}

async function write(
  { influxPort }: Target,
  body: Buffer | string,
  headers: Record<string, string> = {},
): Promise<void> {
  await http(influxPort, { method: 'POST', path: `/write?db=${database}`, headers, body });
}

async function sendForm({ influxPort }: Target, { contentType, body }: MultipartForm) {
  const headers = { 'Content-Type': contentType };
  await http(influxPort, { method: 'POST', path: '/query', headers, body });
}

/** A body of values that are none; packed it is a few hundred bytes. */
function badValues(name: string, what: string, value: string): Attack {
  return {
    name,
    what,
    prepare: withDatabase,
    run: async (target) => {
      await write(target, badLine(value));
      await write(target, gzipSync(badLine(value).repeat(20)), { 'Content-Encoding': 'gzip' });
    },
  };
}

export const influxAttacks: readonly Attack[] = [
  {
    name: 'regex-counted',
    what: 'a pattern of counted alternations on a tag of 4 kB',
    prepare: async (target) => {
      await withDatabase(target);
      await influxWrite(target.influxPort, database, `m,t=${almostMatching(4000)} v=1`);
    },
    run: (target) => query(target, `SELECT v FROM m WHERE t =~ /${countedPattern()}/`),
  },
  {
    name: 'regex-or',
    what: 'four such patterns joined by OR on a tag of 12 kB',
    prepare: async (target) => {
      await withDatabase(target);
      await influxWrite(target.influxPort, database, `m,t=${almostMatching(12_000)} v=1`);
    },
    run: (target) => {
      const terms = [40, 39, 38, 37].map((repeats) => `t =~ /${countedPattern(repeats)}/`);
      return query(target, `SELECT v FROM m WHERE ${terms.join(' OR ')}`);
    },
  },
  {
    name: 'regex-fields',
    what: 'a pattern on a field of 60 kB, on tags of 5,000 series, and on names of measurements',
    prepare: async (target) => {
      await withDatabase(target);
      await influxWrite(target.influxPort, database, `texts v="${almostMatching(60_000)}"`);
      const series = Array.from({ length: 5000 }, (_, n) => `s,t=${almostMatching(300)}${n} v=1`);
      await influxWrite(target.influxPort, database, series.join('\n'));
    },
    run: async (target) => {
      await query(target, `SELECT v FROM texts WHERE v =~ /(a|b|ab)*c$/`);
      await query(target, `SELECT v FROM s WHERE t =~ /(a|b|ab)*c$/`);
      await query(target, `SHOW TAG VALUES FROM s WITH KEY =~ /(t|s|ts)*x$/`);
      await query(target, `SELECT v FROM /(m|s|ms)*x$/`);
    },
  },
  badValues(
    'bad-exponents',
    'a field value of 80 kB of e, and 20 of them packed',
    exponents(80_000),
  ),
  badValues(
    'bad-digits',
    'a field value of 80 kB of digits, and 20 of them packed',
    digits(80_000),
  ),
  {
    name: 'many-bad-lines',
    what: 'a body of 20 MB of bad lines: an error of each',
    prepare: withDatabase,
    run: (target) => write(target, 'm v=x\n'.repeat(3_000_000)),
  },
  {
    name: 'wide-points',
    what: 'a point of 100,000 fields, 1,000 tags, and 100,000 new series',
    prepare: withDatabase,
    run: async (target) => {
      const fields = Array.from({ length: 100_000 }, (_, n) => `f${n}=1`);
      await write(target, `m ${fields.join(',')}\n`);
      const tags = Array.from({ length: 1000 }, (_, n) => `t${n}=v`);
      await write(target, `m,${tags.join(',')} v=1\n`);
      const series = Array.from({ length: 100_000 }, (_, n) => `s,t=${n} v=1`);
      await write(target, series.join('\n'));
    },
  },
  {
    name: 'multipart-boundary',
    what: 'a form of 8 MB on /query with a boundary of 20 kB, before it is known who sends it',
    run: async (target) => {
      await sendForm(target, multipartForm(20_000, 8_000_000));
      await sendForm(target, dashedForm(20_000, 8_000_000));
      await sendForm(target, dashedForm(70, 8_000_000));
    },
  },
  {
    name: 'params-quotes',
    what: 'params of 240 kB of quotes',
    prepare: withDatabase,
    run: async ({ influxPort }) => {
      for (const params of [quotedParams(240_000), bareQuotes(240_000), '['.repeat(240_000)]) {
        await http(influxPort, {
          method: 'POST',
          path: `/query?db=${database}`,
          headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
          body: `q=SELECT+v+FROM+m+WHERE+v+%3D+%24a&params=${encodeURIComponent(params)}`,
        });
      }
    },
  },
  {
    name: 'form-parameters',
    what: 'a form of 8 MB of parameters, of % signs, and of one name',
    run: async (target) => {
      for (const body of ['a=1&'.repeat(2_000_000), '%'.repeat(8_000_000), 'q='.padEnd(8e6, '+')]) {
        const headers = { 'Content-Type': 'application/x-www-form-urlencoded' };
        const { influxPort } = target;
        await http(influxPort, { method: 'POST', path: '/query', headers, body });
      }
    },
  },
  {
    name: 'long-queries',
    what: '8 MB of InfluxQL: parentheses, conditions, statements, comments, an identifier',
    prepare: withDatabase,
    run: async (target) => {
      const bytes = 8_000_000 - 100;
      // As long as a form may be: all of these are letters that a form takes as they are.
      const texts = [
        nestedQuery(bytes / 3),
        longCondition(bytes / 3),
        manyStatements(bytes / 2),
        `SELECT v FROM m -- ${'x'.repeat(bytes / 2)}`,
        `SELECT ${'x'.repeat(bytes / 2)} FROM m`,
        `SELECT v FROM m WHERE a = '${'x'.repeat(bytes / 2)}`,
      ];
      for (const text of texts) await query(target, text);
    },
  },
  {
    name: 'packed-at-once',
    what: '14 bodies of 45 kB that are 45 MB each once unpacked',
    prepare: withDatabase,
    run: async (target) => {
      const headers = { 'Content-Encoding': 'gzip' };
      const body = packedLine(45_000_000);
      await Promise.all(Array.from({ length: 14 }, () => write(target, body, headers)));
    },
  },
  {
    name: 'packed-lines',
    what: '14 bodies that are 45 MB of good lines each once unpacked',
    prepare: withDatabase,
    run: async (target) => {
      const headers = { 'Content-Encoding': 'gzip' };
      const body = packedLines(45_000_000);
      await Promise.all(Array.from({ length: 14 }, () => write(target, body, headers)));
    },
  },
  {
    name: 'half-bodies',
    what: '100 clients that send 20 MB each of a body that does not end',
    prepare: withDatabase,
    run: async ({ influxPort }) => {
      const clients = await Promise.all(
        Array.from({ length: 100 }, () => Wire.connect(influxPort)),
      );
      const head = `POST /write?db=${database} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 24000000\r\n\r\n`;
      const piece = Buffer.alloc(1_000_000, 'a');
      for (const client of clients) client.send(head);
      for (let n = 0; n < 20; n++) {
        for (const client of clients) client.send(piece);
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
      for (const client of clients) client.close();
    },
  },
  {
    name: 'headers',
    what: 'heads of 250 kB: one header, many headers, a long target; pipelined requests',
    run: async ({ influxPort }) => {
      const heads = [
        `GET /ping HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ${'x'.repeat(250_000)}\r\n\r\n`,
        `GET /ping HTTP/1.1\r\nHost: 127.0.0.1\r\n${'X: 1\r\n'.repeat(40_000)}\r\n`,
        `GET /ping?${'a&'.repeat(120_000)} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`,
        `GET /query?q=${'%'.repeat(250_000)} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`,
        `GET /query HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Basic ${'A'.repeat(250_000)}\r\n\r\n`,
        `GET /ping HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept-Encoding: ${', '.repeat(120_000)}\r\n\r\n`,
        `GET /query?q=SHOW+DATABASES HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: ${'application/'.repeat(20_000)}\r\n\r\n`,
        'GET /ping HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n'.repeat(20_000),
      ];
      for (const head of heads) {
        const client = await Wire.connect(influxPort);
        client.send(head);
        await client.line();
        client.close();
      }
    },
  },
  {
    name: 'many-http-clients',
    what: '1,500 clients that connect at once, send a request each, and close',
    run: async ({ influxPort }) => {
      const request = 'GET /query?q=SHOW+DATABASES HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n';
      const clients = await Promise.all(
        Array.from({ length: 1500 }, () => Wire.connect(influxPort)),
      );
      for (const client of clients) client.send(request);
      await new Promise((resolve) => setTimeout(resolve, 500));
      for (const client of clients) client.close();
    },
  },
  {
    name: 'foreign-host',
    what: 'requests of a page whose name was rebound to this machine, and changes by GET',
    run: async ({ influxPort }) => {
      await http(influxPort, {
        path: '/query?q=SHOW+DATABASES',
        headers: { Host: 'evil.example' },
      });
      await http(influxPort, {
        path: '/query?q=CREATE+DATABASE+stolen',
        headers: { Origin: 'http://evil.example' },
      });
    },
    verdict: async ({ influxPort }) => {
      const read = await http(influxPort, {
        path: '/query?q=SHOW+DATABASES',
        headers: { Host: 'evil.example:8086' },
      });
      if (read.status === 200) return 'a foreign Host was answered';
      // As an old browser loads an image: it does not say for which page.
      await http(influxPort, {
        path: '/query?q=CREATE+DATABASE+stolen',
        headers: { 'User-Agent': 'Mozilla/5.0', Accept: 'image/*' },
      });
      await http(influxPort, {
        path: '/query?q=CREATE+DATABASE+stolen',
        headers: { 'Sec-Fetch-Site': 'cross-site' },
      });
      await http(influxPort, {
        method: 'POST',
        path: '/query?q=CREATE+DATABASE+stolen',
        headers: { Origin: 'http://evil.example' },
      });
      const { text } = await http(influxPort, { path: '/query?q=SHOW+DATABASES' });
      return text.includes('stolen') ? 'a foreign page changed something' : undefined;
    },
  },
  {
    name: 'heavy-queries',
    what: '8 queries at once that group 200,000 points by nanoseconds, and by every tag',
    prepare: async (target) => {
      await withDatabase(target);
      const lines = Array.from({ length: 200_000 }, (_, n) => `m,t=${n % 5000} v=${n} ${n}000`);
      for (let n = 0; n < lines.length; n += 20_000) {
        await influxWrite(target.influxPort, database, lines.slice(n, n + 20_000).join('\n'));
      }
    },
    // The memory of one query has a limit of its own: influx.query-memory-bytes.
    growthBytes: (512 + 384) * 1024 * 1024,
    run: async (target) => {
      await Promise.all(
        Array.from({ length: 8 }, (_, n) =>
          query(
            target,
            n % 2 === 0
              ? 'SELECT mean(v) FROM m WHERE time >= 0 AND time < 200s GROUP BY time(1u)'
              : 'SELECT percentile(v, 50), mode(v), distinct(v) FROM m GROUP BY *',
          ),
        ),
      );
    },
  },
  {
    name: 'many-shards',
    what: 'points of 20,000 weeks, one a shard',
    prepare: withDatabase,
    run: async (target) => {
      const week = 7n * 86_400n * 1_000_000_000n;
      const lines = Array.from({ length: 20_000 }, (_, n) => `m v=1 ${BigInt(n - 10_000) * week}`);
      await write(target, lines.join('\n'));
    },
  },
  {
    name: 'wide-queries',
    what: '20,000 calls, fields, dimensions and names in one statement',
    prepare: async (target) => {
      await withDatabase(target);
      await influxWrite(target.influxPort, database, 'm,t=a v=1');
    },
    run: async (target) => {
      const names = Array.from({ length: 20_000 }, (_, n) => `f${n}`);
      await query(target, `SELECT ${names.map((name) => `mean(${name})`).join(',')} FROM m`);
      await query(target, `SELECT ${names.join(',')} FROM m`);
      await query(target, `SELECT mean(v) FROM m GROUP BY ${names.join(',')}`);
      await query(target, `SHOW TAG VALUES WITH KEY IN (${names.join(',')})`);
      await query(target, `SELECT v FROM ${names.join(',')}`);
      await query(target, `SELECT v+${names.join('+')} FROM m`);
      const subqueries = 2000;
      await query(
        target,
        `SELECT v FROM ${'(SELECT v FROM '.repeat(subqueries)}m${')'.repeat(subqueries)}`,
      );
    },
  },
];
