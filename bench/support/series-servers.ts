// The servers that take InfluxDB's line protocol, each on a directory of its own.

import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  mainOf,
  requireProgram,
  startServer,
  type Fsync,
  type Running,
  type StartOptions,
} from './processes.ts';
import { freePort } from '../../test/support/free-port.ts';

/** Raw HTTP, as the probe of `startServer` is one line and its end. */
const ping = {
  request: 'GET /ping HTTP/1.0\r\n',
  isReady: (answer: string) => /^HTTP\/1\.\d 20[04]/.test(answer),
};
const health = { ...ping, request: 'GET /health HTTP/1.0\r\n' };

/**
 * influxd 1.x from Debian's package `influxdb`, with all background work but compaction switched
 * off.
 */
export async function startInflux(options: StartOptions = {}): Promise<Running> {
  const program = requireProgram('influxd', 'package influxdb');
  const directory = options.directory ?? mkdtempSync(join(tmpdir(), 'polyrow-bench-influxd-'));
  const port = await freePort();
  const config = join(directory, 'influxdb.conf');
  writeFileSync(
    config,
    `reporting-disabled = true
bind-address = "127.0.0.1:${await freePort()}"
[meta]
  dir = "${directory}/meta"
[data]
  dir = "${directory}/data"
  wal-dir = "${directory}/wal"
  index-version = "inmem"
  query-log-enabled = false
  cache-max-memory-size = "8g"
  max-series-per-database = 0
  max-values-per-tag = 0
  cache-snapshot-write-cold-duration = "5s"
  compact-full-write-cold-duration = "5s"
[http]
  bind-address = "127.0.0.1:${port}"
  log-enabled = false
  max-body-size = 0
[logging]
  level = "error"
  suppress-logo = true
[monitor]
  store-enabled = false
[continuous_queries]
  enabled = false
`,
  );
  const probe = options.probe ?? ping;
  return startServer('influxd', program, ['-config', config], port, directory, probe);
}

/** Debian's package `victoria-metrics`. */
export async function startVictoria(): Promise<Running> {
  const program = requireProgram('victoria-metrics', 'package victoria-metrics');
  const directory = mkdtempSync(join(tmpdir(), 'polyrow-bench-victoria-'));
  const port = await freePort();
  const args = [
    `-httpListenAddr=127.0.0.1:${port}`,
    `-storageDataPath=${directory}/data`,
    '-retentionPeriod=100y',
    '-loggerLevel=ERROR',
  ];
  return startServer('victoria-metrics', program, args, port, directory, health);
}

export async function startPolyrowSeries(
  fsync: Fsync,
  flags: readonly string[] = [],
  options: StartOptions = {},
): Promise<Running> {
  const directory = options.directory ?? mkdtempSync(join(tmpdir(), 'polyrow-bench-'));
  const port = await freePort();
  const main = mainOf(options);
  const args = [main, 'start', '--data-dir', directory, '--redis.port', '0', '--admin.port', '0'];
  args.push('--influx.port', String(port), '--wal.fsync', fsync, '--log.level', 'warn');
  args.push('--influx.max-body-bytes', '0', '--tsm.max-values-per-tag', '0');
  args.push('--tsm.max-series-per-database', '0', ...flags);
  const probe = options.probe ?? ping;
  return startServer('polyrow', process.execPath, args, port, directory, probe);
}
