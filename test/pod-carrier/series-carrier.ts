// A pod of time series on a directory of its own, and the same pod as a gateway in another process sees it, over a link
// on loopback.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { GroupCommit } from '../../access/influx/http/group-commit.ts';
import { PatternCompiler } from '../../access/influx/influxql/parser/regexp.ts';
import { RemoteSeriesStore } from '../../access/influx/pods/remote-series-store.ts';
import { SeriesLink } from '../../access/influx/pods/series-link.ts';
import { ClusterListener } from '../../cluster-links/cluster-listener.ts';
import { seriesPurpose } from '../../contracts/series-protocol/frames.ts';
import { TsmEngine } from '../../engines/tsm/tsm-engine.ts';
import { realDisk } from '../../storage-node/disk/real-disk.ts';
import type { ServedSeries, ServedStore } from '../../storage-node/pod-server/served-series.ts';
import { SeriesServer } from '../../storage-node/pod-server/series-server.ts';
import { openSeriesPod } from '../../storage-node/series-pod-host.ts';
import type { SeriesPod } from '../../storage-node/series-pod.ts';
import type { TableRulesByName } from '../../storage-node/table-rules.ts';

export const group = 17;
export const tenant = 3;

export const context = {
  identity: { cluster: 'test', node: '1', incarnation: 1, level: 1 },
  secret: Buffer.from('the secret of the test'),
};

/** Reports of both ends. */
export const reports: string[] = [];
const report = (_level: string, message: string): void => void reports.push(message);

/** A pod on an empty directory. `nowMs`: its clock. */
export async function openPod(
  nowMs: number,
  options: { headBytes?: number; tables?: TableRulesByName } = {},
): Promise<{ pod: SeriesPod; close: () => Promise<void> }> {
  const directory = mkdtempSync(join(tmpdir(), 'polyrow-series-carrier-'));
  const { headBytes = 16 * 1024, tables } = options;
  const pod = await openSeriesPod({
    engine: new TsmEngine({ directory: join(directory, 'data'), disk: realDisk, headBytes }),
    disk: realDisk,
    directory,
    podId: 1,
    fsync: 'no',
    segmentBytes: 1 << 20,
    checkpointBytes: 1 << 30,
    retentionIntervalMs: 1 << 30,
    tables,
    acceptLoss: false,
    clock: { now: () => nowMs, monotonic: () => performance.now() },
    report,
    fatal: (error) => {
      throw error;
    },
  });
  pod.start();
  const close = async (): Promise<void> => {
    await pod.close();
    rmSync(directory, { recursive: true, force: true });
  };
  return { pod, close };
}

export function served(store: ServedStore): ServedSeries {
  const commit = new GroupCommit(store);
  return { store, tenant, safe: () => commit.safe() };
}

/** The node's end and the gateway's. */
export class Carrier {
  readonly server: SeriesServer;
  readonly listener: ClusterListener;
  /** What is served as the group. */
  readonly series: { served: ServedSeries | undefined };
  link!: SeriesLink;
  remote!: RemoteSeriesStore;

  private constructor(store: ServedStore) {
    this.series = { served: served(store) };
    this.server = new SeriesServer({
      storeOf: (number) => (number === group ? this.series.served : undefined),
      patterns: () => new PatternCompiler(),
      report,
    });
    this.listener = new ClusterListener(context, report);
    this.listener.serve(seriesPurpose, this.server);
  }

  static async open(store: ServedStore): Promise<Carrier> {
    const carrier = new Carrier(store);
    await carrier.listener.listen('127.0.0.1', 0);
    carrier.link = await carrier.dial(carrier.listener.port);
    carrier.remote = carrier.storeOver(carrier.link);
    await carrier.remote.ready;
    return carrier;
  }

  async dial(port: number): Promise<SeriesLink> {
    const link = new SeriesLink({ host: '127.0.0.1', port, context, report });
    await link.start();
    return link;
  }

  storeOver(link: SeriesLink, timeoutMs = 0): RemoteSeriesStore {
    return new RemoteSeriesStore({ link, group, tenant, timeoutMs: () => timeoutMs });
  }

  async close(): Promise<void> {
    this.remote.close();
    this.link.close();
    this.server.close();
    await this.listener.close();
  }
}
