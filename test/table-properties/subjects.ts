// A table of each model, as its clients see it: ioredis for the databases of Redis, npm `influx` for InfluxDB's.

import { InfluxDB } from 'influx';
import { Redis } from 'ioredis';
import { polyrowHere } from '../cli/polyrow-here.ts';
import type { Polyrow } from '../support/polyrow.ts';

export interface Subject {
  /** Name of the table for `polyrow table`. */
  readonly reference: string;
  /** A new row of about so many bytes; rejects where it is refused. */
  write(bytes?: number): Promise<void>;
  /** As `write`, of a row whose time came long ago; where rows have times. */
  writeOld?(hours: number): Promise<void>;
  /** Changes and deletes what is there, each in every way; what was said to each. */
  changes(): Promise<string[]>;
  /** How many rows there are. */
  count(): Promise<number>;
  close(): Promise<void>;
}

export const modelNames = ['memory', 'kv', 'series'] as const;
export type ModelName = (typeof modelNames)[number];

/**
 * Subject for an unused table. `n` distinguishes its rows from those of other subjects of the
 * table.
 */
export function subjectOf(model: ModelName, server: Polyrow, table: number, n = 0): Subject {
  return model === 'series' ? series(server, `db${table}s`, n) : rows(server, table, n);
}

function rows(server: Polyrow, table: number, n: number): Subject {
  const client = new Redis(server.redisPort, '127.0.0.1', { db: table });
  let next = 0;
  return {
    reference: String(table),
    async write(bytes = 10) {
      await client.set(`row:${n}:${next++}`, 'x'.repeat(bytes));
    },
    async changes() {
      const key = `row:${n}:0`;
      return await said([
        () => client.set(key, 'other'),
        () => client.append(key, 'more'),
        () => client.hset('hash', 'field', 'value'),
        () => client.expire(key, 100),
        () => client.del(key),
        () => client.flushdb(),
        () => client.multi().incr('counter').exec(),
      ]);
    },
    count: () => client.dbsize(),
    async close() {
      await client.quit();
    },
  };
}

function series(server: Polyrow, database: string, n: number): Subject {
  const { hostname: host, port } = new URL(server.influx);
  const client = new InfluxDB({ host, port: Number(port), database });
  const begun = Date.now() - 60_000;
  let next = 0;
  const write = async (timestamp: Date, text: string): Promise<void> => {
    await client.writePoints([
      { measurement: 'm', tags: { n: String(n) }, fields: { text }, timestamp },
    ]);
  };
  return {
    reference: database,
    write: (bytes = 10) => write(new Date(begun + next++), 'x'.repeat(bytes)),
    writeOld: (hours) => write(new Date(Date.now() - hours * 3_600_000), 'old'),
    changes: () =>
      said([
        () => write(new Date(begun), 'other'),
        () => client.query('SELECT * INTO copy FROM m'),
        () => client.query('DELETE FROM m'),
        () => client.dropSeries({ measurement: (m) => m.name('m') }),
        () => client.dropMeasurement('m'),
        () => client.createRetentionPolicy('short', { duration: '2h', replication: 1 }),
        () => client.dropRetentionPolicy('autogen'),
        () => client.dropDatabase(database),
      ]),
    async count() {
      const [found] = await client.query<{ count: number }>('SELECT count(text) FROM m');
      return found?.count ?? 0;
    },
    close: async () => {},
  };
}

/** `done`, or the error, of each. */
async function said(actions: readonly (() => Promise<unknown>)[]): Promise<string[]> {
  const answers: string[] = [];
  for (const action of actions) {
    answers.push(
      await action().then(
        () => 'done',
        (error: Error) => error.message,
      ),
    );
  }
  return answers;
}

/** `polyrow table ...`, as an operator runs it: the table as it answers. */
export async function tableCommand(
  server: Polyrow,
  ...words: string[]
): Promise<Record<string, unknown>> {
  const { code, out, err } = await polyrowHere([
    'table',
    ...words,
    '--data-dir',
    server.dataDir,
    '--json',
  ]);
  if (code !== 0) throw new Error(`${words.join(' ')}: ${code} ${err}`);
  return JSON.parse(out) as Record<string, unknown>;
}
