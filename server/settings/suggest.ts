/** The known name a person most likely meant, as ` Did you mean x?`, or nothing. */
export function didYouMean(name: string, known: Iterable<string>): string {
  const most = Math.max(2, Math.floor(name.length / 3));
  let best: string | undefined;
  let bestDistance = most + 1;
  for (const candidate of known) {
    const distance = editDistance(name, candidate);
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best === undefined ? '' : ` Did you mean ${best}?`;
}

/** Insertions, deletions, replacements and swaps of neighbours between two words. */
export function editDistance(a: string, b: string): number {
  let before: number[] = [];
  let above = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1];
      let d = Math.min(above[j]! + 1, row[j - 1]! + 1, above[j - 1]! + (same ? 0 : 1));
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        d = Math.min(d, before[j - 2]! + 1);
      }
      row.push(d);
    }
    before = above;
    above = row;
  }
  return above[b.length]!;
}
