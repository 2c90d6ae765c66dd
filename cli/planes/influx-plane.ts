// The InfluxDB data plane, a worker thread: HTTP listener and the pod of time series. It shares nothing with
// the main thread and speaks with it by messages.

import { join, resolve } from 'node:path';
import { parentPort } from 'node:worker_threads';
import { InfluxServer } from '../../access/influx/http/server.ts';
import { TsmEngine } from '../../engines/tsm/tsm-engine.ts';
import { realDisk } from '../../storage-node/disk/real-disk.ts';
import { openSeriesPod } from '../../storage-node/series-pod-host.ts';
import type { SeriesPod } from '../../storage-node/series-pod.ts';
import { systemClock } from '../../universal-row/environment.ts';
import { LiveConfig } from '../config/live-config.ts';
import { influxSamples } from './influx-samples.ts';
import { planeData, report, serveCalls } from './plane-port.ts';
import { listening, planeFatal, planeLog, urlHost } from './plane-support.ts';

if (parentPort === null) throw new Error('the InfluxDB plane runs in a worker thread');
const port = parentPort;
const { config } = await planeData(port);
const live = new LiveConfig(config);
const log = planeLog(port);
const fatal = planeFatal(port);

// Pods are told apart in their logs: 1 and 2 are the Redis plane's.
const podId = 3;

let pod: SeriesPod | undefined;
let server: InfluxServer | undefined;

/** A setting in which 0 stands for no limit. */
function limit(value: number): number {
  return value === 0 ? Infinity : value;
}

async function openPod(): Promise<SeriesPod> {
  const directory = resolve(config['data-dir'], 'influx');
  realDisk.makeDirectory(directory);
  const engine = new TsmEngine({
    directory: join(directory, 'data'),
    disk: realDisk,
    clock: systemClock,
    headBytes: config['tsm.head-bytes'],
    coldAfterMs: config['tsm.cold-after'] * 1000,
    limits: {
      seriesPerDatabase: limit(config['tsm.max-series-per-database']),
      seriesPerMeasurement: limit(config['tsm.max-series-per-measurement']),
      valuesPerTag: limit(config['tsm.max-values-per-tag']),
    },
  });
  return await openSeriesPod({
    engine,
    disk: realDisk,
    directory,
    podId,
    fsync: live.get('wal.fsync'),
    segmentBytes: config['wal.segment-bytes'],
    checkpointBytes: config['wal.checkpoint-bytes'],
    retentionIntervalMs: config['tsm.retention-check-interval'] * 1000,
    acceptLoss: config['wal.accept-loss'] === 'yes',
    clock: systemClock,
    report: log,
    fatal,
  });
}

async function start(): Promise<void> {
  pod = await openPod();
  pod.start();
  const host = config['influx.host'];
  const maxBodyBytes = config['influx.max-body-bytes'];
  const listener = new InfluxServer({
    host,
    port: config['influx.port'],
    store: pod,
    maxBodyBytes,
    // What packs better than this is more likely to be an attack than data.
    maxUnpackedBytes: 10 * maxBodyBytes,
    maxConnections: config['influx.max-connections'],
    queries: {
      maxConcurrent: config['influx.max-concurrent-queries'],
      timeoutMs: config['influx.query-timeout'] * 1000,
      maxMemoryBytes: config['influx.query-memory-bytes'],
      maxSeries: config['influx.max-select-series'],
      maxPoints: config['influx.max-select-points'],
      maxBuckets: config['influx.max-select-buckets'],
    },
    report: log,
  });
  server = listener;
  let listensOn = 0;
  await listening('influx', host, config['influx.port'], async () => {
    listensOn = await listener.listen();
  });
  const url = `http://${urlHost(host)}:${listensOn}`;
  report(port, { type: 'ready', endpoints: [{ name: 'influx', url }] });
}

serveCalls(port, {
  metrics: () => (pod === undefined ? [] : influxSamples(server, pod)),
  health: () => {
    const failure = pod?.writeFailure;
    return failure === undefined ? [] : [`tsm: ${failure.message}`];
  },
  // Databases are made by its clients; the catalog's tables are those of the Redis plane.
  tables: () => {},
  rowCount: () => 0,
  setConfig: ({ key, value }) => {
    live.set(key, value);
    if (key === 'wal.fsync') pod?.setFsync(live.get('wal.fsync'));
  },
  drain: (graceMs) => server?.drain(graceMs),
  stop: async () => {
    await server?.close();
    await pod?.close();
  },
});

start().catch(fatal);
