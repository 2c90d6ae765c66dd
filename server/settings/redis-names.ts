// Settings under their Redis names, for CONFIG GET and CONFIG SET. The Redis server gets plain functions, so that it does
// not depend on the configuration.

import { resolve } from 'node:path';
import { parseEventClasses, showEventClasses } from '../../access/redis/keyspace-events.ts';
import {
  encodingLimits,
  type EncodingLimit,
} from '../../universal-row/transforms/redis/support/encoding-limits.ts';
import type { LiveConfig } from './live-config.ts';
import { type ConfigKey, type ConfigValue, settingOf } from './schema.ts';
import { outputLimits, parseOutputLimits, showOutputLimits } from './output-limits.ts';
import { parseUnused, type UnusedSetting, unusedSettings } from './redis-unused-settings.ts';
import { parseSize } from './setting.ts';

export interface RedisConfigEntry {
  /** As Redis calls it. */
  readonly name: string;
  get(): string;
  /**
   * Changes it at once; returns Redis's error text if the value is invalid, and then nothing has
   * changed. Without this, it cannot be changed while the server runs.
   */
  readonly set?: (value: string) => string | undefined;
}

const byKey = {
  appendfsync: 'wal.fsync',
  'busy-reply-threshold': 'redis.busy-reply-threshold',
  'lua-time-limit': 'redis.busy-reply-threshold',
  'client-query-buffer-limit': 'redis.client-query-buffer-limit',
  databases: 'redis.databases',
  'latency-monitor-threshold': 'redis.latency-monitor-threshold',
  maxclients: 'redis.maxclients',
  maxmemory: 'memory.max-bytes',
  'maxmemory-policy': 'memory.eviction-policy',
  'maxmemory-samples': 'memory.eviction-samples',
  port: 'redis.port',
  bind: 'redis.host',
  'protected-mode': 'protected-mode',
  'proto-max-bulk-len': 'redis.proto-max-bulk-len',
  requirepass: 'redis.password',
  'slowlog-log-slower-than': 'redis.slowlog-log-slower-than',
  'slowlog-max-len': 'redis.slowlog-max-len',
  'tcp-backlog': 'redis.tcp-backlog',
  'tcp-keepalive': 'redis.tcp-keepalive',
  timeout: 'redis.timeout',
  'tracking-table-max-keys': 'redis.tracking-table-max-keys',
  'tls-ca-cert-file': 'tls.ca-file',
  'tls-cert-file': 'tls.cert-file',
  'tls-key-file': 'tls.key-file',
  'tls-port': 'redis.tls-port',
} as const satisfies Record<string, ConfigKey>;

/** Redis settings with a fixed value here. CONFIG SET accepts that value only. */
const fixed = {
  appendonly: 'yes',
  'latency-tracking': 'yes',
  'maxmemory-clients': '0',
  'min-replicas-to-write': '0',
  replicaof: '',
  slaveof: '',
} as const;

/** Settings that redis-server cannot change at run time either. */
const immutable = {
  daemonize: 'no',
  'io-threads': '1',
  supervised: 'no',
  unixsocket: '',
} as const;

/** Settings that redis-server can change while it runs. */
const fixedAtStart: ReadonlySet<string> = new Set([
  'bind',
  'port',
  'protected-mode',
  'tls-ca-cert-file',
  'tls-cert-file',
  'tls-key-file',
  'tls-port',
]);

/** Thresholds of OBJECT ENCODING; lost at a stop, as with redis-server without a configuration file. */
const encodings = {
  'stream-node-max-entries': 'streamNodeEntries',
  'hash-max-listpack-entries': 'hashEntries',
  'hash-max-listpack-value': 'hashValueBytes',
  'hash-max-ziplist-entries': 'hashEntries',
  'hash-max-ziplist-value': 'hashValueBytes',
  'hll-sparse-max-bytes': 'hllSparseBytes',
  'list-max-listpack-size': 'listSize',
  'list-max-ziplist-size': 'listSize',
  'set-max-intset-entries': 'setIntegers',
  'set-max-listpack-entries': 'setEntries',
  'set-max-listpack-value': 'setValueBytes',
  'zset-max-listpack-entries': 'rankedEntries',
  'zset-max-listpack-value': 'rankedValueBytes',
  'zset-max-ziplist-entries': 'rankedEntries',
  'zset-max-ziplist-value': 'rankedValueBytes',
} as const satisfies Record<string, EncodingLimit>;

const clientAuth = { no: 'no', optional: 'optional', require: 'yes' } as const;

/** In Redis's order of importance. */
const logLevels = { debug: 'debug', verbose: 'debug', notice: 'info', warning: 'warn' } as const;

/** The Redis name of a setting, if it has one. */
export function redisNameOf(key: ConfigKey): string | undefined {
  if (key === 'data-dir') return 'dir';
  if (key === 'redis.cluster-mode') return 'cluster-enabled';
  if (key === 'log.level') return 'loglevel';
  if (key === 'redis.notify-keyspace-events') return 'notify-keyspace-events';
  if (key === 'tls.client-auth') return 'tls-auth-clients';
  if (key === 'redis.client-output-buffer-limit') return 'client-output-buffer-limit';
  return Object.entries(byKey).find(([, ours]) => ours === key)?.[0];
}

export function redisConfigEntries(live: LiveConfig): RedisConfigEntry[] {
  const entries: RedisConfigEntry[] = [];
  for (const [name, key] of Object.entries(byKey)) entries.push(settingEntry(live, name, key));
  for (const [name, value] of Object.entries(fixed)) entries.push(fixedEntry(name, value));
  for (const [name, value] of Object.entries(immutable)) entries.push({ name, get: () => value });
  for (const setting of unusedSettings) entries.push(unusedEntry(setting));
  for (const [name, limit] of Object.entries(encodings)) entries.push(encodingEntry(name, limit));
  entries.push(
    { name: 'dir', get: () => resolve(live.get('data-dir')) },
    atStart('tls-auth-clients', () => clientAuth[live.get('tls.client-auth')]),
    {
      name: 'notify-keyspace-events',
      get: () =>
        showEventClasses(parseEventClasses(live.get('redis.notify-keyspace-events')) ?? ''),
      set: (value) => setEventClasses(live, value),
    },
    {
      name: 'cluster-enabled',
      get: () => (live.get('redis.cluster-mode') === 'off' ? 'no' : 'yes'),
    },
    { name: 'loglevel', get: () => logLevelOf(live), set: (value) => setLogLevel(live, value) },
    {
      name: 'client-output-buffer-limit',
      get: () => showOutputLimits(outputLimits(live.get('redis.client-output-buffer-limit'))),
      set: (value) => setOutputLimits(live, value),
    },
  );
  return entries.sort((a, b) => (a.name < b.name ? -1 : 1));
}

function settingEntry(live: LiveConfig, name: string, key: ConfigKey): RedisConfigEntry {
  const get = () => String(live.get(key));
  if (!settingOf(key).live) {
    return fixedAtStart.has(name) ? atStart(name, get) : { name, get };
  }
  return { name, get, set: (value) => setSetting(live, key, value) };
}

function atStart(name: string, get: () => string): RedisConfigEntry {
  const set = (text: string) =>
    text === get() ? undefined : 'this server takes another value at its start only';
  return { name, get, set };
}

function setSetting(live: LiveConfig, key: ConfigKey, text: string): string | undefined {
  const setting = settingOf(key);
  let value: string | number = text;
  switch (setting.type) {
    case 'integer':
      if (!/^-?\d{1,19}$/.test(text)) return "argument couldn't be parsed into an integer";
      value = Number(text);
      break;
    case 'size':
      value = parseSize(text);
      if (Number.isNaN(value)) return 'argument must be a memory value';
      break;
    case 'choice':
      // Redis forgives capitals here.
      value = text.toLowerCase();
      if (!setting.choices.includes(value)) return oneOf(setting.choices);
      break;
    case 'text':
      break;
  }
  if (setting.type === 'integer' || setting.type === 'size') {
    if (Number(value) < setting.min || Number(value) > setting.max) {
      return `argument must be between ${setting.min} and ${setting.max} inclusive`;
    }
  }
  const refusal = live.refusal(key, value as ConfigValue);
  if (refusal !== undefined) return refusal;
  live.set(key, value as ConfigValue);
  return undefined;
}

function fixedEntry(name: string, value: string): RedisConfigEntry {
  const set = (text: string) =>
    text.toLowerCase() === value ? undefined : `this server only supports '${value}'`;
  return { name, get: () => value, set };
}

function unusedEntry({ name, value, kind }: UnusedSetting): RedisConfigEntry {
  let kept = value;
  const set = (text: string) => {
    const parsed = parseUnused(kind, text);
    if ('problem' in parsed) return parsed.problem;
    kept = parsed.value;
    return undefined;
  };
  return { name, get: () => kept, set };
}

function encodingEntry(name: string, limit: EncodingLimit): RedisConfigEntry {
  const set = (text: string) => {
    const value = limit.endsWith('Bytes') ? parseSize(text) : Number(text);
    const min = limit === 'listSize' ? -0x80000000 : 0;
    if (text === '' || !Number.isSafeInteger(value)) {
      return "argument couldn't be parsed into an integer";
    }
    if (value < min)
      return `argument must be between ${min} and ${Number.MAX_SAFE_INTEGER} inclusive`;
    encodingLimits[limit] = value;
    return undefined;
  };
  return { name, get: () => String(encodingLimits[limit]), set };
}

function oneOf(choices: readonly string[]): string {
  return `argument(s) must be one of the following: ${choices.join(', ')}`;
}

function setEventClasses(live: LiveConfig, value: string): string | undefined {
  const letters = parseEventClasses(value);
  if (letters === undefined) return "Invalid event class character. Use 'Ag$lshzxeKEtmdn'.";
  live.set('redis.notify-keyspace-events', showEventClasses(letters));
  return undefined;
}

function logLevelOf(live: LiveConfig): string {
  const level = live.get('log.level');
  if (level === 'trace' || level === 'debug') return 'debug';
  return level === 'info' ? 'notice' : 'warning';
}

function setLogLevel(live: LiveConfig, value: string): string | undefined {
  const name = value.toLowerCase();
  if (!Object.hasOwn(logLevels, name)) return oneOf(Object.keys(logLevels));
  live.set('log.level', logLevels[name as keyof typeof logLevels]);
  return undefined;
}

function setOutputLimits(live: LiveConfig, text: string): string | undefined {
  const key = 'redis.client-output-buffer-limit';
  const limits = parseOutputLimits(text, outputLimits(live.get(key)));
  if (typeof limits === 'string') return limits;
  live.set(key, showOutputLimits(limits));
  return undefined;
}
