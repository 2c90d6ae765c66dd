import { minTime } from '../../../../../contracts/series-store.ts';
import { QueryError } from '../../result.ts';
import type { Plan } from './plan.ts';

/** Throws when GROUP BY time would make more than `most` buckets a series; 0 for any number. */
export function checkBuckets(plan: Plan, most: number): void {
  const { interval, from, to, calls } = plan;
  const { width } = interval;
  // Without a lower bound the number of buckets depends on the points.
  if (most <= 0 || width === 0n || from === minTime || calls.length === 0 || to < from) return;
  const buckets = (to - from) / width + 1n;
  if (buckets > BigInt(most)) {
    throw new QueryError(`max-select-buckets limit exceeded: (${buckets}/${most})`);
  }
}
