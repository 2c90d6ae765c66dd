import { beforeEach, describe, expect, test } from 'vitest';
import type { UserDefinition } from '../../../contracts/tenancy/definitions.ts';
import { parseQuery } from '../influxql/parser/parser.ts';
import { QueryError } from '../influxql/result.ts';
import type { StatementContext } from './context.ts';
import { executeStatement } from './execute.ts';
import { QueryRegistry } from './query-registry.ts';
import { FakeStore, now, unused } from './testing/fake-store.ts';
import type { UserChange, UserDirectory } from './user-directory.ts';

/** Users in a map; passwords as they are. */
class FakeDirectory implements UserDirectory {
  readonly known = new Map<string, UserDefinition>();
  readonly changes: UserChange[] = [];

  add(name: string, more: Partial<UserDefinition> = {}): void {
    this.known.set(name, {
      tenant: 't',
      name,
      enabled: true,
      open: false,
      secrets: [name],
      rules: '',
      influxAdmin: false,
      grants: {},
      ...more,
    });
  }

  users = () => this.known.values();
  user = (name: string) => this.known.get(name);
  hasPassword = async (user: UserDefinition, password: string) => user.secrets.includes(password);
  change = async (change: UserChange) => {
    if (change.user === 'failing') throw new QueryError('the control plane is away');
    this.changes.push(change);
  };
}

let users: FakeDirectory;
let store: FakeStore;

beforeEach(() => {
  users = new FakeDirectory();
  store = new FakeStore();
  users.add('admin', { influxAdmin: true });
  users.add('ro', { grants: { db: 'read' } });
  users.add('rw', { grants: { db: 'all', b: 'write', a: 'read' } });
});

async function run(text: string): Promise<unknown> {
  const [statement] = parseQuery(text, { now });
  const context: StatementContext = {
    store,
    database: 'db',
    retentionPolicy: '',
    now,
    queries: new QueryRegistry({
      clock: { now: () => 0, monotonic: () => 0 },
      maxConcurrent: 0,
    }),
    readOnlyRequest: false,
    server: { version: '1', startedAt: 0, hostname: 'h' },
    select: () => unused(),
    users,
  };
  const rows: unknown[] = [];
  try {
    for await (const { columns, values, rows: count } of executeStatement(statement!, context)
      .series) {
      rows.push(columns);
      for (let row = 0; row < count; row++) rows.push(values.map((column) => column[row]));
    }
  } catch (error) {
    if (error instanceof QueryError) return error.message;
    throw error;
  }
  return rows;
}

describe('users', () => {
  const changes = async (text: string) => {
    expect(await run(text)).toEqual([]);
    return users.changes.splice(0);
  };

  test('are listed in the order they were made', async () => {
    expect(await run('SHOW USERS')).toEqual([
      ['user', 'admin'],
      ['admin', true],
      ['ro', false],
      ['rw', false],
    ]);
  });

  test('are made', async () => {
    const kind = 'createUser';
    expect(await changes("CREATE USER x WITH PASSWORD 'p'")).toEqual([
      { kind, user: 'x', password: 'p', admin: false },
    ]);
    expect(await changes("CREATE USER x WITH PASSWORD 'p' WITH ALL PRIVILEGES")).toEqual([
      { kind, user: 'x', password: 'p', admin: true },
    ]);
  });

  test('are made a second time only as they are', async () => {
    expect(await changes("CREATE USER ro WITH PASSWORD 'ro'")).toEqual([]);
    for (const more of ["'other'", "'ro' WITH ALL PRIVILEGES"]) {
      expect(await run(`CREATE USER ro WITH PASSWORD ${more}`)).toBe('user already exists');
    }
    expect(await run(`CREATE USER "" WITH PASSWORD 'x'`)).toBe('username required');
  });

  test('get another password, and go', async () => {
    expect(await changes("SET PASSWORD FOR ro = 'p'")).toEqual([
      { kind: 'setPassword', user: 'ro', password: 'p' },
    ]);
    expect(await changes('DROP USER ro')).toEqual([{ kind: 'dropUser', user: 'ro' }]);
  });

  test('are changed only where there are such', async () => {
    for (const text of [
      'DROP USER x',
      "SET PASSWORD FOR x = 'p'",
      'GRANT READ ON db TO x',
      'GRANT ALL TO x',
      'REVOKE ALL ON nosuch FROM x',
      'SHOW GRANTS FOR x',
    ]) {
      expect(await run(text), text).toBe('user not found');
    }
    expect(await run('GRANT READ ON nosuch TO ro')).toBe('database not found: nosuch');
    expect(users.changes).toEqual([]);
  });

  test('learn why a change could not be made', async () => {
    expect(await run("CREATE USER failing WITH PASSWORD 'p'")).toBe('the control plane is away');
  });
});

describe('grants', () => {
  test('are shown', async () => {
    const columns = ['database', 'privilege'];
    expect(await run('SHOW GRANTS FOR rw')).toEqual([
      columns,
      ['a', 'READ'],
      ['b', 'WRITE'],
      ['db', 'ALL PRIVILEGES'],
    ]);
    expect(await run('SHOW GRANTS FOR admin')).toEqual([columns]);
  });

  // Remaining privileges, as in influxd 1.6; '-' for none, '=' for no change.
  test.each([
    ['GRANT READ ON db TO admin', 'read'],
    ['GRANT ALL ON db TO ro', 'all'],
    ['GRANT WRITE ON db TO ro', 'write'],
    ['GRANT READ ON db TO rw', 'read'],
    ['GRANT READ ON db TO ro', '='],
    ['REVOKE READ ON db FROM rw', 'write'],
    ['REVOKE WRITE ON db FROM rw', 'read'],
    ['REVOKE ALL ON db FROM rw', '-'],
    ['REVOKE READ ON db FROM ro', '-'],
    ['REVOKE WRITE ON db FROM ro', '='],
    ['REVOKE READ ON db FROM admin', '='],
  ])('%s leaves %s', async (text, left) => {
    expect(await run(text)).toEqual([]);
    const [change] = users.changes;
    const privilege = change?.kind === 'setGrant' ? (change.privilege ?? '-') : '=';
    expect(privilege).toBe(left);
  });

  test('of everything make an administrator', async () => {
    await run('GRANT ALL PRIVILEGES TO ro');
    await run('REVOKE ALL FROM admin');
    expect(users.changes).toEqual([
      { kind: 'setAdmin', user: 'ro', admin: true },
      { kind: 'setAdmin', user: 'admin', admin: false },
    ]);
  });

  test('go before their database does', async () => {
    await run('DROP DATABASE db');
    expect(users.changes.map(({ user }) => user)).toEqual(['ro', 'rw']);
    expect(store.changes).toEqual([{ kind: 'dropDatabase', database: 'db' }]);
    users.add('failing', { grants: { db: 'read' } });
    expect(await run('DROP DATABASE db')).toBe('the control plane is away');
    expect(store.changes).toHaveLength(1);
  });
});
