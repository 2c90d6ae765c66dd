// The cluster that a server is a node of. docs/cluster.md says how one is formed.

import type { Setting } from './setting.ts';
import { anySize, mib, seconds } from './setting-forms.ts';

export const clusterSettings = {
  'cluster.listen': {
    type: 'text',
    meaning: '`HOST:PORT`',
    default: '',
    description:
      'Address for the other nodes of a cluster; none, and the server is on its own. PORT, PORT+1 and PORT+2 are used. See [cluster.md](cluster.md).',
  },
  'cluster.advertise': {
    type: 'text',
    meaning: 'a host name or address',
    default: '',
    description:
      'Host by which other nodes and clients of theirs reach this one: that of `cluster.listen` if it is empty. Needed where `cluster.listen` is a wildcard, as 0.0.0.0.',
  },
  'cluster.seeds': {
    type: 'text',
    meaning: '`HOST:PORT`, several separated by commas',
    default: '',
    description:
      '`cluster.listen` of nodes of the cluster to join, asked in turn until one answers. Without seeds a new node waits for `polyrow cluster init`.',
  },
  'cluster.zone': {
    type: 'text',
    meaning: 'a name',
    default: '',
    description:
      'What fails together with this node, as a rack or a data centre. Replicas are placed in different zones as far as there are enough.',
  },
  'cluster.secret-file': {
    type: 'text',
    meaning: 'a path',
    default: '',
    description:
      'File with the secret that all nodes share, 64 hexadecimal digits: `cluster-secret` in the data directory if it is empty. `polyrow cluster init` makes it; a node that joins needs a copy.',
  },
  'cluster.replicas': {
    type: 'integer',
    min: 1,
    max: 7,
    default: 3,
    live: true,
    description:
      'Replicas of all data, each on another node. While there are fewer nodes there are as many replicas as nodes. The value of the node that leads the metadata counts.',
  },
  'cluster.max-entry-bytes': {
    ...anySize,
    min: mib,
    max: 64 * mib,
    default: 64 * mib,
    description:
      'Most bytes that one command, script or transaction may write on a node of a cluster, as its replicas get them in one log entry. One that writes more is refused and changes nothing.',
  },
  'cluster.rebuild-after': {
    ...seconds,
    min: 1,
    default: 600,
    live: true,
    description:
      'How long a node may be out of reach before its replicas are made anew on others, and its vote about the metadata goes to another. The value of the node that leads the metadata counts.',
  },
} as const satisfies Record<string, Setting>;
