// Plans of policies, as text.

import type { ClusterFigures, Replay } from '../../control/scheduler/simulation/replay.ts';
import { type Column, grid } from './grid.ts';
import { formatBytes } from './values.ts';

/** More steps than this are not listed; JSON has them all. */
const mostSteps = 40;

export function describedReplay(one: Replay): string {
  const { policy, steps, planned, before, after, cost } = one;
  const listed = steps
    .slice(0, mostSteps)
    .flatMap(({ text, reason, figures }, i) => [
      `${i + 1}. ${text}`,
      `   because ${reason}`,
      ...figures.map(
        (figure) => `   ${figure.name}: ${short(figure.before)} -> ${short(figure.after)}`,
      ),
    ]);
  const rest = steps.length - mostSteps;
  return [
    steps.length === 0
      ? `${policy} would do nothing${one.whyIdle === undefined ? '' : `: ${one.whyIdle}`}.`
      : `${policy} would take ${steps.length === 1 ? 'one step' : `${steps.length} steps`}:`,
    ...(listed.length === 0 ? [] : ['', ...listed]),
    ...(rest > 0 ? [`… and ${rest} more; --json has them all`] : []),
    '',
    copied(cost),
    'Judged on another draw of the load than it was planned on:',
    ...figureLines(before, after),
    `  (on the load that was planned on, before: ${figuresText(planned)})`,
    ...(one.wouldStop
      ? ['After a tenth of the steps the cluster would be worse off: a live run would stop there.']
      : []),
  ].join('\n');
}

function copied({ replicas, bytes, seconds }: Replay['cost']): string {
  if (replicas === 0) return 'It copies nothing.';
  const size =
    bytes === 0
      ? 'whose sizes are not in the recording'
      : `${formatBytes(bytes)}, in ${Math.ceil(seconds / 60)} min at 50 MB/s and one move of a pod at a time`;
  return `It copies ${replicas === 1 ? 'one replica' : `${replicas} replicas`}, ${size}.`;
}

function figureLines(before: ClusterFigures, after: ClusterFigures): string[] {
  const line = (name: string, of: (one: ClusterFigures) => string): string =>
    `  ${name.padEnd(42)} ${of(before)} -> ${of(after)}`;
  return [
    line('points of pods above 60 % of their limit', ({ violations }) => String(violations)),
    line('pods that ever are', ({ podsAbove, pods }) => `${podsAbove} of ${pods}`),
    line('anomalous points of pods', ({ anomalies }) => String(anomalies)),
    line('deviation of pods from their mean', ({ imbalance }) => percent(imbalance)),
    line('highest use of a pod', ({ peak }) => percent(peak)),
    ...(before.throttled === undefined
      ? []
      : [line('points at which tenants are above their quota', (one) => String(one.throttled))]),
    `  (all of ${before.dimension}, the dimension that is used most)`,
    ...(after.podsAbove === after.pods
      ? [
          'Every pod is above 60 % at times: load has nowhere to go. The cluster needs more pods, or larger ones.',
        ]
      : []),
  ];
}

export async function comparedReplays(replays: readonly Replay[]): Promise<string> {
  const before = replays[0]!.before;
  const switches = ({ steps }: Replay): number =>
    steps.filter(({ kind }) => kind === 'transfer-leader').length;
  const number = (title: string, value: (one: Replay) => string | number): Column<Replay> => ({
    title,
    value,
    right: true,
  });
  const splits = ({ steps }: Replay): number => steps.filter(({ kind }) => kind === 'split').length;
  const columns: Column<Replay>[] = [
    { title: 'policy', value: ({ policy }) => policy },
    number('steps', ({ steps }) => steps.length),
    number('new leaders', switches),
    ...(replays.some((one) => splits(one) > 0) ? [number('splits', splits)] : []),
    number('replicas copied', ({ cost }) => cost.replicas),
    number('bytes', ({ cost }) =>
      cost.replicas > 0 && cost.bytes === 0 ? 'unknown' : formatBytes(cost.bytes),
    ),
    number('above 60 %', ({ after }) => after.violations),
    number('anomalous', ({ after }) => after.anomalies),
    number('deviation', ({ after }) => percent(after.imbalance)),
    number('highest use', ({ after }) => percent(after.peak)),
    ...(before.throttled === undefined
      ? []
      : [number('throttled', ({ after }) => after.throttled ?? 0)]),
    number('planned in', ({ planningMs }) => `${Math.round(planningMs)} ms`),
  ];
  return [
    await grid(columns, replays),
    '',
    'above 60 %: points of pods above 60 % of their limit. anomalous: points far above the mean of all pods, or in a',
    'run above 60 %. deviation: of pods from their mean. Judged on another draw of the load than was planned on.',
    ...(before.throttled === undefined
      ? []
      : [
          `throttled: points at which a tenant asks for more than its quota; before, ${before.throttled}.`,
        ]),
    `Before: ${figuresText(before)}, all of ${before.dimension}.`,
    `On the load that was planned on, before: ${figuresText(replays[0]!.planned)}.`,
    ...idleLines(replays),
  ].join('\n');
}

function figuresText({ violations, anomalies, imbalance, peak }: ClusterFigures): string {
  return (
    `${violations} above 60 %, ${anomalies} anomalous, deviation ${percent(imbalance)}, ` +
    `highest use ${percent(peak)}`
  );
}

function idleLines(replays: readonly Replay[]): string[] {
  const idle = replays.filter(({ steps, whyIdle }) => steps.length === 0 && whyIdle !== undefined);
  if (idle.length === 0) return [];
  const width = Math.max(...idle.map(({ policy }) => policy.length));
  return [
    '',
    'Policies that would do nothing, and why:',
    ...idle.map(({ policy, whyIdle }) => `  ${policy.padEnd(width)}  ${whyIdle}`),
  ];
}

function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`;
}

function short(value: number): string {
  return String(Number(value.toPrecision(4)));
}
