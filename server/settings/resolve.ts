// Combines flags, environment and file into one configuration. A flag takes precedence over the environment, the
// environment over the file, and the file over the default. All errors are reported at once, each with its origin.

import { readFileSync } from 'node:fs';
import { parse, TomlError } from 'smol-toml';
import { clusterProblems } from './cluster-addresses.ts';
import {
  type Config,
  type ConfigKey,
  configKeys,
  defaultConfig,
  environmentName,
  isConfigKey,
  settingOf,
} from './schema.ts';
import { parseOutputLimits } from './output-limits.ts';
import { allowed, parseValue, type Setting } from './setting.ts';
import { didYouMean } from './suggest.ts';

export interface ConfigInput {
  /** By key, as `redis.port` or `redis.password-file`. */
  flags: Readonly<Record<string, string>>;
  environment: Readonly<Record<string, string | undefined>>;
  /** Path of a TOML file; POLYROW_CONFIG when there is no such flag. */
  file?: string | undefined;
}

export interface ResolvedConfig {
  config: Config;
  /** Where each value came from, for people: `flag --redis.port`. */
  sources: Record<ConfigKey, string>;
}

/** Errors of the configuration, a line each. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(problems.join('\n'));
    this.problems = problems;
  }
}

/** A value as found, before it is checked. */
interface Found {
  key: string;
  value: unknown;
  source: string;
}

export function resolveConfig(input: ConfigInput): ResolvedConfig {
  const problems: string[] = [];
  const config: Record<string, string | number> = defaultConfig();
  const sources: Record<string, string> = {};
  for (const key of configKeys) sources[key] = 'default';

  const path = input.file ?? (input.environment[configFileVariable] || undefined);
  const layers = [
    path === undefined ? [] : fromFile(path, problems),
    fromEnvironment(input.environment, problems),
    Object.entries(input.flags).map(([key, value]) => ({ key, value, source: `flag --${key}` })),
  ];
  for (const layer of layers) {
    for (const found of layer.map((one) => readSecret(one, layer, problems))) {
      if (found === undefined) continue;
      const value = checked(found, problems);
      if (value === undefined) continue;
      config[found.key] = value;
      sources[found.key] = found.source;
    }
  }
  if (sources['wal.fsync'] === 'default' && keepsCopies(config as Config)) {
    config['wal.fsync'] = 'always';
    sources['wal.fsync'] = 'default of a cluster';
  }
  checkTogether(config as Config, sources, problems);
  if (problems.length > 0) throw new ConfigError(problems);
  return { config: config as Config, sources: sources as Record<ConfigKey, string> };
}

const configFileVariable = 'POLYROW_CONFIG';

/** Read by the commands that speak to a server, each for its flag of that name. */
const clientVariables: readonly string[] = [
  'POLYROW_ADMIN_URL',
  'POLYROW_CA_FILE',
  'POLYROW_CLIENT_CERT_FILE',
  'POLYROW_CLIENT_KEY_FILE',
];

function secretKeys(): ConfigKey[] {
  return configKeys.filter((key) => settingOf(key).secret);
}

/** Everything that may stand in the file, or with dashes in front as a flag. */
export function acceptedKeys(): string[] {
  return [...configKeys, ...secretKeys().map((key) => `${key}-file`)];
}

// Kubernetes sets these in every container for a service called polyrow or polyrow-redis.
const serviceLink = /_(SERVICE_HOST|SERVICE_PORT(_.*)?|PORT_\d+_(TCP|UDP)(_.*)?)$/;
const serviceAddress = /^(tcp|udp|sctp):\/\//;

function isServiceLink(name: string, value: string): boolean {
  return serviceLink.test(name) || (name.endsWith('_PORT') && serviceAddress.test(value));
}

function fromEnvironment(environment: ConfigInput['environment'], problems: string[]): Found[] {
  const keys = new Map(acceptedKeys().map((key) => [environmentName(key), key]));
  const found: Found[] = [];
  for (const [name, value] of Object.entries(environment)) {
    if (!name.startsWith('POLYROW_') || name === configFileVariable || !value) continue;
    if (isServiceLink(name, value) || clientVariables.includes(name)) continue;
    const key = keys.get(name);
    if (key === undefined) {
      const known = [...keys.keys(), configFileVariable, ...clientVariables];
      problems.push(`unknown environment variable ${name}.${didYouMean(name, known)}`);
    } else {
      found.push({ key, value, source: `environment variable ${name}` });
    }
  }
  return found;
}

function fromFile(path: string, problems: string[]): Found[] {
  let document: Record<string, unknown>;
  try {
    document = parse(readFileSync(path, 'utf8'));
  } catch (error) {
    const reason =
      error instanceof TomlError
        ? `line ${error.line}, column ${error.column}: ${error.message.split('\n')[0]}`
        : messageOf(error);
    problems.push(`cannot read the configuration file ${path}: ${reason}`);
    return [];
  }
  const known = acceptedKeys();
  const found: Found[] = [];
  for (const [key, value] of flatten(document, '')) {
    if (known.includes(key)) found.push({ key, value, source: `file ${path}` });
    else problems.push(`unknown key ${key} in file ${path}.${didYouMean(key, known)}`);
  }
  return found;
}

function* flatten(table: Record<string, unknown>, prefix: string): Generator<[string, unknown]> {
  for (const [name, value] of Object.entries(table)) {
    const isTable = typeof value === 'object' && !Array.isArray(value) && !(value instanceof Date);
    if (isTable) yield* flatten(value as Record<string, unknown>, `${prefix}${name}.`);
    else yield [prefix + name, value];
  }
}

/** For `redis.password-file`, the password that is in the file. */
function readSecret(found: Found, layer: Found[], problems: string[]): Found | undefined {
  if (isConfigKey(found.key)) return found;
  const key = found.key.replace(/-file$/, '');
  const both = layer.find((other) => other.key === key);
  if (both !== undefined) {
    problems.push(`${key} is given twice: by ${both.source} and by ${found.source}`);
    return undefined;
  }
  try {
    const value = readFileSync(String(found.value), 'utf8').replace(/\r?\n$/, '');
    return { key, value, source: `${found.source} (${String(found.value)})` };
  } catch (error) {
    problems.push(`cannot read the file for ${key} given by ${found.source}: ${messageOf(error)}`);
    return undefined;
  }
}

function checked(found: Found, problems: string[]): string | number | undefined {
  const setting = settingOf(found.key as ConfigKey);
  const text = textOf(setting, found.value);
  const value = text === undefined ? undefined : parseValue(setting, text);
  if (value === undefined) {
    const shown = setting.secret ? 'the value' : JSON.stringify(found.value);
    problems.push(
      `${found.key} cannot be ${shown} (${found.source}): it must be ${allowed(setting)}`,
    );
  }
  return value;
}

/** TOML has types: numbers may stand for numbers and sizes, text for anything. */
function textOf(setting: Setting, value: unknown): string | undefined {
  if (typeof value === 'string') return value;
  const isNumber = setting.type === 'integer' || setting.type === 'size';
  return isNumber && typeof value === 'number' ? String(value) : undefined;
}

/** Whether this is a node of a cluster whose data must survive the loss of any machine. */
function keepsCopies(config: Config): boolean {
  return config['cluster.listen'] !== '' && config['cluster.replicas'] > 1;
}

function checkTogether(config: Config, sources: Record<string, string>, problems: string[]): void {
  if (config['data-dir'] === '') {
    problems.push(`data-dir cannot be empty (${sources['data-dir']})`);
  }
  for (const key of ['redis.host', 'influx.host', 'admin.host'] as const) {
    if (config[key] === '') problems.push(`${key} cannot be empty (${sources[key]})`);
  }
  if (!/^(embedded$|mongodb(\+srv)?:\/\/[^/])/.test(config.metadata)) {
    problems.push(
      `metadata cannot be the value (${sources['metadata']}): it must be embedded, or begin with mongodb:// or mongodb+srv://`,
    );
  }
  const outputLimits = 'redis.client-output-buffer-limit';
  const limits = parseOutputLimits(config[outputLimits]);
  if (typeof limits === 'string') {
    problems.push(`${outputLimits} (${sources[outputLimits]}): ${limits}`);
  }
  checkTls(config, sources, problems);
  problems.push(...clusterProblems(config, sources));
}

/** Files are looked at when the server starts; here, only whether they are named. */
function checkTls(config: Config, sources: Record<string, string>, problems: string[]): void {
  const tlsPort = config['redis.tls-port'];
  const user = (['redis.tls', 'influx.tls', 'admin.tls'] as const).find((k) => config[k] === 'on');
  const key = user ?? (tlsPort === 0 ? undefined : 'redis.tls-port');
  if (key !== undefined) {
    for (const file of ['tls.cert-file', 'tls.key-file'] as const) {
      if (config[file] === '') problems.push(`${key} (${sources[key]}) needs ${file}`);
    }
  }
  if (config['tls.client-auth'] !== 'no' && config['tls.ca-file'] === '') {
    problems.push(
      `tls.client-auth ${config['tls.client-auth']} (${sources['tls.client-auth']}) needs tls.ca-file`,
    );
  }
  if (tlsPort !== 0 && tlsPort === config['redis.port']) {
    problems.push(
      `redis.tls-port (${sources['redis.tls-port']}) cannot be redis.port: to serve nothing but TLS set redis.tls on instead`,
    );
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
