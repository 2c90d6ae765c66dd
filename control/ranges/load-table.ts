// The manager's view of nodes and regions: two layers of small heartbeats (Libra, section IV-A). Nodes report their own
// load and, separately, the loads of their regions that changed. While a node's load changes by more than a
// fifth from one heartbeat to the next, nothing is scheduled.

interface NodeHeartbeat {
  node: number;
  cpu: number;
  io: number;
}

interface RegionHeartbeat {
  node: number;
  regions: readonly { region: number; cpu: number; io: number; bytes: number }[];
}

interface LoadTableOptions {
  lambda: number;
  /** Relative change between two heartbeats from which on scheduling is suspended. */
  fluctuation: number;
}

const loadTableDefaults: LoadTableOptions = { lambda: 0.05, fluctuation: 0.2 };

export class LoadTable {
  readonly #options: LoadTableOptions;
  readonly #nodes = new Map<number, { cpu: number; io: number; isSteady: boolean }>();
  readonly #regions = new Map<number, { node: number; cpu: number; io: number; bytes: number }>();

  constructor(options: Partial<LoadTableOptions> = {}) {
    this.#options = { ...loadTableDefaults, ...options };
  }

  hearNode({ node, cpu, io }: NodeHeartbeat): void {
    const before = this.#nodes.get(node);
    const { fluctuation } = this.#options;
    const isSteady =
      before !== undefined &&
      isNear(before.cpu, cpu, fluctuation) &&
      isNear(before.io, io, fluctuation);
    this.#nodes.set(node, { cpu, io, isSteady });
  }

  hearRegions({ node, regions }: RegionHeartbeat): void {
    for (const { region, cpu, io, bytes } of regions) {
      this.#regions.set(region, { node, cpu, io, bytes });
    }
  }

  forgetRegion(region: number): void {
    this.#regions.delete(region);
  }

  /** Whether scheduling is suspended: the last two heartbeats of a node differ too much, or a node has sent only one. */
  get isSuspended(): boolean {
    for (const { isSteady } of this.#nodes.values()) if (!isSteady) return true;
    return false;
  }

  /** Whether regions need scheduling: the imbalance of the nodes (eq. 4) is above λ, and loads are steady. */
  get isDue(): boolean {
    return !this.isSuspended && this.imbalance > this.#options.lambda;
  }

  get imbalance(): number {
    const nodes = [...this.#nodes.values()];
    const over = (loads: number[]): number => {
      const mean = loads.reduce((a, b) => a + b, 0) / loads.length;
      return mean === 0 ? 0 : Math.max(...loads) / mean - 1;
    };
    if (nodes.length === 0) return 0;
    return Math.max(over(nodes.map(({ cpu }) => cpu)), over(nodes.map(({ io }) => io)));
  }

  regions(): ReadonlyMap<number, { node: number; cpu: number; io: number; bytes: number }> {
    return this.#regions;
  }
}

function isNear(before: number, now: number, fluctuation: number): boolean {
  return Math.abs(now - before) <= fluctuation * Math.max(before, Number.MIN_VALUE);
}
