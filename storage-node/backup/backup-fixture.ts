// For tests: pods on a disk of their own, a set of backups beside them, and short names for
// operations.

import { TsmEngine } from '../../engines/tsm/tsm-engine.ts';
import type { Engine } from '../../engines/engine.ts';
import { decodeSnapshot, type EngineContents } from '../../engines/conformance/contents.ts';
import { KvEngine } from '../../engines/kv/kv-engine.ts';
import { MemoryEngine } from '../../engines/memory/memory-engine.ts';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { applyOps } from '../../engines/apply.ts';
import { systemClock, systemRng } from '../../universal-row/environment.ts';
import { ReadFault } from '../../universal-row/errors.ts';
import { RecordBatchWriter } from '../../universal-row/record-batch.ts';
import { realDisk } from '../disk/real-disk.ts';
import { openPod } from '../pod-host.ts';
import type { Pod } from '../pod.ts';
import { openSeriesPod } from '../series-pod-host.ts';
import type { SeriesPod } from '../series-pod.ts';
import type { BackgroundWork, SeriesBackgroundWork } from '../background-work.ts';
import { noRules, type TableRules } from '../table-rules.ts';
import { chainOf, partsOf, type PlacedPart } from './chain.ts';
import { manifestVersion, partialPath, publish, readManifest } from './manifest.ts';
import type { BackupManifest } from './manifest-content.ts';
import { type BackupStatus, type BackupStart, PlaneBackups } from './plane-backups.ts';
import { rowSource, seriesSource } from './plane-parts.ts';
import { RowRestore } from './row-restore.ts';

export type Model = 'memory' | 'kv';

export class BackupFixture {
  readonly directory = mkdtempSync(join(tmpdir(), 'polyrow-backup-'));
  readonly set = join(this.directory, 'set');
  readonly pods = new Map<string, Pod>();
  /** Incremental backups have checksums of all rows. */
  sums = true;
  /** Receives reports of backups and restores from pods opened from now on. */
  background: BackgroundWork | undefined;
  seriesBackground: SeriesBackgroundWork | undefined;
  readonly #series: SeriesPod[] = [];
  #ids = 0;

  constructor() {
    mkdirSync(this.set);
  }

  /** Opens a pod; under a name that was used before, on the same files. */
  async pod(name: string, model: Model, keepLogBytes = 1 << 30): Promise<Pod> {
    const directory = join(this.directory, name);
    mkdirSync(directory, { recursive: true });
    const engine: Engine =
      model === 'memory'
        ? new MemoryEngine({ directory: join(directory, 'data'), disk: realDisk })
        : new KvEngine({ directory: join(directory, 'data') });
    const tables = new Map<number, TableRules>();
    for (let table = 0; table < 16; table++) tables.set(table, noRules);
    const pod = await openPod({
      engine,
      disk: realDisk,
      directory,
      podId: 1,
      fsync: 'no',
      segmentBytes: 64 * 1024,
      checkpointBytes: 256 * 1024,
      maxMemoryBytes: Infinity,
      tables,
      acceptLoss: false,
      clock: systemClock,
      rng: systemRng,
      keepLogBytes,
      background: this.background,
      report: () => {},
      fatal: (error) => {
        throw error;
      },
    });
    this.pods.set(name, pod);
    return pod;
  }

  async seriesPod(name: string): Promise<SeriesPod> {
    const directory = join(this.directory, name);
    mkdirSync(directory, { recursive: true });
    const pod = await openSeriesPod({
      engine: new TsmEngine({ directory: join(directory, 'data'), disk: realDisk }),
      disk: realDisk,
      directory,
      podId: 3,
      fsync: 'no',
      segmentBytes: 64 * 1024,
      checkpointBytes: 1 << 30,
      retentionIntervalMs: 1 << 30,
      acceptLoss: false,
      clock: systemClock,
      background: this.seriesBackground,
      report: () => {},
      fatal: (error) => {
        throw error;
      },
    });
    this.#series.push(pod);
    return pod;
  }

  nextId(): string {
    const number = String(++this.#ids);
    return `20260101T000000.${number.padStart(3, '0')}Z-${number.padStart(8, '0')}`;
  }

  /** A whole backup of some pods, on the last one of this chain if that is given. */
  async backup(
    pods: Readonly<Record<string, Pod | SeriesPod>>,
    after?: BackupManifest,
    scope: Pick<BackupStart, 'tenant'> = {},
  ): Promise<BackupManifest> {
    const { id, backups } = await this.begin(pods, after, scope);
    return this.finish(id, backups, after);
  }

  async begin(
    pods: Readonly<Record<string, Pod | SeriesPod>>,
    after?: BackupManifest,
    scope: Pick<BackupStart, 'tenant'> = {},
  ): Promise<{ id: string; backups: PlaneBackups }> {
    const id = this.nextId();
    const sources = Object.entries(pods).map(([model, pod]) =>
      'swapTables' in pod ? rowSource(model, pod, () => this.sums) : seriesSource(model, pod),
    );
    const backups = new PlaneBackups(
      () => realDisk,
      () => sources,
    );
    const directory = partialPath(this.set, id);
    mkdirSync(directory);
    const chain = after && { chain: after.chain, backup: after.id };
    await backups.order({ action: 'start', id, directory, after: chain, ...scope });
    return { id, backups };
  }

  async finish(id: string, backups: PlaneBackups, after?: BackupManifest): Promise<BackupManifest> {
    const status = await ended(backups, id);
    if (status.parts === undefined) throw new Error(status.error);
    const { parts } = status;
    const goesOn = after !== undefined && parts.some(({ kind }) => kind !== 'all');
    const manifest: BackupManifest = {
      version: manifestVersion,
      id,
      chain: goesOn ? after.chain : id,
      ...(goesOn ? { parent: after.id } : {}),
      scope: {},
      program: 'test',
      startedAt: '',
      finishedAt: '',
      metadata: { revision: 1, files: [] },
      parts,
    };
    await publish(realDisk, this.set, manifest);
    await backups.order({ action: 'keep', id, chain: manifest.chain, points: parts });
    return manifest;
  }

  /** Parts needed to restore a backup's pod. */
  parts({ id }: BackupManifest, model: string): PlacedPart[] {
    return partsOf(
      chainOf(id, (one) => readManifest(realDisk, this.set, one)),
      model,
      this.set,
    );
  }

  /** A restore of the first 16 tables, each to the table of its number. */
  restore(manifest: BackupManifest, model: string, pod: Pod, replace = false): RowRestore {
    return new RowRestore({
      disk: realDisk,
      sources: [this.parts(manifest, model)],
      moves: Array.from({ length: 16 }, (_, n) => ({ from: n, to: n })),
      podOf: () => pod,
      replace,
    });
  }

  async close(): Promise<void> {
    for (const pod of this.pods.values()) await pod.close().catch(() => {});
    for (const pod of this.#series) await pod.close().catch(() => {});
    rmSync(this.directory, { recursive: true, force: true });
  }
}

export async function ended(backups: PlaneBackups, id: string): Promise<BackupStatus> {
  for (;;) {
    const status = await backups.order({ action: 'status', id });
    if (status.state !== 'running') return status;
    await new Promise(setImmediate);
  }
}

/** One entry of the log, and in the engine. */
export async function write(pod: Pod, put: (w: RecordBatchWriter) => void): Promise<void> {
  const { engine, log } = pod.parts;
  const w = new RecordBatchWriter();
  put(w);
  for (;;) {
    log.begin();
    log.writer.reserve(w.pos);
    w.buf.copy(log.writer.buf, log.writer.pos, 0, w.pos);
    log.writer.pos += w.pos;
    try {
      applyOps(engine, w.buf, 0, w.pos);
    } catch (error) {
      log.abandon();
      engine.rollback();
      if (!(error instanceof ReadFault)) throw error;
      await error.ready;
      continue;
    }
    engine.commit(log.end());
    pod.endTick();
    return;
  }
}

export async function put(
  pod: Pod,
  table: number,
  key: string,
  value: string,
  expireAt = 0,
): Promise<void> {
  const [k, v] = [Buffer.from(key), Buffer.from(value)];
  await write(pod, (w) => w.value(table, k, 0, k.length, v, 0, v.length, expireAt));
}

export async function contentsOf(pod: Pod): Promise<EngineContents> {
  while (pod.checkpointInProgress) await pod.checkpoint();
  pod.endTick();
  return decodeSnapshot(pod.parts.engine.exportSnapshot());
}
