// Statistics of the engine, summed over its shards.

import type { SeriesEngineStats } from '../series-engine.ts';
import type { PagePool } from './head/page-pool.ts';
import type { LiveShard } from './live-shard.ts';
import type { Maintenance } from './maintenance.ts';

interface StatsParts {
  databases: number;
  shards: readonly LiveShard[];
  pool: PagePool;
  maintenance: Maintenance;
  /** Infinity for no limit. */
  seriesPerDatabase: number;
}

export function engineStats(parts: StatsParts): SeriesEngineStats {
  const { databases, shards, pool, maintenance, seriesPerDatabase } = parts;
  const stats: SeriesEngineStats = {
    databases,
    shards: shards.length,
    series: 0,
    headPoints: 0,
    headBytes: 0,
    indexBytes: 0,
    memoryBytes: pool.idleBytes,
    files: 0,
    diskBytes: 0,
    pendingCompactionBytes: 0,
    extra: {},
  };
  let flushes = 0;
  let compactions = 0;
  let tombstones = 0;
  for (const live of shards) {
    const shard = live.shard.stats();
    stats.series += live.series;
    stats.headPoints += shard.headPoints;
    stats.headBytes += shard.headBytes;
    stats.indexBytes += shard.indexBytes;
    stats.files += shard.files;
    stats.diskBytes += shard.diskBytes;
    stats.pendingCompactionBytes += shard.pendingCompactionBytes;
    flushes += shard.flushes;
    compactions += shard.compactions;
    tombstones += shard.tombstones;
  }
  stats.memoryBytes += stats.headBytes + stats.indexBytes;
  stats.extra = {
    flushes,
    compactions,
    tombstones,
    flush_failures: maintenance.flushFailures,
    compaction_failures: maintenance.compactionFailures,
    idle_page_bytes: pool.idleBytes,
    ...headroom(shards, seriesPerDatabase),
  };
  return stats;
}

/** Series that the fullest database may still get, when there is a limit. */
function headroom(shards: readonly LiveShard[], limit: number): Record<string, number> {
  if (limit === Infinity) return {};
  const counts = new Map<string, number>();
  for (const { span, series } of shards) {
    counts.set(span.database, (counts.get(span.database) ?? 0) + series);
  }
  return { series_headroom: Math.max(0, limit - Math.max(0, ...counts.values())) };
}
