// Messages to and from a load generator process.

/** Address and credentials. */
export interface Target {
  port: number;
  /** A tenant, which is also the name it logs in by. */
  name: string;
  password: string;
}

export interface RedisTraffic extends Target {
  kind: 'redis';
  connections: number;
  /** Commands that are sent at once. */
  pipeline: number;
  /** Taken in turn. In a word `$key` stands for one of the keys; the word `$value` for a value. */
  commands: readonly (readonly string[])[];
  keys: number;
  valueBytes: number;
}

/** Requests of a few kinds, alternating, each on a free connection. */
export interface HttpTraffic extends Target {
  kind: 'http';
  connections: number;
  requests: readonly HttpRequest[];
  /** In place of name and password. */
  authorization?: string;
}

export interface HttpRequest {
  method: 'GET' | 'POST';
  path: string;
  body?: string;
}

type Traffic = RedisTraffic | HttpTraffic;

export interface LoadOptions {
  traffic: Traffic;
  /** A request that cannot be sent when it is due, because of backpressure, is dropped; else it is sent late. */
  drops: boolean;
  /** Whether when things happen matters: costs some processor time. */
  isPrecise: boolean;
}

export type LoadOrder =
  /** Comes first. */
  | { do: 'prepare'; options: LoadOptions }
  /** Opens connections and begins: requests a second, or Infinity for as many as are answered. */
  | { do: 'start'; rate: number }
  /** From now on. */
  | { do: 'change'; rate: number }
  /** Requests the report since the last one. */
  | { do: 'take' }
  /** Sends nothing more, waits for answers for a while, and closes. */
  | { do: 'stop' }
  | { do: 'exit' };

export interface LoadReport {
  seconds: number;
  /** Requests that were due, and those sent. */
  offered: number;
  sent: number;
  served: number;
  /** Requests refused for the tenant's limits, and other failures. */
  refused: number;
  failed: number;
  /** Sent, and not answered yet. */
  waiting: number;
  /** Milliseconds from due time to answer, of all served, refused and failed requests. */
  latencies: Float64Array;
  /** Microseconds of the processor that the process took. */
  cpuMicros: number;
  /** The words of one that failed. */
  failure?: string | undefined;
}

export type LoadAnswer = { report: LoadReport } | { error: string };
