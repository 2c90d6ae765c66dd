import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Chance } from '../simulation/chance.ts';
import {
  NoRoomError,
  partitionCount,
  partitionLimits,
  type PlacementPod,
  placeTable,
  termsOf,
  usualPlacement,
} from './place.ts';

test.each([
  { lru: 0, bytes: 0, partitions: 1 },
  { lru: 1000, bytes: 0, partitions: 1 },
  { lru: 1001, bytes: 0, partitions: 2 },
  { lru: 10, bytes: 35 * 2 ** 30, partitions: 4 },
  { lru: 9000, bytes: 35 * 2 ** 30, partitions: 9 },
])('$lru LRU/s and $bytes bytes are $partitions partitions', ({ lru, bytes, partitions }) => {
  expect(partitionCount({ lru, bytes }, partitionLimits(10_000))).toBe(partitions);
});

test('the terms of eq. 6', () => {
  const pod = { ...empty(0, 0), usedBytes: 30, allocatedLru: 50, allocatedBytes: 50 };
  const terms = termsOf(pod, { allocatedLru: 10, allocatedBytes: 10 }, usualPlacement);
  expect(terms).toEqual({ usedDisk: 0.3, allocatedRu: 0.4, allocatedDisk: 0.5 });
});

function empty(node: number, subcluster: number): PlacementPod {
  const nothing = { usedBytes: 0, allocatedLru: 0, allocatedBytes: 0 };
  return { node, zone: node % 3, subcluster, lru: 100, diskBytes: 100, ...nothing };
}

function cluster(nodes: number, subclusters: number): PlacementPod[] {
  return Array.from({ length: nodes * subclusters }, (_, i) =>
    empty(i % nodes, Math.floor(i / nodes)),
  );
}

describe('a new table', () => {
  test('is spread over the pods within 1, each partition on three nodes and zones of one subcluster', () => {
    const shapes = fc.constantFrom([9, 12], [27, 12], [9, 1], [27, 2]);
    fc.assert(
      fc.property(shapes, fc.integer({ min: 1, max: 300 }), fc.nat(), (shape, partitions, seed) => {
        const pods = cluster(shape[0]!, shape[1]!);
        const chance = new Chance(seed);
        for (const pod of pods) pod.usedBytes = chance.uniform(0, 80);
        const request = { partitions, allocatedLru: 0.01, allocatedBytes: 0.01 };
        const placed = placeTable(pods, request, chance);
        expect(placed).toHaveLength(partitions);
        const held = pods.map((_, pod) => placed.flat().filter((one) => one === pod).length);
        expect(Math.max(...held) - Math.min(...held)).toBeLessThanOrEqual(1);
        for (const replicas of placed) {
          expect(new Set(replicas.map((pod) => pods[pod]!.node)).size).toBe(3);
          expect(new Set(replicas.map((pod) => pods[pod]!.zone)).size).toBe(3);
          expect(new Set(replicas.map((pod) => pods[pod]!.subcluster)).size).toBe(1);
        }
      }),
      { numRuns: Number(process.env.POLYROW_PLACEMENT_RUNS ?? 100) },
    );
  }, 600_000);

  test('goes to the pods with fewest replicas of its tenant where scores are equal', () => {
    for (const seed of [1, 2, 3, 4, 5]) {
      const pods = cluster(9, 1);
      const request = { partitions: 1, allocatedLru: 0, allocatedBytes: 0 };
      const ofTenant = new Uint32Array(pods.length);
      const chance = new Chance(seed);
      const three = [0, 1, 2].flatMap(() => placeTable(pods, { ...request, ofTenant }, chance));
      expect(three.flat().sort((a, b) => a - b)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8]);
      expect(ofTenant).toEqual(new Uint32Array(9).fill(1));
    }
  });

  test('goes to no pod with a term above the threshold, or nowhere at all', () => {
    const pods = cluster(9, 1);
    for (const pod of pods.slice(0, 5)) pod.usedBytes = 86;
    const request = { partitions: 3, allocatedLru: 30, allocatedBytes: 1 };
    const placed = placeTable(pods, request, new Chance(1));
    for (const pod of placed.flat()) expect(pod).toBeGreaterThanOrEqual(5);
    const before = structuredClone(pods);
    const ofTenant = new Uint32Array(pods.length);
    const tooMuch = { partitions: 10, allocatedLru: 30, allocatedBytes: 1, ofTenant };
    expect(() => placeTable(pods, tooMuch, new Chance(1))).toThrow(NoRoomError);
    expect(pods).toEqual(before);
    expect(ofTenant).toEqual(new Uint32Array(pods.length));
  });
});
