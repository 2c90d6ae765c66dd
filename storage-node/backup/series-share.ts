// Selects what a partition of time series needs from a backup with another number of partitions.

import { type SeriesShare, SeriesShareError } from '../../engines/series-engine.ts';
import { maxShardSeconds } from '../../engines/tsm/parts.ts';
import { seriesPartition } from '../../universal-row/series/series-partition.ts';
import type { PlacedPart } from './chain.ts';
import type { ShardRef } from './manifest-content.ts';

/** One of the equal parts that time series are divided into, from 0 on. */
export interface SeriesPlace {
  readonly partition: number;
  readonly of: number;
}

const modelPattern = /-(\d+)-of-(\d+)$/;

/** Model of a partition of time series in a backup. */
export function seriesModel({ partition, of }: SeriesPlace): string {
  return of === 1 ? 'tsm' : `tsm-${partition + 1}-of-${of}`;
}

export function placeOfModel(model: string): SeriesPlace {
  const [, partition = 1, of = 1] = modelPattern.exec(model) ?? [];
  return { partition: Number(partition) - 1, of: Number(of) };
}

/** Whether one has series of the other: both are ranges of hashes. */
export function overlaps(a: SeriesPlace, b: SeriesPlace): boolean {
  if (a.of === b.of) return a.partition === b.partition;
  return (
    a.partition * b.of < (b.partition + 1) * a.of && b.partition * a.of < (a.partition + 1) * b.of
  );
}

type Span = Pick<ShardRef, 'startSeconds' | 'seconds'>;

/** Shards of several partitions that overlap become one: a policy's shards do not overlap. */
export function shareOf(
  { partition, of }: SeriesPlace,
  sources: readonly (readonly PlacedPart[])[],
): SeriesShare {
  const spans = new Map<string, Span[]>();
  const refs = sources.flatMap((parts) => parts.at(-1)!.shards ?? []);
  for (const ref of refs.toSorted((a, b) => a.startSeconds - b.startSeconds)) {
    const { startSeconds, seconds } = ref;
    const key = policyOf(ref);
    const known = spans.get(key);
    if (known === undefined) spans.set(key, [{ startSeconds, seconds }]);
    else add(known, ref);
  }
  return {
    keeps: (buf, start, end) => seriesPartition(buf, start, end, of) === partition,
    spanOf: (shard) => {
      const isIn = ({ startSeconds, seconds }: Span): boolean =>
        shard.startSeconds >= startSeconds && shard.startSeconds < startSeconds + seconds;
      const found = spans.get(policyOf(shard))?.find(isIn);
      if (found === undefined) throw new RangeError('a shard that the manifest does not have');
      return found;
    },
  };
}

/** They come in the order of their starts. */
function add(spans: Span[], { database, policy, startSeconds, seconds }: ShardRef): void {
  const last = spans.at(-1)!;
  if (startSeconds >= last.startSeconds + last.seconds) {
    spans.push({ startSeconds, seconds });
    return;
  }
  const end = Math.max(last.startSeconds + last.seconds, startSeconds + seconds);
  if (end - last.startSeconds > maxShardSeconds) {
    throw new SeriesShareError(`the shards of ${policy} of ${database} overlap over 13 weeks`);
  }
  spans[spans.length - 1] = { startSeconds: last.startSeconds, seconds: end - last.startSeconds };
}

function policyOf({ database, policy }: Pick<ShardRef, 'database' | 'policy'>): string {
  return JSON.stringify([database, policy]);
}
