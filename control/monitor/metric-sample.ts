// How the parts of a server report their numbers: plain data, so that it crosses threads and processes.

export interface MetricSample {
  /** Prometheus name with its prefix, as `polyrow_redis_commands_total`. */
  name: string;
  help: string;
  type: 'counter' | 'gauge';
  /** In the base unit the name ends in: seconds, bytes. A counter's value is its total so far. */
  value: number;
  /** From a bounded set: never a key, an address or anything else a client makes up. */
  labels?: Readonly<Record<string, string>>;
}
