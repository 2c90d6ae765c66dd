// Another draw of a recorded load, to judge a plan on. A recording is one draw only. Its noise is
// estimated as the difference of each point from the mean of it and its two neighbours; each value
// is drawn again around that mean, with a deviation as large.

import type { ClusterModel } from '../cluster-model.ts';
import { Chance } from './chance.ts';

export function redrawn(model: ClusterModel, seed: number): ClusterModel {
  const { points } = model;
  const chance = new Chance(seed);
  const rows = new Float32Array(model.rows.length);
  const smooth = new Float64Array(points);
  for (let from = 0; from < rows.length; from += points) {
    let squares = 0;
    for (let t = 0; t < points; t++) {
      const [first, last] = [Math.max(0, t - 1), Math.min(points - 1, t + 1)];
      let sum = 0;
      for (let i = first; i <= last; i++) sum += model.rows[from + i]!;
      smooth[t] = sum / (last - first + 1);
      squares += (model.rows[from + t]! - smooth[t]!) ** 2;
    }
    // The mean of three has a third of the noise of each in it.
    const deviation = Math.sqrt((squares / points) * 1.5);
    for (let t = 0; t < points; t++) {
      rows[from + t] = Math.max(0, smooth[t]! + deviation * chance.normal());
    }
  }
  return { ...model, rows };
}
