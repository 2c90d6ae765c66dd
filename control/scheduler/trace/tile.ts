// A short recording made long: its points repeated end to end, so that point t is recorded point t mod N.

import type { Trace } from './trace.ts';

export function tiled(trace: Trace, seconds: number): Trace {
  const { points, pointSeconds } = trace.header;
  const length = Math.ceil(seconds / pointSeconds);
  if (length <= points) return trace;
  return {
    ...trace,
    header: { ...trace.header, points: length },
    series: trace.series.map(({ id, values }) => ({
      id,
      values: Object.fromEntries(
        Object.entries(values).map(([name, all]) => [
          name,
          Float32Array.from({ length }, (_, t) => all[t % points]!),
        ]),
      ),
    })),
  };
}
