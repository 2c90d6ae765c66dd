// W-POOL: ABase's pool of 1,000 data nodes with some 30 replicas each; request units and storage by hour of day; each
// tenant on a contiguous part of the nodes.

import { ClusterBuilder } from '../../cluster-builder.ts';
import { Chance } from '../chance.ts';
import type { Workload } from '../workload.ts';

export interface ResourcePoolSize {
  nodes: number;
  replicasPerNode: number;
  tenants: number;
  /** Load of the pool over its capacity, in both dimensions. */
  usedShare: number;
  /** Replicas of a partition. */
  copies: number;
  /** Deviation of the factor on each value that one draw of noise puts there. */
  noise: number;
  pool?: string;
}

export const paperSize: ResourcePoolSize = {
  nodes: 1000,
  replicasPerNode: 30,
  tenants: 300,
  usedShare: 0.5,
  copies: 1,
  noise: 0.05,
};

const hours = 24;
const amplitude = 0.4;

interface Partition {
  tenant: number;
  ru: number;
  storage: number;
  nodes: number[];
}

export function resourcePool(seed: number, size = paperSize): Workload {
  const chance = new Chance(seed);
  const tenants = Array.from({ length: size.tenants }, () => ({
    start: chance.below(size.nodes),
    length: Math.max(size.copies, Math.round(size.nodes * chance.uniform(0.1, 0.5))),
    peakHour: chance.uniform(0, hours),
    ru: chance.lognormal(0, 1),
    storage: chance.lognormal(0, 1),
  }));
  const partitions: Partition[] = [];
  const count = Math.round((size.nodes * size.replicasPerNode) / size.copies);
  for (let i = 0; i < count; i++) {
    const tenant = i % size.tenants;
    const { start, length, ru, storage } = tenants[tenant]!;
    const first = chance.below(length);
    const nodes = Array.from(
      { length: size.copies },
      (_, copy) => (start + ((first + copy) % length)) % size.nodes,
    );
    partitions.push({
      tenant,
      ru: ru * chance.lognormal(0, 0.2),
      storage: storage * chance.lognormal(0, 0.2),
      nodes,
    });
  }
  const sum = (of: 'ru' | 'storage'): number =>
    partitions.reduce((total, one) => total + one[of] * size.copies, 0);
  const limits = [sum('ru'), sum('storage')].map((total) => total / size.nodes / size.usedShare);
  return {
    name: 'W-POOL',
    model(draw) {
      const noises = new Chance(seed * 1_000_003 + draw);
      const builder = new ClusterBuilder(
        { dimensions: ['ru', 'storage'], points: hours, pointSeconds: 3600 },
        partitions.length,
      );
      for (let node = 0; node < size.nodes; node++) {
        builder.node({ id: `node${node}`, pool: size.pool ?? 'pool0' });
        builder.pod({ id: `node${node}`, node, limits });
      }
      for (let tenant = 0; tenant < size.tenants; tenant++) {
        builder.table(`tenant${tenant}`, `tenant${tenant}`);
      }
      partitions.forEach(({ tenant, ru, storage, nodes }, number) => {
        const { peakHour } = tenants[tenant]!;
        const factor = (): number => Math.max(0, 1 + size.noise * noises.normal());
        const byHour = (hour: number): number =>
          1 + amplitude * Math.cos((2 * Math.PI * (hour - peakHour)) / hours);
        const values = new Float32Array(2 * hours);
        const stored = storage * factor();
        for (let hour = 0; hour < hours; hour++) {
          values[hour] = ru * byHour(hour) * factor();
          values[hours + hour] = stored;
        }
        const row = builder.row(values);
        const id = `tenant${tenant}/${number}`;
        builder.partition({ id, table: tenant, leader: { row }, follower: { row } });
        nodes.forEach((node, copy) => builder.replica(number, node, copy === 0));
      });
      return builder.build();
    },
  };
}
