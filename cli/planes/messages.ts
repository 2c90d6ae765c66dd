// What the control plane (main thread) and a data plane (worker thread) say to each other. All of it is
// plain data. The main thread calls, the plane answers each call once; the plane reports on its own too.

import type { TableDefinition } from '../../control/metadata/table-definition.ts';
import type { Endpoint } from '../../control/monitor/endpoint.ts';
import type { MetricSample } from '../../control/monitor/metric-sample.ts';
import type { MaybePromise } from '../../universal-row/maybe-promise.ts';
import type { Config, ConfigKey, ConfigValue } from '../config/schema.ts';

/** What a plane is started with: the first message to it. */
export interface PlaneData {
  config: Config;
  /** Every table there is, by ascending number. */
  tables: readonly TableDefinition[];
}

export interface ConfigChange {
  key: ConfigKey;
  value: ConfigValue;
}

/** What a plane can be asked. An error it throws comes back as the error of the call. */
export interface PlaneCalls {
  metrics(): MetricSample[];
  /** Why it should get no traffic, as a disk that is full; [] when all is well. */
  health(): string[];
  /**
   * The whole catalog after a change. Once answered, nothing is done by the old one any more. Throws, and
   * keeps the old one, when a table that is to change its model holds rows.
   */
  tables(tables: readonly TableDefinition[]): void;
  rowCount(table: number): number;
  /** A live setting was changed from outside. */
  setConfig(change: ConfigChange): void;
  /** Stops accepting; answers once what was under way is done, or the time is up. */
  drain(graceMs: number): void;
  /** Makes everything safe on disk and closes it. Nothing follows its answer. */
  stop(): void;
}

export type PlaneCallName = keyof PlaneCalls;
export type PlaneArgument<K extends PlaneCallName> = Parameters<PlaneCalls[K]>[0];
export type PlaneResult<K extends PlaneCallName> = ReturnType<PlaneCalls[K]>;

/** The plane's side: a function for each call. */
export type PlaneHandlers = {
  [K in PlaneCallName]: (argument: PlaneArgument<K>) => MaybePromise<PlaneResult<K>>;
};

export interface PlaneCall {
  id: number;
  call: PlaneCallName;
  argument: unknown;
}

export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal';

export type PlaneReport =
  /** The answer to a call. */
  | { type: 'answer'; id: number; value: unknown }
  | { type: 'failed'; id: number; error: string }
  /** It listens, and has recovered what was on disk. */
  | { type: 'ready'; endpoints: Endpoint[] }
  /** A client changed a live setting (CONFIG SET). */
  | ({ type: 'configChanged' } & ConfigChange)
  | { type: 'log'; level: LogLevel; msg: string; fields?: Record<string, unknown> }
  /** It cannot go on. One line for people; the process ends with exit code 1. */
  | { type: 'fatal'; message: string };
