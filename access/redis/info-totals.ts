// INFO of a cluster: the fields of which the sum of all nodes takes the place of this node's own.

import { chargeClasses } from '../../request-units/meter.ts';

/** Fields that are summed. Other fields are each node's own. */
export const summed: ReadonlySet<string> = new Set([
  'connected_clients',
  'blocked_clients',
  'tracking_clients',
  'pubsub_clients',
  'watching_clients',
  'clients_in_timeout_table',
  'total_connections_received',
  'total_commands_processed',
  'instantaneous_ops_per_sec',
  'total_net_input_bytes',
  'total_net_output_bytes',
  'rejected_connections',
  'keyspace_hits',
  'keyspace_misses',
  'gateway_cache_hits',
  'gateway_cache_misses',
  'total_error_replies',
  'client_output_buffer_limit_disconnections',
  'ru_total',
  'ru_last_second',
  'ru_requests',
  'ru_rejected_requests',
  ...chargeClasses.map((name) => `ru_${name}`),
]);

export type InfoFields = [string, string | number][];

/** Puts the sums of all nodes in the place of this node's own. */
export function withSums(
  section: string,
  fields: InfoFields,
  nodes: readonly Readonly<Record<string, number>>[],
  span: number,
): InfoFields {
  const total = (name: string): number => nodes.reduce((sum, one) => sum + (one[name] ?? 0), 0);
  if (section === 'keyspace') {
    const databases: InfoFields = [];
    for (let db = 0; db < span; db++) {
      const keys = total(`db${db}.keys`);
      if (keys === 0) continue;
      databases.push([`db${db}`, `keys=${keys},expires=${total(`db${db}.expires`)},avg_ttl=0`]);
    }
    return databases;
  }
  if (section === 'cluster') {
    const memory = total('used_memory');
    const more: InfoFields = memory === 0 ? [] : [['cluster_used_memory', memory]];
    return [...fields, ['cluster_answering_nodes', nodes.length], ...more];
  }
  return fields.map(([name, value]) => {
    if (!summed.has(name)) return [name, value];
    const sum = total(name);
    return [name, typeof value === 'string' ? sum.toFixed(3) : sum];
  });
}
