// Differences from Redis 7.0 that a user should know, and commands that are missing. Goes into docs/commands.md; a test holds it against the command table.

interface Difference {
  /** Full names, `config|set` for a subcommand. */
  commands: readonly string[];
  /** A sentence or two, without the last full stop. */
  text: string;
}

/** Differences of whole areas rather than single commands. */
export const generalDifferences: readonly string[] = [
  'Each database is a table with a data model, `memory` or `kv`. Commands are the same on both.',
  'A transaction is refused when its databases are of different models, and so are `COPY`, `MOVE` and ' +
    '`SWAPDB` between two such databases.',
  'Tables can have properties that Redis does not know (`polyrow table`): a read-only table answers ' +
    '`READONLY`, a row beyond `maxRowBytes` is refused, `ttlDefaultMs` gives new rows an expiry.',
  'Users belong to tenants. What `CLIENT`, `PUBSUB`, `MONITOR`, `SLOWLOG`, `INFO` and `ACL` tell is of the own ' +
    'tenant, and what is about the whole server (`CONFIG`, `SHUTDOWN`, `SAVE` and others) answers `NOPERM` ' +
    'to users of tenants other than `default`.',
  'Data held for a client (commands that come in part, transactions, watched keys, subscriptions, ' +
    'blocked commands, answers it does not read) counts against `redis.max-request-memory`. Beyond it commands ' +
    'answer `OOM`, and clients that send or read too slowly are closed.',
  'A transaction has at most 65,536 commands, a connection 65,536 subscriptions, a tenant 10,000 patterns, an ' +
    'ACL selector 1,024 patterns of keys and as many of channels, a user 32 selectors. Commands that are not ' +
    'about rows take 1,023 arguments (`WATCH`, `CLIENT LIST ID` and `PUBSUB NUMSUB` 16,383; `SUBSCRIBE` any ' +
    'number) of at most 64 kB each.',
  'Settings of redis-server about how it works inside, its files and its replicas (`hz`, `save`, `lazyfree-*`, `list-compress-depth`, `repl-*` and others) are kept by `CONFIG SET` and have no effect.',
  'In a cluster `CLIENT LIST`, `KILL`, `UNBLOCK`, `PAUSE` and `UNPAUSE`, `SLOWLOG`, `ACL LOG`, `PUBSUB`, `LATENCY`, `MONITOR`, `CONFIG SET`, `CONFIG RESETSTAT` and the sums of `INFO` are about all nodes in reach, and ' +
    'within `MULTI` about the node of the client. Ids of clients and of slow commands have the number of their node above 32 bits. `MEMORY STATS` and ' +
    '`CLIENT TRACKING` with `REDIRECT` are about the node of the client.',
  '`MONITOR` cuts words at 1 kB and commands at 8 kB. In a cluster it shows those of other nodes from a moment after its answer; a line of `node:2` tells how many of that node were left out, as there was no room for them.',
  'Commands that may need space are refused with `LIMIT` once the tenant has reached a limit.',
  '`maxmemory` counts the memory of rows of `memory` databases and 768 kB for the server itself; of `kv` databases a limit below that refuses writes, others do not count. Where its policy evicts, a command makes room among the rows of its own tenant, ' +
    'in `memory` databases; memory is looked at every 32 commands.',
  'Keyspace notifications leave when the answer to their command does: with `fsync always` once the log is safe. ' +
    '`keymiss` is sent for commands that only read.',
  'Scores of -0 are stored as 0.',
  'Expiry times are kept as milliseconds in a double, so one beyond 2^53 ms is rounded.',
  'A write to a full disk is refused with `MISCONF` until there is room again; reads go on.',
  'On `kv`, random picks and ranks walk the row from its nearer end instead of jumping into it.',
];

export const differences: readonly Difference[] = [
  {
    commands: ['eval', 'evalsha', 'eval_ro', 'evalsha_ro'],
    text:
      'A script keeps to the database that it was called in. While it takes long, clients of other databases go on; ' +
      'after `busy-reply-threshold` those of its own are answered `BUSY`, but reads beside a script that only reads. ' +
      'It may use about 256 MB of memory, strings of 16 MB (128 kB for `%q`), and has a smaller stack than in Redis; tail calls ' +
      'take room on it. It has at most 1 MB of source and 32,768 tokens. `COPY`, `MOVE`, `INFO` and other commands about more than one database or about the server ' +
      'are refused within a script. With the flag `rollback` in its first line, `#!lua flags=rollback`, or among those of a function, all that it has written is undone if it fails',
  },
  {
    commands: ['migrate'],
    text: 'Holds the database, not the server, until the target has answered; for users of tenant `default` only, and not within `MULTI`; no connection is kept for the next one, and none is encrypted; waits at most a minute without progress',
  },
  { commands: ['script|debug'], text: 'Always refused' },
  {
    commands: ['function|load'],
    text:
      'A tenant may have 16 MB of libraries. What a function keeps in variables outside of itself may be lost ' +
      'after a call that takes long',
  },
  {
    commands: ['zadd', 'zincrby', 'zunionstore', 'zinterstore', 'zdiffstore', 'zrangestore'],
    text: 'A score of -0 is stored as 0',
  },
  {
    commands: [
      'expire',
      'pexpire',
      'expireat',
      'pexpireat',
      'set',
      'setex',
      'psetex',
      'getex',
      'expiretime',
      'pexpiretime',
    ],
    text: 'An expiry beyond 2^53 ms is rounded',
  },
  {
    commands: ['scan', 'hscan', 'sscan', 'zscan'],
    text: 'Order and cursors differ; elements present throughout are returned at least once, as in Redis. An answer ends at 1 MB, independent of COUNT',
  },
  {
    commands: ['xadd', 'xtrim'],
    text: 'Approximate trimming goes by 100 entries (`stream-node-max-entries`), however large they are',
  },
  {
    commands: ['xinfo|stream'],
    text: 'Nodes of the radix tree are counted as if each had its 100 entries',
  },
  { commands: ['keys', 'smembers', 'hgetall', 'hkeys', 'hvals'], text: 'The order differs' },
  {
    commands: ['hrandfield', 'srandmember', 'spop', 'zrandmember'],
    text: 'On `kv`, a random pick walks the row: O(N)',
  },
  {
    commands: ['zrank', 'zrevrank', 'zremrangebyrank'],
    text: 'On `kv`, ranks are counted by walking the row: O(N)',
  },
  {
    commands: ['zrange', 'zrevrange', 'zrangestore'],
    text: 'On `kv`, a start by rank is reached by walking the row: O(N)',
  },
  { commands: ['zcount', 'zlexcount'], text: 'On `kv`, counts by walking the range: O(N)' },
  {
    commands: ['copy', 'move', 'swapdb'],
    text: 'Refused between databases of different models',
  },
  {
    commands: ['exec'],
    text: 'Refused with `EXECABORT` when its databases are of different models',
  },
  {
    commands: ['object|encoding'],
    text: 'Follows what the value holds now, not its history',
  },
  {
    commands: ['object|idletime'],
    text: 'Always 0 but under an LRU policy of `maxmemory-policy`, and on `kv`',
  },
  {
    commands: ['memory|usage'],
    text: 'The engine keeps count, so `SAMPLES` changes nothing; the figures are not those of Redis',
  },
  {
    commands: ['pfcount'],
    text: 'Only reads: it answers a cardinality that is kept in the value, but does not put one there',
  },
  {
    commands: ['geosearch', 'geosearchstore', 'georadius', 'georadiusbymember'],
    text: 'Places at exactly the same distance may come in another order with COUNT; the last digit of a distance that is stored may differ',
  },
  {
    commands: ['dump'],
    text: 'In the encodings of Redis 7.0, strings not compressed; a hash with fields that expire in that of 7.4, which no older Redis takes',
  },
  {
    commands: ['hexpire', 'hpexpire', 'hexpireat', 'hpexpireat', 'hsetex', 'hgetex'],
    text: 'As of Redis 7.4 and 8.0. The first field that is to expire has the hash laid out anew, in O(N) for its N fields',
  },
  {
    commands: ['restore'],
    text: 'Takes payloads of Redis up to 7.4, too; modules are refused. `IDLETIME` and `FREQ` have an effect where OBJECT tells of them',
  },
  { commands: ['lcs'], text: 'Its table may take 512 MB, independent of `proto-max-bulk-len`' },
  {
    commands: ['scan'],
    text: '`TYPE none` finds nothing, where redis-server tells of keys that have just expired',
  },
  { commands: ['pfselftest'], text: 'With 100,000 elements, not 10 million' },
  {
    commands: ['memory|stats'],
    text: 'Tables of a database have no overhead of their own; what belongs to replicas, links and the AOF is 0',
  },
  { commands: ['memory|purge', 'memory|malloc-stats'], text: 'There is nothing to do or to tell' },
  {
    commands: ['client|tracking'],
    text: 'The limit of tracked keys is one of the server; a tenant has at most 10,000 prefixes',
  },
  { commands: ['client|no-evict'], text: 'Accepted, without effect: clients are not evicted' },
  {
    commands: ['wait'],
    text: 'Always 0, at once, on a server alone and in MULTI: there are no replicas. In a cluster: how many replicas beside the leader have on disk what was written, of the partitions of the selected database',
  },
  {
    commands: ['waitaof'],
    text: 'On a server alone the log is synced for it, and 0 replicas are answered without a wait; in MULTI 0 and 0. In a cluster: whether the leader has on disk what was written, and how many replicas beside it',
  },
  {
    commands: ['auth', 'hello'],
    text: 'The user may be one of another tenant, as `user@tenant`; not within `MULTI`. See docs/acl.md',
  },
  {
    commands: ['acl|list', 'acl|getuser'],
    text: 'Passwords are shown by stand-ins that tell nothing of them; rules in the order in which they were given',
  },
  {
    commands: ['acl|setuser'],
    text: 'Users of the own tenant, stored durably before the answer; a user that is switched off is disconnected; not within `MULTI`',
  },
  { commands: ['acl|deluser'], text: 'Not within `MULTI`' },
  { commands: ['acl|save', 'acl|load'], text: 'Always the error that there is no ACL file' },
  { commands: ['role'], text: 'Always a master without replicas' },
  {
    commands: ['config|rewrite'],
    text: 'Refused: a configuration file is never written',
  },
  {
    commands: ['config|get', 'config|set'],
    text: 'Some of the settings of Redis: see docs/configuration.md; some more have a fixed value',
  },
  {
    commands: ['save', 'bgsave', 'bgrewriteaof'],
    text: 'Makes a checkpoint; there is no RDB or AOF file',
  },
  { commands: ['shutdown'], text: 'What is in the log is kept, with `NOSAVE` too' },
  {
    commands: ['latency|latest', 'latency|history'],
    text: 'Events are `command` and `fast-command`; what else kept the thread is in `/metrics`',
  },
  {
    commands: ['latency|histogram'],
    text: 'Bounds are powers of two in microseconds',
  },
  { commands: ['lolwut'], text: 'Art of its own' },
  {
    commands: ['debug|sleep'],
    text: 'Delays only the caller; `DEBUG` has no other subcommand',
  },
  {
    commands: ['cluster|slots', 'readonly', 'readwrite', 'asking'],
    text: 'Refused unless `redis.cluster-mode` is on; then the server is a cluster of one node, which owns all slots, or with `redirect` the nodes of the cluster that it is part of',
  },
  {
    commands: [
      'cluster|addslots',
      'cluster|addslotsrange',
      'cluster|delslots',
      'cluster|delslotsrange',
      'cluster|failover',
      'cluster|flushslots',
      'cluster|forget',
      'cluster|meet',
      'cluster|replicate',
      'cluster|reset',
      'cluster|set-config-epoch',
      'cluster|setslot',
    ],
    text: 'Always refused: nodes and slots are not changed by clients',
  },
  {
    commands: ['cluster|countkeysinslot', 'cluster|getkeysinslot'],
    text: 'Looks through all keys, in slices',
  },
];

interface MissingCommands {
  what: string;
  commands: readonly string[];
}

/** Commands of Redis 7.0. */
export const missingCommands: readonly MissingCommands[] = [
  { what: 'clusters of several nodes', commands: ['restore-asking'] },
  {
    what: 'replication',
    commands: ['failover', 'psync', 'replconf', 'replicaof', 'slaveof', 'sync'],
  },
  { what: 'modules', commands: ['module'] },
];
