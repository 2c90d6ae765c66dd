// What a process that makes load is told, and what it tells.

/** Whom it sends to, as whom. */
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

/** Requests of a few kinds in turn, each on whichever connection is free. */
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

export type Traffic = RedisTraffic | HttpTraffic;

export interface LoadOptions {
  traffic: Traffic;
  /** What cannot be sent when it is due, as the server reads no more, is not sent at all; else it is sent late. */
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
  /** Tells what has been since the last time. */
  | { do: 'take' }
  /** Sends nothing more, waits for answers for a while, and closes. */
  | { do: 'stop' }
  | { do: 'exit' };

export interface LoadReport {
  seconds: number;
  /** Requests that were due, and those of them that were sent. */
  offered: number;
  sent: number;
  served: number;
  /** Refused for what the tenant may spend, and failed otherwise. */
  refused: number;
  failed: number;
  /** Sent, and not answered yet. */
  waiting: number;
  /** Of those served, refused and failed, milliseconds from when each was due until it was answered. */
  latencies: Float64Array;
  /** Microseconds of the processor that the process took. */
  cpuMicros: number;
  /** The words of one that failed. */
  failure?: string | undefined;
}

export type LoadAnswer = { report: LoadReport } | { error: string };
