// Computes the number of gateways and chooses their storage nodes (X-Stor, section 3). The number follows the formula of
// the Kubernetes horizontal pod autoscaler. Gateways hold no data. They run on nodes with idle processors, and are the
// first to leave when the database pods of a node need the processors.

interface ScalerParameters {
  /** Target utilization of a gateway: the larger of CPU and LRU/s, relative to its capacity. */
  target: number;
  /** Relative distance from the target within which the number of gateways does not change. */
  tolerance: number;
  /** The highest number wanted within this time holds. */
  stabilizationMs: number;
  least: number;
  most: number;
}

export const usualScaling: ScalerParameters = {
  target: 0.7,
  tolerance: 0.1,
  stabilizationMs: 300_000,
  least: 2,
  most: 1000,
};

export class GatewayScaler {
  readonly #parameters: ScalerParameters;
  #wanted: { at: number; count: number }[] = [];

  constructor(parameters: ScalerParameters = usualScaling) {
    this.#parameters = parameters;
  }

  /** Gateways there should be. `use` is the mean over the `current` ones; `at` is in milliseconds. */
  desired(at: number, current: number, use: number): number {
    const { target, tolerance, stabilizationMs, least, most } = this.#parameters;
    const ratio = use / target;
    const isNear = Math.abs(ratio - 1) <= tolerance;
    const count = isNear ? current : Math.ceil(current * ratio);
    this.#wanted = this.#wanted.filter((one) => one.at > at - stabilizationMs);
    this.#wanted.push({ at, count });
    // Up at once, down only when nothing has wanted more for a while.
    const held = Math.max(...this.#wanted.map((one) => one.count));
    return Math.min(most, Math.max(least, count >= current ? count : Math.min(current, held)));
  }
}

/** A node as a host. Shares of the whole node, of the database pods and the gateways on it. */
export interface HostNode {
  node: number;
  /** 95th percentile of the last hour's CPU use by the database pods. */
  cpuP95: number;
  /** CPU use now, of all pods. */
  cpu: number;
  memory: number;
  /** Gateways on the node, including those that are starting. */
  gateways: number;
}

interface HostParameters {
  /** Above them a node gets no gateway. */
  cpuP95: number;
  memory: number;
  /**
   * A gateway counts so many times its share. More than once: the gateways of a node are all busy in the same hours, those in
   * which the database pods are busier than in the hour that was measured.
   */
  gatewayWeight: number;
  /** CPU use above which gateways leave the node. */
  evictAbove: number;
}

export const usualHosts: HostParameters = {
  cpuP95: 0.5,
  memory: 0.6,
  gatewayWeight: 1.5,
  evictAbove: 0.6,
};

/**
 * Nodes for so many more gateways, those with the lowest use first; fewer when nodes run out. A node may get several,
 * `gatewayShare` of its CPU each.
 */
export function hostsFor(
  count: number,
  nodes: readonly HostNode[],
  gatewayShare: number,
  parameters: HostParameters = usualHosts,
): number[] {
  const counted = gatewayShare * parameters.gatewayWeight;
  const left = nodes
    .filter(({ memory }) => memory < parameters.memory)
    .map(({ node, cpuP95, gateways }) => ({ node, use: cpuP95 + gateways * counted }));
  const chosen: number[] = [];
  while (chosen.length < count) {
    let best: { node: number; use: number } | undefined;
    for (const one of left) {
      if (one.use >= parameters.cpuP95) continue;
      if (best === undefined || one.use < best.use) best = one;
    }
    if (best === undefined) break;
    best.use += counted;
    chosen.push(best.node);
  }
  return chosen;
}

/** Nodes that one gateway has to leave now, because the database pods need the processors. */
export function evictions(
  nodes: readonly HostNode[],
  parameters: HostParameters = usualHosts,
): number[] {
  return nodes
    .filter(({ cpu, gateways }) => gateways > 0 && cpu > parameters.evictAbove)
    .map(({ node }) => node);
}
