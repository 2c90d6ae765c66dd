// Which groups keep the time series of a tenant: one, or one for each of the partitions that they are divided into.

import type { GroupDefinition } from '../../contracts/cluster.ts';

/** By partition; undefined where a group is yet to be made. */
export type TenantGroups = readonly (GroupDefinition | undefined)[];

export function seriesGroupsByTenant(
  groups: readonly GroupDefinition[],
): ReadonlyMap<number, TenantGroups> {
  const found = new Map<number, (GroupDefinition | undefined)[]>();
  for (const group of groups) {
    if (group.model !== 'tsm') continue;
    const { partition, of } = group.series ?? { partition: 0, of: 1 };
    let all = found.get(group.tenant);
    if (all === undefined) {
      all = Array.from({ length: of }, () => undefined);
      found.set(group.tenant, all);
    }
    all[partition] = group;
  }
  return found;
}
