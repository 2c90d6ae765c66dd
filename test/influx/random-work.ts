// Random bodies of points, deletions and queries, for comparing a store with another.

import type { Random } from '../support/random.ts';

const measurements = ['m', 'cpu', 'sp\\ ace'];
export const hosts = Array.from({ length: 30 }, (_, n) => `h${n}`);

/** Fields have one type each: that partitions may know a field by different types is told below. */
export function randomBody(random: Random): string {
  const lines: string[] = [];
  for (let left = 1 + random.below(60); left > 0; left--) {
    const tags = [`host=${random.pick(hosts)}`];
    if (random.chance(0.3)) tags.push(`region=${random.pick(['eu', 'us'])}`);
    const fields: string[] = [];
    if (random.chance(0.7)) fields.push(`f=${random.below(1000) / 8}`);
    if (random.chance(0.5)) fields.push(`i=${random.below(1000) - 500}i`);
    if (random.chance(0.1)) fields.push(`i2=${2n ** 62n + BigInt(random.below(100))}i`);
    if (random.chance(0.3)) fields.push(`b=${random.pick(['true', 'false'])}`);
    if (random.chance(0.3) || fields.length === 0) fields.push(`s="t ${random.below(50)}"`);
    // Some weeks, so several shards.
    const time = 1_600_000_000 + random.below(30 * 86_400);
    const name = random.pick(measurements);
    lines.push(`${name},${tags.join(',')} ${fields.join(',')} ${time}000000000`);
  }
  return lines.join('\n');
}

export function randomDeletion(random: Random): string {
  const host = random.pick(hosts);
  const from = 1_600_000_000 + random.below(30 * 86_400);
  return random.pick([
    `DELETE FROM m WHERE host = '${host}' AND time > ${from}s`,
    `DELETE WHERE time > ${from}s AND time < ${from + 3600}s`,
    `DROP SERIES FROM cpu WHERE host = '${host}'`,
    'DROP MEASUREMENT "sp ace"',
  ]);
}

export function randomQuery(random: Random): string {
  const from = 1_600_000_000 + random.below(20 * 86_400);
  const where = random.pick([
    '',
    ` WHERE host = '${random.pick(hosts)}'`,
    ` WHERE host =~ /h[12]/ AND time >= ${from}s`,
    ` WHERE time >= ${from}s AND time < ${from + 5 * 86_400}s AND i > 0`,
  ]);
  const group = random.pick(['', ' GROUP BY host', ' GROUP BY *', ' GROUP BY region']);
  const order = random.chance(0.3) ? ' ORDER BY time DESC' : '';
  const limit = random.chance(0.3) ? ` LIMIT ${1 + random.below(20)}` : '';
  const name = random.pick(['m', 'cpu', '"sp ace"', '/.*/', 'nosuch']);
  const call = random.pick(['count', 'first', 'last', 'max', 'min', 'mean', 'sum', 'spread']);
  const field = random.pick(['f', 'i', 'i2', 'b']);
  return random.pick([
    `SELECT * FROM ${name}${where}${group}${order}${limit}`,
    `SELECT ${field}, s, host FROM ${name}${where}${order}${limit}`,
    `SELECT ${call}(${field}) FROM ${name}${where}${group}`,
    `SELECT ${call}(i), count(s) FROM ${name} WHERE time >= ${from}s AND time < ${from + 864_000}s GROUP BY time(1d), region fill(0)`,
    `SELECT top(i, 3), host FROM ${name}${where}`,
    'SHOW SERIES',
    'SHOW SERIES CARDINALITY; SHOW SERIES EXACT CARDINALITY FROM m',
    'SHOW MEASUREMENTS; SHOW MEASUREMENT EXACT CARDINALITY',
    'SHOW TAG KEYS; SHOW FIELD KEYS',
    'SHOW TAG VALUES WITH KEY = host LIMIT 7 OFFSET 3',
    `SHOW TAG VALUES FROM m WITH KEY IN (host, region)${where.replace(/ AND (time|i) .*/, '')}`,
  ]);
}
