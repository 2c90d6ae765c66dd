// Units of ABase (section 4.1) that the server does not use. It charges a write by the work of each replica, and the read
// of a collection by the elements walked, once their number is known.

/** Bytes that are one unit. */
const unitBytes = 2048;

/** A write is charged for each of the replicas that make it, the first one included. */
export function writeUnits(bytes: number, replicas: number): number {
  return (replicas * bytes) / unitBytes;
}

/** The mean length forgets calls that are longer ago than this. */
const remembersCalls = 100;
const remembered = 1024;

/**
 * Lengths of collections, learned from requests that walked them: for a recently used key its own
 * length, for others the typical one. A request for a whole collection has two stages: determining
 * the length, and walking. Each may be refused by itself.
 */
export class CollectionHistory {
  private readonly hashes = new Int32Array(remembered);
  private readonly lengths = new Float64Array(remembered);
  // Lengths vary over orders of magnitude, so the mean is taken of their logarithms.
  private meanLog = 0;
  private meanItemBytes = 64;
  private count = 0;

  /** `hash` is any of the key; a length of 0 says that there is no such collection. */
  observe(hash: number, length: number, bytes: number): void {
    const slot = slotOf(hash);
    this.hashes[slot] = hash;
    this.lengths[slot] = length + 1;
    if (length === 0) return;
    this.count = Math.min(this.count + 1, remembersCalls);
    this.meanLog += (Math.log(length) - this.meanLog) / this.count;
    this.meanItemBytes += (bytes / length - this.meanItemBytes) / this.count;
  }

  /** Items of the collection; 1 when nothing is known. */
  expectedLength(hash: number): number {
    const slot = slotOf(hash);
    const length = this.lengths[slot]!;
    if (length !== 0 && this.hashes[slot] === (hash | 0)) return length - 1;
    return this.count === 0 ? 1 : Math.exp(this.meanLog);
  }

  get expectedItemBytes(): number {
    return this.meanItemBytes;
  }
}

function slotOf(hash: number): number {
  return (Math.imul(hash, 0x9e3779b1) >>> 22) & (remembered - 1);
}
