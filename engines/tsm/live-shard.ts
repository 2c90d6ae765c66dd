// An open shard, and the engine's state of it.

import type { ShardSpan } from './catalog.ts';
import type { Shard } from './shard/shard.ts';

export class LiveShard {
  /** Another one when its database is renamed. */
  span: ShardSpan;
  readonly shard: Shard;
  /** Series that are not removed. */
  series = 0;
  /** Bytes of its heads as last counted. */
  countedHeadBytes = 0;
  /** Milliseconds by the monotonic clock. */
  lastWriteAt: number;
  isDropped = false;

  constructor(span: ShardSpan, shard: Shard, now: number) {
    this.span = span;
    this.shard = shard;
    this.lastWriteAt = now;
    for (let m = 0; m < shard.index.measurementCount; m++) {
      this.series += shard.index.liveSeriesOf(m);
    }
  }

  /** Nanoseconds since 1970. */
  get start(): bigint {
    return BigInt(this.span.startSeconds) * 1_000_000_000n;
  }

  /** The last nanosecond, after the start. */
  get lastOffset(): number {
    return this.span.seconds * 1e9 - 1;
  }

  /** The part of a range that is in here, relative to the start; undefined when there is none. */
  clip(from: bigint | undefined, to: bigint | undefined): { from: number; to: number } | undefined {
    const { start, lastOffset } = this;
    const first = from === undefined || from < start ? 0n : from - start;
    const last = to === undefined ? BigInt(lastOffset) : to - start;
    if (last < 0n || first > BigInt(lastOffset) || first > last) return undefined;
    return { from: Number(first), to: Math.min(Number(last), lastOffset) };
  }
}
