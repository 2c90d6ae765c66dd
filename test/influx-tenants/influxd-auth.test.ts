// Logins, privileges and users as influxd has them when it asks for credentials: the same requests go to both.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { InfluxProcess } from '../support/influxd.ts';
import { TenantServer } from './tenant-server.ts';

/** Where ours is another on purpose, and why. */
const differences: Readonly<Record<string, string>> = {
  'SHOW TAG KEYS FROM e..m': 'influxd looks at ON only, and tells of what a source names',
  'SHOW SERIES FROM e..m': 'the same',
  'SHOW SERIES EXACT CARDINALITY ON e': 'influxd asks for no privilege, and answers nothing',
  'SHOW TAG KEY CARDINALITY ON e': 'the same',
  'SHOW TAG VALUES CARDINALITY ON e WITH KEY = t': 'the same',
  'SHOW FIELD KEY CARDINALITY ON e': 'the same',
  'SHOW CONTINUOUS QUERIES': 'influxd names databases that who asks has nothing on',
};

const owner = 'root:root';

/** By all people. What is refused needs a privilege; what is not changes nothing for the next ones. */
const statements = `
SELECT * FROM m
SELECT * FROM e..m
SELECT * FROM m, e..m
SELECT v FROM (SELECT v FROM e..m)
SELECT * FROM nodb..m
SELECT * FROM /x/
SELECT * INTO e..x FROM e..m
SELECT v INTO e..x FROM m
EXPLAIN SELECT * FROM e..m
SHOW DATABASES
SHOW MEASUREMENTS
SHOW MEASUREMENTS ON e
SHOW TAG KEYS
SHOW TAG KEYS ON e
SHOW TAG KEYS FROM e..m
SHOW TAG VALUES WITH KEY = t
SHOW TAG VALUES ON e WITH KEY = t
SHOW FIELD KEYS
SHOW FIELD KEYS ON e
SHOW SERIES
SHOW SERIES ON e
SHOW SERIES FROM e..m
SHOW SERIES CARDINALITY
SHOW SERIES CARDINALITY ON e
SHOW SERIES EXACT CARDINALITY ON e
SHOW MEASUREMENT CARDINALITY
SHOW MEASUREMENT CARDINALITY ON e
SHOW TAG KEY CARDINALITY ON e
SHOW TAG VALUES CARDINALITY ON e WITH KEY = t
SHOW FIELD KEY CARDINALITY ON e
SHOW RETENTION POLICIES
SHOW RETENTION POLICIES ON e
SHOW GRANTS FOR r
SHOW GRANTS FOR n
SHOW GRANTS FOR nosuch
SHOW CONTINUOUS QUERIES
SHOW SUBSCRIPTIONS
CREATE DATABASE e
CREATE DATABASE e; DROP DATABASE nodb
DROP DATABASE nodb
CREATE RETENTION POLICY x ON d DURATION 24h REPLICATION 1
ALTER RETENTION POLICY autogen ON d DURATION 0s
DROP RETENTION POLICY nosuch ON d
DROP MEASUREMENT nosuch
DROP SERIES FROM nosuch
DELETE FROM nosuch
DROP SHARD 77
KILL QUERY 999999
CREATE USER r WITH PASSWORD 'r'
CREATE USER r WITH PASSWORD 'another'
CREATE USER "" WITH PASSWORD 'x'
CREATE USER u WITH PASSWORD 'secret' WITH ALL PRIVILEGES; DROP USER u
CREATE USER u WITH PASSWORD
DROP USER nosuch
SET PASSWORD FOR nosuch = 'secret'
SET PASSWORD FOR r = 'r'
GRANT READ ON nodb TO r
GRANT READ ON d TO nosuch
GRANT READ ON d TO r
GRANT ALL TO nosuch
GRANT FOO ON d TO r
REVOKE READ ON nodb FROM r
REVOKE WRITE ON d FROM r
REVOKE ALL PRIVILEGES FROM n
SELECT * FROM m; DROP DATABASE d
SELECT FROM
`
  .trim()
  .split('\n');

const logins = [owner, 'r:r', 'w:w', 'a:a', 'n:n', ''];
/** Each of these takes the longer the more there are. */
const wrongLogins = ['r:wrong', 'nosuch:x'];

interface Reply {
  status: number;
  body: string;
  challenge: string | null;
}

describe.skipIf(!InfluxProcess.isInstalled)('as influxd with credentials', () => {
  let theirs: InfluxProcess;
  let ours: TenantServer;

  const ask = async (url: string, path: string, init: RequestInit): Promise<Reply> => {
    const response = await fetch(url + path, init);
    const body = await response.text();
    return { status: response.status, body, challenge: response.headers.get('www-authenticate') };
  };
  const both = async (path: string, init: RequestInit = {}): Promise<[Reply, Reply]> => [
    await ask(ours.url, path, init),
    await ask(theirs.url, path, init),
  ];
  const query = (login: string, q: string, more: Record<string, string> = { db: 'd' }) =>
    both(`/query?${new URLSearchParams({ q, ...more }).toString()}`, {
      method: 'POST',
      headers: basic(login),
    });
  const basic = (login: string): Record<string, string> =>
    login === '' ? {} : { Authorization: `Basic ${Buffer.from(login).toString('base64')}` };

  beforeAll(async () => {
    [theirs, ours] = await Promise.all([
      InfluxProcess.start({ asksForCredentials: true }),
      TenantServer.start(),
    ]);
    ours.control.close('default');
    ours.control.addUser('default', 'root', { password: 'root', admin: true });
    const makeOwner = { q: "CREATE USER root WITH PASSWORD 'root' WITH ALL PRIVILEGES" };
    await fetch(`${theirs.url}/query`, { method: 'POST', body: new URLSearchParams(makeOwner) });
    for (const q of [
      'CREATE DATABASE d',
      'CREATE DATABASE e',
      ...['r', 'w', 'a', 'n'].map((user) => `CREATE USER ${user} WITH PASSWORD '${user}'`),
      'GRANT READ ON d TO r',
      'GRANT WRITE ON d TO w',
      'GRANT ALL PRIVILEGES ON d TO a',
    ]) {
      const [mine, other] = await query(owner, q);
      expect({ q, ...mine }).toEqual({ q, ...other });
      expect(mine.body).not.toContain('error');
    }
    for (const db of ['d', 'e']) {
      const init = { method: 'POST', headers: basic(owner), body: 'm,t=a v=1 1000000000' };
      for (const { status } of await both(`/write?db=${db}`, init)) expect(status).toBe(204);
    }
  });

  afterAll(async () => {
    await Promise.all([theirs?.remove(), ours?.close()]);
  });

  const isDifferent = (q: string, login: string) =>
    Object.hasOwn(differences, q) && login !== owner && login !== '';

  test.each(statements.map((q, i) => [q, i] as const))('%s', async (q, i) => {
    for (const login of i % 20 === 0 ? [...logins, ...wrongLogins] : logins) {
      const [mine, other] = await query(login, q);
      // Plans are each server's own.
      if (isDifferent(q, login) || (q.startsWith('EXPLAIN') && other.status === 200)) continue;
      expect({ login, ...mine }).toEqual({ login, ...other });
    }
  });

  test('grants', async () => {
    for (const q of [
      'GRANT READ ON d TO n',
      'SHOW GRANTS FOR n',
      'GRANT ALL ON d TO n',
      'SHOW GRANTS FOR n',
      'REVOKE READ ON d FROM n',
      'SHOW GRANTS FOR n',
      'GRANT READ ON e TO n',
      'DROP DATABASE e',
      'CREATE DATABASE e',
      'SHOW GRANTS FOR n',
      'SHOW GRANTS FOR root',
      'GRANT ALL PRIVILEGES TO n; REVOKE ALL PRIVILEGES FROM n',
    ]) {
      const [mine, other] = await query(owner, q);
      expect({ q, ...mine }).toEqual({ q, ...other });
    }
  });

  test('of writes', async () => {
    const asked = ['d', 'e', 'nodb', ''].flatMap((db) =>
      [...logins, 'r:wrong'].map((login) => [db, login] as const),
    );
    for (const [db, login] of asked) {
      const init = { method: 'POST', headers: basic(login), body: 'm,t=b v=1 1' };
      const [mine, other] = await both(`/write?db=${db}`, init);
      expect({ db, login, ...mine }).toEqual({ db, login, ...other });
    }
  });

  test('credentials of every form', async () => {
    const forms: [path: string, authorization?: string][] = [
      ['&u=root&p=root'],
      ['&u=root&p=wrong'],
      ['&u=root&p='],
      ['&u=&p=root'],
      ['', 'Basic !!!'],
      ['', `Basic ${Buffer.from('root').toString('base64')}`],
      ['', `Basic ${Buffer.from('root:').toString('base64')}`],
      ['', `Basic ${Buffer.from(':').toString('base64')}`],
      ['', `basic ${Buffer.from('root:root').toString('base64')}`],
      ['', 'Digest x'],
      ['&u=root&p=wrong', `Basic ${Buffer.from('root:root').toString('base64')}`],
      ['&u=root&p=root', `Basic ${Buffer.from('root:wrong').toString('base64')}`],
    ];
    for (const [parameters, authorization] of forms) {
      const headers: Record<string, string> =
        authorization === undefined ? {} : { Authorization: authorization };
      for (const path of ['/write?db=d', '/query?q=SHOW+DATABASES']) {
        const init = { method: 'POST', headers, body: 'm,t=b v=1 1' };
        const [mine, other] = await both(path + parameters, init);
        expect({ path, parameters, authorization, ...mine }).toEqual({
          path,
          parameters,
          authorization,
          ...other,
        });
      }
    }
  });

  test('failures in the form that was asked for', async () => {
    for (const login of ['r:wrong', 'r:r', '']) {
      const headers = { ...basic(login), Accept: 'application/csv' };
      const [mine, other] = await both('/query?q=SHOW+USERS', { headers });
      expect({ login, ...mine }).toEqual({ login, ...other });
      const pretty = await query(login, 'SHOW USERS', { pretty: 'true' });
      expect({ login, ...pretty[0] }).toEqual({ login, ...pretty[1] });
    }
  });

  test('what needs none', async () => {
    for (const path of ['/ping', '/status', '/nothing', '/ping?u=x&p=y']) {
      const [mine, other] = await both(path);
      expect({ path, ...mine }).toEqual({ path, ...other });
    }
  });
});
