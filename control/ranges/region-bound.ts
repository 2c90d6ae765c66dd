// Theorem 1 of Libra, section IV-B: where no region has more than λ/2 of a node's mean load in either dimension, there is
// a placement with an imbalance of at most λ. This is the placement of its proof.

/** The node of each region. Loads are normalised: a node's mean is 1. */
export function boundedPlacement(
  cpu: ArrayLike<number>,
  io: ArrayLike<number>,
  nodes: number,
): Uint32Array {
  const node = new Uint32Array(cpu.length).fill(nodes - 1);
  const heavyOnCpu: number[] = [];
  const heavyOnIo: number[] = [];
  for (let i = 0; i < cpu.length; i++) (cpu[i]! > io[i]! ? heavyOnCpu : heavyOnIo).push(i);
  for (let at = 0; at < nodes; at++) {
    let [a, b] = [0, 0];
    while (a < 1 || b < 1) {
      const wanted = a <= b ? heavyOnCpu : heavyOnIo;
      const other = wanted === heavyOnCpu ? heavyOnIo : heavyOnCpu;
      // With regions of one kind only, a node is full when one dimension is.
      const from = wanted.length > 0 ? wanted : Math.max(a, b) < 1 ? other : [];
      const region = from.pop();
      if (region === undefined) break;
      node[region] = at;
      a += cpu[region]!;
      b += io[region]!;
    }
  }
  return node;
}

/** The most moves that balancing takes by the paper's analysis; Infinity where some region weighs the same in both. */
export function mostMoves(
  total: Readonly<Record<'cpu' | 'io', ArrayLike<number>>>,
  cpu: ArrayLike<number>,
  io: ArrayLike<number>,
): number {
  let excess = 0;
  for (let node = 0; node < total.cpu.length; node++) {
    excess += Math.max(0, total.cpu[node]! - 1) + Math.max(0, total.io[node]! - 1);
    excess += Math.abs(total.cpu[node]! - total.io[node]!);
  }
  let least = Infinity;
  for (let i = 0; i < cpu.length; i++) {
    if (cpu[i]! > 0 || io[i]! > 0) least = Math.min(least, Math.abs(cpu[i]! - io[i]!));
  }
  return excess / least;
}
