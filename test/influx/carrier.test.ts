// Time series whose pods are behind the link of gateways in other processes answer as those of this thread: the statements
// of the comparison with influxd, over HTTP. TEST_SERIES_CARRIER=tcp runs other tests that way.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { TenantServer } from '../influx-tenants/tenant-server.ts';
import { points } from './points.ts';
import { bodies, changes, queries } from './queries.ts';

describe('four partitions', () => {
  const partitions = 4;
  let here: TenantServer;
  let there: TenantServer;

  beforeAll(async () => {
    [here, there] = await Promise.all([
      TenantServer.start({}, partitions, 'none'),
      TenantServer.start({}, partitions, 'tcp'),
    ]);
    await compare('CREATE DATABASE cmp', 'cmp');
    await write(points.join('\n'), 'cmp');
  });

  afterAll(async () => {
    await Promise.all([here?.close(), there?.close()]);
  });

  /** Both are asked; the answers must be the same, byte by byte. */
  async function compare(q: string, db: string, parameters = {}): Promise<void> {
    const [expected, found] = await Promise.all(
      [here, there].map(async (server) => {
        const { status, text } = await server.query('', q, { db, ...parameters });
        return [status, text];
      }),
    );
    expect(found, q).toEqual(expected);
  }

  async function write(body: string, db: string): Promise<void> {
    const answers = [await here.write('', body, db), await there.write('', body, db)];
    const [expected, found] = answers.map(({ status, text }) => ({ status, text }));
    expect(found, body).toEqual(expected);
  }

  test.each(queries)('%s', async (q) => {
    await compare(q, 'cmp');
  });

  test('answers in pieces', async () => {
    await compare('SELECT * FROM /.*/', 'cmp', { chunked: 'true', chunk_size: '7' });
  });

  test.each(bodies.map((body, i) => [JSON.stringify(body), body, i] as const))(
    'write of %s',
    async (_, body, i) => {
      const db = `w${i}`;
      await compare(`CREATE DATABASE ${db}`, db);
      await write(body, db);
      for (const q of ['SHOW SERIES', 'SHOW FIELD KEYS', 'SELECT count(*) FROM /.*/']) {
        await compare(q, db);
      }
    },
  );

  // Last, as they change what is there.
  test.each(changes.map((q, i) => [i, q] as const))('change %i: %s', async (_, q) => {
    await compare(q, 'cmp');
  });
});
