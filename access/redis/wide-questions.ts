// Questions between nodes of a cluster about all clients of a tenant, or of the server: see
// cluster-wide.ts.

import type { AclLogEntry } from './acl/acl-log.ts';
import type { LatencySample } from './latency.ts';
import type { SlowEntry } from './slowlog.ts';

export type ClientType = 'normal' | 'pubsub' | 'master' | 'replica';

export interface KillFilter {
  id?: number;
  type?: ClientType;
  address?: string;
  localAddress?: string;
  user?: string;
  /** The one that asks. */
  except?: number;
}

/** Words are latin1. */
export type WideSlowEntry = Omit<SlowEntry, 'words'> & { readonly words: readonly string[] };

export interface WideLatencyEvent {
  readonly name: string;
  readonly samples: LatencySample[];
  readonly maxMs: number;
}

/** A question, and a node's answer. Names of channels are latin1. */
export interface Questions {
  listClients: [{ readonly type?: ClientType; readonly ids?: readonly number[] }, string[]];
  killClients: [KillFilter, number];
  unblockClient: [{ readonly id: number; readonly withError: boolean }, boolean];
  pauseClients: [{ readonly ms: number; readonly writesOnly: boolean }, null];
  unpauseClients: [unknown, null];
  slowlog: [{ readonly count: number }, WideSlowEntry[]];
  slowlogLength: [unknown, number];
  resetSlowlog: [unknown, null];
  aclLog: [{ readonly count: number }, AclLogEntry[]];
  resetAclLog: [unknown, null];
  channels: [{ readonly isSharded: boolean; readonly pattern?: string }, string[]];
  countListeners: [{ readonly isSharded: boolean; readonly names: readonly string[] }, number[]];
  patterns: [unknown, string[]];
  latencyEvents: [unknown, WideLatencyEvent[]];
  /** Of some commands, or of all where no name is given: how many took how long. */
  latencyHistograms: [
    { readonly names: readonly string[] },
    { readonly name: string; readonly counts: readonly number[] }[],
  ];
  resetLatency: [{ readonly names: readonly string[] }, string[]];
  resetStatistics: [unknown, null];
  infoSums: [unknown, Record<string, number>];
  /** Names and values; answered with the error of one of them. */
  setConfig: [{ readonly changes: readonly (readonly [string, string])[] }, string | null];
}

export type WideName = keyof Questions;

/** Questions about a tenant's clients; settings, pauses and statistics concern all tenants. */
export type WideQuestion<K extends WideName = WideName> = {
  [N in K]: { readonly what: N; readonly tenant: number } & Questions[N][0];
}[K];

export type WideAnswer<K extends WideName> = Questions[K][1];
