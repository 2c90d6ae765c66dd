// The server for InfluxDB clients.

import { mostSeriesPartitions } from '../../universal-row/series/series-partition.ts';
import type { Setting } from './setting.ts';
import { anyPort, anySize, count, host, mib, onOff, seconds } from './setting-forms.ts';

export const influxSettings = {
  'influx.host': {
    ...host,
    default: '127.0.0.1',
    description: 'Address InfluxDB clients are served on.',
  },
  'influx.port': {
    ...anyPort,
    default: 8086,
    description: 'Port InfluxDB clients are served on; 0 picks a free one.',
  },
  'influx.allowed-hosts': {
    type: 'text',
    meaning: 'names, separated by commas',
    default: '',
    description:
      'Names that a request may have in its `Host` header besides localhost, loopback addresses and `influx.host`: those of proxies and containers. Where it is empty and `influx.host` is not loopback, any name may be used.',
  },
  'influx.tls': { ...onOff, description: 'Serve HTTPS on `influx.port` in place of HTTP.' },
  'influx.max-body-bytes': {
    ...anySize,
    default: 25_000_000,
    description:
      'Longest body of a write as it is sent, and a tenth of its length unpacked; 0 no limit (bodies are streamed).',
  },
  'influx.max-request-memory': {
    ...anySize,
    default: 256 * mib,
    live: true,
    description:
      'Memory of the InfluxDB plane for bodies being received and unpacked, and answers being built, of all tenants together; 0 no limit. Shared as `redis.max-request-memory` is. Requests that need more are refused.',
  },
  'influx.max-connections': {
    ...count,
    default: 10000,
    description: 'InfluxDB connections open at once; more are refused.',
  },
  'influx.slow-request-ms': {
    type: 'integer',
    min: -1,
    max: Number.MAX_SAFE_INTEGER,
    default: 1000,
    unit: 'milliseconds',
    live: true,
    description: 'Requests that take longer are shown by `polyrow slowlog`; 0 all, -1 none.',
  },
  'influx.max-concurrent-queries': {
    ...count,
    default: 0,
    description: 'Queries running at once; more wait; 0 no limit.',
  },
  'influx.query-timeout': {
    ...seconds,
    default: 0,
    description: 'A query that runs longer is ended; 0 never.',
  },
  'influx.query-memory-bytes': {
    ...anySize,
    default: 512 * mib,
    description:
      'Memory that one query may hold, or the queries of one tenant together, and half of what all queries may; a query that needs more is ended; 0 no limit.',
  },
  'influx.partitions': {
    type: 'integer',
    min: 0,
    max: mostSeriesPartitions,
    default: 0,
    description:
      'Partitions that the time series of a new data directory are divided into, by the hash of measurement and tags; fixed from then on. With 0 the number of the directory is kept, and a new directory has one partition. In a cluster the time series of each tenant are divided so; the value of the node that forms the cluster counts, and other nodes leave it at 0.',
  },
  'influx.ru-per-second': {
    ...count,
    default: 0,
    live: true,
    description:
      'Request units a second that the InfluxDB plane can do. With 0 it is measured under load, and orders requests while several tenants compete.',
  },
} as const satisfies Record<string, Setting>;
