// Workloads of tenants in live experiments, besides those of the demonstration.

import type { DemoServer } from '../../../cli/demo/demo-server.ts';
import type { RedisTraffic } from '../../../cli/demo/load/load-messages.ts';
import { fillKeys } from '../../../cli/demo/load/redis-sender.ts';
import {
  bystander,
  flooder,
  floods,
  isSteady,
  type Workload,
} from '../../../cli/demo/workloads.ts';

type Commands = Pick<RedisTraffic, 'commands' | 'keys' | 'valueBytes'>;

interface Loads extends Commands {
  connections: number;
  /** Connections of the steady tenant: one command at a time on each. */
  steadyConnections?: number;
  pipeline: number;
  steadyRate: number;
}

async function overRedis(server: DemoServer, loads: Loads): Promise<Workload> {
  const { connections, steadyConnections = 4, pipeline, steadyRate, ...rows } = loads;
  const traffic = (name: string): RedisTraffic => ({
    kind: 'redis',
    ...server.target('redis', name),
    ...rows,
    connections: steadyConnections,
    pipeline: 1,
  });
  const flood = { ...traffic(flooder), connections, pipeline };
  const steady = traffic(bystander);
  await fillKeys(flood);
  await fillKeys(steady);
  return {
    plane: 'redis',
    about: '',
    flood: { traffic: flood, ...floods },
    steady: { traffic: steady, ...isSteady },
    steadyRate,
    settleSeconds: 2,
    chargedSeconds: 0,
    refresh: () => Promise.resolve(),
  };
}

/** Values of 1 kB are read, by A in pipelines. */
export function kilobyteReads(server: DemoServer): Promise<Workload> {
  return overRedis(server, {
    commands: [['GET', '$key']],
    keys: 10_000,
    valueBytes: 1000,
    connections: 32,
    pipeline: 16,
    steadyRate: 500,
  });
}

/** Hashes of so many fields are written. */
const fields = 64;

/** Writes that are expensive for the server and cheap for the client. */
export function expensiveWrites(server: DemoServer): Promise<Workload> {
  const pairs = Array.from({ length: fields }, (_, i) => [`field-${i}`, '$value']).flat();
  return overRedis(server, {
    commands: [['HSET', 'hash:$key', ...pairs]],
    keys: 1000,
    valueBytes: 16,
    connections: 32,
    // As many requests as it is to make do not fit on a few: they would wait for each other, and not for the server.
    steadyConnections: 32,
    pipeline: 1,
    // Set by the experiment, relative to the server's capacity.
    steadyRate: 100,
  });
}
