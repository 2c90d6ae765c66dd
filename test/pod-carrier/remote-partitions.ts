// Pods of time series, each behind the link that gateways in other processes use, as one store.

import { PatternCompiler } from '../../access/influx/influxql/parser/regexp.ts';
import {
  type Partition,
  PartitionedStore,
} from '../../access/influx/partitions/partitioned-store.ts';
import { RemoteSeriesStore } from '../../access/influx/pods/remote-series-store.ts';
import { SeriesLink } from '../../access/influx/pods/series-link.ts';
import { ClusterListener } from '../../cluster-links/cluster-listener.ts';
import { seriesPurpose } from '../../contracts/series-protocol/frames.ts';
import { SeriesServer } from '../../storage-node/pod-server/series-server.ts';
import { alignCatalogs } from '../../storage-node/series-partitions.ts';
import type { SeriesPod } from '../../storage-node/series-pod.ts';
import { context, served, tenant } from './series-carrier.ts';

export interface RemotePartitions {
  readonly store: Partition;
  close(): Promise<void>;
}

export async function remotePartitions(
  pods: readonly SeriesPod[],
  report: (level: string, message: string, fields?: object) => void,
): Promise<RemotePartitions> {
  const all = pods.map((pod) => served(pod));
  const server = new SeriesServer({
    storeOf: (group) => all[group],
    patterns: () => new PatternCompiler(),
    report,
  });
  const listener = new ClusterListener(context, report);
  listener.serve(seriesPurpose, server);
  await listener.listen('127.0.0.1', 0);
  const link = new SeriesLink({ host: '127.0.0.1', port: listener.port, context, report });
  await link.start();
  const remotes = pods.map(
    (_, group) => new RemoteSeriesStore({ link, group, tenant, timeoutMs: () => 0 }),
  );
  for (const remote of remotes) await remote.ready;
  const store =
    remotes.length === 1
      ? remotes[0]!
      : new PartitionedStore({ partitions: remotes, align: () => alignCatalogs(pods) });
  const close = async (): Promise<void> => {
    for (const remote of remotes) remote.close();
    link.close();
    server.close();
    await listener.close();
  };
  return { store, close };
}
