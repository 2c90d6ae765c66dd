// The settings of a node's place in a cluster, as addresses, and what can be wrong with them.

import { join } from 'node:path';
import type { Config } from './schema.ts';

/** Of a node: the ports of its control plane, its Redis plane and its InfluxDB plane follow each other. */
export const clusterPorts = { control: 0, redis: 1, influx: 2 } as const;

export interface HostPort {
  host: string;
  port: number;
}

export interface ClusterAddresses {
  /** Where the node listens for others. */
  listen: HostPort;
  /** By which others reach it. */
  advertise: string;
  seeds: HostPort[];
}

/** Of `HOST:PORT` or `[HOST]:PORT`; undefined when it is neither. */
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

/** File with the secret of the cluster. */
export function clusterSecretFile(config: Config): string {
  return config['cluster.secret-file'] || join(config['data-dir'], 'cluster-secret');
}

/** What is wrong with the settings, a line each. */
export function clusterProblems(config: Config, sources: Record<string, string>): string[] {
  const text = config['cluster.listen'];
  const problem = (key: keyof Config, reason: string): string =>
    `${key} cannot be ${JSON.stringify(config[key])} (${sources[key]}): ${reason}`;
  if (text === '') {
    return (['cluster.seeds', 'cluster.advertise'] as const)
      .filter((key) => config[key] !== '')
      .map((key) => `${key} (${sources[key]}) needs cluster.listen`);
  }
  const listen = parseHostPort(text);
  const last = 65535 - clusterPorts.influx;
  if (listen === undefined || listen.port > last) {
    return [problem('cluster.listen', `it must be HOST:PORT with a port from 1 to ${last}`)];
  }
  const problems: string[] = [];
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
  if (config.metadata !== 'embedded') {
    problems.push(
      `metadata (${sources['metadata']}) must be embedded with cluster.listen: the nodes keep the metadata themselves`,
    );
  }
  return problems;
}

function seedsOf(config: Config): string[] {
  return config['cluster.seeds']
    .split(',')
    .map((seed) => seed.trim())
    .filter((seed) => seed !== '');
}

/** All addresses of the machine. */
export function isWildcard(host: string): boolean {
  return ['0.0.0.0', '::', '*'].includes(host);
}
