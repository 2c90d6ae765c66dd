// The lines in which YCSB sums up a run: `[READ], 99thPercentileLatency(us), 120`.

export interface YcsbResult {
  /** Operations a second. */
  throughput: number;
  /** By operation, as READ. */
  p99Ms: Map<string, number>;
}

/** Throws when operations failed: YCSB itself ends with 0 even then. */
export function parseYcsbOutput(text: string): YcsbResult {
  const p99Ms = new Map<string, number>();
  let throughput = NaN;
  for (const line of text.split('\n')) {
    const [operation = '', what = '', value] = line.split(',').map((cell) => cell.trim());
    const name = operation.replace(/^\[(.*)\]$/, '$1');
    if (name === 'OVERALL' && what.startsWith('Throughput')) throughput = Number(value);
    if (what.startsWith('99thPercentileLatency')) p99Ms.set(name, Number(value) / 1000);
    const failed = what.startsWith('Return=') && what !== 'Return=OK';
    if (failed || /-FAILED\]|Exception/.test(line)) {
      throw new Error(`YCSB reports failed operations: ${line}\n${text}`);
    }
  }
  p99Ms.delete('CLEANUP');
  if (!(throughput > 0) || p99Ms.size === 0) throw new Error(`YCSB said: ${text}`);
  return { throughput, p99Ms };
}
