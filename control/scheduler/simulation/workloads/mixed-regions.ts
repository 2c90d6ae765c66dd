// W-MIX: Libra's evaluation. 8 nodes, 256 key ranges with a skewed load, several regions a range, and bytes per operation
// that differ widely between regions, so that processor and I/O load do not go together. Regions are partitions with
// one replica.

import { ClusterBuilder } from '../../cluster-builder.ts';
import { Chance } from '../chance.ts';
import type { Workload } from '../workload.ts';

interface MixedRegionsSize {
  nodes: number;
  ranges: number;
  regionsPerRange: number;
  /** Deviation of the factor on a region's load that one draw of noise puts there. */
  noise: number;
  /** Capacity of node n relative to the others; 1 each when absent. */
  capacity?: readonly number[];
}

const paperSize: MixedRegionsSize = { nodes: 8, ranges: 256, regionsPerRange: 4, noise: 0 };

interface Region {
  cpu: number;
  io: number;
  node: number;
}

export function mixedRegions(seed: number, size = paperSize): Workload {
  const chance = new Chance(seed);
  const regions = place(presplit(drawn(chance, size), size.nodes), size.nodes, chance);
  return {
    name: 'W-MIX',
    model(draw) {
      const noises = new Chance(seed * 1_000_003 + draw);
      const builder = new ClusterBuilder(
        { dimensions: ['cpu', 'io'], points: 1, pointSeconds: 10 },
        regions.length,
      );
      for (let node = 0; node < size.nodes; node++) {
        const limit = size.capacity?.[node] ?? 1;
        builder.node({ id: `node${node}` });
        builder.pod({ id: `pod${node}`, node, limits: [limit, limit] });
      }
      const table = builder.table('regions');
      regions.forEach(({ cpu, io, node }, number) => {
        const factor = (): number => Math.max(0, 1 + size.noise * noises.normal());
        const row = builder.row([cpu * factor(), io * factor()]);
        builder.partition({ id: `region${number}`, table, leader: { row } });
        builder.replica(number, node, true);
      });
      return builder.build();
    },
  };
}

function drawn(
  chance: Chance,
  { ranges, regionsPerRange }: MixedRegionsSize,
): Omit<Region, 'node'>[] {
  const regions: Omit<Region, 'node'>[] = [];
  for (let x = 0; x < ranges; x++) {
    const weight = 14.18 * Math.exp(-2.917 * x) + 0.0164 * Math.exp(-0.08082 * x);
    const inner = Array.from(
      { length: regionsPerRange },
      (_, j) => (j + 1) ** -0.65 * chance.uniform(0.5, 1.5),
    );
    const total = inner.reduce((sum, one) => sum + one, 0);
    for (const one of inner) {
      const cpu = (weight * one) / total;
      regions.push({ cpu, io: cpu * chance.lognormal(0, 1.8) });
    }
  }
  return regions;
}

/** No region has more than one node's mean of the processor load. */
function presplit(regions: readonly Omit<Region, 'node'>[], nodes: number): Omit<Region, 'node'>[] {
  const most = regions.reduce((sum, { cpu }) => sum + cpu, 0) / nodes;
  return regions.flatMap(({ cpu, io }) => {
    const parts = Math.max(1, Math.ceil(cpu / most));
    return Array.from({ length: parts }, () => ({ cpu: cpu / parts, io: io / parts }));
  });
}

/** As many regions on each node, at random. */
function place(regions: readonly Omit<Region, 'node'>[], nodes: number, chance: Chance): Region[] {
  const order = regions.map((_, i) => i % nodes);
  for (let i = order.length - 1; i > 0; i--) {
    const j = chance.below(i + 1);
    [order[i], order[j]] = [order[j]!, order[i]!];
  }
  return regions.map((region, i) => ({ ...region, node: order[i]! }));
}
