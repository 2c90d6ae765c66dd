// Every setting of the server, once. `--redis.port`, POLYROW_REDIS_PORT, `port` under [redis] in the file
// and the row in docs/configuration.md all come from the key `redis.port` below.

import type { Setting, ValueOf } from './setting.ts';

const anyPort = { type: 'integer', min: 0, max: 65535 } as const;
const anySize = { type: 'size', min: 0, max: Number.MAX_SAFE_INTEGER } as const;
const seconds = { type: 'integer', min: 0, max: 2147483647, unit: 'seconds' } as const;
const count = { type: 'integer', min: 0, max: Number.MAX_SAFE_INTEGER } as const;
const onOff = { type: 'choice', choices: ['off', 'on'], default: 'off' } as const;
/** On, but to see what the server is like without it. */
const liveSwitch = { type: 'choice', choices: ['on', 'off'], default: 'on', live: true } as const;
const waitMs = { type: 'integer', min: 0, max: 600_000, unit: 'ms', live: true } as const;
const file = { type: 'text', meaning: 'a path of a PEM file', default: '' } as const;
const host = { type: 'text', meaning: 'a host name or address' } as const;

const kib = 1024;
const mib = 1024 * kib;
const gib = 1024 * mib;

export const settings = {
  'data-dir': {
    type: 'text',
    meaning: 'a path',
    default: './polyrow-data',
    description: 'Directory for everything the server keeps. Made if it is not there.',
  },
  metadata: {
    type: 'text',
    meaning: '`embedded` or a MongoDB URI',
    default: 'embedded',
    secret: true,
    description:
      'Where tables, tenants and their like are kept: in the data directory, or in MongoDB (`mongodb://…`, `mongodb+srv://…`), with a copy in the data directory to go on with while it is away. See [metadata.md](metadata.md).',
  },

  'redis.host': {
    ...host,
    default: '127.0.0.1',
    description: 'Address Redis clients are served on.',
  },
  'redis.port': {
    ...anyPort,
    default: 6379,
    description: 'Port Redis clients are served on; 0 picks a free one.',
  },
  'redis.default-model': {
    type: 'choice',
    choices: ['memory', 'kv'],
    default: 'memory',
    description: 'Engine of databases that were not made with `polyrow table create`.',
  },
  'redis.databases': {
    type: 'integer',
    min: 1,
    max: 4096,
    default: 16,
    description: 'Databases a Redis client can SELECT.',
  },
  'redis.password': {
    type: 'text',
    meaning: 'a password',
    default: '',
    secret: true,
    live: true,
    description: 'Password of the default user; none when empty.',
  },
  'redis.protected-mode': {
    type: 'choice',
    choices: ['yes', 'no'],
    default: 'yes',
    description:
      'Do not start on an address that others can reach while the default user needs no password.',
  },
  'redis.tls': {
    ...onOff,
    description: 'Serve TLS on `redis.port` in place of plain connections.',
  },
  'redis.tls-port': {
    ...anyPort,
    default: 0,
    description: 'A port of its own for TLS, beside `redis.port`; 0 for none.',
  },
  'redis.maxclients': {
    type: 'integer',
    min: 1,
    max: 4294967295,
    default: 10000,
    live: true,
    description: 'Redis connections open at once; more are refused.',
  },
  'redis.timeout': {
    ...seconds,
    default: 0,
    live: true,
    description: 'A connection idle for this long is closed; 0 never.',
  },
  'redis.login-timeout-ms': {
    type: 'integer',
    min: 0,
    max: 3_600_000,
    default: 10_000,
    unit: 'ms',
    live: true,
    description:
      'Time in which a client has to log in, where it has to; 0 no limit. Connections that have not logged in hold at most half of `redis.maxclients`: beyond that a new one replaces the oldest, of the address with the most.',
  },
  'redis.tcp-keepalive': {
    ...seconds,
    default: 300,
    live: true,
    description: 'Idle time before TCP asks whether the client is still there; 0 never asks.',
  },
  'redis.tcp-backlog': {
    type: 'integer',
    min: 1,
    max: 65535,
    default: 511,
    description: 'Connections that may wait to be accepted.',
  },
  'redis.proto-max-bulk-len': {
    type: 'size',
    min: mib,
    max: gib,
    default: 16 * mib,
    live: true,
    description:
      'Longest string, in a request and as a value. Storing one is a single step of about 2 ms per MB, in which no other client is served.',
  },
  'redis.client-query-buffer-limit': {
    type: 'size',
    min: mib,
    max: 4 * gib,
    default: 32 * mib,
    live: true,
    description: 'Bytes of one request; a client that sends more is closed.',
  },
  'redis.max-request-memory': {
    ...anySize,
    default: 256 * mib,
    live: true,
    description:
      'Memory of the Redis plane for commands being received, answers that are long or wait to be sent, transactions and subscriptions, of all tenants together; 0 no limit. One tenant can have half of it at most, n busy ones as many equal parts of n/(n + 1). Requests that need more are refused.',
  },
  'redis.slowlog-log-slower-than': {
    type: 'integer',
    min: -1,
    max: Number.MAX_SAFE_INTEGER,
    default: 10000,
    unit: 'microseconds',
    live: true,
    description: 'Commands that take longer go to the slow log; 0 logs all, -1 none.',
  },
  'redis.slowlog-max-len': {
    type: 'integer',
    min: 0,
    max: 1_000_000,
    default: 128,
    live: true,
    description: 'Commands the slow log keeps.',
  },
  'redis.ru-per-second': {
    ...count,
    default: 0,
    live: true,
    description:
      'Request units a second that the Redis plane can do: it does no more, and quotas go first. With 0 it is measured under load, and serves for `admission.partition-cap` only.',
  },
  'redis.gateway-cache-bytes': {
    ...anySize,
    default: 64 * mib,
    live: true,
    description:
      'Memory for answers to GET that are remembered, for up to ten seconds, of tables of model `kv` whose `consistency` is `eventual` or `bounded`; 0 for none.',
  },
  'redis.output-limit.normal-hard-bytes': {
    ...anySize,
    default: 0,
    live: true,
    description:
      'Answers waiting for one client at which it is closed; 0 no limit (a slow reader is then not read from until it catches up).',
  },
  'redis.output-limit.normal-soft-bytes': {
    ...anySize,
    default: 0,
    live: true,
    description: 'As the hard limit, but only when exceeded all through the soft time.',
  },
  'redis.output-limit.normal-soft-seconds': {
    ...seconds,
    default: 0,
    live: true,
    description: 'Soft time of ordinary clients.',
  },
  'redis.output-limit.pubsub-hard-bytes': {
    ...anySize,
    default: 32 * mib,
    live: true,
    description: 'Messages waiting for one subscriber at which it is closed; 0 no limit.',
  },
  'redis.output-limit.pubsub-soft-bytes': {
    ...anySize,
    default: 8 * mib,
    live: true,
    description: 'As the hard limit, but only when exceeded all through the soft time.',
  },
  'redis.output-limit.pubsub-soft-seconds': {
    ...seconds,
    default: 60,
    live: true,
    description: 'Soft time of subscribers.',
  },

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
  'influx.protected-mode': {
    type: 'choice',
    choices: ['yes', 'no'],
    default: 'yes',
    description:
      'Do not start on an address that others can reach while the default user needs no password.',
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
    description: 'Memory that one query may hold; a query that needs more is ended; 0 no limit.',
  },
  'influx.max-select-series': {
    ...count,
    default: 0,
    description: 'Series that one SELECT may read; 0 no limit.',
  },
  'influx.max-select-points': {
    ...count,
    default: 0,
    description: 'Points that one SELECT may read; 0 no limit.',
  },
  'influx.max-select-buckets': {
    ...count,
    default: 0,
    description: 'Intervals of GROUP BY time that one SELECT may make; 0 no limit.',
  },
  'influx.ru-per-second': {
    ...count,
    default: 0,
    live: true,
    description:
      'Request units a second that the InfluxDB plane can do. With 0 it is measured under load, and orders requests while several tenants compete.',
  },

  'tsm.head-bytes': {
    type: 'size',
    min: mib,
    max: 64 * gib,
    default: 128 * mib,
    description:
      'Memory for points that are not in a file yet. At twice this, writers wait for the disk.',
  },
  'tsm.cold-after': {
    ...seconds,
    min: 1,
    default: 300,
    description: 'A shard not written to for this long is compacted to one file.',
  },
  'tsm.max-series-per-database': {
    ...count,
    default: 1_000_000,
    description: 'Series of one database; points of more are refused; 0 no limit.',
  },
  'tsm.max-series-per-measurement': {
    ...count,
    default: 0,
    description: 'Series of one measurement in one shard; 0 no limit.',
  },
  'tsm.max-values-per-tag': {
    ...count,
    default: 100_000,
    description: 'Values of one tag of a measurement in one shard; 0 no limit.',
  },
  'tsm.retention-check-interval': {
    ...seconds,
    min: 1,
    default: 1800,
    description: 'Time between two looks for shards that are older than their policy keeps.',
  },

  'admin.host': {
    ...host,
    default: '127.0.0.1',
    description: 'Address of the admin API, health and metrics.',
  },
  'admin.port': {
    ...anyPort,
    default: 7070,
    description: 'Port of the admin API, health and metrics; 0 picks a free one.',
  },
  'admin.tls': { ...onOff, description: 'Serve HTTPS on `admin.port` in place of HTTP.' },
  'admin.token': {
    type: 'text',
    meaning: 'a secret text',
    default: '',
    secret: true,
    description:
      'A token of an operator, besides the one in the file admin-token of the data directory. With it /metrics asks for a token, too.',
  },
  'admin.anonymous-metrics': {
    type: 'choice',
    choices: ['yes', 'no'],
    default: 'yes',
    description:
      'Show /metrics and /healthz to everyone on this machine, while the admin API is served to this machine only and `admin.token` is empty.',
  },
  'admin.requests-per-second': {
    ...count,
    default: 50,
    live: true,
    description: 'Requests to the admin API of each caller; 0 no limit.',
  },

  'tls.cert-file': {
    ...file,
    description:
      'Certificate of the server, followed by those between it and its authority. Read again when it changes.',
  },
  'tls.key-file': { ...file, description: 'Private key of the certificate.' },
  'tls.ca-file': {
    ...file,
    description: 'Certificates of the authorities whose client certificates are good.',
  },
  'tls.client-auth': {
    type: 'choice',
    choices: ['no', 'optional', 'require'],
    default: 'no',
    description:
      'Whether clients show a certificate of their own; needs `tls.ca-file`. One that is shown must be good.',
  },
  'tls.min-version': {
    type: 'choice',
    choices: ['TLSv1.2', 'TLSv1.3'],
    default: 'TLSv1.2',
    description: 'Oldest version of TLS that is spoken.',
  },

  'wal.fsync': {
    type: 'choice',
    choices: ['always', 'everysec', 'no'],
    default: 'everysec',
    live: true,
    description:
      'When the log is forced to disk: before every answer, once a second, or when the operating system likes.',
  },
  'wal.segment-bytes': {
    type: 'size',
    min: 64 * kib,
    max: gib,
    default: 64 * mib,
    description: 'Size at which a new log file is begun.',
  },
  'wal.checkpoint-bytes': {
    type: 'size',
    min: mib,
    max: 1024 * gib,
    default: 256 * mib,
    description:
      'Log written since the last checkpoint at which the next one is made. Smaller means faster restarts and more writing.',
  },
  'wal.accept-loss': {
    type: 'choice',
    choices: ['no', 'yes'],
    default: 'no',
    description:
      'What to do with a log that is damaged before its end: refuse to start, or cut it at the damage and lose what follows.',
  },

  'backup.keep-log-bytes': {
    ...anySize,
    default: 512 * mib,
    description:
      'Log of each Redis engine that is kept for incremental backups at most. When more was written since the last backup, the next one is a full one; 0 makes all of them full.',
  },

  'backup.incremental-checksums': {
    ...liveSwitch,
    description:
      'An incremental backup notes a checksum over each table of rows, with which `polyrow verify` and a restore compare what the chain comes to. For that it reads all rows; off, it reads what was changed, and row counts are compared.',
  },

  'kv.cache-bytes': {
    ...anySize,
    default: 64 * mib,
    description: 'Memory for the row cache of the kv engine.',
  },
  'kv.write-buffer-bytes': {
    type: 'size',
    min: mib,
    max: gib,
    default: 32 * mib,
    description:
      'Rows of the kv engine that were written and are not in a file yet. Twice as much is in memory at most; the more it is, the less often files are merged.',
  },

  'memory.max-bytes': {
    ...anySize,
    default: 0,
    live: true,
    description:
      'Memory for rows beyond which writes that need more are refused with an OOM error; 0 no limit.',
  },

  'ru.metering': {
    type: 'choice',
    choices: ['on', 'off'],
    default: 'on',
    live: true,
    description: 'Charge request units to tenants.',
  },
  'ru.table': {
    type: 'text',
    meaning: 'a path of a file that `polyrow calibrate` wrote',
    default: '',
    description:
      'Table of costs by which request units are charged; empty for the one of the release.',
  },

  'admission.mode': {
    type: 'choice',
    choices: ['enforce', 'dry-run', 'off'],
    default: 'enforce',
    live: true,
    description:
      'Whether limits on request units a second hold: requests beyond them wait and are refused in the end, or what would have become of them is only counted. Needs `ru.metering`. See [limits.md](limits.md).',
  },
  'admission.command-wait-ms': {
    ...waitMs,
    default: 1500,
    description:
      'Time that a Redis command over its quota waits before it is refused; of a pipeline, all its commands together.',
  },
  'admission.write-wait-ms': {
    ...waitMs,
    default: 4000,
    description: 'Time that a write over InfluxDB’s protocol waits before it is refused.',
  },
  'admission.refusal-code': {
    type: 'choice',
    choices: ['TRYAGAIN', 'BUSY', 'LIMIT', 'ERR'],
    default: 'TRYAGAIN',
    live: true,
    description:
      'First word of the error that a Redis command over its quota gets. Several clients try again by themselves upon the first one.',
  },
  'admission.allocation': {
    type: 'choice',
    choices: ['hard', 'stacked'],
    default: 'hard',
    live: true,
    description:
      'Whether a tenant stays within its quota while nobody else wants more, or may use what others leave of what the plane can do.',
  },
  'admission.burst-ru': {
    ...count,
    default: 0,
    live: true,
    description:
      'Request units of each second that a plane keeps for spikes beyond the quotas; 0 for none.',
  },
  'admission.query-queue-length': {
    ...count,
    min: 1,
    max: 1_000_000,
    default: 1000,
    live: true,
    description: 'Queries of one tenant that may wait for units before further ones are refused.',
  },
  'admission.strict-queries': {
    ...onOff,
    live: true,
    description:
      'Refuse a query that costs more than its tenant could ever save up, rather than let it run when all is saved up.',
  },
  'admission.fair-scheduling': {
    ...liveSwitch,
    description:
      'Tenants share the threads of the planes, and the disk of tables of model `kv`, by their quotas. Off, requests are served in the order of their connections.',
  },
  'admission.partition-cap': {
    type: 'choice',
    choices: ['busy', 'always', 'none'],
    default: 'busy',
    live: true,
    description:
      'When a partition of a Redis table with `partitions` is held to `admission.partition-factor` times its part of the quota of its tenant: while the plane spends more than 90 % of `redis.ru-per-second`, always, or never.',
  },
  'admission.partition-factor': {
    type: 'integer',
    min: 1,
    max: 16_384,
    default: 3,
    live: true,
    description:
      'Times its part of the quota that one partition may take. Tables with more partitions than this have ceilings.',
  },
  'admission.warmup-seconds': {
    type: 'integer',
    min: 0,
    max: 30 * 86_400,
    default: 0,
    live: true,
    description:
      'Time from when a tenant was made in which its quota counts `admission.warmup-factor` times; 0 for none. A credit for the first load; 300 is a good one where planes have room for it.',
  },
  'admission.warmup-factor': {
    type: 'integer',
    min: 1,
    max: 100,
    default: 3,
    live: true,
    description: 'Times its quota that a tenant may spend while it is new.',
  },
  'admission.error-delay': {
    ...onOff,
    live: true,
    description:
      'Hold refusals back for as long as half of the requests take that are served, up to 100 ms: for gateways behind a balancer that sends requests to where fewest are under way, which would take one that refuses for one that is idle.',
  },
  'admission.alarm-percent': {
    type: 'integer',
    min: 0,
    max: 1000,
    default: 80,
    live: true,
    description:
      'A tenant that uses so much of its request units a second is told of in the log, once a minute; 0 for never.',
  },

  'log.level': {
    type: 'choice',
    choices: ['trace', 'debug', 'info', 'warn', 'error', 'silent'],
    default: 'info',
    live: true,
    description: 'Least important messages that are logged.',
  },
  'log.format': {
    type: 'choice',
    choices: ['auto', 'json', 'pretty'],
    default: 'auto',
    description: 'One JSON object a line, or lines for people; auto is pretty on a terminal.',
  },

  'shutdown.grace-ms': {
    type: 'integer',
    min: 0,
    max: 3_600_000,
    default: 10_000,
    unit: 'ms',
    live: true,
    description: 'Time a graceful stop gives to what is under way.',
  },
} as const satisfies Record<string, Setting>;

export type ConfigKey = keyof typeof settings;
/** The value of every setting; plain data. */
export type Config = { -readonly [K in ConfigKey]: ValueOf<(typeof settings)[K]> };
export type ConfigValue = Config[ConfigKey];

export const configKeys = Object.keys(settings) as ConfigKey[];

export function settingOf(key: ConfigKey): Setting {
  return settings[key];
}

export function isConfigKey(key: string): key is ConfigKey {
  return Object.hasOwn(settings, key);
}

export function defaultConfig(): Config {
  const config: Record<string, string | number> = {};
  for (const key of configKeys) config[key] = settings[key].default;
  return config as Config;
}

/** `redis.default-model` in the environment: POLYROW_REDIS_DEFAULT_MODEL. */
export function environmentName(key: string): string {
  return `POLYROW_${key.replaceAll(/[.-]/g, '_').toUpperCase()}`;
}
