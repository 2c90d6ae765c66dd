// The data directory, the admin API, TLS, the log of messages and the stop of the server.

import type { Setting } from './setting.ts';
import { anyPort, count, file, host, onOff } from './setting-forms.ts';

export const generalSettings = {
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

  'protected-mode': {
    type: 'choice',
    choices: ['yes', 'no'],
    default: 'yes',
    description:
      'Do not serve Redis or InfluxDB clients on an address that others can reach while the default user needs no password.',
  },

  roles: {
    type: 'text',
    meaning: 'of gateway, node and control, separated by commas',
    default: 'gateway,node,control',
    description:
      'What a node of a cluster does: `gateway` serves clients, `node` holds replicas, `control` votes about the metadata. One without `gateway` listens to no Redis or InfluxDB clients, one without `node` forwards all that it is asked.',
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
      'A token of an operator, besides the one in the file admin-token of the data directory. Without it, and while `admin.host` is a loopback address, /metrics and /healthz are shown to everyone on this machine; with it they ask for a token, too.',
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
    description: 'Time a graceful stop gives to running requests.',
  },
} as const satisfies Record<string, Setting>;
