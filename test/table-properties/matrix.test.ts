// Every property on every model, through clients that people use.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Polyrow } from '../support/polyrow.ts';
import { type ModelName, modelNames, type Subject, subjectOf, tableCommand } from './subjects.ts';

let server: Polyrow;
let tables = 0;
beforeAll(async () => {
  server = await Polyrow.start({ flags: ['--redis.databases', '64'] });
});
afterAll(() => server.remove());

interface Trial {
  readonly model: ModelName;
  readonly subject: Subject;
  /** `polyrow table alter` of the table. */
  readonly alter: (...flags: string[]) => Promise<Record<string, unknown>>;
}

interface Property {
  readonly name: string;
  /** Flags the table is made with, and their display. */
  readonly flags: readonly string[];
  readonly shows: object;
  /** Check of the property's effect; without it, only that rows can be written and read. */
  readonly holds?: (trial: Trial) => Promise<void>;
}

const properties: readonly Property[] = [
  { name: 'readOnly', flags: [], shows: { readOnly: false }, holds: isReadOnly },
  {
    name: 'ttlDefaultMs',
    flags: ['--ttl-default-ms', '3600000'],
    shows: { ttlDefaultMs: 3_600_000 },
    holds: rowsHaveTheirTime,
  },
  {
    name: 'maxRowBytes',
    flags: ['--max-row-bytes', '2kb'],
    shows: { maxRowBytes: 2048 },
    holds: rowsAreSmall,
  },
  {
    name: 'consistency by its name',
    flags: ['--consistency', 'bounded'],
    shows: { consistency: { kind: 'bounded', maxStalenessMs: 5000, maxLagEntries: 10_000 } },
    holds: everyReadIsStrong,
  },
  {
    name: 'consistency with bounds',
    flags: ['--max-staleness-ms', '100'],
    shows: { consistency: { kind: 'bounded', maxStalenessMs: 100, maxLagEntries: 10_000 } },
    holds: everyReadIsStrong,
  },
  {
    name: 'consistency eventual',
    flags: ['--consistency', 'eventual'],
    shows: { consistency: { kind: 'eventual' } },
    holds: everyReadIsStrong,
  },
  { name: 'shardingKind', flags: ['--sharding-kind', 'hash'], shows: { shardingKind: 'hash' } },
  { name: 'partitions', flags: ['--partitions', '16'], shows: { partitions: 16 } },
  { name: 'writePriority', flags: ['--write-priority', 'low'], shows: { writePriority: 'low' } },
  { name: 'quotaMode', flags: ['--quota-mode', 'hard'], shows: { quotaMode: 'hard' } },
  { name: 'cacheBypass', flags: ['--cache-bypass'], shows: { cacheBypass: true } },
];

async function isReadOnly({ model, subject, alter }: Trial): Promise<void> {
  await subject.write();
  await alter('--read-only');
  const refused = model === 'series' ? /read-only/ : /READONLY|EXECABORT/;
  await expect(subject.write()).rejects.toThrow(refused);
  for (const answer of await subject.changes()) expect(answer).toMatch(refused);
  expect(await subject.count()).toBe(1);
  await alter('--no-read-only');
  await subject.write();
  expect(await subject.count()).toBe(2);
}

async function rowsHaveTheirTime({ model, subject, alter }: Trial): Promise<void> {
  await subject.write();
  if (model !== 'series') {
    // They take it with them, whatever becomes of the table's.
    await alter('--ttl-default-ms', '300');
    await subject.write();
    await alter('--ttl-default-ms', '0');
    await subject.write();
    await expect.poll(() => subject.count()).toBe(2);
    return;
  }
  await expect(subject.writeOld!(2)).rejects.toThrow('points beyond retention policy');
  await alter('--ttl-default-ms', '0');
  await subject.writeOld!(24 * 40);
  expect(await subject.count()).toBe(2);
  // Expired rows are removed in the background, read-only or not.
  await alter('--ttl-default-ms', '3600000', '--read-only');
  await expect.poll(() => subject.count()).toBe(1);
}

async function rowsAreSmall({ model, subject, alter }: Trial): Promise<void> {
  await subject.write(1000);
  const refused =
    model === 'series'
      ? 'partial write: point larger than 2048 bytes dropped=1'
      : /row too large: .* maxRowBytes is 2048/;
  await expect(subject.write(3000)).rejects.toThrow(refused);
  expect(await subject.count()).toBe(1);
  await alter('--max-row-bytes', '0');
  await subject.write(3000);
  expect(await subject.count()).toBe(2);
}

/** There is one copy. */
async function everyReadIsStrong({ subject }: Trial): Promise<void> {
  const before = await subject.count();
  for (let n = 1; n <= 20; n++) {
    await subject.write();
    expect(await subject.count()).toBe(before + n);
  }
}

describe.each(modelNames)('%s', (model) => {
  test.each([[['--sharding-kind', 'range'], 'shardingKind range is not yet available']])(
    'refuses %j',
    async (flags, message) => {
      const subject = subjectOf(model, server, ++tables);
      try {
        const made = tableCommand(server, 'create', subject.reference, '--model', model, ...flags);
        await expect(made).rejects.toThrow(message);
      } finally {
        await subject.close();
      }
    },
  );

  test.each(properties)('$name', async ({ flags, shows, holds }) => {
    const subject = subjectOf(model, server, ++tables);
    const { reference } = subject;
    const made = await tableCommand(server, 'create', reference, '--model', model, ...flags);
    expect(made).toMatchObject({ model, tenant: 'default', explicit: true, ...shows });
    try {
      await subject.write();
      expect(await subject.count()).toBe(1);
      const alter = (...words: string[]) => tableCommand(server, 'alter', reference, ...words);
      // Each case begins with an empty table but for this row.
      const counted = shifted(subject, 1);
      await holds?.({ model, subject: counted, alter });
    } finally {
      await subject.close();
    }
  });
});

/** As if so many of its rows were not there. */
function shifted(subject: Subject, rows: number): Subject {
  return { ...subject, count: async () => (await subject.count()) - rows };
}

test('they are there after a restart', async () => {
  const before = (await server.askAdmin('GET', '/v1/tables')).body;
  await server.restart();
  const after = (await server.askAdmin('GET', '/v1/tables')).body;
  const ofAll = (body: unknown) =>
    (body as { tables: object[] }).tables.map((table) => ({ ...table, rows: 0 }));
  expect(ofAll(after)).toEqual(ofAll(before));
});

describe('databases of InfluxDB', () => {
  const alter = (name: string, body: object) =>
    server.askAdmin('PATCH', `/v1/tables/${encodeURIComponent(name)}`, body);
  const query = async (q: string, db: string) => {
    const page = `${server.influx}/query?${new URLSearchParams({ q, db }).toString()}`;
    const response = await fetch(page, { method: 'POST' });
    const ru = response.headers.get('x-polyrow-ru');
    return { status: response.status, ru, text: await response.text() };
  };
  const write = async (path: string, lines: string) => {
    const response = await fetch(`${server.influx}${path}`, { method: 'POST', body: lines });
    const ru = response.headers.get('x-polyrow-ru');
    return { status: response.status, ru, text: await response.text() };
  };

  test('refuse writes in the words of both versions, and charge nothing for it', async () => {
    await server.askAdmin('POST', '/v1/tables', { table: 'shut', model: 'series', readOnly: true });
    expect(await write('/write?db=shut', 'm v=1')).toEqual({
      status: 403,
      ru: '0',
      text: '{"error":"database is read-only: shut"}\n',
    });
    const v2 = await write('/api/v2/write?bucket=shut', 'm v=1');
    expect([v2.status, v2.ru, JSON.parse(v2.text)]).toEqual([
      403,
      '0',
      { code: 'forbidden', message: 'database is read-only: shut' },
    ]);
    for (const q of ['DELETE FROM m', 'DROP MEASUREMENT m', 'DROP DATABASE shut']) {
      const { status, ru, text } = await query(q, 'shut');
      expect([status, ru]).toEqual([200, '0']);
      expect(JSON.parse(text)).toEqual({
        results: [{ statement_id: 0, error: 'database is read-only: shut' }],
      });
    }
    // A collector makes its database at every start.
    expect((await query('CREATE DATABASE shut', '')).text).not.toContain('error');
    expect((await query('SHOW MEASUREMENTS', 'shut')).status).toBe(200);
  });

  test('keep points by their explicit policies, and show what is in force', async () => {
    await server.askAdmin('POST', '/v1/tables', {
      table: 'kept',
      model: 'series',
      ttlDefaultMs: 7_200_000,
    });
    await query('CREATE RETENTION POLICY forever ON kept DURATION INF REPLICATION 1', 'kept');
    const { text } = await query('SHOW RETENTION POLICIES ON kept', 'kept');
    const [series] = (JSON.parse(text) as { results: { series: { values: unknown[][] }[] }[] })
      .results[0]!.series;
    expect(series!.values.map((row) => row.slice(0, 3))).toEqual([
      ['autogen', '2h0m0s', '1h0m0s'],
      ['forever', '0s', '168h0m0s'],
    ]);
    const old = `m v=1 ${BigInt(Date.now() - 10 * 3_600_000) * 1_000_000n}`;
    expect((await write('/write?db=kept', old)).status).toBe(400);
    expect((await write('/write?db=kept&rp=forever', old)).status).toBe(204);
  });

  test('store the points that are small enough of a write with others', async () => {
    await server.askAdmin('POST', '/v1/tables', {
      table: 'small',
      model: 'series',
      maxRowBytes: 100,
    });
    const lines = ['m v="a" 1', `m v="${'x'.repeat(200)}" 2`, 'm v="b" 3', 'n v=1 4'].join('\n');
    const { status, text } = await write('/write?db=small', lines);
    expect([status, text]).toEqual([
      400,
      '{"error":"partial write: point larger than 100 bytes dropped=1"}\n',
    ]);
    const { text: rows } = await query('SELECT v FROM m, n', 'small');
    expect(rows.match(/1970-01-01/g)).toHaveLength(3);
  });

  test('are a tenant’s own', async () => {
    for (const name of ['shop', 'mill']) {
      await server.askAdmin('POST', '/v1/tenants', { name, password: 'hush' });
      await server.askAdmin('POST', `/v1/tenants/${name}/databases`, { name: 'd' });
    }
    await alter('shop/d', { readOnly: true });
    const as = async (tenant: string) =>
      (await write(`/write?db=d&u=${tenant}&p=hush`, 'm v=1')).status;
    expect([await as('shop'), await as('mill')]).toEqual([403, 204]);
    const listed = (await server.askAdmin('GET', '/v1/tenants/shop/tables')).body as {
      tables: { model: string }[];
    };
    expect(listed.tables.filter(({ model }) => model === 'series')).toMatchObject([
      { name: 'd', database: 'd', tenant: 'shop', readOnly: true, writePriority: 'high' },
    ]);
    await server.askAdmin('DELETE', '/v1/tenants/shop?confirm=shop');
  });

  test('leave to Redis what it calls by the same name, and numbers', async () => {
    await query('CREATE DATABASE twin', '');
    await query('CREATE DATABASE "7"', '');
    await server.askAdmin('POST', '/v1/tables', { table: 0, name: 'twin' });
    expect((await alter('twin', {})).body).toMatchObject({ model: 'memory', database: 0 });
    expect((await alter('series:twin', {})).body).toMatchObject({ model: 'series' });
    expect((await alter('series:7', {})).body).toMatchObject({ database: '7', model: 'series' });
    expect((await alter('nowhere', {})).status).toBe(404);
    expect((await alter('series:nowhere', {})).status).toBe(404);
    expect((await alter('series:twin', { model: 'kv' })).status).toBe(400);
    expect((await alter('series:twin', { ttlDefaultMs: 1000 })).status).toBe(400);
    expect((await alter('0', { model: 'series' })).status).toBe(400);
  });

  test('are for people to read as well', async () => {
    const { polyrow } = await import('../cli/polyrow-process.ts');
    const show = async (...words: string[]) =>
      (await polyrow(['table', ...words, '--data-dir', server.dataDir])).out;
    await alter('series:twin', { consistency: 'eventual', cacheBypass: true });
    const one = await show('describe', 'series:twin');
    expect(one).toMatch(/consistency +eventual +there is one copy: every read is strong/);
    expect(one).toMatch(/write priority +high/);
    expect(await show('list')).toMatch(/twin +twin +series .* eventual, no cache/);
  });
});
