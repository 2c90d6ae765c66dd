// A node of a history with its InfluxDB server and its replicas of groups of time series, all as in the server.

import type { Duplex } from 'node:stream';
import { InfluxServer } from '../../access/influx/http/server.ts';
import type { ClusterView } from '../../contracts/cluster.ts';
import { modelProperties } from '../../contracts/table-properties.ts';
import { TsmEngine } from '../../engines/tsm/tsm-engine.ts';
import { ClusterSeries } from '../../server/planes/cluster-series.ts';
import { InfluxTables } from '../../server/planes/influx-tables.ts';
import { systemClock } from '../../universal-row/environment.ts';
import type { OwnedTimeline } from '../histories/owned-timeline.ts';
import {
  type Life,
  NodeProcess,
  planesOf,
  type ProcessWorld,
  secret,
  type Start,
} from '../histories/process.ts';
import type { Host } from '../histories/wires.ts';
import { ByteStream } from './byte-stream.ts';

export interface SeriesLife extends Life {
  readonly series: ClusterSeries;
  connect(): Duplex;
}

/** How time series are kept in a history. */
export interface SeriesShape {
  /** Into how many groups they are divided. */
  readonly partitions: number;
  /** Bytes of points in memory, and of the log between two checkpoints. */
  readonly headBytes: number;
  readonly checkpointBytes: number;
}

const leaderWaitMs = 4000;
/** Whose strong reads are by leases, if those of any are. */
const leasedDatabase = 'db';

export class SeriesNode extends NodeProcess<SeriesLife> {
  readonly #shape: SeriesShape;

  constructor(world: ProcessWorld, number: number, shape: SeriesShape) {
    super(world, number);
    this.#shape = shape;
  }

  protected override async open(start: Start): Promise<SeriesLife> {
    const { owner, lives, host, disk, machine, metadata, feed, report, fatal } = start;
    const { fsync, leases, timeline } = this.world;
    const { partitions, headBytes, checkpointBytes } = this.#shape;
    const tables = new InfluxTables([]);
    const series = await ClusterSeries.open({
      data: {
        ...{ id: 1, node: this.number, incarnation: lives, secret, host: '', port: this.number },
        ...{ view: feed.view, maxWriteBytes: 2 ** 24, silenceMs: undefined },
      },
      ...{ machine, tables, directory: '/series', fsync, leaderWaitMs, report, fatal },
      ...{ segmentBytes: 256 * 1024, acceptLoss: false, chargedTo: () => 0 },
      newEngine: (directory) => new TsmEngine({ directory, disk, clock: systemClock, headBytes }),
      podOptions: () => ({
        ...{ checkpointBytes, retentionIntervalMs: 5000, clock: systemClock, tables },
      }),
    });
    if (leases) {
      const properties = { ...modelProperties('series'), consistency: { kind: 'lease' as const } };
      tables.set([{ ...properties, model: 'series', tenant: 0, name: leasedDatabase }]);
    }
    const { store, forwarder } = series;
    const server = new InfluxServer({ host: '', port: 0, store, forwarder, report });
    series.serve((connection) => server.serveForwarded(connection));
    const adopt = (view: ClusterView): void => void series.setView(view).catch(fatal);
    feed.onChange(adopt);
    await series.setView(feed.view);
    const planes = planesOf('influx', {
      groupStatus: async () => series.status(),
      transferGroup: async (order) => {
        const { group, to } = order as { group: number; to: number };
        series.transfer(group, to);
      },
    });
    this.control(start, planes, () => ({
      ...{ tenants: [0], tables: [], defaultModel: 'memory' },
      ...{ ownerOf: () => 0, seriesPartitions: partitions },
    }));
    const clients = new Set<ByteStream>();
    return {
      ...{ owner, metadata, series },
      status: () => series.status(),
      transfer: (group, to) => series.transfer(group, to),
      connect: () => connect(server, host, timeline, clients),
      ended: () => {
        for (const client of clients) client.destroy();
      },
    };
  }

  /** Undefined while the node does not serve. */
  connect(): Duplex | undefined {
    const { life } = this;
    return life && this.world.timeline.as(life.owner, () => life.connect());
  }
}

/** Gives the client's end of a connection. */
function connect(
  server: InfluxServer,
  host: Host,
  timeline: OwnedTimeline,
  clients: Set<ByteStream>,
): Duplex {
  // The client is another process.
  const ofClient = (act: () => void): void =>
    timeline.as(undefined, () => timeline.after(0, () => act()));
  const ends = ByteStream.pair(ofClient, (act) => host.soon(act));
  clients.add(ends.client);
  ends.client.once('close', () => clients.delete(ends.client));
  server.serve(ends.server);
  return ends.client;
}
