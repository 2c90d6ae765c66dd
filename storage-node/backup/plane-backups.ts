// The backups of one plane: its pods' parts, made one after the other, all as of the moment they were begun.
// The control plane orders, asks how it goes, and says in the end whether the backup has become whole.

import { libraryTable } from '../../contracts/tenancy/library-tables.ts';
import { ownerOf, isShadowDatabase, isShadowTable } from './shadow.ts';
import type { LogPins } from './log-pins.ts';
import type { PodPart } from './manifest-content.ts';
import type { PartBackup, PartOptions } from './part-backup.ts';

/** Whose rows and time series; everything when it is undefined. */
interface TenantSpan {
  readonly number: number;
  readonly firstTable: number;
  readonly databases: number;
}

export interface BackupStart {
  readonly id: string;
  /** Of the backup; there already. */
  readonly directory: string;
  readonly tenant?: TenantSpan | undefined;
  /** For an incremental one: the chain, and the last backup of it. */
  readonly after?: { readonly chain: string; readonly backup: string } | undefined;
}

export type BackupOrder =
  | ({ readonly action: 'start' } & BackupStart)
  | { readonly action: 'status'; readonly id: string }
  | { readonly action: 'cancel'; readonly id: string }
  /** It is whole, as part of this chain: the next one may go on from it. */
  | {
      readonly action: 'keep';
      readonly id: string;
      readonly chain: string;
      /** The chain that it could not go on with, if it is another one. */
      readonly instead?: string | undefined;
    }
  /** It has come to nothing. */
  | { readonly action: 'forget'; readonly id: string };

export interface BackupStatus {
  readonly state: 'running' | 'done' | 'failed' | 'cancelled';
  readonly error?: string;
  /** Of each pod's part, in its own unit. */
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
  readonly pins: LogPins | undefined;
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

export class PlaneBackups {
  readonly #sources: () => readonly BackupSource[];
  readonly #disk: PartOptions['disk'];
  #running: Running | undefined;

  get isRunning(): boolean {
    return this.#running !== undefined;
  }

  constructor(disk: PartOptions['disk'], sources: () => readonly BackupSource[]) {
    this.#disk = disk;
    this.#sources = sources;
  }

  async order(order: BackupOrder): Promise<BackupStatus> {
    if (order.action === 'start') return await this.#start(order);
    const running = this.#running;
    if (running?.id !== order.id) throw new Error(`there is no backup ${order.id} under way`);
    if (order.action === 'cancel') {
      for (const backup of running.backups) backup.cancel();
    } else if (order.action === 'keep') {
      this.#pin(running, order.chain, order.instead);
      await this.#forget(running);
    } else if (order.action === 'forget') {
      for (const backup of running.backups) backup.cancel();
      await running.ended;
      await this.#forget(running);
    }
    return statusOf(running);
  }

  async #start(order: BackupStart): Promise<BackupStatus> {
    if (this.#running !== undefined) throw new Error(`backup ${this.#running.id} is under way`);
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
      for (const source of this.#sources()) {
        const { pins } = source;
        const since = order.after && pins?.find(order.after.chain, order.after.backup);
        const options = { disk: this.#disk, directory: order.directory, since };
        running.backups.push(await source.begin(options, scope));
      }
    } catch (error) {
      await this.#forget(running);
      throw error;
    }
    running.ended = this.#run(running);
    return statusOf(running);
  }

  async #run(running: Running): Promise<void> {
    try {
      for (const backup of running.backups) running.parts.push(await backup.run());
      running.state = 'done';
    } catch (error) {
      const { name, message } = error as Error;
      running.state = name === 'BackupCancelled' ? 'cancelled' : 'failed';
      running.error = message;
    }
  }

  #pin({ id, backups }: Running, chain: string, instead: string | undefined): void {
    for (const { model, pins } of this.#sources()) {
      const backup = backups.find((one) => one.model === model);
      if (backup !== undefined)
        pins?.set({ chain, backup: id, point: backup.point, lsn: backup.lsn }, instead);
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
