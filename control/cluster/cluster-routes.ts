// /v1/cluster: the cluster that the server is a node of, used by `polyrow cluster`, `node`, `partition` and `doctor`.

import type { FastifyInstance } from 'fastify';
import { mostMinutesAsked } from '../../contracts/cluster.ts';
import { addRoute } from '../admin/route.ts';
import { flag, listOf, object, text } from '../admin/schemas.ts';
import { type ClusterAdmin, ClusterError } from './cluster-admin.ts';

const count = { type: 'integer', minimum: 0 } as const;
const node = { type: 'integer', minimum: 1, description: 'Number of a node.' } as const;
const leader = { type: 'integer', minimum: 0, description: 'A node; 0 while none leads.' } as const;
const addressNames = ['control', 'redis', 'influx', 'redisClients', 'influxClients', 'admin'];
const addresses = object(
  Object.fromEntries(addressNames.map((name) => [name, text])),
  addressNames,
);

const nodeReport = object(
  {
    node,
    zone: text,
    roles: { type: 'array', items: { type: 'string', enum: ['gateway', 'node', 'control'] } },
    state: { type: 'string', enum: ['joining', 'up', 'draining', 'removed'] },
    reachable: flag,
    answered: {
      type: 'boolean',
      description:
        'Whether it told its replicas in time: otherwise it is not known which of them lead.',
    },
    since: {
      type: 'number',
      description: 'Unix milliseconds from when on it is or is not reachable.',
    },
    votes: flag,
    replicas: count,
    leads: count,
    addresses,
  },
  [
    ...[
      'node',
      'zone',
      'roles',
      'state',
      'reachable',
      'answered',
      'since',
      'votes',
      'replicas',
      'leads',
    ],
    'addresses',
  ],
);
const replicaReport = object(
  {
    node,
    replica: count,
    state: { type: 'string', enum: ['voter', 'learner', 'leaving'] },
    role: { type: 'string', enum: ['leader', 'follower', 'learner', 'closed', 'unknown'] },
    applied: count,
    rows: count,
    bytes: count,
    fenced: {
      type: 'boolean',
      description: 'It may lack writes that it has acknowledged, and votes once it has caught up.',
    },
    mayHaveLost: {
      type: 'boolean',
      description: 'It leads, and acknowledged writes may be lost.',
    },
    takesNoWrites: {
      type: 'string',
      enum: ['node', 'replica'],
      description:
        'Writes are refused: by all replicas of the node, whose disk is full, or by this one.',
    },
  },
  ['node', 'replica', 'state', 'role', 'applied', 'rows', 'bytes'],
);
const groupReport = object(
  {
    group: count,
    tenant: count,
    model: { type: 'string', enum: ['memory', 'kv', 'tsm'] },
    partition: count,
    series: object({ partition: count, of: count }, ['partition', 'of']),
    epoch: count,
    leader,
    mayLead: {
      type: 'array',
      items: node,
      description: 'Where no leader is known: nodes with replicas that did not answer in time.',
    },
    settled: flag,
    replicas: { type: 'array', items: replicaReport },
  },
  ['group', 'tenant', 'model', 'epoch', 'leader', 'settled', 'replicas'],
);
const clusterReport = object(
  {
    cluster: count,
    node,
    leader,
    wantedReplicas: count,
    nodes: { type: 'array', items: nodeReport },
    groups: { type: 'array', items: groupReport },
  },
  ['cluster', 'node', 'leader', 'wantedReplicas', 'nodes', 'groups'],
);
const finding = object(
  {
    severity: { type: 'string', enum: ['error', 'warning', 'notice'] },
    problem: text,
    remedy: text,
  },
  ['severity', 'problem', 'remedy'],
);
const minuteMs = 60_000;
const minuteAt = {
  type: 'integer',
  minimum: 0,
  multipleOf: minuteMs,
  description: 'Unix milliseconds of a full minute.',
} as const;
const planeMinutes = object(
  {
    node,
    plane: { type: 'string', enum: ['redis', 'influx'] },
    capacity: {
      type: 'number',
      minimum: 0,
      description: 'Request units a second that the plane can serve; 0 while that is not known.',
    },
    groups: {
      type: 'array',
      items: object(
        {
          group: count,
          units: {
            type: 'array',
            items: { type: 'number', minimum: 0 },
            description: 'Request units a second, one for each minute.',
          },
        },
        ['group', 'units'],
      ),
    },
  },
  ['node', 'plane', 'capacity', 'groups'],
);
const done = object({ done: flag }, ['done']);
const isDone = { done: true };

/** `cluster` is undefined on a server that is not a node of one. */
export function clusterRoutes(app: FastifyInstance, cluster: ClusterAdmin | undefined): void {
  const there = (): ClusterAdmin => {
    if (cluster !== undefined) return cluster;
    throw new ClusterError(409, 'this server is not a node of a cluster: it has no cluster.listen');
  };
  addRoute(
    app,
    {
      method: 'GET',
      url: '/v1/cluster',
      access: 'observe',
      summary: 'Nodes and groups of the cluster, as they should be and as they are.',
      answer: clusterReport,
    },
    () => there().report(),
  );
  addRoute(
    app,
    {
      method: 'GET',
      url: '/v1/cluster/findings',
      access: 'observe',
      summary: 'What is wrong with the cluster, and what can be done about it, the worst first.',
      answer: listOf('findings', finding),
    },
    async () => ({ findings: await there().findings() }),
  );
  addRoute<undefined, { from: number; to: number }>(
    app,
    {
      method: 'GET',
      url: '/v1/cluster/minutes',
      access: 'observe',
      summary: `Request units that the replicas of each node served, minute by minute; at most ${mostMinutesAsked} minutes in an answer.`,
      query: object({ from: minuteAt, to: minuteAt }, ['from', 'to']),
      answer: listOf('planes', planeMinutes),
    },
    async ({ query }) => {
      const span = { from: query.from / minuteMs, to: query.to / minuteMs };
      const minutes = span.to - span.from;
      if (!Number.isInteger(span.from) || !(minutes >= 1 && minutes <= mostMinutesAsked)) {
        const wanted = `from 1 to ${mostMinutesAsked} whole minutes`;
        throw new ClusterError(400, `from and to are to be ${wanted} apart, at full minutes`);
      }
      return { planes: await there().minutes(span) };
    },
  );
  nodeRoutes(app, there);
  groupRoutes(app, there);
  addRoute(
    app,
    {
      method: 'POST',
      url: '/v1/cluster/init',
      access: 'operate',
      summary:
        'Form a cluster of this node. Only a node that is in none can do so: any other answers 409.',
      answer: initialized,
      status: 201,
    },
    () => {
      there();
      throw new ClusterError(409, 'this node is in a cluster already');
    },
  );
}

export const initialized = object({ secretFile: text }, ['secretFile']);

function nodeRoutes(app: FastifyInstance, there: () => ClusterAdmin): void {
  addRoute<{ state: 'up' | 'draining' }>(
    app,
    {
      method: 'PATCH',
      url: '/v1/cluster/nodes/:node',
      access: 'operate',
      summary:
        'Drain a node: its leaders and replicas go to other nodes. Or use a drained one again.',
      body: object({ state: { type: 'string', enum: ['up', 'draining'] } }, ['state']),
      answer: done,
    },
    async ({ path, body }) => {
      await there().setNodeState(numberOf(path['node']!, 'node'), body.state);
      return isDone;
    },
  );
  addRoute(
    app,
    {
      method: 'DELETE',
      url: '/v1/cluster/nodes/:node',
      access: 'operate',
      summary:
        'Remove a drained node from the cluster permanently. Its number is never used again.',
      answer: done,
    },
    async ({ path }) => {
      await there().removeNode(numberOf(path['node']!, 'node'));
      return isDone;
    },
  );
}

function groupRoutes(app: FastifyInstance, there: () => ClusterAdmin): void {
  addRoute<{ to: number }>(
    app,
    {
      method: 'POST',
      url: '/v1/cluster/groups/:group/transfer',
      access: 'operate',
      summary: 'Make the replica on a node the leader of a group.',
      body: object({ to: node }, ['to']),
      answer: done,
    },
    async ({ path, body }) => {
      await there().transfer(numberOf(path['group']!, 'group'), body.to);
      return isDone;
    },
  );
  addRoute<{ from: number; to: number }>(
    app,
    {
      method: 'POST',
      url: '/v1/cluster/groups/:group/move',
      access: 'operate',
      summary: 'Move a replica of a group from one node to another. It is copied after the answer.',
      body: object({ from: node, to: node }, ['from', 'to']),
      answer: done,
      status: 202,
    },
    async ({ path, body }) => {
      await there().move(numberOf(path['group']!, 'group'), body.from, body.to);
      return isDone;
    },
  );
}

function numberOf(text: string, what: string): number {
  const number = /^\d{1,15}$/.test(text) ? Number(text) : 0;
  if (number > 0) return number;
  throw new ClusterError(400, `${text} is no number of a ${what}`);
}
