// Workloads of the two tenants of a demonstration.

import type { DemoServer, Plane } from './demo-server.ts';
import type { HttpRequest, LoadOptions } from './load/load-messages.ts';
import { fillKeys } from './load/redis-sender.ts';
import { history, newDatabase, queryOf, sendAll, writeOf } from './series-requests.ts';

export const kinds = ['redis', 'influx-writes', 'influx-queries'] as const;
export type Kind = (typeof kinds)[number];

export const flooder = 'tenant-a';
export const bystander = 'tenant-b';

export interface Workload {
  plane: Plane;
  /** In words. */
  about: string;
  flood: LoadOptions;
  steady: LoadOptions;
  /** Requests a second of the one that is measured. */
  steadyRate: number;
  /** Seconds until A is down to its quota: its burst is spent and its costs are known. */
  settleSeconds: number;
  /** Seconds after which all that A has sent is charged to it. */
  chargedSeconds: number;
  /** Removes the data of the previous phase. */
  refresh(): Promise<void>;
}

export const floods = { drops: true, isPrecise: false } as const;
export const isSteady = { drops: false, isPrecise: true } as const;

/** One in ten sets. */
const getsAndSets = [['SET', '$key', '$value'], ...Array<string[]>(9).fill(['GET', '$key'])];

async function overRedis(server: DemoServer): Promise<Workload> {
  const rows = { keys: 10_000, valueBytes: 100, commands: getsAndSets };
  const flood = {
    kind: 'redis',
    ...server.target('redis', flooder),
    ...rows,
    connections: 32,
    pipeline: 32,
  } as const;
  const steady = {
    kind: 'redis',
    ...server.target('redis', bystander),
    ...rows,
    connections: 4,
    pipeline: 1,
  } as const;
  await fillKeys(flood);
  await fillKeys(steady);
  return {
    plane: 'redis',
    about: 'A and B get and set values of 100 bytes; A in pipelines of 32 over 32 connections',
    flood: { traffic: flood, ...floods },
    steady: { traffic: steady, ...isSteady },
    steadyRate: 800,
    settleSeconds: 2,
    chargedSeconds: 0,
    refresh: () => Promise.resolve(),
  };
}

interface HttpLoads
  extends Pick<Workload, 'about' | 'settleSeconds' | 'chargedSeconds' | 'refresh'> {
  flood: readonly HttpRequest[];
  connections: number;
  steady: readonly HttpRequest[];
}

function overHttp(server: DemoServer, loads: HttpLoads): Workload {
  const { about, settleSeconds, chargedSeconds, refresh, flood, connections, steady } = loads;
  const traffic = (name: string, most: number, requests: readonly HttpRequest[]) =>
    ({ kind: 'http', ...server.target('influx', name), connections: most, requests }) as const;
  return {
    plane: 'influx',
    about,
    flood: { traffic: traffic(flooder, connections, flood), ...floods },
    steady: { traffic: traffic(bystander, 32, steady), ...isSteady },
    steadyRate: 200,
    settleSeconds,
    chargedSeconds,
    refresh,
  };
}

const hosts = 1000;

async function overWrites(server: DemoServer): Promise<Workload> {
  const refresh = async (): Promise<void> => {
    // Points written before become files all the time, and are charged for it.
    for (const name of [flooder, bystander]) await newDatabase(server.target('influx', name));
  };
  await refresh();
  return overHttp(server, {
    about: `A and B write points of ${hosts} and 100 hosts at once; A over 32 connections`,
    flood: writeOf(hosts),
    connections: 32,
    steady: writeOf(100),
    settleSeconds: 3,
    // Compaction of the written points, once a second.
    chargedSeconds: 1.2,
    refresh,
  });
}

async function overQueries(server: DemoServer): Promise<Workload> {
  for (const name of [flooder, bystander]) {
    const target = server.target('influx', name);
    await newDatabase(target);
    await sendAll(target, history(100, 1000));
  }
  const all = 'SELECT mean(usage), stddev(usage) FROM cpu WHERE time > now() - 5h GROUP BY host';
  return overHttp(server, {
    about: 'A asks for sums over all of 100 hosts, B for the newest point of one',
    flood: [queryOf(all)],
    connections: 8,
    steady: [1, 22, 43, 64].map((host) =>
      queryOf(`SELECT last(usage) FROM cpu WHERE host = 'host-${host}'`),
    ),
    settleSeconds: 4,
    chargedSeconds: 0,
    refresh: () => Promise.resolve(),
  });
}

/** Each prepares the tenants' data. */
export const prepared: Readonly<Record<Kind, (server: DemoServer) => Promise<Workload>>> = {
  redis: overRedis,
  'influx-writes': overWrites,
  'influx-queries': overQueries,
};
