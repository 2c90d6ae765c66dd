// Output of the noisy-neighbour demonstration: a line a second, then the result.

import type { Check, NoisyNeighbour, Phase, PhaseFigures } from '../demo/noisy-neighbour.ts';
import type { Sample } from '../demo/neighbours.ts';
import { percentile } from '../demo/percentiles.ts';
import { type Column, grid } from './grid.ts';
import { formatNumber } from './values.ts';

const titles: Readonly<Record<Phase, string>> = {
  alone: '1. B alone',
  'no limits': '2. A floods without limits',
  limits: '3. A floods with a limit',
};

export function phaseTitle(phase: Phase, quota: number): string {
  const limit = phase === 'limits' ? ` of ${formatNumber(quota)} RU/s, a 20th of its demand` : '';
  return `\n${titles[phase]}${limit}\n${head}`;
}

const widths = [10, 10, 9, 9, 10, 8, 10, 10, 10];
const head = `${'A:'.padStart(3)}${line(['offered', 'served', 'waiting', 'refused', 'RU/s', 'quota']).slice(3)}   B:${line(['req/s', 'p50 ms', 'p99 ms'], 6).slice(2)}`;

function line(words: readonly string[], from = 0): string {
  return words.map((word, i) => word.padStart(widths[from + i]!)).join('');
}

export function secondLine(phase: Phase, sample: Sample, quota: number): string {
  const { latencies } = sample;
  const number = (value: number): string => formatNumber(value < 1000 ? value : Math.round(value));
  const whole = (value: number): string => formatNumber(Math.round(value));
  const a =
    phase === 'alone'
      ? ['', '', '', '', '', '']
      : [
          whole(sample.offered),
          whole(sample.served),
          whole(sample.waiting),
          whole(sample.refused),
          whole(sample.ru),
          `${Math.round((100 * sample.ru) / quota)} %`,
        ];
  const b = [
    whole(sample.rate),
    ...[0.5, 0.99].map((share) => number(percentile(latencies, share))),
  ];
  return `${line(a)}   ${line(b, 6)}`;
}

export async function outcomeText({ about, phases, checks }: NoisyNeighbour): Promise<string> {
  const lines = ['', `${about}.`, '', await grid(phaseColumns, phases), ''];
  for (const check of checks) lines.push(`${check.pass ? 'ok   ' : 'SHORT'}  ${checkText(check)}`);
  const failure = phases.find((phase) => phase.failure !== undefined)?.failure;
  if (failure !== undefined) lines.push(`what failed said: ${failure}`);
  return lines.join('\n');
}

function checkText({ what, value, least, most }: Check): string {
  const [low, high] = [formatNumber(least), formatNumber(most)];
  let must = `at most ${high}`;
  if (most === Infinity) must = `at least ${low}`;
  else if (least > 0) must = `${low} to ${high}`;
  return `${what}: ${formatNumber(value)} (${must})`;
}

function column(title: string, of: (figures: PhaseFigures) => number): Column<PhaseFigures> {
  const value = (figures: PhaseFigures): string => {
    const found = of(figures);
    return formatNumber(found < 100 ? found : Math.round(found));
  };
  return { title, value, right: true };
}

const phaseColumns: Column<PhaseFigures>[] = [
  { title: 'a second', value: ({ phase }) => titles[phase] },
  column('A offered', ({ offered }) => offered),
  column('served', ({ served }) => served),
  column('refused', ({ refused }) => refused),
  column('RU', ({ ru }) => ru),
  column('B served', ({ rate }) => rate),
  column('p50 ms', ({ p50 }) => p50),
  column('p99 ms', ({ p99 }) => p99),
  column('usual p99', ({ usualP99 }) => usualP99),
  column('not served', ({ notServed }) => notServed),
];
