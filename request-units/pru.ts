// Physical request units: the use of each resource of a pod by a request. The unit of every
// dimension is the cost of reading 1 kB, so that ⟨1, 1, 1, 1⟩ is one such read, whatever the
// hardware. Logical request units are one number, for tenants and bills: the share of the scarcest
// resource.

/** CPU time, bytes held times how long, disk operations, bytes on the wire. */
export const dimensions = ['cpu', 'memory', 'io', 'network'] as const;
export type Dimension = (typeof dimensions)[number];
export const dimensionCount = dimensions.length;

/** One number for each of `dimensions`, in their order. */
export type Pru = readonly [cpu: number, memory: number, io: number, network: number];

/** Price of a 1 kB read, the lowest price, in each dimension. */
export const smallestCharge = 1;

/**
 * A pod's capacity in PRU a second, by dimension: its physical capacity divided by the cost of one
 * read.
 */
export function podPru(capacity: Pru, read1kB: Pru): Pru {
  return [
    capacity[0] / read1kB[0],
    capacity[1] / read1kB[1],
    capacity[2] / read1kB[2],
    capacity[3] / read1kB[3],
  ];
}

/** Reads of 1 kB a second until the scarcest resource is used up. */
export function podLru(pod: Pru): number {
  return Math.min(pod[0], pod[1], pod[2], pod[3]);
}

/** Factors of a request's dimensions on a pod of this shape: the largest product is its logical units. None is above 1. */
export function lruWeights(pod: Pru): Pru {
  const least = podLru(pod);
  return [least / pod[0], least / pod[1], least / pod[2], least / pod[3]];
}

export function addPru(a: Pru, b: Pru): Pru {
  return [a[0] + b[0], a[1] + b[1], a[2] + b[2], a[3] + b[3]];
}
