// Max-min fairness: an owner that wants less than an equal share gets all of it; the others share the rest.

/**
 * The largest share such that all shares together fit into `space`; Infinity when there is enough
 * for all.
 */
export function equalPart(wishes: Iterable<number>, space: number): number {
  const ascending = [...wishes].sort((a, b) => a - b);
  let left = space;
  for (const [i, wish] of ascending.entries()) {
    const part = left / (ascending.length - i);
    if (wish > part) return part;
    left -= wish;
  }
  return Infinity;
}
