// Addresses of a node, as announced to other nodes.

import type { NodeAddresses } from '../../contracts/cluster.ts';
import {
  clusterAddresses,
  clusterPorts,
  formatHostPort,
  isWildcard,
  rolesOf,
} from '../settings/cluster-addresses.ts';
import type { Config } from '../settings/schema.ts';

/** Addresses from a configuration with `cluster.listen`. */
export function nodeAddresses(config: Config): NodeAddresses {
  const { listen, advertise } = clusterAddresses(config)!;
  const ofPeers = (plane: keyof typeof clusterPorts): string =>
    formatHostPort({ host: advertise, port: listen.port + clusterPorts[plane] });
  const ofClients = (plane: 'redis' | 'influx' | 'admin'): string => {
    const host = config[`${plane}.host`];
    return formatHostPort({
      host: isWildcard(host) ? advertise : host,
      port: config[`${plane}.port`],
    });
  };
  const serves = rolesOf(config).includes('gateway');
  return {
    control: ofPeers('control'),
    redis: ofPeers('redis'),
    influx: ofPeers('influx'),
    redisClients: serves ? ofClients('redis') : '',
    influxClients: serves ? ofClients('influx') : '',
    admin: ofClients('admin'),
  };
}
