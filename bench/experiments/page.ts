// docs/experiments.md: every experiment with the paper's figure, ours and the picture.

import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Experiment, type Measure, type Outcome, reaches } from './experiment.ts';

/** What a full run came to. */
export interface Recorded {
  id: string;
  date: string;
  /** Of the tree that was run, with `+` behind it when files had been changed since; records of old have none. */
  commit?: string;
  seconds: number;
  outcome: Outcome;
}

export function writeRecord(directory: string, record: Recorded): void {
  const path = join(directory, `${record.id}.json`);
  // The lines of the pictures are in the SVG beside it.
  const { before, after, ...outcome } = record.outcome;
  const kept = { ...record, outcome: { ...outcome, titles: [before.title, after.title] } };
  writeFileSync(path, `${JSON.stringify(kept, null, 2)}\n`);
}

export function readRecords(directory: string): Map<string, Recorded> {
  const records = new Map<string, Recorded>();
  if (!existsSync(directory)) return records;
  for (const file of readdirSync(directory).filter((name) => name.endsWith('.json'))) {
    const record = JSON.parse(readFileSync(join(directory, file), 'utf8')) as Recorded;
    records.set(record.id, record);
  }
  return records;
}

export function experimentsPage(
  experiments: readonly Experiment[],
  records: ReadonlyMap<string, Recorded>,
): string {
  const parts = [
    '# Experiments',
    'What the mechanisms do, each run with and without its policy and held against the figure of the paper it comes\n' +
      'from, or one of ours where the paper has none. `npm run experiment -- ID...` runs some, `npm run experiment -- all`\n' +
      'all of them (`--quick` in minutes), and both print a line of JSON for each measure. SIM runs the policy code on a\n' +
      'simulated clock with seeded chance, so that it gives the same figures anywhere; LIVE runs real processes on the\n' +
      'machine it is on. This page is written by `npm run experiment -- --docs` from the last full run of each.',
    'Experiments marked `not run` have no record of a full run. What waits for a live cluster is in\n' +
      '[control/scheduler](../control/scheduler/README.md).',
    'Claims withdrawn. CR-kvstore-tokens, CR-ticks and AB-4.3-r2 (write tokens and a write ceiling of LSM stores): in the\n' +
      'server, with four clients that write 64 kB values, p99 of reads was 31 to 40 ms with them and 29 to 32 ms without,\n' +
      'and a seventh fewer writes were done, as LevelDB compacts on a thread of its own and bounds its level 0 by itself;\n' +
      'they are removed. CR-heaps, CR-epoch-lifo, CR-inversion, CR-layers, CR-order, CR-cpu-slots and AB-4.3-r3 simulated\n' +
      'queues with slots and locks that a server of one thread does not have: its CPU scheduler has time slices in place of\n' +
      'slots, no lock outlives a tick but that of a long command, and maintenance is a tenant of small weight. CR-epoch-lifo\n' +
      'had no gain over LIFO by arrival. CR-overhead measured an executor made for it; `npm run bench -- admission` measures\n' +
      'what admission costs the server.',
    summary(experiments, records),
    ...experiments.map((experiment) => section(experiment, records.get(experiment.id))),
  ];
  return `${parts.join('\n\n')}\n`;
}

function summary(
  experiments: readonly Experiment[],
  records: ReadonlyMap<string, Recorded>,
): string {
  const rows = experiments.map(({ id, title, kind }) => {
    const measures = records.get(id)?.outcome.measures;
    const reached =
      measures === undefined
        ? 'not run'
        : `${measures.filter(reaches).length} of ${measures.length}`;
    return `| [${id}](#${anchor(id)}) | ${title} | ${kind} | ${reached} |`;
  });
  return ['| id | mechanism | kind | measures reached |', '| -- | -- | -- | -- |', ...rows].join(
    '\n',
  );
}

function section({ id, title, source, setup }: Experiment, record: Recorded | undefined): string {
  const lines = [`## ${id}`, `${title}. Source: ${source}.`, setup];
  if (record === undefined) return lines.join('\n\n');
  const { measures, explanation } = record.outcome;
  lines.push(
    [
      '| measure | without | with | must be | paper | |',
      '| -- | -- | -- | -- | -- | -- |',
      ...measures.map(row),
    ].join('\n'),
  );
  if (explanation !== undefined) lines.push(explanation);
  if (record.commit !== undefined) {
    lines.push(`Recorded on ${record.date.slice(0, 10)} at commit ${record.commit}.`);
  }
  lines.push(`![before and after](../bench/results/experiments/${id}.svg)`);
  return lines.join('\n\n');
}

function row(measure: Measure): string {
  const { metric, value, spread, threshold, better, without, paper } = measure;
  const sign = better === 'higher' ? '≥' : '≤';
  const cells = [
    metric,
    without === undefined ? '' : short(without),
    spread === undefined
      ? short(value)
      : `${short(value)} (${short(spread[0])} to ${short(spread[1])})`,
    `${sign} ${short(threshold)}`,
    paper ?? '',
    reaches(measure) ? '' : '**short**',
  ];
  return `| ${cells.join(' | ')} |`;
}

/** Four digits that count. */
function short(value: number): string {
  if (!Number.isFinite(value)) return '-';
  return Math.abs(value) >= 1000
    ? Math.round(value).toLocaleString('en')
    : String(Number(value.toPrecision(4)));
}

function anchor(id: string): string {
  return id.toLowerCase().replaceAll(/[^a-z0-9-]/g, '');
}
