// Merges neighbours that are cold and small, in the background and slowly: Libra, section IV-C.

import { type RangeModel, RangeState } from './range-state.ts';

interface MergeParameters {
  lambda: number;
  /** Bytes at which a region is split by its size. */
  regionBytes: number;
  /** Limit of merges for each node in one call. The caller makes one call a minute. */
  perNode: number;
}

const mergeDefaults: MergeParameters = { lambda: 0.05, regionBytes: 96e6, perNode: 1 };

export interface Merge {
  left: number;
  right: number;
  /** Node to which `right` is moved first, if it is on another node. */
  moveTo?: number;
}

/** At most one for each region. */
export function merges(model: RangeModel, parameters: Partial<MergeParameters> = {}): Merge[] {
  const { lambda, regionBytes, perNode } = { ...mergeDefaults, ...parameters };
  const state = new RangeState(model);
  const { load, bytes, node } = state;
  const isCold = (region: number): boolean =>
    load.cpu[region]! < lambda / 20 && load.io[region]! < lambda / 20;
  const made = new Uint32Array(state.nodeCount);
  const found: Merge[] = [];
  for (let left = model.order[0] ?? -1; left >= 0; ) {
    const right = state.next[left]!;
    const isMerged =
      right >= 0 &&
      isCold(left) &&
      isCold(right) &&
      bytes[left]! + bytes[right]! < regionBytes / 2 &&
      made[node[left]!]! < perNode;
    if (!isMerged) {
      left = right;
      continue;
    }
    const to = node[left]!;
    made[to] = made[to]! + 1;
    found.push(node[right] === to ? { left, right } : { left, right, moveTo: to });
    left = state.next[right]!;
  }
  return found;
}
