// The pods of a plane, as its backups and restores take them.

import type { Disk } from '../../universal-row/environment.ts';
import type { Pod } from '../pod.ts';
import type { SeriesPod } from '../series-pod.ts';
import type { PlacedPart } from './chain.ts';
import type { BackupSource } from './plane-backups.ts';
import type { PlaneRestore, RestoreStart } from './plane-restores.ts';
import { RowBackup } from './row-backup.ts';
import { RowRestore } from './row-restore.ts';
import { SeriesBackup } from './series-backup.ts';
import { SeriesRestore } from './series-restore.ts';

/**
 * `sums`: see `RowBackupOptions`. `tableOf` says of which table a number is a partition; undefined for one that is being
 * filled.
 */
export function rowSource(
  model: string,
  pod: Pod,
  sums = (): boolean => true,
  tableOf = (number: number): number | undefined => number,
): BackupSource {
  return {
    model,
    pins: pod.parts.pins,
    begin: (options, scope) =>
      RowBackup.begin({
        ...options,
        pod,
        model,
        wants: (number) => {
          const table = tableOf(number);
          return table !== undefined && scope.table(table);
        },
        sums: sums(),
      }),
  };
}

export function seriesSource(model: string, pod: SeriesPod): BackupSource {
  return {
    model,
    pins: pod.parts.pins,
    begin: async (options, scope) =>
      new SeriesBackup({ ...options, pod, model, wants: (name) => scope.database(name) }),
  };
}

export function rowRestore(
  disk: Disk,
  { sources, tables, replace }: RestoreStart,
  podOf: (table: number) => Pod,
): PlaneRestore {
  const restore = new RowRestore({
    disk,
    sources: sources.filter((parts) => !isSeries(parts)),
    moves: tables,
    podOf,
    replace,
  });
  return {
    get done() {
      return restore.done;
    },
    total: restore.total,
    load: async () => ({ tables: await restore.load(), shards: [], expiredShards: 0 }),
    commit: async () => {
      await restore.ready();
      restore.commit();
    },
    cancel: () => restore.cancel(),
    release: () => restore.release(),
  };
}

export function seriesRestore(
  disk: Disk,
  { sources, tenants, replace }: RestoreStart,
  pod: SeriesPod,
): PlaneRestore {
  const parts = sources.find(isSeries) ?? [];
  const restore = new SeriesRestore({ disk, pod, parts, moves: tenants, replace });
  return {
    get done() {
      return restore.done;
    },
    total: restore.total,
    load: async () => {
      const { shards, expired } = await restore.load();
      return { tables: [], shards, expiredShards: expired };
    },
    commit: () => restore.commit(),
    cancel: () => restore.cancel(),
    release: () => restore.release(),
  };
}

function isSeries(parts: readonly PlacedPart[]): boolean {
  return parts.at(-1)?.shards !== undefined;
}
