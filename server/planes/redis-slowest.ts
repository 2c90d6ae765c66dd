// The slowest commands, in the form of the admin API.

import type { RedisServer } from '../../access/redis/server.ts';
import type { SlowlogEntry, SlowlogQuery } from '../../control/monitor/slowlog.ts';

export function slowest(
  server: RedisServer | undefined,
  { tenant, limit }: SlowlogQuery,
): SlowlogEntry[] {
  return (server?.slowest(limit, tenant) ?? []).map(({ tenant: number, entry }) => ({
    id: entry.serial,
    at: entry.at,
    durationMicros: Math.round(entry.spentMs * 1000),
    tenant: number,
    user: entry.user,
    address: entry.client,
    text: entry.words.map((word) => shownWord(word)).join(' '),
    ru: entry.ru,
  }));
}

/** The argument as it would be typed; quoted if possible. */
function shownWord(word: Buffer): string {
  const text = word.toString('utf8');
  return /^[!-~]+$/.test(text) && !/["'\\]/.test(text) ? text : JSON.stringify(text);
}
