// All that an engine of time series holds, as text that tests can compare.

import { maxTime, minTime } from '../../../contracts/series-store.ts';
import { inOneGo } from '../../../universal-row/slices.ts';
import type { PortableSeriesEngine } from '../../series-engine.ts';
import { readAll } from './read-points.ts';

/** Databases, schema, points of these fields, and shards. */
export function engineText(engine: PortableSeriesEngine, fields: readonly string[]): string {
  const lines: string[] = [];
  for (const database of engine.databases()) {
    const { name, retentionPolicies, defaultRetentionPolicy } = database;
    lines.push(`database ${name} ${defaultRetentionPolicy}`);
    for (const policy of retentionPolicies) {
      const retentionPolicy = policy.name;
      lines.push(`policy ${retentionPolicy} ${policy.duration} ${policy.shardGroupDuration}`);
      const place = { database: name, retentionPolicy };
      for (const measurement of inOneGo(engine.measurements(place))) {
        const keys = engine.fieldKeys({ ...place, measurement });
        lines.push(`measurement ${measurement} ${JSON.stringify(keys)}`);
        lines.push(...inOneGo(engine.seriesKeys({ ...place, measurement })));
        const range = { from: minTime, to: maxTime, descending: false };
        const scan = engine.scan({ ...place, measurement, fields, ...range });
        lines.push(...readAll(inOneGo(scan), fields).map((point) => point.join(' ')));
      }
    }
  }
  for (const { number, database, policy, startSeconds, seconds } of engine.shards()) {
    lines.push(`shard ${number} ${database} ${policy} ${startSeconds} ${seconds}`);
  }
  return lines.join('\n');
}
