// All time series of a single server: one pod, or as many as they are divided into, as one store.

import {
  type Partition,
  PartitionedStore,
} from '../../access/influx/partitions/partitioned-store.ts';
import type { PortableSeriesEngine } from '../../engines/series-engine.ts';
import { dropShadowDatabases } from '../../storage-node/backup/series-restore.ts';
import {
  alignCatalogs,
  seriesPartitionDirectory,
  seriesPartitionsOf,
  shareLimits,
} from '../../storage-node/series-partitions.ts';
import { openSeriesPod } from '../../storage-node/series-pod-host.ts';
import type { SeriesPod } from '../../storage-node/series-pod.ts';
import { makeDurableDirectory } from '../../universal-row/durable-names.ts';
import { podIds } from './pod-ids.ts';

type PodOptions = Parameters<typeof openSeriesPod>[0];

interface LocalSeriesOptions extends Omit<PodOptions, 'engine' | 'directory' | 'podId' | 'report'> {
  /** Directory of all time series, inside the data directory. */
  directory: string;
  /** Partitions that there should be; 0 as the directory has it. */
  partitions: number;
  /** Creates one of `engines` engines that share the memory. */
  newEngine: (directory: string, engines: number) => PortableSeriesEngine;
  report: PodOptions['report'];
}

export class LocalSeries {
  /** By partition. */
  readonly pods: readonly SeriesPod[];
  /** The pod itself if there is only one. */
  readonly store: Partition;

  static async open(options: LocalSeriesOptions): Promise<LocalSeries> {
    const { disk, directory, partitions: wanted, newEngine, report } = options;
    makeDurableDirectory(disk, directory);
    const count = seriesPartitionsOf({ disk, directory, wanted });
    const pods: SeriesPod[] = [];
    for (let partition = 0; partition < count; partition++) {
      const own = seriesPartitionDirectory(directory, partition);
      if (partition > 0) makeDurableDirectory(disk, own);
      const pod = await openSeriesPod({
        ...options,
        engine: newEngine(`${own}/data`, count),
        directory: own,
        podId: podIds.tsm,
        report:
          count === 1
            ? report
            : (level, message, fields) => report(level, message, { partition, ...fields }),
      });
      await dropShadowDatabases(pod);
      pods.push(pod);
    }
    if (count > 1) {
      shareLimits(pods);
      await alignCatalogs(pods, options.acceptLoss);
    }
    for (const pod of pods) pod.start();
    return new LocalSeries(pods);
  }

  private constructor(pods: readonly SeriesPod[]) {
    this.pods = pods;
    const [only] = pods;
    this.store =
      pods.length === 1
        ? only!
        : new PartitionedStore({ partitions: pods, align: () => alignCatalogs(pods) });
  }

  async close(): Promise<void> {
    for (const pod of this.pods) await pod.close();
  }
}
