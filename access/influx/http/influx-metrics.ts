// Counters of the InfluxDB listener.

/** How many observations were at most each bound, as Prometheus counts them, and above them all. */
interface Histogram {
  /** Upper bounds, ascending, in seconds. */
  readonly bounds: readonly number[];
  /** Observations by bucket, not cumulative; one more than there are bounds. */
  readonly counts: readonly number[];
  readonly sum: number;
  readonly count: number;
}

export interface InfluxMetrics {
  connections: number;
  /** Connections closed at once because there were too many. */
  rejectedConnections: number;
  /** By route, then by class of status: '2xx', '4xx', '5xx'. */
  requests: Record<string, Record<string, number>>;
  pointsWritten: number;
  pointsDropped: number;
  /** Bytes of bodies on the wire. */
  bytesIn: number;
  /** Bytes of query answers, before compression. */
  bytesOut: number;
  /** Lines that could not be read. */
  linesRejected: number;
  /** Writes answered with a timeout because the store was behind. */
  writeTimeouts: number;
  queriesRunning: number;
  /** Memory of running queries, as far as it is counted. */
  queryMemoryBytes: number;
  queriesRun: number;
  /** Queries answered here by a replica that does not lead. */
  queriesReadHere: number;
  statementsFailed: number;
  writeSeconds: Histogram;
  querySeconds: Histogram;
}

const bounds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

class DurationHistogram implements Histogram {
  readonly bounds = bounds;
  readonly counts = Array.from({ length: bounds.length + 1 }, () => 0);
  sum = 0;
  count = 0;

  observe(seconds: number): void {
    let bucket = 0;
    while (bucket < bounds.length && seconds > bounds[bucket]!) bucket++;
    this.counts[bucket]!++;
    this.sum += seconds;
    this.count++;
  }

  snapshot(): Histogram {
    const { counts, sum, count } = this;
    return { bounds, counts: [...counts], sum, count };
  }
}

export class InfluxCounters {
  readonly requests = new Map<string, Map<string, number>>();
  rejectedConnections = 0;
  pointsWritten = 0;
  pointsDropped = 0;
  bytesIn = 0;
  bytesOut = 0;
  linesRejected = 0;
  writeTimeouts = 0;
  queriesRunning = 0;
  queriesRun = 0;
  queriesReadHere = 0;
  statementsFailed = 0;
  readonly writeSeconds = new DurationHistogram();
  readonly querySeconds = new DurationHistogram();

  countRequest(route: string, status: number): void {
    let classes = this.requests.get(route);
    if (classes === undefined) this.requests.set(route, (classes = new Map()));
    const name = `${Math.floor(status / 100)}xx`;
    classes.set(name, (classes.get(name) ?? 0) + 1);
  }

  snapshot(connections: number, queryMemoryBytes: number): InfluxMetrics {
    const { requests, writeSeconds, querySeconds, ...plain } = this;
    return {
      ...plain,
      connections,
      queryMemoryBytes,
      requests: Object.fromEntries(
        [...requests].map(([route, classes]) => [route, Object.fromEntries(classes)]),
      ),
      writeSeconds: writeSeconds.snapshot(),
      querySeconds: querySeconds.snapshot(),
    };
  }
}
