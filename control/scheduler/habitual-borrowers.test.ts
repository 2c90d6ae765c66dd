import { expect, test } from 'vitest';
import { ClusterBuilder } from './cluster-builder.ts';
import type { ClusterModel } from './cluster-model.ts';
import { type BorrowingOptions, moveHabitualBorrowers } from './habitual-borrowers.ts';
import { Chance } from './simulation/chance.ts';

const environment = { now: 0, rng: new Chance(1) };
const points = 120;

/** Load of the last hour, of the hour before it, and the share. */
interface Replica {
  pod: number;
  share: number;
  before: number;
  last: number;
}

/** Pods of 100 units a second. */
function clusterOf(pods: number, replicas: readonly Replica[]): ClusterModel {
  const builder = new ClusterBuilder({ dimensions: ['ru'], points, pointSeconds: 60 });
  for (let pod = 0; pod < pods; pod++) {
    builder.node({ id: `n${pod}` });
    builder.pod({ id: `p${pod}`, node: pod, limits: [100] });
  }
  replicas.forEach(({ pod, share, before, last }, number) => {
    const table = builder.table(`t${number}`, `t${number}`);
    const row = builder.row(
      Float32Array.from({ length: points }, (_, minute) => (minute < 60 ? before : last)),
    );
    const spec = { id: `t${number}/0`, table, allocatedLru: share, leader: { row } };
    builder.replica(builder.partition(spec), pod, true);
  });
  return builder.build();
}

const owner = { pod: 0, share: 60, before: 10, last: 10 };
const borrower = { pod: 0, share: 40, before: 20, last: 50 };

function planned(
  pods: number,
  replicas: readonly Replica[],
  options: Partial<BorrowingOptions> = {},
): string[] {
  return moveHabitualBorrowers(options)
    .plan(clusterOf(pods, replicas), environment)
    .map(({ change }) =>
      change.kind === 'move-replica' ? `${change.replica} to ${change.toPod}` : change.kind,
    );
}

test.each<[string, number, Replica[], string[]]>([
  ['a habitual borrower moves to a pod with room', 2, [owner, borrower], ['1 to 1']],
  ['one at 120 % of its share stays', 2, [owner, { ...borrower, last: 48 }], []],
  ['no pod promises borrowed capacity', 2, [{ ...owner, share: 20 }, borrower], []],
  ['there is no room elsewhere', 2, [owner, borrower, { ...owner, pod: 1 }], []],
  ['one that has stopped borrowing stays', 2, [owner, { ...borrower, before: 50, last: 20 }], []],
  ['a replica without a share borrows nothing', 2, [owner, { ...borrower, share: 0 }], []],
  [
    'the second finds the pod of the first full',
    3,
    [owner, { ...borrower, last: 60 }, { ...owner, pod: 1 }, { ...borrower, pod: 1, last: 55 }],
    ['1 to 2'],
  ],
])('%s', (_, pods, replicas, expected) => {
  expect(planned(pods, replicas)).toEqual(expected);
});

test.each([
  ['the most room', 'room', '1 to 1'],
  ['the load that is least like its own', 'unlike', '1 to 2'],
] as const)('among pods with room the borrower goes to %s', (_, target, expected) => {
  const like = { pod: 1, share: 20, before: 5, last: 20 };
  const unlike = { pod: 2, share: 30, before: 20, last: 5 };
  expect(planned(3, [owner, borrower, like, unlike], { target })).toEqual([expected]);
});

test('of two borrowers on a pod both move', () => {
  const small = { ...owner, share: 50 };
  const second = { ...borrower, share: 10, before: 5, last: 20 };
  expect(planned(3, [small, borrower, second])).toEqual(['1 to 1', '2 to 2']);
});
