// Every kind of statement, and who may run it. A kind that is added to the syntax must be added here: the type
// says so.

import type { ShowKind, Statement } from '../../access/influx/influxql/ast.ts';

/** Privilege required on the database `d`, or role. */
export type Needs = 'nobody' | 'read' | 'write' | 'read and write' | 'admin';

interface Example {
  q: string;
  needs: Needs;
}

type Kinds = Exclude<Statement['kind'], 'show'> | `show ${ShowKind}`;

const all = (needs: Needs, ...texts: string[]): Example[] => texts.map((q) => ({ q, needs }));

/** Destructive statements come last, and leave the objects that later ones need. */
export const examples: Readonly<Record<Kinds, readonly Example[]>> = {
  select: [
    ...all(
      'read',
      'SELECT * FROM m',
      'SELECT count(*) FROM /.*/',
      'SELECT v FROM d..m',
      'SELECT v FROM d.autogen.m',
      'SELECT max(v) FROM (SELECT v FROM m)',
      'SELECT v FROM (SELECT v FROM (SELECT v FROM d..m)), m',
      'SELECT mean(v) FROM m GROUP BY *',
    ),
    ...all('read and write', 'SELECT v INTO copy FROM m', 'SELECT * INTO d..copy FROM d../m/'),
  ],
  explain: all('read', 'EXPLAIN SELECT v FROM m', 'EXPLAIN ANALYZE SELECT v FROM m'),
  'show databases': all('nobody', 'SHOW DATABASES'),
  'show measurements': all(
    'read',
    'SHOW MEASUREMENTS',
    'SHOW MEASUREMENTS ON d',
    'SHOW MEASUREMENTS WITH MEASUREMENT =~ /.*/',
  ),
  'show tagKeys': all('read', 'SHOW TAG KEYS', 'SHOW TAG KEYS FROM d..m'),
  'show tagValues': all('read', 'SHOW TAG VALUES WITH KEY = host'),
  'show fieldKeys': all('read', 'SHOW FIELD KEYS', 'SHOW FIELD KEYS ON d FROM /.*/'),
  'show series': all('read', 'SHOW SERIES', 'SHOW SERIES ON d'),
  'show retentionPolicies': all('read', 'SHOW RETENTION POLICIES ON d'),
  'show queries': all('read', 'SHOW QUERIES'),
  'show continuousQueries': all('read', 'SHOW CONTINUOUS QUERIES'),
  'show users': all('admin', 'SHOW USERS'),
  'show grants': all('admin', 'SHOW GRANTS FOR reader'),
  'show subscriptions': all('admin', 'SHOW SUBSCRIPTIONS'),
  'show shards': all('admin', 'SHOW SHARDS'),
  'show shardGroups': all('admin', 'SHOW SHARD GROUPS'),
  'show stats': all('admin', 'SHOW STATS', "SHOW STATS FOR 'database'"),
  'show diagnostics': all('admin', 'SHOW DIAGNOSTICS'),
  'show seriesCardinality': all(
    'read',
    'SHOW SERIES CARDINALITY',
    'SHOW SERIES EXACT CARDINALITY ON d',
  ),
  'show measurementCardinality': all(
    'read',
    'SHOW MEASUREMENT CARDINALITY',
    'SHOW MEASUREMENT EXACT CARDINALITY',
  ),
  'show tagKeyCardinality': all('read', 'SHOW TAG KEY CARDINALITY'),
  'show tagValuesCardinality': all('read', 'SHOW TAG VALUES CARDINALITY WITH KEY = host'),
  'show fieldKeyCardinality': all('read', 'SHOW FIELD KEY CARDINALITY'),
  unsupported: all('nobody', 'DROP CONTINUOUS QUERY c ON d'),
  killQuery: all('admin', 'KILL QUERY 999999'),
  createUser: all('admin', "CREATE USER made WITH PASSWORD 'made'"),
  setPassword: all('admin', "SET PASSWORD FOR made = 'other'"),
  grant: all('admin', 'GRANT READ ON d TO made', 'GRANT ALL PRIVILEGES TO made'),
  revoke: all('admin', 'REVOKE READ ON d FROM made', 'REVOKE ALL PRIVILEGES FROM made'),
  dropUser: all('admin', 'DROP USER made'),
  createDatabase: all('admin', 'CREATE DATABASE made', 'CREATE DATABASE d'),
  createRetentionPolicy: all('admin', 'CREATE RETENTION POLICY p ON d DURATION 2h REPLICATION 1'),
  alterRetentionPolicy: all('admin', 'ALTER RETENTION POLICY p ON d DURATION 3h'),
  dropRetentionPolicy: all('write', 'DROP RETENTION POLICY p ON d'),
  dropShard: all('admin', 'DROP SHARD 999999'),
  delete: all('write', "DELETE FROM m WHERE host = 'nosuch'", 'DELETE FROM copy'),
  dropSeries: all('write', "DROP SERIES FROM m WHERE host = 'nosuch'", 'DROP SERIES FROM copy'),
  dropMeasurement: all('admin', 'DROP MEASUREMENT copy'),
  dropDatabase: all('admin', 'DROP DATABASE made', 'DROP DATABASE nosuch'),
};
