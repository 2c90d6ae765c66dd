// The server for Redis clients.

import { defaultOutputLimits } from './output-limits.ts';
import type { Setting } from './setting.ts';
import { anyPort, anySize, count, gib, host, mib, onOff, seconds } from './setting-forms.ts';

export const redisSettings = {
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
  'redis.busy-reply-threshold': {
    type: 'integer',
    min: 0,
    max: 86_400_000,
    default: 5000,
    unit: 'milliseconds',
    live: true,
    description:
      'A script that takes longer has commands that wait for its database answered `BUSY`; 0 lets them wait.',
  },
  'redis.latency-monitor-threshold': {
    type: 'integer',
    min: 0,
    max: 86_400_000,
    default: 0,
    unit: 'milliseconds',
    live: true,
    description: 'Commands that take as long are noted for `LATENCY`; 0 notes none.',
  },
  'redis.cluster-mode': {
    type: 'choice',
    choices: ['off', 'on', 'redirect'],
    default: 'off',
    description:
      'Answer as a Redis cluster, for clients that know clusters only: `CLUSTER SLOTS` and its like, `CROSSSLOT` errors, and database 0 alone. With `on` the cluster is this one node, which owns all slots and takes commands to where they are to run. With `redirect` clients of a cluster are told of all nodes, and are sent to the one that leads by `MOVED`.',
  },
  'redis.notify-keyspace-events': {
    type: 'text',
    meaning: 'letters of `KEg$lshzxetdmnA`, or nothing',
    default: '',
    live: true,
    description:
      'Which keyspace notifications are published, as Redis has it: `K` and `E` for channels of keys and of events, and a letter for each class of events. A tenant hears of its own keys.',
  },
  'redis.tracking-table-max-keys': {
    ...count,
    default: 1_000_000,
    live: true,
    description:
      'Keys tracked for clients that cache them (CLIENT TRACKING), of all tenants together; 0 for no limit. Beyond it clients get invalidations.',
  },
  'redis.ru-per-second': {
    ...count,
    default: 0,
    live: true,
    description:
      'Capacity of the Redis plane in request units a second. Requests within quotas are served first. With 0 the capacity is measured under load, and used for `admission.partition-cap` only.',
  },
  'redis.gateway-cache-bytes': {
    ...anySize,
    default: 64 * mib,
    live: true,
    description:
      'Memory for cached answers to GET, kept for up to ten seconds, of tables of model `kv` whose `consistency` is `eventual` or `bounded`; 0 for none.',
  },
  'redis.client-output-buffer-limit': {
    type: 'text',
    meaning: '`CLASS HARD SOFT SECONDS`, once or twice',
    default: defaultOutputLimits,
    live: true,
    description:
      'Bytes waiting for one client at which it is closed, at once (`HARD`) or when exceeded for `SECONDS` (`SOFT`), of the classes `normal` and `pubsub`; 0 no limit. A slow reader of class `normal` is not read from until it catches up.',
  },
} as const satisfies Record<string, Setting>;
