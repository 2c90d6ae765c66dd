// Where a node is reached, as it tells the others.

import type { NodeAddresses } from '../../contracts/cluster.ts';
import {
  clusterAddresses,
  clusterPorts,
  formatHostPort,
  isWildcard,
} from '../settings/cluster-addresses.ts';
import type { Config } from '../settings/schema.ts';

/** Of a configuration with `cluster.listen`. */
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
  return {
    control: ofPeers('control'),
    redis: ofPeers('redis'),
    influx: ofPeers('influx'),
    redisClients: ofClients('redis'),
    influxClients: ofClients('influx'),
    admin: ofClients('admin'),
  };
}
