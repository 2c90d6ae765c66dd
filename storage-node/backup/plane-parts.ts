// The pods of a plane, as its backups and restores take them.

import type { Pod } from '../pod.ts';
import type { SeriesPod } from '../series-pod.ts';
import type { PlacedPart } from './chain.ts';
import type { ChunkDisk } from './chunk-format.ts';
import type { BackupSource } from './plane-backups.ts';
import type { PlaneRestore, RestoreStart } from './plane-restores.ts';
import type { RestoredShard } from './restore-report.ts';
import { RowBackup } from './row-backup.ts';
import { RowRestore } from './row-restore.ts';
import { SeriesBackup } from './series-backup.ts';
import { SeriesRestore, type TenantMove } from './series-restore.ts';
import { overlaps, placeOfModel, type SeriesPlace } from './series-share.ts';

/** How long a backup waits for a group that has no leader. */
const leaderWaitMs = 15_000;
const barrierPauseMs = 100;

/**
 * `sums`: see `RowBackupOptions`. `tableOf` returns the table of a partition; undefined for one
 * that is being filled. `group` is the group of a replica in a cluster.
 */
export function rowSource(
  model: string,
  pod: Pod,
  sums = (): boolean => true,
  tableOf = (number: number): number | undefined => number,
  group?: number,
): BackupSource {
  return {
    ...sourceOf(model, pod, group),
    begin: (options, scope) =>
      RowBackup.begin({
        ...options,
        pod,
        model,
        group,
        wants: (number) => {
          const table = tableOf(number);
          return table !== undefined && scope.table(table);
        },
        sums: sums(),
      }),
  };
}

/** `group` and `tenant` belong to a replica in a cluster. */
export function seriesSource(
  model: string,
  pod: SeriesPod,
  group?: number,
  tenant?: number,
): BackupSource {
  return {
    ...sourceOf(model, pod, group),
    begin: async (options, scope) =>
      new SeriesBackup({
        ...options,
        ...{ pod, model, group, tenant, wants: (name) => scope.database(name) },
      }),
  };
}

function sourceOf(model: string, pod: Pod | SeriesPod, group: number | undefined) {
  const { pins, log } = pod.parts;
  const current = async (): Promise<void> => {
    if (group === undefined) return;
    const until = performance.now() + leaderWaitMs;
    for (;;) {
      const outcome = await new Promise((resolve) => log.readBarrier(resolve));
      if (outcome === 'committed') return;
      if (performance.now() > until) throw new Error(`group ${group} has no leader now`);
      await new Promise((resolve) => setTimeout(resolve, barrierPauseMs));
    }
  };
  return {
    ...{ model, group, pins },
    get lsn() {
      return log.status().appendedLsn;
    },
    current,
  };
}

export function rowRestore(
  disk: ChunkDisk,
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
      await restore.commit();
    },
    cancel: () => restore.cancel(),
    release: () => restore.release(),
  };
}

/** `podsOf`: the partitions of a tenant that is restored, by its number here; undefined for one of another node. */
export function seriesRestore(
  disk: ChunkDisk,
  { sources, tenants, replace }: RestoreStart,
  podsOf: (tenant: number) => readonly (SeriesPod | undefined)[],
): PlaneRestore {
  const byPod = new Map<SeriesPod, { place: SeriesPlace; moves: TenantMove[] }>();
  for (const move of tenants) {
    const pods = podsOf(move.to);
    for (const partition of move.partitions ?? pods.keys()) {
      const pod = pods[partition];
      if (pod === undefined) throw new Error(`the time series of tenant ${move.to} are not here`);
      const known = byPod.get(pod);
      if (known !== undefined) known.moves.push(move);
      else byPod.set(pod, { place: { partition, of: pods.length }, moves: [move] });
    }
  }
  const restores = Array.from(byPod, ([pod, { place, moves }]) => {
    const isOf = ({ tenant }: PlacedPart): boolean =>
      tenant === undefined || moves.some(({ from }) => from === tenant);
    const has = (part: PlacedPart): boolean =>
      isOf(part) && overlaps(placeOfModel(part.model), place);
    const own = sources.filter((parts) => isSeries(parts) && has(parts.at(-1)!));
    return new SeriesRestore({ disk, pod, place, sources: own, moves, replace });
  });
  return {
    get done() {
      return restores.reduce((sum, { done }) => sum + done, 0);
    },
    total: restores.reduce((sum, { total }) => sum + total, 0),
    load: async () => {
      const shards: RestoredShard[] = [];
      let expiredShards = 0;
      for (const restore of restores) {
        const loaded = await restore.load();
        shards.push(...loaded.shards);
        expiredShards += loaded.expired;
      }
      return { tables: [], shards, expiredShards };
    },
    commit: async () => {
      for (const restore of restores) await restore.commit();
    },
    cancel: () => restores.forEach((restore) => restore.cancel()),
    release: async () => {
      for (const restore of restores) await restore.release();
    },
  };
}

function isSeries(parts: readonly PlacedPart[]): boolean {
  return parts.at(-1)?.shards !== undefined;
}
