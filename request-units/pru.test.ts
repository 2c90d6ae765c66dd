import fc from 'fast-check';
import { expect, test } from 'vitest';
import { addPru, lruWeights, podLru, podPru, type Pru } from './pru.ts';

const positive = fc.double({ min: 1e-3, max: 1e9, noNaN: true });
const cost = fc.double({ min: 0, max: 1e6, noNaN: true });
const shape = fc.tuple(positive, positive, positive, positive);
const request = fc.tuple(cost, cost, cost, cost);

function shares(request: Pru, pod: Pru): number[] {
  return lruWeights(pod).map((weight, d) => weight * request[d]!);
}

function requestLru(request: Pru, pod: Pru): number {
  return Math.max(...shares(request, pod));
}

const onePru: Pru = [1, 1, 1, 1];
const examplePod: Pru = [10_000, 40_000, 8000, 20_000];

test('a pod can do as many reads as its scarcest resource allows', () => {
  expect(podLru(examplePod)).toBe(8000);
  const read1kB: Pru = [20, 1000, 1, 1024];
  const capacity: Pru = [200_000, 4e7, 8000, 20_480_000];
  expect(podPru(capacity, read1kB)).toEqual(examplePod);
});

test('a request is charged by the resource of which it takes the largest share', () => {
  expect(requestLru([2, 1, 1, 1], examplePod)).toBeCloseTo(1.6, 12);
  expect(requestLru([1, 1, 1, 1], examplePod)).toBe(1);
});

test('reading 1 kB is 1 unit on a pod of whatever shape', () => {
  fc.assert(
    fc.property(shape, (pod) => {
      expect(requestLru(onePru, pod)).toBeCloseTo(1, 9);
    }),
  );
});

test('more work never costs less, and twice the work twice as much', () => {
  fc.assert(
    fc.property(shape, request, request, (pod, one, more) => {
      const both = addPru(one, more);
      expect(requestLru(both, pod)).toBeGreaterThanOrEqual(requestLru(one, pod));
      const twice = requestLru(addPru(one, one), pod);
      expect(twice).toBeCloseTo(2 * requestLru(one, pod), 6);
    }),
  );
});

test('a query that holds much is charged by memory, a large value by the network', () => {
  // Plenty of processors; plenty of network; a bit of everything.
  const pods: Pru[] = [
    [1e6, 1e6, 5e4, 2e5],
    [2e5, 4e5, 5e4, 1e5],
    [4e4, 8e4, 2e4, 2e4],
  ];
  for (const pod of pods) {
    const [query, value]: Pru[] = [
      [40, 900, 3, 2],
      [120, 900, 0, 1000],
    ];
    expect(requestLru(query!, pod)).toBe(shares(query!, pod)[1]);
    expect(requestLru(value!, pod)).toBe(shares(value!, pod)[3]);
  }
});
