// Operating rules of a pool (ABase, section 7): headroom, so that any tenant can double within seconds, and limits,
// so that the failure of one pool concerns few tenants.

export interface PoolRules {
  /** The pool's capacity is at least so many times the largest quota. */
  capacityPerQuota: number;
  /** This part of the pool, and of each node, is idle. */
  idlePart: number;
  mostTenants: number;
  mostNodes: number;
}

export const defaultPoolRules: PoolRules = {
  capacityPerQuota: 10,
  idlePart: 0.2,
  mostTenants: 2000,
  mostNodes: 1000,
};

/** One resource of a pool. The unit is the resource's own, and the same throughout. */
export interface PoolUse {
  /** Capacity of each node. */
  nodeCapacity: Float64Array;
  /** Load of each node in its highest hour. */
  nodeLoad: Float64Array;
  /** Quota of each tenant in the pool. */
  quotas: ReadonlyMap<string, number>;
}

/** Which rule a change would break, and a sentence with figures. */
interface Refusal {
  rule: 'tenants' | 'nodes' | 'quota' | 'idle' | 'idle node';
  reason: string;
}

/**
 * The rule that the pool would break with this quota for a tenant, new or known; undefined if it would break none.
 * `addedLoad` is the load that the change is expected to bring, spread like the capacity.
 */
export function refusalOf(
  pool: PoolUse,
  tenant: string,
  quota: number,
  addedLoad: number,
  rules: PoolRules,
): Refusal | undefined {
  const tenants = pool.quotas.size + (pool.quotas.has(tenant) ? 0 : 1);
  if (tenants > rules.mostTenants) {
    return {
      rule: 'tenants',
      reason: `the pool has ${rules.mostTenants} tenants, the most it may`,
    };
  }
  const nodes = pool.nodeCapacity.length;
  if (nodes > rules.mostNodes) {
    return { rule: 'nodes', reason: `the pool has ${nodes} nodes, more than ${rules.mostNodes}` };
  }
  const largest = largestQuota(pool, tenant, quota);
  const capacity = sum(pool.nodeCapacity);
  if (largest * rules.capacityPerQuota > capacity) {
    return {
      rule: 'quota',
      reason: `a quota of ${largest} needs a pool of ${largest * rules.capacityPerQuota}, and it has ${capacity}`,
    };
  }
  const idle = capacity - sum(pool.nodeLoad) - addedLoad;
  const wanted = Math.max(rules.idlePart * capacity, largest);
  if (idle < wanted) {
    return { rule: 'idle', reason: `${idle} of the pool would be idle, and ${wanted} must be` };
  }
  for (let node = 0; node < nodes; node++) {
    const of = pool.nodeCapacity[node]!;
    const left = of - pool.nodeLoad[node]! - (addedLoad * of) / capacity;
    // The same proportion on each node: where one is full, rescheduling comes first.
    if (left < rules.idlePart * of) {
      return {
        rule: 'idle node',
        reason: `${left} of node ${node} would be idle, and ${rules.idlePart * of} must be`,
      };
    }
  }
  return undefined;
}

/**
 * The number of the pool for a new tenant. Pools that would break a rule are left out. Of the others, the pool with
 * the fewest tenants is chosen, so that a failure affects few tenants; ties go to the pool with the most idle
 * capacity. undefined: the fleet needs another pool.
 */
export function poolFor(
  pools: readonly PoolUse[],
  tenant: string,
  quota: number,
  addedLoad: number,
  rules: PoolRules,
): number | undefined {
  const idle = (pool: PoolUse): number => sum(pool.nodeCapacity) - sum(pool.nodeLoad);
  let best: number | undefined;
  pools.forEach((pool, number) => {
    if (refusalOf(pool, tenant, quota, addedLoad, rules) !== undefined) return;
    const other = best === undefined ? undefined : pools[best]!;
    const fewer = other === undefined ? -1 : pool.quotas.size - other.quotas.size;
    if (fewer < 0 || (fewer === 0 && idle(pool) > idle(other!))) best = number;
  });
  return best;
}

/**
 * The largest quota that the pool can promise the tenant by its size and idle capacity. A quota by itself brings no
 * load; the load that it allows is watched where it comes.
 */
export function mostQuota(pool: PoolUse, rules: PoolRules): number {
  const capacity = sum(pool.nodeCapacity);
  return Math.max(0, Math.min(capacity / rules.capacityPerQuota, capacity - sum(pool.nodeLoad)));
}

/** How many nodes of this capacity the rules ask for; above `mostNodes` the pool must be divided. */
export function nodesNeeded(
  load: number,
  largest: number,
  capacityOfNode: number,
  rules: PoolRules,
): number {
  const capacity = Math.max(
    rules.capacityPerQuota * largest,
    load / (1 - rules.idlePart),
    load + largest,
  );
  return Math.ceil(capacity / capacityOfNode);
}

function largestQuota({ quotas }: PoolUse, tenant: string, quota: number): number {
  let largest = quota;
  for (const [other, of] of quotas) if (other !== tenant && of > largest) largest = of;
  return largest;
}

function sum(values: Float64Array): number {
  let total = 0;
  for (const value of values) total += value;
  return total;
}
