// INFO in Redis's sections, for compatibility with tools. Server-wide figures are shown to the
// users of tenant `default`; users of other tenants see their own.

import { arch, platform, release, totalmem } from 'node:os';
import { type ChargeClass, chargeClasses } from '../../request-units/meter.ts';
import type { CommandEntry, CommandRegistry } from './commands/registry.ts';
import { quotaFields } from './admission/quota-fields.ts';
import { redisVersion } from './commands/connection.ts';
import type { Client } from './client.ts';
import { type InfoFields, withSums } from './info-totals.ts';
import type { ReadCache } from './read-cache.ts';
import type { ClientServer } from './client.ts';
import type { Tenant } from './tenant.ts';

type Fields = InfoFields;

const defaultSections = [
  'server',
  'clients',
  'memory',
  'persistence',
  'stats',
  'replication',
  'cpu',
  'errorstats',
  'ru',
  'cluster',
  'keyspace',
];
const allSections = [
  ...defaultSections.slice(0, 7),
  'commandstats',
  'latencystats',
  ...defaultSections.slice(7),
];

const titles: Readonly<Record<string, string>> = { cpu: 'CPU', ru: 'RU' };

export function infoFields(
  section: string,
  server: ClientServer,
  tenant: Tenant<Client>,
): Fields | undefined {
  const own = tenantSections[section]?.(server, tenant);
  return own ?? (tenant.isFirst ? sections[section]?.(server) : undefined);
}

/**
 * Text of the requested sections; all the usual ones when none is named. `nodes`: fields of the
 * nodes to sum.
 */
export function writeInfo(
  { server, tenant }: Client,
  asked: readonly string[],
  nodes?: readonly Readonly<Record<string, number>>[],
): string {
  const wanted = new Set(asked.length === 0 ? defaultSections : asked);
  if (wanted.has('default')) for (const name of defaultSections) wanted.add(name);
  const isAll = wanted.has('all') || wanted.has('everything');
  const parts: string[] = [];
  // Each section once, in Redis's order, regardless of the request's order and duplicates.
  for (const name of allSections) {
    if (!isAll && !wanted.has(name)) continue;
    const own = infoFields(name, server, tenant);
    if (own === undefined) continue;
    const fields = nodes === undefined ? own : withSums(name, own, nodes, tenant.span.count);
    const title = titles[name] ?? name[0]!.toUpperCase() + name.slice(1);
    parts.push(`# ${title}\r\n${fields.map(([k, v]) => `${k}:${v}\r\n`).join('')}`);
  }
  return parts.join('\r\n');
}

function modeOf({ clusterId }: ClientServer): string {
  return clusterId === undefined ? 'standalone' : 'cluster';
}

/** Scripts and functions of tenants. */
function scriptCounts(tenants: readonly Tenant<Client>[]): Fields {
  const total = (of: (tenant: Tenant<Client>) => number): number =>
    tenants.reduce((sum, tenant) => sum + of(tenant), 0);
  const bytes = total(({ scripts }) => scripts.cache.bytes + scripts.functions.bytes);
  return [
    ['used_memory_scripts_eval', total(({ scripts }) => scripts.cache.bytes)],
    ['number_of_cached_scripts', total(({ scripts }) => scripts.cache.count)],
    ['number_of_functions', total(({ scripts }) => scripts.functions.functionCount)],
    ['number_of_libraries', total(({ scripts }) => scripts.functions.all.size)],
    ['used_memory_functions', total(({ scripts }) => scripts.functions.bytes)],
    ['used_memory_scripts', bytes],
    ['used_memory_scripts_human', human(bytes)],
  ];
}

/** Zeros that are true of every server: nothing here forks, moves memory about, or speaks Redis's replication. */
function none(...names: readonly string[]): Fields {
  return names.map((name) => [name, 0]);
}

/** Bytes of requests and answers that are kept for clients. */
function clientBytes({ connections }: ClientServer): number {
  let bytes = 0;
  for (const { queryBytes, unsentBytes } of connections.values()) {
    bytes += queryBytes + unsentBytes;
  }
  return bytes;
}

function human(bytes: number): string {
  if (bytes < 1024) return `${bytes}B`;
  const units = ['K', 'M', 'G', 'T', 'P'];
  let value = bytes;
  let unit = -1;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${value.toFixed(2)}${units[unit]}`;
}

const sections: Readonly<Record<string, (server: ClientServer) => Fields>> = {
  server(server) {
    const { facts } = server;
    const uptime = Math.floor((Date.now() - facts.startedAt) / 1000);
    return [
      ['redis_version', redisVersion],
      ['polyrow_version', facts.version],
      ['redis_git_sha1', '00000000'],
      ['redis_git_dirty', 0],
      ['redis_build_id', '0'],
      ['redis_mode', modeOf(server)],
      ['os', `${platform()} ${release()} ${arch()}`],
      ['arch_bits', 64],
      ['multiplexing_api', 'libuv'],
      ['node_version', process.version],
      ['process_id', process.pid],
      ['process_supervised', 'no'],
      ['run_id', facts.runId],
      ['tcp_port', server.port],
      ['server_time_usec', Math.floor((performance.timeOrigin + performance.now()) * 1000)],
      ['uptime_in_seconds', uptime],
      ['uptime_in_days', Math.floor(uptime / 86_400)],
      ['hz', 10],
      ['configured_hz', 10],
      ['lru_clock', Math.floor(Date.now() / 1000) & 0xffffff],
      ['executable', facts.executable],
      ['config_file', facts.configFile],
    ];
  },
  memory(server) {
    const { facts } = server;
    const { used, peak, startup, uncounted, held } = facts.memory();
    const { rss, heapUsed } = process.memoryUsage();
    const limit = Number(server.config.get('maxmemory')?.get() ?? 0);
    return [
      ['used_memory', used],
      ['used_memory_human', human(used)],
      ['used_memory_rss', rss],
      ['used_memory_rss_human', human(rss)],
      ['used_memory_peak', peak],
      ['used_memory_peak_human', human(peak)],
      ['used_memory_peak_perc', `${((used / peak) * 100).toFixed(2)}%`],
      ['used_memory_overhead', heapUsed],
      ['used_memory_startup', startup],
      ['used_memory_dataset', used - startup],
      ['used_memory_dataset_perc', `${(((used - startup) / used) * 100).toFixed(2)}%`],
      ['total_system_memory', totalmem()],
      ['total_system_memory_human', human(totalmem())],
      ...scriptCounts([...server.tenants.values()]),
      ['maxmemory', limit],
      ['maxmemory_human', human(limit)],
      ['maxmemory_policy', server.config.get('maxmemory-policy')?.get() ?? 'noeviction'],
      ['allocator_allocated', used],
      ['allocator_active', held],
      ['allocator_resident', rss],
      ['allocator_frag_ratio', (held / used).toFixed(2)],
      ['allocator_frag_bytes', held - used],
      ['allocator_rss_ratio', (rss / held).toFixed(2)],
      ['allocator_rss_bytes', rss - held],
      ['mem_fragmentation_ratio', (rss / used).toFixed(2)],
      ['mem_fragmentation_bytes', rss - used],
      ['mem_not_counted_for_evict', uncounted],
      ...none('mem_replication_backlog', 'mem_total_replication_buffers', 'mem_clients_slaves'),
      ['mem_clients_normal', clientBytes(server)],
      ['mem_allocator', 'slab'],
      ...none('active_defrag_running', 'mem_cluster_links'),
      ['lazyfree_pending_objects', 0],
      ['lazyfreed_objects', 0],
    ];
  },
  persistence(server) {
    return Object.entries({
      loading: 0,
      async_loading: 0,
      rdb_changes_since_last_save: 0,
      rdb_bgsave_in_progress: server.facts.checkpointInProgress() ? 1 : 0,
      rdb_last_save_time: Math.floor(server.facts.lastCheckpointAt() / 1000),
      rdb_last_bgsave_status: 'ok',
      rdb_last_cow_size: 0,
      rdb_last_load_keys_expired: 0,
      rdb_last_load_keys_loaded: 0,
      aof_enabled: 1,
      aof_rewrite_in_progress: 0,
      aof_rewrite_scheduled: 0,
      aof_last_rewrite_time_sec: -1,
      aof_current_rewrite_time_sec: -1,
      aof_last_cow_size: 0,
      current_cow_peak: 0,
      current_cow_size: 0,
      current_cow_size_age: 0,
      current_fork_perc: '0.00',
      module_fork_in_progress: 0,
      module_fork_last_cow_size: 0,
      ...server.facts.persistence(),
    });
  },
  stats(server) {
    const { counters } = server;
    const lookups = server.facts.lookups();
    const { rates } = server;
    const { bytesIn, bytesOut } = server.traffic();
    return [
      ['total_connections_received', counters.connections],
      ['total_commands_processed', server.totalCommands()],
      ['instantaneous_ops_per_sec', rates.commands],
      ['total_net_input_bytes', bytesIn],
      ['total_net_output_bytes', bytesOut],
      ...none('total_net_repl_input_bytes', 'total_net_repl_output_bytes'),
      ...none('instantaneous_input_repl_kbps', 'instantaneous_output_repl_kbps'),
      ['instantaneous_input_kbps', (rates.bytesIn / 1024).toFixed(2)],
      ['instantaneous_output_kbps', (rates.bytesOut / 1024).toFixed(2)],
      ['rejected_connections', counters.rejectedConnections],
      ['sync_full', 0],
      ['sync_partial_ok', 0],
      ['sync_partial_err', 0],
      ['expired_keys', server.facts.expiredRows()],
      ['evicted_keys', server.facts.evictedRows()],
      ...none('evicted_clients'),
      ['keyspace_hits', lookups.hits],
      ['keyspace_misses', lookups.misses],
      ...cacheFields(server.cache, server.cache?.counts),
      ['pubsub_channels', server.countListeners('channels')],
      ['pubsub_patterns', server.countListeners('patterns')],
      ['pubsubshard_channels', server.countListeners('shardChannels')],
      ...none('latest_fork_usec', 'total_forks', 'migrate_cached_sockets'),
      ...none('slave_expires_tracked_keys', 'active_defrag_hits', 'active_defrag_misses'),
      ...none('active_defrag_key_hits', 'active_defrag_key_misses', 'unexpected_error_replies'),
      ...none('total_active_defrag_time', 'current_active_defrag_time'),
      ...none('io_threads_active', 'io_threaded_reads_processed', 'io_threaded_writes_processed'),
      ['total_error_replies', counters.errors],
      ['client_output_buffer_limit_disconnections', server.output.disconnections],
      ...trackingFields([...server.tenants.values()]),
    ];
  },
  cpu() {
    const { userCPUTime, systemCPUTime } = process.resourceUsage();
    return [
      ['used_cpu_sys', (systemCPUTime / 1e6).toFixed(6)],
      ['used_cpu_user', (userCPUTime / 1e6).toFixed(6)],
      ['used_cpu_sys_children', '0.000000'],
      ['used_cpu_user_children', '0.000000'],
    ];
  },
  latencystats({ registry }) {
    return latencyFields(registry);
  },
  commandstats(server) {
    const fields: Fields = [];
    const add = (entry: CommandEntry): void => {
      for (const sub of entry.subcommands?.values() ?? []) add(sub);
      if (entry.calls === 0 && entry.rejectedCalls === 0) return;
      const usec = Math.round(entry.spentMs * 1000);
      const perCall = entry.calls === 0 ? 0 : usec / entry.calls;
      fields.push([
        `cmdstat_${entry.fullName}`,
        `calls=${entry.calls},usec=${usec},usec_per_call=${perCall.toFixed(2)},rejected_calls=${entry.rejectedCalls},failed_calls=${entry.failedCalls}`,
      ]);
    };
    for (const entry of server.registry.all()) add(entry);
    return fields;
  },
};

function latencyFields(registry: CommandRegistry): Fields {
  const fields: Fields = [];
  for (const { fullName, latencies } of registry.entries()) {
    if (latencies.total === 0) continue;
    const of = (part: number) => latencies.percentile(part).toFixed(3);
    fields.push([
      `latency_percentiles_usec_${fullName}`,
      `p50=${of(0.5)},p99=${of(0.99)},p99.9=${of(0.999)}`,
    ]);
  }
  return fields;
}

/**
 * Fields of the gateway's read cache; empty while nothing is cached. The bytes are those of all
 * tenants.
 */
function cacheFields(
  whole: ReadCache | undefined,
  counts: { readonly hits: number; readonly misses: number } | undefined,
): Fields {
  if (counts === undefined) return [];
  const fields: Fields = [
    ['gateway_cache_hits', counts.hits],
    ['gateway_cache_misses', counts.misses],
  ];
  return whole === undefined ? fields : [...fields, ['gateway_cache_bytes', whole.bytes]];
}

function countTracking({ tenants }: ClientServer, tenant: Tenant<Client>): number {
  if (!tenant.isFirst) return tenant.tracking.clients.size;
  let count = 0;
  for (const { tracking } of tenants.values()) count += tracking.clients.size;
  return count;
}

function trackingFields(tenants: readonly Tenant<Client>[]): Fields {
  let keys = 0;
  let items = 0;
  let prefixes = 0;
  for (const { tracking } of tenants) {
    keys += tracking.keys;
    items += tracking.items;
    prefixes += tracking.prefixes;
  }
  return [
    ['tracking_total_keys', keys],
    ['tracking_total_items', items],
    ['tracking_total_prefixes', prefixes],
  ];
}

type TenantSection = (server: ClientServer, tenant: Tenant<Client>) => Fields | undefined;

/** Sections of a tenant's own view, or undefined where the first tenant sees more. */
const tenantSections: Readonly<Record<string, TenantSection>> = {
  server({ facts, port, clusterId }, tenant) {
    if (tenant.isFirst) return undefined;
    const uptime = Math.floor((Date.now() - facts.startedAt) / 1000);
    return [
      ['redis_version', redisVersion],
      ['polyrow_version', facts.version],
      ['redis_mode', clusterId === undefined ? 'standalone' : 'cluster'],
      ['arch_bits', 64],
      ['tcp_port', port],
      ['server_time_usec', Math.floor((performance.timeOrigin + performance.now()) * 1000)],
      ['uptime_in_seconds', uptime],
      ['uptime_in_days', Math.floor(uptime / 86_400)],
    ];
  },
  clients(server, tenant) {
    let pubsub = 0;
    let watching = 0;
    let blocked = 0;
    let largestIn = 0;
    let largestOut = 0;
    const connections: { size: number; values(): Iterable<Client> } = tenant.isFirst
      ? server.connections
      : tenant.connections;
    for (const connection of connections.values()) {
      if (connection.channels.size + connection.patterns.size > 0) pubsub++;
      if (connection.watchedKeys > 0) watching++;
      if (connection.isBlocked) blocked++;
      largestIn = Math.max(largestIn, connection.queryBytes);
      largestOut = Math.max(largestOut, connection.unsentBytes);
    }
    const own = tenant.definition.limits.connections;
    return [
      ['connected_clients', connections.size],
      ['cluster_connections', 0],
      ['maxclients', own === 0 ? server.maxClients : Math.min(own, server.maxClients)],
      ['client_recent_max_input_buffer', largestIn],
      ['client_recent_max_output_buffer', largestOut],
      ['blocked_clients', blocked + (tenant.isFirst ? server.pausedClients : 0)],
      ['tracking_clients', countTracking(server, tenant)],
      ['pubsub_clients', pubsub],
      ['watching_clients', watching],
      ['clients_in_timeout_table', blocked],
    ];
  },
  memory(server, tenant) {
    if (tenant.isFirst) return undefined;
    const limit = tenant.definition.limits.storedBytes;
    return [
      ...scriptCounts([tenant]),
      ['maxmemory', limit],
      ['maxmemory_human', human(limit)],
      ['maxmemory_policy', server.config.get('maxmemory-policy')?.get() ?? 'noeviction'],
    ];
  },
  persistence(_server, tenant) {
    if (tenant.isFirst) return undefined;
    return [
      ['loading', 0],
      ['async_loading', 0],
      ['aof_enabled', 1],
    ];
  },
  stats({ cache, facts }, tenant) {
    if (tenant.isFirst) return undefined;
    const { past, pubsub } = tenant;
    let { commands, bytesIn, bytesOut } = past;
    for (const connection of tenant.connections) {
      commands += connection.commandsRun;
      bytesIn += connection.bytesIn;
      bytesOut += connection.bytesOut;
    }
    return [
      ['total_connections_received', past.connections],
      ['total_commands_processed', commands],
      ['total_net_input_bytes', bytesIn],
      ['total_net_output_bytes', bytesOut],
      ['rejected_connections', tenant.rejectedConnections],
      ['evicted_keys', facts.evictedRows(tenant.span.first)],
      ...cacheFields(undefined, cache?.of(tenant.number)),
      ['pubsub_channels', pubsub.channels.size],
      ['pubsub_patterns', pubsub.patterns.size],
      ['pubsubshard_channels', pubsub.shardChannels.size],
      ['total_error_replies', tenant.errors.total],
      ...trackingFields([tenant]),
    ];
  },
  replication(server, tenant) {
    const id = tenant.isFirst ? server.facts.runId : '0'.repeat(40);
    return [
      ['role', 'master'],
      ['connected_slaves', 0],
      ['master_failover_state', 'no-failover'],
      ['master_replid', id],
      ['master_replid2', '0'.repeat(40)],
      ['master_repl_offset', 0],
      ['second_repl_offset', -1],
      ...none('repl_backlog_active', 'repl_backlog_size'),
      ...none('repl_backlog_first_byte_offset', 'repl_backlog_histlen'),
    ];
  },
  ru({ metering, admission }, tenant) {
    if (metering === undefined) return [['ru_metering', 'off']];
    const account = metering.meter.account(tenant.number);
    const fields: Fields = [
      ['ru_metering', 'on'],
      ['ru_total', account.lru.toFixed(3)],
      ['ru_last_second', account.lastSecondLru.toFixed(3)],
      ['ru_requests', account.requests],
      ['ru_rejected_requests', account.rejected],
    ];
    chargeClasses.forEach((name, kind) => {
      fields.push([`ru_${name}`, account.lruOf(kind as ChargeClass).toFixed(3)]);
    });
    const isDry = admission?.rules.dryRun === true;
    const limits = !tenant.limits.isLimited ? 'none' : isDry ? 'dry-run' : 'enforced';
    fields.push(['ru_limits', limits]);
    const { counts, units } = quotaFields(tenant.limits, account);
    for (const [name, value] of units) fields.push([`ru_${name}`, value.toFixed(3)]);
    for (const [name, value] of counts) fields.push([`ru_${name}`, value]);
    return fields;
  },
  errorstats(server, tenant) {
    const counts = new Map<string, number>();
    for (const { errors } of tenant.isFirst ? server.tenants.values() : [tenant]) {
      for (const [code, count] of errors.codes) counts.set(code, (counts.get(code) ?? 0) + count);
    }
    // A script's code may contain characters that end a name here.
    return [...counts].map(([code, count]) => [
      `errorstat_${code.replace(/[\s:=,]/g, '_')}`,
      `count=${count}`,
    ]);
  },
  cluster({ clusterId, elsewhere }) {
    const fields: Fields = [['cluster_enabled', clusterId === undefined ? 0 : 1]];
    if (elsewhere === undefined) return fields;
    return [...fields, ['cluster_node', elsewhere.node], ['cluster_nodes', elsewhere.nodes]];
  },
  keyspace({ facts }, { span }) {
    const fields: Fields = [];
    for (let db = 0; db < span.count; db++) {
      const { rows, expiring } = facts.tableSize(span.first + db);
      if (rows > 0) fields.push([`db${db}`, `keys=${rows},expires=${expiring},avg_ttl=0`]);
    }
    return fields;
  },
};
