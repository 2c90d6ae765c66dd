// Measured costs by size, put right where noise has a larger size cost less than a smaller one.

/** The nearest column that never falls; small sizes, of which more is run, count for more. */
export function rising(column: readonly number[], sizes: readonly number[]): number[] {
  // Neighbours that fall are pooled, until none do.
  const pools: { sum: number; weight: number; count: number }[] = [];
  column.forEach((cost, i) => {
    const weight = 1 / sizes[i]!;
    pools.push({ sum: Math.max(0, cost) * weight, weight, count: 1 });
    for (;;) {
      const last = pools.at(-1)!;
      const before = pools.at(-2);
      if (before === undefined || before.sum / before.weight <= last.sum / last.weight) break;
      pools.pop();
      before.sum += last.sum;
      before.weight += last.weight;
      before.count += last.count;
    }
  });
  return pools.flatMap(({ sum, weight, count }) =>
    Array.from({ length: count }, () => sum / weight),
  );
}
