// Request units, and the limits that go by them.

import type { Setting } from './setting.ts';
import { count, liveSwitch, onOff, waitMs } from './setting-forms.ts';

export const admissionSettings = {
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
      'Limits on request units a second. `enforce`: requests over the limit wait, and are refused after their waiting time. `dry-run`: such requests are only counted. `off`: no limits. Needs `ru.metering`. See [limits.md](limits.md).',
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
  'admission.allocation': {
    type: 'choice',
    choices: ['hard', 'stacked'],
    default: 'hard',
    live: true,
    description:
      'Whether a tenant is held to its quota at all times, or may use unused capacity of the plane beyond it.',
  },
  'admission.burst-ru': {
    ...count,
    default: 0,
    live: true,
    description:
      'Request units of each second that a plane keeps for spikes beyond the quotas; 0 for none.',
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
      'When a partition of a Redis table with `partitions` is held to three times its part of the quota of its tenant: while the plane spends more than 90 % of `redis.ru-per-second`, always, or never.',
  },
  'admission.warmup-seconds': {
    type: 'integer',
    min: 0,
    max: 30 * 86_400,
    default: 0,
    live: true,
    description:
      'Time from when a tenant was made in which its quota counts three times; 0 for none. A credit for the first load; 300 is a good one where planes have room for it.',
  },
  'admission.error-delay': {
    ...onOff,
    live: true,
    description:
      'Delays each refusal by the median duration of a served request, at most 100 ms, so that a least-requests balancer does not mistake a refusing gateway for an idle one.',
  },
} as const satisfies Record<string, Setting>;
