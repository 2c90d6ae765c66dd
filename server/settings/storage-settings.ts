// Engines, the write-ahead log and backups.

import type { Setting } from './setting.ts';
import { anySize, count, gib, kib, liveSwitch, mib, seconds } from './setting-forms.ts';

export const storageSettings = {
  'wal.fsync': {
    type: 'choice',
    choices: ['always', 'everysec', 'no'],
    default: 'everysec',
    live: true,
    description:
      'When the log is forced to disk: before every answer, once a second, or when the operating system likes. Nodes of a cluster that keeps several copies use `always` unless this is given.',
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
      'What to do with a log that is damaged before its end: refuse to start, or cut it at the damage and lose what follows. In a cluster, whether replicas vote at once though they may lack acknowledged writes (wal.fsync).',
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
      'Records a checksum over each table in an incremental backup; `polyrow verify` and restores check the result of the chain against it. This reads all rows. With `off` only changed rows are read, and only row counts are checked.',
  },

  'memory.max-bytes': {
    ...anySize,
    default: 0,
    live: true,
    description:
      'Memory for rows beyond which rows are evicted, or writes that need more are refused with an OOM error; 0 no limit.',
  },
  'memory.eviction-policy': {
    type: 'choice',
    choices: [
      'noeviction',
      'allkeys-lru',
      'allkeys-lfu',
      'allkeys-random',
      'volatile-lru',
      'volatile-lfu',
      'volatile-random',
      'volatile-ttl',
    ],
    default: 'noeviction',
    live: true,
    description:
      'Which rows of memory tables go when there is no room by `memory.max-bytes`, or by the limit of a tenant; as in Redis. A command makes room among the rows of its own tenant only.',
  },
  'memory.eviction-samples': {
    type: 'integer',
    min: 1,
    max: 64,
    default: 5,
    live: true,
    description:
      'Rows sampled in each database to select the one to evict; more samples follow the policy more closely, and take longer.',
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
  'tsm.max-values-per-tag': {
    ...count,
    default: 100_000,
    description: 'Values of one tag of a measurement in one shard; 0 no limit.',
  },
} as const satisfies Record<string, Setting>;
