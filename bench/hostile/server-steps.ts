// What the attacked server's own step watchdog saw: the cause of a gap.

import type { Target } from './attack.ts';

/** As `polyrow slowlog --steps` shows it. */
export interface ServerStep {
  plane: string;
  /** The command, request or background work. */
  text: string;
  durationMs: number;
  /** The part of it spent in garbage collection. */
  collectionMs: number;
  /** The part of it without a processor, at least. */
  preemptedMs: number;
  cause: string;
}

interface StepView {
  at: number;
  plane: string;
  text: string;
  durationMicros: number;
  collectionMicros: number;
  preemptedMicros: number;
  cause: string;
}

const mostSteps = 1000;

/** The longest steps that ended since a moment, in Unix milliseconds, by the processor time they had. */
export async function longestSteps(
  { admin, adminToken }: Target,
  sinceMs: number,
  limit: number,
): Promise<ServerStep[]> {
  const response = await fetch(`${admin}/v1/steps?limit=${mostSteps}`, {
    headers: { authorization: `Bearer ${adminToken}` },
  });
  if (!response.ok) throw new Error(`/v1/steps: ${await response.text()}`);
  const { steps } = (await response.json()) as { steps: StepView[] };
  return steps
    .filter(({ at }) => at >= sinceMs)
    .sort((a, b) => ranMicros(b) - ranMicros(a))
    .slice(0, limit)
    .map(({ plane, text, durationMicros, collectionMicros, preemptedMicros, cause }) => ({
      plane,
      text: text.slice(0, 80),
      durationMs: Math.round(durationMicros / 1000),
      collectionMs: Math.round(collectionMicros / 1000),
      preemptedMs: Math.round(preemptedMicros / 1000),
      cause,
    }));
}

function ranMicros({ durationMicros, preemptedMicros }: StepView): number {
  return durationMicros - preemptedMicros;
}
