// SELECT with calls. Calls over fields are computed bucket by bucket, and calls with the same range share one pass
// over the rows. Functions that compare consecutive points are applied to the results.

import { type Slices } from '../../../../../universal-row/slices.ts';
import type { Run } from '../context.ts';
import { type Plan } from '../plan/plan.ts';
import type { Group } from '../sources/input.ts';
import { GroupRows } from './group-rows.ts';
import { type Sources } from './groups.ts';
import { type Leaf, leafOf } from './leaf.ts';
import { Aggregation } from './aggregation.ts';

export function* openAggregate(plan: Plan, sources: Sources, run: Run): Slices<Group[]> {
  const leaves = plan.calls.map((call) => leafOf(call, plan, 0));
  const isKnown = ({ ref }: Leaf): boolean => ref.type !== undefined && ref.type !== 'tag';
  if (!leaves.some(isKnown)) return [];
  const aggregation = new Aggregation(plan, sources, run, leaves, leaves.map(isKnown));
  yield* aggregation.open();
  const groups = yield* aggregation.groups();
  return groups.map(([key, { name, tags }]) => ({
    name,
    tags,
    rows: () => new GroupRows(aggregation, key),
  }));
}
