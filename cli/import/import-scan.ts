// Moves the keys of a Redis that refuses replicas, by SCAN and DUMP. Writes during the move may be missing.

import type { ImportView } from './import-view.ts';
import { type Endpoint, RedisError, type Reply, RespLink } from './resp-link.ts';
import type { Target } from './target.ts';

export interface ScanProgress {
  db: number;
  cursor: string;
}

const pageKeys = 256;

export async function importByScan(
  from: Endpoint,
  target: Target,
  view: ImportView,
  start: ScanProgress | undefined,
  save: (progress: ScanProgress) => void,
): Promise<void> {
  const link = await RespLink.open(from);
  try {
    const keyspace = String(await link.call('INFO', 'keyspace'));
    const databases = [...keyspace.matchAll(/^db(\d+):keys=(\d+)/gm)].map(([, db, keys]) => ({
      db: Number(db),
      keys: Number(keys),
    }));
    const total = databases.reduce((sum, { keys }) => sum + keys, 0);
    let seen = 0;
    let bytes = 0;
    for (const { db } of databases.sort((a, b) => a.db - b.db)) {
      const to = target.databases.of(db);
      if (to === undefined || (start !== undefined && db < start.db)) continue;
      await link.call('SELECT', String(db));
      await target.select(to);
      let cursor = start?.db === db ? start.cursor : '0';
      do {
        const page = (await link.call('SCAN', cursor, 'COUNT', String(pageKeys))) as [
          Buffer,
          Buffer[],
        ];
        bytes += await copyKeys(link, target, to, page[1]);
        await target.link.drained();
        cursor = String(page[0]);
        if (cursor !== '0') save({ db, cursor });
        seen += page[1].length;
        view.loading(seen / total, bytes, target.tally.keys);
      } while (cursor !== '0');
      save({ db: db + 1, cursor: '0' });
    }
    view.loaded();
  } finally {
    link.close();
  }
}

/** Answers how many bytes there were. */
async function copyKeys(
  link: RespLink,
  target: Target,
  db: number,
  keys: Buffer[],
): Promise<number> {
  const now = Date.now();
  const asked = keys.map((key): Promise<Reply>[] => [
    link.ask(['PTTL', key]),
    link.ask(['DUMP', key]),
  ]);
  let bytes = 0;
  for (const [i, key] of keys.entries()) {
    const [left, payload] = await Promise.all(asked[i]!);
    if (payload instanceof RedisError) target.fail(`key ${key.toString()}`, payload);
    if (!Buffer.isBuffer(payload)) continue;
    bytes += payload.length;
    await target.putDumped(db, key, payload, Number(left) > 0 ? now + Number(left) : 0);
  }
  return bytes;
}
