// Least squares over numbers none of which is below 0 (Lawson and Hanson, Solving Least Squares Problems, 1974),
// by the normal equations. The systems are small; callers keep them well conditioned.

/** Equations as they are collected: `count` unknowns, and the sums of products that the solution needs. */
export class NormalEquations {
  readonly count: number;
  readonly products: Float64Array;
  readonly right: Float64Array;

  constructor(count: number) {
    this.count = count;
    this.products = new Float64Array(count * count);
    this.right = new Float64Array(count);
  }

  /** The sum of `row` times the unknowns should be `value`, and counts by the square of `weight`. */
  add(row: ReadonlyMap<number, number>, value: number, weight: number): void {
    const square = weight * weight;
    for (const [i, a] of row) {
      this.right[i] = this.right[i]! + square * a * value;
      for (const [j, b] of row) {
        const at = i * this.count + j;
        this.products[at] = this.products[at]! + square * a * b;
      }
    }
  }

  /** The unknowns, each 0 or above, that come nearest to all that was added. */
  solve(): Float64Array {
    const { count, products, right } = this;
    const solution = new Float64Array(count);
    const free: number[] = [];
    let most = 0;
    for (let i = 0; i < count; i++) most = Math.max(most, Math.abs(right[i]!));
    const tolerance = most * 1e-10;
    // Each iteration frees one variable; more iterations than this are cycles of rounding errors.
    for (let turns = 0; turns < 3 * count; turns++) {
      const next = this.#steepest(solution, free);
      if (next < 0 || this.#gradient(solution, next) <= tolerance) break;
      free.push(next);
      for (;;) {
        const found = solveFree(products, right, count, free);
        const step = stepTo(solution, found, free);
        free.forEach((i, at) => {
          solution[i] = solution[i]! + step * (found[at]! - solution[i]!);
        });
        if (step === 1) break;
        for (let at = free.length - 1; at >= 0; at--) {
          const i = free[at]!;
          if (solution[i]! > 1e-12) continue;
          solution[i] = 0;
          free.splice(at, 1);
        }
      }
    }
    return solution;
  }

  #gradient(solution: Float64Array, i: number): number {
    let sum = this.right[i]!;
    for (let j = 0; j < this.count; j++) sum -= this.products[i * this.count + j]! * solution[j]!;
    return sum;
  }

  /** Among the variables held at 0, the one with the steepest gradient. */
  #steepest(solution: Float64Array, free: readonly number[]): number {
    const isFree = new Set(free);
    let best = -1;
    let most = 0;
    for (let i = 0; i < this.count; i++) {
      if (isFree.has(i) || this.products[i * this.count + i] === 0) continue;
      const gradient = this.#gradient(solution, i);
      if (gradient > most) [most, best] = [gradient, i];
    }
    return best;
  }
}

/** How far to go from one solution to another before the first unknown falls below 0. */
function stepTo(from: Float64Array, to: readonly number[], free: readonly number[]): number {
  let step = 1;
  free.forEach((i, at) => {
    const aim = to[at]!;
    if (aim <= 0) step = Math.min(step, from[i]! / (from[i]! - aim) || 0);
  });
  return step;
}

/** The equations of the free unknowns alone, by Cholesky. */
function solveFree(
  products: Float64Array,
  right: Float64Array,
  count: number,
  free: readonly number[],
): number[] {
  const n = free.length;
  const factor = new Float64Array(n * n);
  const solution = free.map((i) => right[i]!);
  for (let i = 0; i < n; i++) {
    for (let j = 0; j <= i; j++) {
      let sum = products[free[i]! * count + free[j]!]!;
      for (let k = 0; k < j; k++) sum -= factor[i * n + k]! * factor[j * n + k]!;
      factor[i * n + j] = i === j ? Math.sqrt(Math.max(sum, 1e-12)) : sum / factor[j * n + j]!;
    }
  }
  for (let i = 0; i < n; i++) {
    let sum = solution[i]!;
    for (let k = 0; k < i; k++) sum -= factor[i * n + k]! * solution[k]!;
    solution[i] = sum / factor[i * n + i]!;
  }
  for (let i = n - 1; i >= 0; i--) {
    let sum = solution[i]!;
    for (let k = i + 1; k < n; k++) sum -= factor[k * n + i]! * solution[k]!;
    solution[i] = sum / factor[i * n + i]!;
  }
  return solution;
}
