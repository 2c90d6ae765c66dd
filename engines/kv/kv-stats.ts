// Statistics of an engine.

import type { EngineStats } from '../engine.ts';
import type { KvTable } from './kv-table.ts';
import type { LevelStore } from './level-store.ts';
import type { Purger } from './purge.ts';
import type { RecordStore } from './record-store.ts';

export function statsOf(
  store: RecordStore,
  level: LevelStore,
  purger: Purger,
  tables: Iterable<KvTable>,
  diskBytes: number,
): EngineStats {
  const { cache, queue, loader, misses } = store;
  const { lru, hits } = cache;
  const levelZero = level.levelZero();
  let rows = 0;
  let filterBytes = 0;
  for (const { state } of tables) {
    rows += state.rows;
    filterBytes += state.filter?.bytes ?? 0;
  }
  return {
    rows,
    memoryBytes: lru.bytes + lru.passingBytes + queue.waitingBytes + filterBytes,
    usedBytes: Math.max(0, lru.bytes - cache.absentBytes) + queue.waitingBytes,
    diskBytes: diskBytes,
    pendingReclaimBytes: purger.pendingBytes,
    cacheHits: hits,
    cacheMisses: misses,
    extra: {
      kv_waiting_bytes: queue.waitingBytes,
      kv_batches_total: queue.batches,
      kv_batch_records_total: queue.writtenRecords,
      kv_batch_bytes_total: queue.writtenBytes,
      kv_last_batch_ms: queue.lastBatchMs,
      kv_max_batch_ms: queue.maxBatchMs,
      kv_read_groups_total: loader.groups,
      kv_read_pages_total: loader.pages,
      kv_read_records_total: loader.records,
      kv_sync_reads_total: loader.syncReads,
      kv_purged_records_total: purger.records,
      kv_cached_items: lru.items,
      kv_level0_files: levelZero.files,
      kv_level0_bytes: levelZero.bytes,
      kv_level0_flushed_bytes_total: levelZero.flushedBytes,
      kv_level0_compacted_bytes_total: levelZero.compactedBytes,
    },
  };
}
