// The simplex method of Nelder and Mead: finds parameters that make a function small.

interface Minimum {
  readonly value: number;
  readonly parameters: Float64Array;
}

const maxRounds = 1000;
const reflection = 1;
const contraction = 0.5;
const expansion = 2;
const edge = 1;

/** `f` may change the parameters it is given, to keep them within bounds. */
export function minimise(
  f: (parameters: Float64Array) => number,
  start: Float64Array,
  epsilon: number,
): Minimum {
  const n = start.length;
  const points = simplexAt(start);
  const values = points.map((point) => f(point));
  let best = 0;
  for (let round = 1; round <= maxRounds; round++) {
    let worst = 0;
    best = 0;
    for (let i = 1; i <= n; i++) {
      if (values[i]! > values[worst]!) worst = i;
      if (values[i]! < values[best]!) best = i;
    }
    let second = best;
    for (let i = 0; i <= n; i++) {
      if (i !== worst && values[i]! > values[second]!) second = i;
    }
    const middle = new Float64Array(n);
    points.forEach((point, i) => {
      if (i !== worst) for (let j = 0; j < n; j++) middle[j]! += point[j]! / n;
    });
    const along = (step: number): Float64Array =>
      middle.map((value, j) => value + step * (points[worst]![j]! - value));
    const replace = (point: Float64Array, value: number): void => {
      points[worst] = point;
      values[worst] = value;
    };
    const reflected = along(-reflection);
    const reflectedValue = f(reflected);
    if (reflectedValue < values[second]! && reflectedValue >= values[best]!) {
      replace(reflected, reflectedValue);
    } else if (reflectedValue < values[best]!) {
      const expanded = along(-expansion);
      const expandedValue = f(expanded);
      if (expandedValue < reflectedValue) replace(expanded, expandedValue);
      else replace(reflected, reflectedValue);
    } else {
      const outside = reflectedValue < values[worst]!;
      const contracted = along(outside ? -contraction : contraction);
      const contractedValue = f(contracted);
      if (contractedValue < (outside ? reflectedValue : values[worst]!)) {
        replace(contracted, contractedValue);
      } else {
        for (let i = 0; i <= n; i++) {
          if (i === best) continue;
          points[i] = points[i]!.map((v, j) => points[best]![j]! + (v - points[best]![j]!) / 2);
          values[i] = f(points[i]!);
        }
      }
    }
    const mean = values.reduce((sum, value) => sum + value, 0) / (n + 1);
    const spread = values.reduce((sum, value) => sum + (value - mean) ** 2 / n, 0);
    if (Math.sqrt(spread) < epsilon) break;
  }
  for (let i = 0; i <= n; i++) if (values[i]! < values[best]!) best = i;
  const parameters = points[best]!.slice();
  return { value: f(parameters), parameters };
}

/** Points all as far from each other, the first of them the start. */
function simplexAt(start: Float64Array): Float64Array[] {
  const n = start.length;
  const near = (edge * (Math.sqrt(n + 1) - 1)) / (n * Math.SQRT2);
  const far = (edge * (Math.sqrt(n + 1) - 1 + n)) / (n * Math.SQRT2);
  return Array.from({ length: n + 1 }, (_, i) =>
    start.map((value, j) => (i === 0 ? value : value + (j === i - 1 ? far : near))),
  );
}
