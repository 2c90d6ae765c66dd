// Metrics of the process as a whole, beside those of its parts.

import { statfsSync } from 'node:fs';
import type { MetricSample } from '../control/monitor/metric-sample.ts';
import type { ServerTls } from './lifecycle/tls.ts';
import { hashSamples } from './planes/hash-samples.ts';
import type { PlaneHost } from './planes/plane-host.ts';

interface ServerFacts {
  version: string;
  /** Data directory. */
  directory: string;
  /** The server before this one on the directory did not stop cleanly. */
  wasUnclean: boolean;
  planes: readonly PlaneHost[];
  tls: ServerTls | undefined;
}

export function serverSamples(facts: ServerFacts): MetricSample[] {
  const disk = statfsSync(facts.directory);
  return [
    {
      name: 'polyrow_build_info',
      help: 'Always 1; the version is in the label.',
      type: 'gauge',
      value: 1,
      labels: { version: facts.version },
    },
    {
      name: 'polyrow_server_unclean_start',
      help: '1 if the server before this one on the data directory did not stop cleanly.',
      type: 'gauge',
      value: facts.wasUnclean ? 1 : 0,
    },
    ...facts.planes.map(
      (plane): MetricSample => ({
        name: 'polyrow_plane_up',
        help: 'Whether the data plane runs.',
        type: 'gauge',
        value: plane.isUp ? 1 : 0,
        labels: { plane: plane.name },
      }),
    ),
    {
      name: 'polyrow_data_disk_free_bytes',
      help: 'Bytes free on the disk of the data directory.',
      type: 'gauge',
      value: disk.bavail * disk.bsize,
    },
    ...hashSamples('control'),
    ...(facts.tls?.samples() ?? []),
  ];
}
