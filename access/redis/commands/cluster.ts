// CLUSTER, READONLY and their like (`redis.cluster-mode`): of one node that owns all slots, or of the nodes of a cluster.

import { Action, type Transform } from '../../../universal-row/command.ts';
import { hashSlot, slotCount } from '../../../universal-row/crc16.ts';
import { CommandError } from '../../../universal-row/errors.ts';
import { countKeysInSlot, getKeysInSlot } from '../../../universal-row/transforms/redis/slots.ts';
import type { Client, ClientCommand } from '../client.ts';
import { nodeFor } from '../cluster.ts';
import type { ClusterMap, ClusterMember, SlotRange } from '../cluster-map.ts';
import type { RespWriter } from '../resp-writer.ts';
import { helpOf } from './support/help.ts';

const disabled = 'ERR This instance has cluster support disabled';
const lastSlot = slotCount - 1;
/** As Redis has it: the port of the cluster's bus is so much higher. There is none here. */
const busOffset = 10_000;

function check({ server }: Client): void {
  if (server.clusterId === undefined) throw new CommandError(disabled);
}

const common = { group: 'cluster', flags: ['loading', 'stale'] } as const;
const admin = { group: 'cluster', flags: ['admin', 'noscript', 'stale'] } as const;

type Answer = (client: Client, reply: RespWriter) => void;

/** A subcommand without arguments. */
function plain(name: string, since: string, summary: string, answer: Answer): ClientCommand {
  return {
    ...common,
    name,
    arity: 2,
    since,
    summary,
    complexity: 'O(1)',
    handle(client, _args, reply) {
      check(client);
      answer(client, reply);
    },
  };
}

/** One that changes the nodes of a cluster. */
function refused(name: string, arity: number, since: string, summary: string): ClientCommand {
  return {
    ...admin,
    name,
    arity,
    since,
    summary,
    handle(client) {
      check(client);
      throw new CommandError('ERR nodes and slots are not changed by clients');
    },
  };
}

function info(client: Client, reply: RespWriter): void {
  check(client);
  const { clusterMap } = client.server;
  const leaders = new Set(rangesFor(client).map(({ leader }) => leader.id));
  const fields = {
    cluster_state: 'ok',
    cluster_slots_assigned: slotCount,
    cluster_slots_ok: slotCount,
    cluster_slots_pfail: 0,
    cluster_slots_fail: 0,
    cluster_known_nodes: clusterMap?.members().length ?? 1,
    cluster_size: leaders.size,
    cluster_current_epoch: 1,
    cluster_my_epoch: 1,
    cluster_stats_messages_sent: 0,
    cluster_stats_messages_received: 0,
    total_cluster_links_buffer_limit_exceeded: 0,
  };
  const lines = Object.entries(fields).map(([name, value]) => `${name}:${value}\r\n`);
  reply.verbatim(lines.join(''));
}

/** Slot ranges shown to clients: the nodes of all slots, or this one. */
function rangesFor(client: Client): SlotRange[] {
  const { clusterMap } = client.server;
  if (clusterMap !== undefined) return clusterMap.ranges(client.table);
  const { id, host, port } = nodeFor(client);
  return [{ first: 0, last: lastSlot, leader: { node: 0, id, host, port }, replicas: [] }];
}

function nodes(client: Client, reply: RespWriter): void {
  const { clusterMap } = client.server;
  if (clusterMap !== undefined) {
    reply.verbatim(nodeLines(clusterMap, rangesFor(client)));
    return;
  }
  const { id, host, port } = nodeFor(client);
  reply.verbatim(
    `${id} ${host}:${port}@${port + busOffset} myself,master - 0 0 1 connected 0-${lastSlot}\n`,
  );
}

/** A node leads some slots, or has copies of slots that others lead. */
function nodeLines(map: ClusterMap, ranges: readonly SlotRange[]): string {
  const lines = map.members().map((member) => {
    const { id, host, port } = member;
    const own = ranges.filter(({ leader }) => leader === member);
    const copied = ranges.find(({ replicas }) => replicas.includes(member));
    const role = own.length === 0 && copied !== undefined ? 'slave' : 'master';
    const flags = member === map.self ? `myself,${role}` : role;
    const master = role === 'slave' ? copied!.leader.id : '-';
    const owned = own.map(({ first, last }) =>
      first === last ? ` ${first}` : ` ${first}-${last}`,
    );
    return `${id} ${host}:${port}@${port + busOffset} ${flags} ${master} 0 0 1 connected${owned.join('')}\n`;
  });
  return lines.join('');
}

function slots(client: Client, reply: RespWriter): void {
  const ranges = rangesFor(client);
  reply.array(ranges.length);
  for (const { first, last, leader, replicas } of ranges) {
    reply.array(3 + replicas.length);
    reply.integer(first);
    reply.integer(last);
    for (const { id, host, port } of [leader, ...replicas]) {
      reply.array(4);
      reply.text(host);
      reply.integer(port);
      reply.text(id);
      reply.array(0);
    }
  }
}

function shards(client: Client, reply: RespWriter): void {
  const ranges = rangesFor(client);
  reply.array(ranges.length);
  for (const { first, last, leader, replicas } of ranges) {
    reply.map(2);
    reply.text('slots');
    reply.array(2);
    reply.integer(first);
    reply.integer(last);
    reply.text('nodes');
    reply.array(1 + replicas.length);
    shardNode(leader, 'master', reply);
    for (const replica of replicas) shardNode(replica, 'replica', reply);
  }
}

function shardNode({ id, host, port }: ClusterMember, role: string, reply: RespWriter): void {
  const fields = {
    id,
    port,
    ip: host,
    endpoint: host,
    role,
    'replication-offset': 0,
    health: 'online',
  };
  reply.map(Object.keys(fields).length);
  for (const [name, value] of Object.entries(fields)) {
    reply.text(name);
    if (typeof value === 'number') reply.integer(value);
    else reply.text(value);
  }
}

function noReplicas(name: string): ClientCommand {
  return {
    ...admin,
    name,
    arity: 3,
    syntax: 'node-id',
    since: name === 'slaves' ? '3.0.0' : '5.0.0',
    summary: 'Lists the replica nodes of a master node.',
    complexity: 'O(1)',
    handle(client, args, reply) {
      check(client);
      const { clusterMap } = client.server;
      const id = args.text(2);
      if (clusterMap === undefined ? id === client.server.clusterId : isMember(clusterMap, id)) {
        const lines = clusterMap === undefined ? [] : replicasOf(clusterMap, client, id);
        reply.array(lines.length);
        for (const line of lines) reply.text(line);
      } else reply.error(`ERR Unknown node ${args.latin1(2)}`);
    },
  };
}

function isMember(map: ClusterMap, id: string): boolean {
  return map.members().some((member) => member.id === id);
}

function replicasOf(map: ClusterMap, client: Client, id: string): string[] {
  return nodeLines(map, rangesFor(client))
    .split('\n')
    .filter((line) => line.split(' ')[3] === id);
}

/** A command on rows that is refused where cluster mode is off, which pods do not know. */
function inClusters(run: Transform): Pick<ClientCommand, 'run' | 'bind' | 'refusalElsewhere'> {
  return {
    run,
    bind: (client) => (rows, args, reply) => {
      check(client);
      return run(rows, args, reply);
    },
    refusalElsewhere: ({ server }) => (server.clusterId === undefined ? disabled : undefined),
  };
}

const rowsOfSlot: readonly ClientCommand[] = [
  {
    ...common,
    name: 'countkeysinslot',
    arity: 3,
    syntax: 'slot:integer',
    since: '3.0.0',
    summary: 'Returns the number of keys in a hash slot.',
    complexity: 'O(N) with N being the number of keys in the database',
    action: Action.scan,
    ...inClusters(countKeysInSlot),
  },
  {
    ...common,
    name: 'getkeysinslot',
    arity: 4,
    syntax: 'slot:integer count:integer',
    since: '3.0.0',
    summary: 'Returns the key names in a hash slot.',
    complexity: 'O(N) with N being the number of keys in the database',
    action: Action.scan,
    ...inClusters(getKeysInSlot),
  },
];

const subcommands: readonly ClientCommand[] = [
  plain('info', '3.0.0', 'Returns information about the state of a node.', info),
  plain('myid', '3.0.0', 'Returns the ID of a node.', ({ server }, reply) =>
    reply.text(server.clusterMap?.self?.id ?? server.clusterId!),
  ),
  plain('nodes', '3.0.0', 'Returns the cluster configuration for a node.', nodes),
  plain('slots', '3.0.0', 'Returns the mapping of cluster slots to nodes.', slots),
  plain('shards', '7.0.0', 'Returns the mapping of cluster slots to shards.', shards),
  plain('links', '7.0.0', 'Lists the links to and from peers.', (_client, reply) => reply.array(0)),
  {
    ...plain(
      'saveconfig',
      '3.0.0',
      'Saves the cluster configuration; there is nothing to do.',
      (_c, r) => r.ok(),
    ),
    flags: admin.flags,
  },
  {
    ...plain('bumpepoch', '3.0.0', 'Advances the cluster config epoch.', (_c, r) =>
      r.simple('STILL 1'),
    ),
    flags: admin.flags,
  },
  {
    ...common,
    name: 'keyslot',
    arity: 3,
    syntax: 'key:string',
    since: '3.0.0',
    summary: 'Returns the hash slot for a key.',
    complexity: 'O(N) where N is the number of bytes in the key',
    handle(client, args, reply) {
      check(client);
      reply.integer(hashSlot(args.buf, args.starts[2]!, args.lens[2]!));
    },
  },
  {
    ...admin,
    name: 'count-failure-reports',
    arity: 3,
    syntax: 'node-id',
    since: '3.0.0',
    summary: 'Returns the number of active failure reports active for a node.',
    complexity: 'O(1)',
    handle(client, args, reply) {
      check(client);
      if (args.text(2) === client.server.clusterId) reply.integer(0);
      else reply.error(`ERR Unknown node ${args.latin1(2)}`);
    },
  },
  ...rowsOfSlot,
  noReplicas('replicas'),
  noReplicas('slaves'),
  refused('addslots', -3, '3.0.0', 'Assigns new hash slots to a node.'),
  refused('addslotsrange', -4, '7.0.0', 'Assigns new hash slot ranges to a node.'),
  refused('delslots', -3, '3.0.0', 'Sets hash slots as unbound for a node.'),
  refused('delslotsrange', -4, '7.0.0', 'Sets hash slot ranges as unbound for a node.'),
  refused('failover', -2, '3.0.0', 'Forces a replica to perform a manual failover of its master.'),
  refused('flushslots', 2, '3.0.0', 'Deletes all slots information from a node.'),
  refused('forget', 3, '3.0.0', 'Removes a node from the nodes table.'),
  refused('meet', -4, '3.0.0', 'Forces a node to handshake with another node.'),
  refused('replicate', 3, '3.0.0', 'Configure a node as replica of a master node.'),
  refused('reset', -2, '3.0.0', 'Resets a node.'),
  refused('set-config-epoch', 3, '3.0.0', 'Sets the configuration epoch for a new node.'),
  refused('setslot', -4, '3.0.0', 'Binds a hash slot to a node.'),
];

function accepted(
  name: string,
  summary: string,
  then: (client: Client) => void = () => {},
): ClientCommand {
  return {
    name,
    arity: 1,
    flags: ['loading', 'stale', 'fast'],
    group: 'cluster',
    since: '3.0.0',
    summary,
    complexity: 'O(1)',
    handle(client, _args, reply) {
      check(client);
      then(client);
      reply.ok();
    },
  };
}

export const clusterCommands: readonly ClientCommand[] = [
  {
    name: 'cluster',
    arity: -2,
    flags: ['stale', 'loading'],
    group: 'cluster',
    since: '3.0.0',
    summary: 'A container for cluster commands.',
    handle(_client, _args, reply) {
      reply.error("ERR wrong number of arguments for 'cluster' command");
    },
    subcommands: [...subcommands, helpOf('cluster', subcommands)],
  },
  accepted(
    'readonly',
    'Enables read-only queries for a connection to a replica node.',
    (client) => (client.readsAnywhere = true),
  ),
  accepted(
    'readwrite',
    'Enables read-write queries for a connection to a replica node.',
    (client) => (client.readsAnywhere = false),
  ),
  accepted('asking', 'Signals that a cluster client is following an -ASK redirect.'),
];
