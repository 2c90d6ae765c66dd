// Pods whose tenants borrow from each other: a day of minutes. Most pods have promised all of their capacity, the
// others half of it. Some replicas use more than their share for hours on end, some for twenty minutes, most never.

import { ClusterBuilder } from '../../cluster-builder.ts';
import { Chance } from '../chance.ts';
import type { Workload } from '../workload.ts';

interface BorrowingPods {
  workload: Workload;
  /** Replicas that have been above 1.2 times their share for the last hours of the day, and for its last 20 minutes. */
  habitual: ReadonlySet<number>;
  brief: ReadonlySet<number>;
}

const minutes = 1440;
const replicasPerPod = 10;
const capacity = 1000;
/** Part of the pods that have promised all of their capacity. */
const fullPart = 0.75;

export function borrowingPods(seed: number, pods: number): BorrowingPods {
  const chance = new Chance(seed);
  const [habitual, brief] = [new Set<number>(), new Set<number>()];
  const full = Math.round(pods * fullPart);
  const replicas = Array.from({ length: pods * replicasPerPod }, (_, number) => {
    const isFull = number < full * replicasPerPod;
    const kind = isFull ? chance.below(30) : -1;
    if (kind === 0) habitual.add(number);
    if (kind === 1) brief.add(number);
    return {
      share: (capacity / replicasPerPod) * (isFull ? 1 : 0.5),
      /** Load over the share: of a usual minute, and of the minutes in which it borrows. */
      usual: chance.uniform(0.3, 0.6),
      borrowing: kind === 0 || kind === 1 ? chance.uniform(1.5, 3) : 0,
      from: kind === 0 ? minutes - 60 * (1 + chance.below(8)) - 1 : minutes - 20,
      peakMinute: chance.uniform(0, minutes),
    };
  });
  const workload: Workload = {
    name: 'borrowing pods',
    model(draw) {
      const noise = new Chance(seed * 1_000_003 + draw);
      const builder = new ClusterBuilder(
        { dimensions: ['ru'], points: minutes, pointSeconds: 60 },
        replicas.length,
      );
      for (let pod = 0; pod < pods; pod++) {
        builder.node({ id: `node${pod}` });
        builder.pod({ id: `pod${pod}`, node: pod, limits: [capacity] });
      }
      replicas.forEach(({ share, usual, borrowing, from, peakMinute }, number) => {
        const values = Float32Array.from({ length: minutes }, (_, minute) => {
          const day = 1 + 0.4 * Math.cos((2 * Math.PI * (minute - peakMinute)) / minutes);
          const level = borrowing > 0 && minute >= from ? borrowing : usual * day;
          return Math.max(0, share * level * (1 + 0.05 * noise.normal()));
        });
        const table = builder.table(`table${number}`, `tenant${number}`);
        const id = `table${number}/0`;
        const row = builder.row(values);
        const spec = { id, table, bytes: 1e9, allocatedLru: share, leader: { row } };
        builder.replica(builder.partition(spec), Math.floor(number / replicasPerPod), true);
      });
      return builder.build();
    },
  };
  return { workload, habitual, brief };
}
