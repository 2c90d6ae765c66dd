// A node's cluster addresses from its settings, and their errors.

import { join } from 'node:path';
import { type NodeRole, nodeRoles } from '../../contracts/cluster.ts';
import type { Config } from './schema.ts';

/**
 * Offsets from a node's first port: the ports of its control plane, its Redis plane and its
 * InfluxDB plane follow each other.
 */
export const clusterPorts = { control: 0, redis: 1, influx: 2 } as const;

interface HostPort {
  host: string;
  port: number;
}

interface ClusterAddresses {
  /** Where the node listens for others. */
  listen: HostPort;
  /** Address at which other nodes reach this node. */
  advertise: string;
  seeds: HostPort[];
}

/** Parses `HOST:PORT` or `[HOST]:PORT`; undefined when it is neither. */
export function parseHostPort(text: string): HostPort | undefined {
  const [, bracketed, plain, digits] =
    /^(?:\[([^\]\s]+)\]|([^:\s[\]]+)):(\d{1,5})$/.exec(text) ?? [];
  const host = bracketed ?? plain;
  const port = Number(digits);
  return host === undefined || port < 1 || port > 65535 ? undefined : { host, port };
}

export function formatHostPort({ host, port }: HostPort): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/** The settings of a configuration that was found to be right; undefined of a server on its own. */
export function clusterAddresses(config: Config): ClusterAddresses | undefined {
  const listen = parseHostPort(config['cluster.listen']);
  if (listen === undefined) return undefined;
  return {
    listen,
    advertise: config['cluster.advertise'] || listen.host,
    seeds: seedsOf(config).flatMap((seed) => parseHostPort(seed) ?? []),
  };
}

/** Of a configuration that was found to be right, in the order of `nodeRoles`. */
export function rolesOf(config: Config): NodeRole[] {
  const words = wordsOf(config.roles);
  return nodeRoles.filter((role) => words.includes(role));
}

function rolesProblem(config: Config): string | undefined {
  const known: readonly string[] = nodeRoles;
  const words = wordsOf(config.roles);
  const wrong = words.find((word) => !known.includes(word));
  if (wrong !== undefined) return `${JSON.stringify(wrong)} is none of ${nodeRoles.join(', ')}`;
  if (words.length === 0) return `it must name some of ${nodeRoles.join(', ')}`;
  const hasAll = rolesOf(config).length === nodeRoles.length;
  if (!hasAll && config['cluster.listen'] === '') return 'a server on its own has all roles';
  return undefined;
}

/** File with the secret of the cluster. */
export function clusterSecretFile(config: Config): string {
  return config['cluster.secret-file'] || join(config['data-dir'], 'cluster-secret');
}

/** Problems of the settings, a line each. */
export function clusterProblems(config: Config, sources: Record<string, string>): string[] {
  const text = config['cluster.listen'];
  const problem = (key: keyof Config, reason: string): string =>
    `${key} cannot be ${JSON.stringify(config[key])} (${sources[key]}): ${reason}`;
  const rolesAreWrong = rolesProblem(config);
  const problems = rolesAreWrong === undefined ? [] : [problem('roles', rolesAreWrong)];
  if (text === '') {
    const needing = (['cluster.seeds', 'cluster.advertise'] as const)
      .filter((key) => config[key] !== '')
      .map((key) => `${key} (${sources[key]}) needs cluster.listen`);
    return [...problems, ...needing];
  }
  const listen = parseHostPort(text);
  const last = 65535 - clusterPorts.influx;
  if (listen === undefined || listen.port > last) {
    return [
      ...problems,
      problem('cluster.listen', `it must be HOST:PORT with a port from 1 to ${last}`),
    ];
  }
  const advertise = config['cluster.advertise'] || listen.host;
  if (isWildcard(advertise)) {
    problems.push(
      `cluster.advertise (${sources['cluster.advertise']}) must be a host by which other nodes reach this one: ${advertise} is all addresses`,
    );
  }
  for (const seed of seedsOf(config)) {
    if (parseHostPort(seed) !== undefined) continue;
    problems.push(problem('cluster.seeds', `${JSON.stringify(seed)} is not HOST:PORT`));
  }
  if (!/^[\w.-]{0,64}$/.test(config['cluster.zone'])) {
    problems.push(problem('cluster.zone', 'it must be up to 64 letters, digits, dots and dashes'));
  }
  for (const key of ['redis.port', 'redis.tls-port', 'influx.port', 'admin.port'] as const) {
    const offset = config[key] - listen.port;
    if (config[key] === 0 || offset < 0 || offset > clusterPorts.influx) continue;
    problems.push(
      problem(
        key,
        `cluster.listen ${text} uses the ports ${listen.port} to ${listen.port + clusterPorts.influx}`,
      ),
    );
  }
  if (config['redis.cluster-mode'] === 'redirect' && config['redis.port'] === 0) {
    problems.push(
      problem('redis.port', 'redis.cluster-mode redirect sends clients to ports that stay'),
    );
  }
  if (config.metadata !== 'embedded') {
    problems.push(
      `metadata (${sources['metadata']}) must be embedded with cluster.listen: the nodes keep the metadata themselves`,
    );
  }
  return problems;
}

function seedsOf(config: Config): string[] {
  return wordsOf(config['cluster.seeds']);
}

function wordsOf(text: string): string[] {
  return text
    .split(',')
    .map((word) => word.trim())
    .filter((word) => word !== '');
}

/** All addresses of the machine. */
export function isWildcard(host: string): boolean {
  return ['0.0.0.0', '::', '*'].includes(host);
}
