// The backups of one plane: the parts of its pods, made one after the other, all as of the moment at which they were
// begun. The control plane orders a backup, polls its progress, and reports at the end whether the backup is
// complete.

import { libraryTable } from '../../contracts/tenancy/library-tables.ts';
import { ownerOf, isShadowDatabase, isShadowTable } from './shadow.ts';
import type { LogPins } from './log-pins.ts';
import { type PodName, podOf } from './chain.ts';
import type { PodPart } from './manifest-content.ts';
import type { PartBackup, PartOptions } from './part-backup.ts';

/** Tenant whose rows and time series are included; all when undefined. */
interface TenantSpan {
  readonly number: number;
  readonly firstTable: number;
  readonly databases: number;
}

export interface BackupStart {
  readonly id: string;
  /** Existing directory of the backup. */
  readonly directory: string;
  /** In a cluster: the groups that are taken here, and the node that has the directory, if it is another one. */
  readonly groups?: readonly number[] | undefined;
  readonly node?: number | undefined;
  readonly tenant?: TenantSpan | undefined;
  /** For an incremental one: the chain, and the last backup of it. */
  readonly after?: { readonly chain: string; readonly backup: string } | undefined;
}

export type BackupOrder =
  | ({ readonly action: 'start' } & BackupStart)
  | { readonly action: 'status'; readonly id: string }
  | { readonly action: 'cancel'; readonly id: string }
  /**
   * The backup is complete and belongs to this chain. The next backup may continue from it on any node with a copy of
   * the log.
   */
  | {
      readonly action: 'keep';
      readonly id: string;
      readonly chain: string;
      readonly points: readonly PodPoint[];
      /** The chain that it could not continue with, if it is another one. */
      readonly instead?: string | undefined;
    }
  /** The backup failed or was cancelled. */
  | { readonly action: 'forget'; readonly id: string };

/** A pod's point in a backup. */
type PodPoint = Pick<PodPart, 'model' | 'group' | 'point'>;

export interface BackupStatus {
  readonly state: 'running' | 'done' | 'failed' | 'cancelled';
  readonly error?: string;
  /** Progress of each pod's part, in its own unit. */
  readonly progress: readonly {
    readonly model: string;
    readonly done: number;
    readonly total: number;
  }[];
  /** Written so far. */
  readonly bytes: number;
  /** Once done. */
  readonly parts?: readonly PodPart[];
}

/** A pod, to be backed up. */
export interface BackupSource {
  readonly model: string;
  /** Group of a replica in a cluster. */
  readonly group?: number | undefined;
  /** Bytes of its log so far. */
  readonly lsn: number;
  readonly pins: LogPins | undefined;
  /** Resolves when it has all that was acknowledged before the call. */
  current(): Promise<void>;
  begin(options: PartOptions, scope: PlaneScope): Promise<PartBackup>;
}

interface PlaneScope {
  table(table: number): boolean;
  database(name: string): boolean;
}

interface Running {
  readonly id: string;
  readonly backups: PartBackup[];
  readonly parts: PodPart[];
  state: BackupStatus['state'];
  error: string | undefined;
  /** Nothing is read or written for it any more. */
  ended: Promise<void>;
}

const nothing: BackupStatus = { state: 'done', progress: [], bytes: 0, parts: [] };
const noPins = 'nothing is known of the last backup here';

export class PlaneBackups {
  readonly #sources: () => readonly BackupSource[];
  readonly #disk: (node: number | undefined) => PartOptions['disk'];
  #running: Running | undefined;

  get isRunning(): boolean {
    return this.#running !== undefined;
  }

  /** `disk` belongs to a node of the cluster; undefined for this node's own. */
  constructor(
    disk: (node: number | undefined) => PartOptions['disk'],
    sources: () => readonly BackupSource[],
  ) {
    this.#disk = disk;
    this.#sources = sources;
  }

  async order(order: BackupOrder): Promise<BackupStatus> {
    if (order.action === 'start') return await this.#start(order);
    const running = this.#running;
    if (order.action === 'keep') this.#pin(order);
    if (running?.id !== order.id) {
      // The part was taken on another node.
      if (order.action === 'keep') return nothing;
      throw new Error(`there is no backup ${order.id} under way`);
    }
    if (order.action === 'cancel') {
      for (const backup of running.backups) backup.cancel();
    } else if (order.action === 'keep') {
      await this.#forget(running);
    } else if (order.action === 'forget') {
      for (const backup of running.backups) backup.cancel();
      await running.ended;
      await this.#forget(running);
    }
    return statusOf(running);
  }

  async #start(order: BackupStart): Promise<BackupStatus> {
    const before = this.#running;
    if (before?.state === 'running') throw new Error(`backup ${before.id} is under way`);
    // Ends an older backup whose coordinator, on another node, has not returned.
    if (before !== undefined) await this.#forget(before);
    const running: Running = {
      id: order.id,
      backups: [],
      parts: [],
      state: 'running',
      error: undefined,
      ended: Promise.resolve(),
    };
    this.#running = running;
    const scope = scopeOf(order.tenant);
    try {
      const sources = this.#chosen(order.groups);
      await Promise.all(sources.map((source) => source.current()));
      const disk = this.#disk(order.node);
      for (const source of sources) {
        const { pins } = source;
        const since = order.after && (pins?.find(order.after.chain, order.after.backup) ?? noPins);
        running.backups.push(
          await source.begin({ disk, directory: order.directory, since }, scope),
        );
      }
    } catch (error) {
      await this.#forget(running);
      throw error;
    }
    running.ended = this.#run(running);
    return statusOf(running);
  }

  #chosen(groups: readonly number[] | undefined): readonly BackupSource[] {
    const sources = this.#sources();
    if (groups === undefined) return sources;
    return groups.map((group) => {
      const source = sources.find((one) => one.group === group);
      if (source === undefined) throw new Error(`there is no replica of group ${group} here`);
      return source;
    });
  }

  async #run(running: Running): Promise<void> {
    try {
      for (const backup of running.backups) running.parts.push(await backup.run());
      running.state = 'done';
    } catch (error) {
      const { name, message } = error as Error;
      running.state = name === 'BackupCancelled' ? 'cancelled' : 'failed';
      running.error = message;
      // Parts that have yet to run hold their snapshots.
      for (const backup of running.backups) await backup.release();
    }
  }

  #pin({ id, chain, points, instead }: BackupOrder & { action: 'keep' }): void {
    for (const source of this.#sources()) {
      const isOf = (one: PodName): boolean => podOf(one) === podOf(source);
      const kept = points.find(isOf);
      if (kept === undefined) continue;
      const taken = this.#running?.id === id ? this.#running.backups.find(isOf) : undefined;
      const { lsn } = taken ?? source;
      source.pins?.set({ chain, backup: id, point: kept.point, lsn }, instead);
    }
  }

  async #forget(running: Running): Promise<void> {
    if (this.#running === running) this.#running = undefined;
    for (const backup of running.backups) await backup.release();
  }
}

function statusOf({ state, error, backups, parts }: Running): BackupStatus {
  const progress = backups.map(({ model, done, total }) => ({ model, done, total }));
  const bytes = backups.reduce((sum, backup) => sum + backup.bytes, 0);
  return {
    state,
    progress,
    bytes,
    ...(error === undefined ? {} : { error }),
    ...(state === 'done' ? { parts } : {}),
  };
}

function scopeOf(tenant: TenantSpan | undefined): PlaneScope {
  if (tenant === undefined) {
    return {
      table: (table) => !isShadowTable(table),
      database: (name) => !isShadowDatabase(name),
    };
  }
  const { number, firstTable, databases } = tenant;
  return {
    table: (table) =>
      (table >= firstTable && table < firstTable + databases) || table === libraryTable(number),
    database: (name) => !isShadowDatabase(name) && ownerOf(name).tenant === number,
  };
}
