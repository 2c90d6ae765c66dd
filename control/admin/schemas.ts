// JSON schemas of the admin API's requests and responses.

import { seriesModel, tableModels } from '../metadata/table-definition.ts';
import { topKinds, topOrders } from '../monitor/top.ts';
import { usageGroups, usageSlots } from '../monitor/usage-history.ts';
import { chargeClasses } from '../../request-units/meter.ts';
import { lastSlot, mostPartitions } from '../../contracts/partition-map.ts';
import {
  consistencyKinds,
  quotaModes,
  shardingKinds,
  writePriorities,
} from '../../contracts/table-properties.ts';
import { adminRoles } from '../tenants/admin-token.ts';
import {
  limitNames,
  longestDescription,
  longestPassword,
  mostDatabases,
  namePattern,
  privileges,
} from '../tenants/tenant-rules.ts';

/** As JSON Schema has it. */
export interface Schema {
  readonly [keyword: string]: unknown;
}

export const text = { type: 'string' } as const;
export const flag = { type: 'boolean' } as const;
const whole = { type: 'integer', minimum: 0 } as const;
const number = { type: 'number' } as const;

/** Schema of an object that has these members and no others. */
export function object(
  properties: Readonly<Record<string, Schema>>,
  required: readonly string[] = [],
): Schema {
  return {
    type: 'object',
    additionalProperties: false,
    ...(required.length === 0 ? {} : { required }),
    properties,
  };
}

/** Like `object`, with all members required except the optional ones. */
function record(
  properties: Readonly<Record<string, Schema>>,
  optional: readonly string[] = [],
): Schema {
  return object(
    properties,
    Object.keys(properties).filter((name) => !optional.includes(name)),
  );
}

export function listOf(name: string, items: Schema): Schema {
  return record({ [name]: { type: 'array', items } });
}

export const nothing = record({});
export const name = {
  type: 'string',
  pattern: namePattern,
  description: 'A letter, then up to 62 letters, digits, dashes and underscores.',
} as const;
export const password = {
  type: 'string',
  minLength: 1,
  maxLength: longestPassword,
  // Accepted in requests, but neither returned nor stored. The audit log uses this flag as well.
  writeOnly: true,
} as const;
const description = { type: 'string', maxLength: longestDescription } as const;
const time = { ...whole, description: 'Unix milliseconds.' } as const;

export const errorAnswer = record({
  error: { type: 'string', description: 'A readable message.' },
});

export const health = record({ status: text, reasons: { type: 'array', items: text } }, [
  'reasons',
]);
export const welcome = record({ name: text, version: text, pages: { type: 'array', items: text } });

export const limits = {
  ...record(Object.fromEntries(limitNames.map((limit) => [limit, whole]))),
  description: '0 is no limit.',
};
export const limitChange = object(Object.fromEntries(limitNames.map((limit) => [limit, whole])));

/** Limit of tenants or users in one response. The next request continues after the last of them. */
export const mostOfPage = 1000;
const pageLimit = {
  type: 'integer',
  minimum: 1,
  maximum: mostOfPage,
  default: mostOfPage,
} as const;

const tenantProperties = {
  name,
  number: { ...whole, description: 'Never used again.' },
  state: { type: 'string', enum: ['active', 'suspended', 'dropping'] },
  firstTable: whole,
  databases: { ...whole, description: 'Databases its Redis clients can SELECT.' },
  limits,
  createdAt: {
    ...time,
    description: 'Unix milliseconds. Missing of `default`, and of tenants of earlier releases.',
  },
} as const;
export const tenant = record(tenantProperties, ['createdAt']);
export const madeTenant = record(
  {
    ...tenantProperties,
    password: {
      type: 'string',
      description: 'Of its user `default`; shown now only, when none was given.',
    },
  },
  ['createdAt', 'password'],
);
export const tenantQuery = object({
  after: { ...whole, description: 'Only those with a higher number.' },
  limit: pageLimit,
});
export const droppedTenant = record({ name, number: whole });
export const limitsAnswer = record({ limits });
export const newTenant = object(
  {
    name,
    databases: { type: 'integer', minimum: 1, maximum: mostDatabases },
    limits: limitChange,
    password,
  },
  ['name'],
);
export const tenantChange = {
  ...object({ state: { type: 'string', enum: ['active', 'suspended'] }, limits: limitChange }),
  minProperties: 1,
};

const userProperties = {
  enabled: flag,
  open: { ...flag, description: 'May log in without a password.' },
  rules: { ...text, description: 'Over Redis, in words of ACL SETUSER.' },
  influxAdmin: { ...flag, description: 'Everything over the InfluxDB protocol.' },
  grants: {
    type: 'object',
    description: 'InfluxDB privileges by database.',
    additionalProperties: { type: 'string', enum: [...privileges] },
  },
} as const;
export const user = record({ tenant: name, name, ...userProperties, hasPassword: flag });
export const madeUser = record(
  {
    tenant: name,
    name,
    ...userProperties,
    hasPassword: flag,
    password: { type: 'string', description: 'Shown now only, when none was given.' },
  },
  ['password'],
);
export const userQuery = object({
  after: { ...name, description: 'Only those with a name behind this one.' },
  limit: pageLimit,
});
export const newUser = object({ name, password, ...userProperties }, ['name']);
export const userChange = { ...object({ password, ...userProperties }), minProperties: 1 };

const tokenProperties = { id: text, tenant: name, user: name, description, createdAt: time };
export const token = record(tokenProperties);
const secret = { type: 'string', description: 'The token itself; shown now only.' } as const;
export const madeToken = record({ ...tokenProperties, secret });
export const newToken = object({ user: name, description });

const adminTokenProperties = {
  id: text,
  role: { type: 'string', enum: [...adminRoles] },
  tenant: name,
  description,
  createdAt: time,
} as const;
export const adminToken = record(adminTokenProperties, ['tenant']);
export const madeAdminToken = record({ ...adminTokenProperties, secret }, ['tenant']);
export const newAdminToken = object(
  { role: adminTokenProperties.role, tenant: name, description },
  ['role'],
);
export const caller = record({ name: text, role: adminTokenProperties.role, tenant: name }, [
  'tenant',
]);

const consistency = {
  ...record({ kind: { type: 'string', enum: [...consistencyKinds] }, ...staleness() }, [
    ...Object.keys(staleness()),
  ]),
  description:
    'Consistency of reads. Of model kv, reads that are not strong may be answered from a cache; writes through this server are always seen.',
};

function staleness() {
  return { maxStalenessMs: whole, maxLagEntries: whole };
}

const plainTableProperties = {
  name: text,
  model: {
    type: 'string',
    enum: [...tableModels, seriesModel],
    description: `${seriesModel}: a database of InfluxDB.`,
  },
  readOnly: { ...flag, description: 'Commands that would change a row are refused.' },
  ttlDefaultMs: {
    ...whole,
    description:
      'How long rows live whose writers do not say; points, where policy autogen does not. 0 is for ever.',
  },
  maxRowBytes: { ...whole, description: 'Of a row, or of a point. 0 is no limit.' },
  shardingKind: {
    type: 'string',
    enum: [...shardingKinds],
    description: 'Fixed when it is created.',
  },
  partitions: {
    type: 'integer',
    minimum: 1,
    maximum: mostPartitions,
    description:
      'Ranges of Redis slots that it is divided into, of equal length when it is made; one that holds rows is divided by its page partitions. Where there are more than three, none may take more than three times its part of the quota. For operators to set.',
  },
  writePriority: {
    type: 'string',
    enum: [...writePriorities],
    description: 'Which writes go first where they have to wait. For operators to set.',
  },
  quotaMode: {
    type: 'string',
    enum: [...quotaModes],
    description:
      'Whether requests may use what others leave beyond the quota of the tenant; server: as admission.allocation says. For operators to set.',
  },
  cacheBypass: { ...flag, description: 'Rows and blocks that are read are not cached in memory.' },
} as const;
const tableProperties = {
  ...plainTableProperties,
  consistency: {
    anyOf: [{ type: 'string', enum: [...consistencyKinds] }, consistency],
    description: 'By name, or with its bounds.',
  },
} as const;
export const table = record(
  {
    id: { ...whole, description: 'Of Redis tables only.' },
    ...plainTableProperties,
    consistency,
    tenant: name,
    database: {
      type: ['string', 'integer'],
      description: 'What clients call it: a number to SELECT, or the name of an InfluxDB database.',
    },
    explicit: { ...flag, description: 'Made or altered by a person.' },
    rows: { ...whole, description: 'Missing when no data plane can say.' },
    wantedModel: { ...text, description: 'Taken on at the next start if it is empty then.' },
  },
  ['id', 'rows', 'wantedModel'],
);
export const newTable = object({ table: { type: ['integer', 'string'] }, ...tableProperties }, [
  'table',
]);
export const tableChange = object(tableProperties);

const databaseName = { type: ['string', 'integer'] } as const;
export const database = record(
  {
    kind: { type: 'string', enum: ['redis', 'influx'] },
    name: databaseName,
    rows: whole,
  },
  ['rows'],
);
export const newDatabase = object({ name: { type: 'string', minLength: 1, maxLength: 255 } }, [
  'name',
]);

export const authentication = record({ checksCredentials: flag });
export const authenticationChange = record({
  checksCredentials: { type: 'boolean', const: false },
});

export const setting = record({
  key: text,
  value: { type: ['string', 'number'] },
  source: text,
  live: flag,
  secret: flag,
  description: text,
});
export const settingChange = {
  type: 'object',
  minProperties: 1,
  additionalProperties: { type: ['string', 'number'] },
} as const;

const classes = { type: 'string', enum: [...chargeClasses] } as const;
const planes = { type: 'string', enum: ['redis', 'influx'] } as const;
const ofTenant = { ...name, description: 'Of this tenant only.' } as const;
/** The name, or a placeholder for a deleted tenant. */
const tenantName = { ...text, description: 'A tenant, or #<number> of one that is gone.' } as const;

export const usageQuery = object({
  tenant: ofTenant,
  plane: planes,
  class: classes,
  slot: { type: 'string', enum: [...usageSlots] },
  from: time,
  to: time,
  by: {
    type: 'string',
    pattern: `^(${usageGroups.join('|')})(,(${usageGroups.join('|')}))*$`,
    description: `Grouping: ${usageGroups.join(', ')}, with commas between.`,
  },
  limit: { type: 'integer', minimum: 1, maximum: 10_000 },
});
const usageRow = record(
  {
    at: time,
    tenant: tenantName,
    plane: planes,
    class: classes,
    requests: number,
    errors: number,
    ru: number,
  },
  ['at', 'tenant', 'plane', 'class'],
);

export const usageAnswer = record({
  slot: { type: 'string', enum: [...usageSlots] },
  from: time,
  usage: { type: 'array', items: usageRow },
  more: { ...flag, description: 'There are more rows than the limit.' },
});

const limit = { type: 'integer', minimum: 1, maximum: 1000 } as const;
export const topQuery = object({
  tenant: ofTenant,
  plane: planes,
  by: { type: 'string', enum: [...topOrders] },
  limit,
});
export const topEntry = record({
  plane: planes,
  kind: { type: 'string', enum: [...topKinds] },
  tenant: tenantName,
  database: databaseName,
  name: text,
  ru: number,
  rate: number,
  bytes: number,
});

export const admissionQuery = object({ tenant: ofTenant, plane: planes, limit });
const units = (about: string): Schema => ({ ...number, description: about });
const counted = (about: string): Schema => ({ ...whole, description: about });
export const tenantAdmission = record({
  plane: planes,
  tenant: tenantName,
  quotaRu: units('Request units a second that it may spend on this plane.'),
  usedRu: units('Request units of the last second.'),
  usedRuMinute: units('Request units a second, over the last minute.'),
  savedRu: units('Accumulated request units for queries; below 0 a debt.'),
  warmupRu: units('Request units that a new tenant may still spend beyond its quota.'),
  classQuotaRu: units('Request units a second for scans, or for queries; 0 for no such limit.'),
  classUsedRu: units('What they cost in the last second, where there is such a limit.'),
  waiting: counted('Requests that wait now.'),
  waitingQueries: counted('Queries that wait now.'),
  waited: counted('Since the limit came, as all that follow: those that have waited.'),
  refused: counted('Those that were refused.'),
  burstRu: units('Request units of the burst package.'),
  spareRu: units('Request units that others left.'),
  wouldWait: counted('Where nothing is enforced, those that would have waited.'),
  wouldRefuse: counted('Where nothing is enforced, those that would have been refused.'),
});

export const slowlogQuery = object({ tenant: ofTenant, plane: planes, limit });
export const slowlogEntry = record({
  plane: planes,
  id: whole,
  at: time,
  durationMicros: number,
  tenant: tenantName,
  user: text,
  address: text,
  text,
  ru: number,
});
export const stepEntry = record({
  plane: planes,
  id: whole,
  at: time,
  durationMicros: number,
  collectionMicros: number,
  preemptedMicros: number,
  cause: { type: 'string', enum: ['work', 'collection', 'preemption'] },
  tenant: tenantName,
  text,
  bytes: number,
});

export const auditQuery = object({
  after: { ...whole, description: 'Number of the last record that is known already.' },
  limit,
  all: { ...flag, description: 'Those that only looked at something, too.' },
  node: { ...whole, description: 'Only of this node of a cluster.' },
});
const auditRecord = record(
  {
    node: {
      ...whole,
      description: 'In a cluster: the node that was called, which has numbered it.',
    },
    seq: whole,
    at: time,
    who: {
      ...text,
      description: 'Id of a token, or the name of the setting or file with the secret.',
    },
    role: { type: 'string', enum: ['', ...adminRoles] },
    tenant: name,
    address: text,
    method: text,
    path: text,
    status: whole,
    error: text,
    change: { type: 'object' },
  },
  ['node', 'tenant', 'error', 'change'],
);
export const auditAnswer = record(
  {
    audit: { type: 'array', items: auditRecord },
    silentNodes: {
      type: 'array',
      items: whole,
      description: 'Nodes that have not answered: their records are missing.',
    },
  },
  ['silentNodes'],
);

const partitionNumber = { ...whole, description: 'Of a partition; no other ever has it.' };
const slot = { type: 'integer', minimum: 0, maximum: lastSlot } as const;
const partition = record(
  {
    number: partitionNumber,
    first: { ...slot, description: 'Its first slot.' },
    last: { ...slot, description: 'Its last slot.' },
    model: {
      type: 'string',
      enum: [...tableModels, seriesModel],
      description: 'The engine with its rows.',
    },
    rows: { ...whole, description: 'Missing when no data plane can say.' },
    series: { ...whole, description: 'Of a database of InfluxDB, in place of slots and rows.' },
  },
  ['first', 'last', 'rows', 'series'],
);
export const partitions = record(
  {
    table: { ...whole, description: 'Missing for a database of InfluxDB.' },
    epoch: { ...whole, description: 'Counts the changes of the partitions.' },
    partitions: { type: 'array', items: partition },
    change: record(
      {
        sources: { type: 'array', items: partitionNumber },
        targets: { type: 'array', items: partition },
        status: record(
          {
            state: { type: 'string', enum: ['running', 'done', 'failed'] },
            done: { ...whole, description: 'Rows copied.' },
            total: { ...whole, description: 'Rows there were at the beginning.' },
            error: text,
          },
          ['done', 'total', 'error'],
        ),
      },
      [],
    ),
    failure: { ...text, description: 'Why the last change failed, if it did.' },
  },
  ['table', 'epoch', 'change', 'failure'],
);
export const partitionOrder = object(
  {
    kind: { type: 'string', enum: ['split', 'merge', 'move', 'convert'] },
    partition: { ...partitionNumber, description: 'To be split or moved.' },
    at: {
      ...slot,
      description: 'First slot of the upper part of a split; by default in the middle.',
    },
    partitions: {
      type: 'array',
      items: partitionNumber,
      maxItems: mostPartitions,
      description: 'To be merged: neighbours.',
    },
    model: {
      type: 'string',
      enum: [...tableModels],
      description: 'Where to move a partition, or, to convert a table, all of them.',
    },
  },
  ['kind'],
);
