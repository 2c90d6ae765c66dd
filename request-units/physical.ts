// The physical part of a cost table: counted rather than measured costs, the reference pod, and the cost of reading
// 1 kB, which is the sum of the modules on its path.

import {
  CostTable,
  type ModelCosts,
  type ModuleCosts,
  rowModules,
  seriesModules,
  sizes,
} from './cost-table.ts';
import { addPru, type Pru } from './pru.ts';

/** Bytes that one disk operation moves at most. */
const operationBytes = 64 * 1024;
/** How long the bytes of a request that does not wait are held: one event-loop tick. */
const turnMs = 1;
/** How long they are while the disk is waited for. */
const missMs = 2;
/** Writes of one event-loop tick, whose entries leave in one operation. */
const groupedWrites = 64;

/** In a second: a core, memory set aside for requests, a disk, a network of 10 Gbit. */
export const referenceCapacity: Pru = [1e6, 256 * 2 ** 20 * 1000, 20_000, 1.25e9];

const bySize = (cost: (size: number) => number): number[] => sizes.map(cost);

/** Dimensions other than CPU, of the modules that have any. */
const counted: Readonly<Record<string, ModuleCosts>> = {
  decode: { memory: bySize((size) => size * turnMs), network: bySize((size) => size) },
  encode: { memory: bySize((size) => size * turnMs), network: bySize((size) => size) },
  log: { io: bySize((size) => 1 / groupedWrites + size / operationBytes) },
  miss: {
    memory: bySize((size) => size * missMs),
    io: bySize((size) => 1 + size / operationBytes),
  },
  // Read and written again, several times in the life of a byte.
  compact: { io: bySize((size) => (2 * size) / operationBytes) },
  checkpoint: { io: bySize((size) => size / operationBytes) },
  block: { io: bySize((size) => 1 + size / operationBytes) },
  hold: { memory: bySize((size) => size) },
};

/**
 * Measured CPU time by module, with the other resources of each. Rounded to the accuracy of
 * measurement.
 */
function modulesOf(
  names: readonly string[],
  cpu: Readonly<Record<string, readonly number[]>>,
): Record<string, ModuleCosts> {
  const modules: Record<string, ModuleCosts> = {};
  for (const name of names) {
    const measured = cpu[name];
    modules[name] = {
      ...(measured !== undefined && { cpu: ascending(measured) }),
      ...counted[name],
    };
  }
  return modules;
}

/** A larger size never costs less, despite measurement noise. */
function ascending(column: readonly number[]): number[] {
  let most = 0;
  return column.map((cost) => (most = Math.max(most, Number(cost.toPrecision(4)))));
}

/** Bytes of a 1 kB read: the request, the answer, and the row read. */
export const rowRead = { received: 64, sent: 1033, read: 1024 } as const;

/**
 * Costs of a model of rows. Where reads need no disk, the unit of that dimension is the I/O of
 * logging 1 kB.
 */
export function rowCosts(
  cpu: Readonly<Record<string, readonly number[]>>,
  readsFromDisk: boolean,
): ModelCosts {
  const modules = modulesOf(rowModules, cpu);
  // Data already on disk is not written at a checkpoint.
  if (readsFromDisk) modules['checkpoint'] = {};
  const { received, sent, read } = rowRead;
  const read1kB = sum(modules, rowModules, [
    ['decode', 1, received],
    ['convert', 1, received],
    ['lookup', 1, 64],
    ['read', 1, read],
    ['encode', 1, sent],
    ...(readsFromDisk ? [['miss', 1, read + sent] as const] : []),
  ]);
  const io = readsFromDisk ? read1kB[2] : modules['log']!.io![sizes.indexOf(1024)]!;
  const unit: Pru = [read1kB[0], read1kB[1], io, read1kB[3]];
  return { read1kB: unit, capacity: referenceCapacity, modules };
}

/** A query for 64 points of one series: 1 kB at 16 bytes each. */
export const seriesRead = {
  received: 400,
  text: 96,
  points: 1024,
  sent: 2600,
  /** Bytes times milliseconds. */
  held: 16 * 1024,
} as const;

export function seriesCosts(cpu: Readonly<Record<string, readonly number[]>>): ModelCosts {
  const modules = modulesOf(seriesModules, cpu);
  // Sizes on the wire are known for the request as a whole only: bodies may be compressed.
  for (const name of ['decode', 'encode']) {
    const { network: _, ...rest } = modules[name]!;
    modules[name] = rest;
  }
  modules['request'] = { ...modules['request'], network: bySize((size) => size) };
  const { text, points, sent, held, received } = seriesRead;
  const read1kB = sum(modules, seriesModules, [
    ['request', 1, received + sent],
    ['convert', 1, text],
    ['series', 1, 64],
    ['group', 1, 64],
    ['block', 1, points],
    ['aggregate', 1, points],
    ['encode', 1, sent],
    ['hold', 1, held],
  ]);
  return { read1kB, capacity: referenceCapacity, modules };
}

function sum(
  modules: Readonly<Record<string, ModuleCosts>>,
  names: readonly string[],
  parts: readonly (readonly [name: string, calls: number, bytes: number])[],
): Pru {
  const physical = new CostTable(
    { read1kB: [1, 1, 1, 1], capacity: referenceCapacity, modules },
    names,
  );
  let total: Pru = [0, 0, 0, 0];
  for (const [name, calls, bytes] of parts) {
    const m = names.indexOf(name);
    total = addPru(total, [
      physical.units(0, m, calls, bytes),
      physical.units(1, m, calls, bytes),
      physical.units(2, m, calls, bytes),
      physical.units(3, m, calls, bytes),
    ]);
  }
  return total;
}
