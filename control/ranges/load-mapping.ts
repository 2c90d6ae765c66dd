// The load of a region from its counters: Libra, section IV-A.

/** Processor time of a write, as a multiple of that of a read. */
const writeFactor = 1.63;

interface RegionRates {
  /** Operations a second. */
  reads: number;
  writes: number;
  /** Bytes a second, as clients see them. */
  readBytes: number;
  writtenBytes: number;
  /** Share of reads that a cache answers. */
  cacheHits: number;
}

/** Each region's part of the processor time measured for the whole node, in the same unit. */
export function regionCpu(
  nodeCpu: number,
  regions: readonly RegionRates[],
  factor = writeFactor,
): number[] {
  const weights = regions.map(({ reads, writes }) => reads + factor * writes);
  const sum = weights.reduce((a, b) => a + b, 0);
  return weights.map((weight) => (sum === 0 ? 0 : (nodeCpu * weight) / sum));
}

/** Bytes of disk I/O a second: writes go to every copy, reads cost I/O when they miss the cache. */
export function regionIo(region: RegionRates, replication: number): number {
  const { readBytes, writtenBytes, cacheHits } = region;
  return readBytes * (1 - cacheHits) + writtenBytes * replication;
}

/** Mean processor time of a write over that of a read, from two calibration runs. */
export function calibratedFactor(
  readsOnly: { cpu: number; operations: number },
  writesOnly: { cpu: number; operations: number },
): number {
  return writesOnly.cpu / writesOnly.operations / (readsOnly.cpu / readsOnly.operations);
}
