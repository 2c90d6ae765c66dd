// Every statement and endpoint by every user: permitted ones succeed, others are refused with
// InfluxDB's texts, and no answer reveals anything about another tenant, although its databases
// have the same names.

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { examples, type Needs } from './statements.ts';
import { TenantServer } from './tenant-server.ts';

let server: TenantServer;

/** Users of tenant `acme`, with their privileges on `d`. */
const people = {
  'acme:acme': { name: 'default', has: ['admin', 'read', 'write'] },
  'default@acme:acme': { name: 'default', has: ['admin', 'read', 'write'] },
  'owner@acme:owner': { name: 'owner', has: ['read', 'write'] },
  'reader@acme:reader': { name: 'reader', has: ['read'] },
  'writer@acme:writer': { name: 'writer', has: ['write'] },
  'nobody@acme:nobody': { name: 'nobody', has: [] },
} as const satisfies Record<string, { name: string; has: readonly Has[] }>;
type Has = 'admin' | 'read' | 'write';
type Person = keyof typeof people;
const everybody = Object.keys(people) as Person[];

/** Invalid logins. */
const strangers = {
  'a wrong password': 'acme:wrong',
  'a user of another tenant': 'reader@rival:reader',
  'an unknown user': 'nosuch@acme:x',
  'an unknown tenant': 'default@nosuch:x',
  'a user that was revoked': 'revoked@acme:revoked',
  'a user that is disabled': 'disabled@acme:disabled',
  'a tenant that is suspended': 'sleeping:sleeping',
};

beforeAll(async () => {
  server = await TenantServer.start();
  const { control } = server;
  control.close('root');
  for (const tenant of ['acme', 'rival', 'sleeping']) control.addTenant(tenant);
  control.addUser('acme', 'owner', { password: 'owner', grants: { d: 'all' } });
  control.addUser('acme', 'reader', { password: 'reader', grants: { d: 'read' } });
  control.addUser('acme', 'writer', { password: 'writer', grants: { d: 'write' } });
  control.addUser('acme', 'nobody', { password: 'nobody' });
  for (const user of ['revoked', 'disabled']) {
    control.addUser('acme', user, { password: user, grants: { d: 'all' } });
    expect((await server.query(`${user}@acme:${user}`, 'SHOW DATABASES')).status).toBe(200);
  }
  await control.dropUser({ tenant: 'acme', name: 'revoked' });
  await control.setUser({ tenant: 'acme', name: 'disabled', change: { enabled: false } });
  control.setTenant('sleeping', { state: 'suspended' });
  for (const login of ['acme:acme', 'rival:rival', 'default:root']) await fill(login);
});

afterAll(async () => {
  await server.close();
});

/** The same names for all tenants; every value, tag and further name identifies its owner. */
async function fill(login: string): Promise<void> {
  const secret = secretOf(login);
  await server.result(login, 'CREATE DATABASE d');
  await server.result(login, `CREATE DATABASE "only_${secret}"`);
  const lines = [`m,host=h_${secret} v=1,text="${secret}" 1`, `m_${secret},tag_${secret}=x v=2 1`];
  for (const db of ['d', `only_${secret}`]) {
    expect((await server.write(login, lines.join('\n'), db)).status).toBe(204);
  }
}

const secretOf = (login: string): string => `secret${login.split(':')[1]}`;

/** Nothing that belongs to others, nor how tenants are told apart. */
function expectOwnOnly(text: string): void {
  expect(text).not.toMatch(/secret(rival|root)|\\u0001|rival|sleeping/);
  // oxlint-disable-next-line no-control-regex
  expect(text).not.toMatch(/\u0001/);
}

function mayRun(person: Person, needs: Needs): boolean {
  const has: readonly Has[] = people[person].has;
  if (has.includes('admin') || needs === 'nobody') return true;
  return needs !== 'admin' && needs.split(' and ').every((one) => has.includes(one as Has));
}

describe.each(Object.entries(examples))('%s', (_kind, list) => {
  test.each(list)('$q', async ({ q, needs }) => {
    // Administrators last: they change what is there.
    for (const person of [...everybody].reverse()) {
      const { status, text } = await server.query(person, q);
      expectOwnOnly(text);
      if (mayRun(person, needs)) {
        expect({ person, status, text }).toMatchObject({ status: 200 });
        continue;
      }
      const { name } = people[person];
      const { error } = JSON.parse(text) as { error: string };
      expect({ person, status, error }).toMatchObject({
        status: 403,
        error: expect.stringMatching(
          new RegExp(
            `^error authorizing query: ${name} not authorized to execute statement '.*', requires (admin privilege|(READ|WRITE) on \\w+)$`,
          ),
        ),
      });
    }
  });
});

describe('strangers', () => {
  const texts = Object.values(examples).flatMap((list) => list.map(({ q }) => q));

  test.each(Object.entries(strangers))('%s runs nothing', async (_, login) => {
    const isSuspended = login.startsWith('sleeping');
    for (const q of texts.filter((_text, i) => i % 12 === 0)) {
      const { status, text, headers } = await server.query(login, q);
      expect([status, text]).toEqual(
        isSuspended
          ? [403, `{"error":"tenant 'sleeping' is suspended"}\n`]
          : [401, '{"error":"authorization failed"}\n'],
      );
      if (!isSuspended) expect(headers.get('www-authenticate')).toBe('Basic realm="InfluxDB"');
    }
  });

  test('nobody at all runs nothing', async () => {
    for (const q of texts) {
      const { status, text } = await server.query('', q);
      expect([status, text]).toEqual([
        401,
        '{"error":"unable to parse authentication credentials"}\n',
      ]);
    }
  });
});

describe('databases of others', () => {
  const foreign = [
    'only_secretrival',
    'only_secretroot',
    '\u00012\u0001d',
    '\u00010\u0001d',
    'd\u0001',
  ];
  const statements = (db: string) => {
    const name = `"${db}"`;
    return [
      `SELECT * FROM ${name}..m`,
      `SELECT * FROM ${name}../.*/`,
      `SELECT * FROM (SELECT * FROM ${name}..m)`,
      `SELECT v INTO ${name}..m FROM m`,
      `SELECT v INTO x FROM ${name}..m`,
      `EXPLAIN ANALYZE SELECT v FROM ${name}..m`,
      `SHOW MEASUREMENTS ON ${name}`,
      `SHOW TAG KEYS ON ${name}`,
      `SHOW TAG VALUES ON ${name} WITH KEY = host`,
      `SHOW FIELD KEYS ON ${name}`,
      `SHOW SERIES ON ${name}`,
      `SHOW SERIES CARDINALITY ON ${name}`,
      `SHOW SERIES EXACT CARDINALITY ON ${name}`,
      `SHOW MEASUREMENT CARDINALITY ON ${name}`,
      `SHOW RETENTION POLICIES ON ${name}`,
      `CREATE RETENTION POLICY p ON ${name} DURATION 2h REPLICATION 1`,
      `ALTER RETENTION POLICY autogen ON ${name} DURATION 2h`,
      `DROP RETENTION POLICY autogen ON ${name}`,
      `GRANT READ ON ${name} TO reader`,
      `DROP DATABASE ${name}`,
    ];
  };

  test.each(['acme:acme', 'default:root'])(
    'are answered to %s as if they were not there',
    async (who) => {
      for (const db of foreign.filter((name) => name !== `only_${secretOf(who)}`)) {
        for (const [i, q] of statements(db).entries()) {
          const { status, text } = await server.query(who, q);
          // A name that belongs to another tenant must look like one that does not exist.
          const unknown = await server.query(who, statements('nosuch')[i]!);
          const name = JSON.stringify(db).slice(1, -1);
          expect([q, status, text.replaceAll(name, 'nosuch')]).toEqual([
            q,
            unknown.status,
            unknown.text,
          ]);
        }
      }
    },
  );

  test('cannot be written to, nor made', async () => {
    for (const db of foreign) {
      const { status } = await server.write('acme:acme', 'm v=1', db);
      expect(status).toBe(404);
      const bucket = encodeURIComponent(db);
      const v2 = await server.send('acme:acme', `/api/v2/write?bucket=${bucket}`, {
        method: 'POST',
        body: 'm v=1',
      });
      expect([v2.status, JSON.parse(v2.text)]).toEqual([
        404,
        { code: 'not found', message: `bucket "${db}" not found` },
      ]);
    }
    for (const db of foreign.slice(2)) {
      const { text } = await server.query('acme:acme', `CREATE DATABASE "${db}"`);
      expect(text).toContain('invalid name');
      const body = JSON.stringify({ name: db });
      const made = await server.send('acme:acme', '/api/v2/buckets', { method: 'POST', body });
      expect(made.status).toBe(422);
    }
  });
});

describe('endpoints', () => {
  const write = (db: string) => ({ path: `/write?db=${db}`, body: 'm,host=h v=1 1' });
  const writeV2 = (bucket: string) => ({
    path: `/api/v2/write?bucket=${bucket}`,
    body: 'm,host=h v=1 1',
  });
  // Expected status of each, in the order of `everybody`.
  const rows: [string, { path: string; body?: string; method?: string }, number[]][] = [
    ['write', write('d'), [204, 204, 204, 403, 204, 403]],
    ['write to an unknown database', write('nosuch'), [404, 404, 404, 404, 404, 404]],
    ['v2 write', writeV2('d'), [204, 204, 204, 403, 204, 403]],
    ['v2 write with a policy', writeV2('d/autogen'), [204, 204, 204, 403, 204, 403]],
    ['v2 write to an unknown bucket', writeV2('nosuch'), [404, 404, 404, 404, 404, 404]],
    ['buckets', { path: '/api/v2/buckets' }, [200, 200, 200, 200, 200, 200]],
    ['a bucket', { path: '/api/v2/buckets?name=d' }, [200, 200, 200, 200, 200, 404]],
    [
      'making a bucket',
      { path: '/api/v2/buckets', body: '{"name":"d"}' },
      [422, 422, 403, 403, 403, 403],
    ],
    ['orgs', { path: '/api/v2/orgs' }, [200, 200, 200, 200, 200, 200]],
    ['Flux', { path: '/api/v2/query', body: '{}' }, [501, 501, 501, 501, 501, 501]],
  ];

  test.each(rows)('%s', async (_, { path, body }, expected) => {
    const init: RequestInit = body === undefined ? {} : { method: 'POST', body };
    const statuses: number[] = [];
    for (const person of everybody) {
      const { status, text } = await server.send(person, path, init);
      expectOwnOnly(text);
      statuses.push(status);
    }
    expect(statuses).toEqual(expected);
    for (const login of ['', 'acme:wrong', strangers['a user that was revoked']]) {
      const { status, text } = await server.send(login, path, init);
      expect(status).toBe(401);
      expectOwnOnly(text);
      if (path.startsWith('/api/v2/')) {
        expect(JSON.parse(text)).toEqual({ code: 'unauthorized', message: 'unauthorized access' });
      }
    }
  });

  test.each(['/ping', '/health', '/ready', '/status', '/api/v2/setup', '/api/v2/health'])(
    '%s is open to all',
    async (path) => {
      const statuses = await Promise.all(
        ['', 'acme:acme', 'acme:wrong'].map(async (login) => {
          const { status, text } = await server.send(login, path);
          expectOwnOnly(text);
          return status;
        }),
      );
      expect(new Set(statuses).size).toBe(1);
      expect(statuses[0]).toBeLessThan(300);
    },
  );

  test('an organisation is called like its tenant', async () => {
    const org = async (login: string) => {
      const { text } = await server.send(login, '/api/v2/orgs');
      return (JSON.parse(text) as { orgs: { name: string }[] }).orgs.map(({ name }) => name);
    };
    expect(await org('acme:acme')).toEqual(['acme']);
    expect(await org('default:root')).toEqual(['polyrow']);
  });
});

describe('what one tenant does', () => {
  const everything = async (login: string) => {
    const answers = await Promise.all(
      ['SHOW DATABASES', 'SHOW SERIES', 'SELECT * FROM /.*/', 'SHOW USERS'].map((q) =>
        server.result(login, q),
      ),
    );
    return JSON.stringify(answers);
  };
  let before: string[];
  beforeEach(async () => {
    before = await Promise.all(['acme:acme', 'default:root'].map(everything));
  });

  test('does nothing to others', async () => {
    for (const q of [
      'SELECT v INTO m FROM m',
      'DELETE FROM /.*/',
      'DROP SERIES FROM /.*/',
      'DROP MEASUREMENT m',
      'CREATE RETENTION POLICY p ON d DURATION 1h REPLICATION 1 DEFAULT',
      'DROP RETENTION POLICY autogen ON d',
      'DROP USER owner',
      "SET PASSWORD FOR reader = 'x'",
      'REVOKE ALL ON d FROM reader',
      'DROP DATABASE d',
    ]) {
      await server.query('rival:rival', q);
    }
    expect(JSON.stringify(await server.result('rival:rival', 'SHOW DATABASES'))).not.toContain(
      '"d"',
    );
    expect(await Promise.all(['acme:acme', 'default:root'].map(everything))).toEqual(before);
  });
});
