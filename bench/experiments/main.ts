// npm run experiment -- ID... | all [--quick] [--seeds n] [--docs]: runs mechanisms with and
// without their policy, prints a line of JSON for each measure, and draws charts. Exit code 1 when
// a measure misses its target.

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Command, InvalidArgumentError } from 'commander';
import { commitOf } from '../support/commit.ts';
import { allExperiments } from './all.ts';
import { drawPictures } from './drawing.ts';
import { type Experiment, type Outcome, type Recorded, reaches } from './experiment.ts';
import { experimentsPage, readRecords, writeRecord } from './page.ts';
import { changedSince } from './record-age.ts';

const root = join(import.meta.dirname, '..', '..', '..');
const results = join(root, 'bench', 'results', 'experiments');

interface Options {
  quick?: boolean;
  seeds: number;
  docs?: boolean;
  regressions?: boolean;
  simulations?: boolean;
}

const program = new Command('experiment')
  .argument('[id...]', 'ids of mechanisms, or all', ['all'])
  .option('--quick', 'shorter runs')
  .option('--seeds <n>', 'runs of each simulation', count, 10)
  .option(
    '--regressions',
    'exit code 1 only for measures that the last full runs reached: those recorded as short are printed, not counted',
  )
  .option('--simulations', 'leave out those that measure a running server')
  .option('--docs', 'write docs/experiments.md from the last full runs, and run nothing')
  .action(async (ids: string[], options: Options) => {
    mkdirSync(results, { recursive: true });
    if (options.docs) await writePage();
    else {
      const all = chosen(ids);
      const simulated = all.filter(({ kind }) => kind !== 'LIVE');
      await runAll(options.simulations ? simulated : all, options);
    }
  });

function count(text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value <= 0) throw new InvalidArgumentError('a number above 0');
  return value;
}

function chosen(ids: readonly string[]): Experiment[] {
  if (ids.includes('all')) return [...allExperiments];
  return ids.map((id) => {
    const found = allExperiments.find((experiment) => experiment.id === id);
    if (found === undefined) {
      const known = allExperiments.map((experiment) => experiment.id).join(', ');
      throw new InvalidArgumentError(`no experiment ${id}; there are ${known}`);
    }
    return found;
  });
}

async function runAll(experiments: readonly Experiment[], options: Options): Promise<void> {
  let short = 0;
  const recordedShort = options.regressions ? shortInRecords() : new Set<string>();
  // Results of a short live run depend on other load on the machine: they are shown, not judged.
  let unjudged = 0;
  for (const experiment of experiments) {
    const startedAt = performance.now();
    const seeds = Array.from(
      { length: options.quick ? (experiment.quickSeeds ?? 3) : options.seeds },
      (_, i) => i + 1,
    );
    const running = experiment.run({
      quick: options.quick ?? false,
      seeds,
      progress: (text) => process.stderr.write(`\r\x1b[K${experiment.id}: ${text}`),
    });
    let outcome: Outcome;
    try {
      outcome = await running;
    } catch (error) {
      if (!options.quick || experiment.kind !== 'LIVE') throw error;
      console.error(`${experiment.id} could not be run:`, error);
      unjudged++;
      continue;
    }
    const seconds = (performance.now() - startedAt) / 1000;
    process.stderr.write(`\r\x1b[K${experiment.id}: ${seconds.toFixed(1)} s\n`);
    const fallen = tell(experiment, outcome, recordedShort);
    if (options.quick && experiment.kind === 'LIVE') unjudged += fallen;
    else short += fallen;
    // A quick run is a check; only figures of full runs are kept.
    if (options.quick) continue;
    const record: Recorded = {
      id: experiment.id,
      date: new Date().toISOString(),
      commit: commitOf(root),
      seconds,
      outcome,
    };
    writeRecord(results, record);
    writeFileSync(join(results, `${experiment.id}.svg`), drawPictures(experiment, outcome));
  }
  if (!options.quick) await writePage();
  if (unjudged > 0) {
    console.error(`${unjudged} measures of short live runs fall short, which is not counted`);
  }
  if (short > 0) {
    console.error(`${short} measures fall short`);
    process.exitCode = 1;
  }
}

/** Measures that fall short in the committed records of full runs, as `keyOf` names them. */
function shortInRecords(): Set<string> {
  const short = new Set<string>();
  for (const { id, outcome } of readRecords(results).values()) {
    for (const measure of outcome.measures) {
      if (!reaches(measure)) short.add(keyOf(id, measure.metric));
    }
  }
  return short;
}

/** Figures in a metric's text are sizes, which quick runs make smaller. */
function keyOf(id: string, metric: string): string {
  return `${id}: ${metric.replaceAll(/\d[\d,.]*/g, '#')}`;
}

/** Prints the measures of one experiment; returns how many fall short that are not in `recordedShort`. */
function tell(
  { id }: Experiment,
  { measures, explanation }: Outcome,
  recordedShort: ReadonlySet<string>,
): number {
  let short = 0;
  for (const measure of measures) {
    const pass = reaches(measure);
    if (!pass && !recordedShort.has(keyOf(id, measure.metric))) short++;
    const { metric, value, spread, threshold, without } = measure;
    console.log(JSON.stringify({ id, metric, value, spread, threshold, without, pass }));
  }
  if (explanation !== undefined && !measures.every(reaches)) console.log(`${id}: ${explanation}`);
  return short;
}

async function writePage(): Promise<void> {
  const records = readRecords(results);
  const changed = await changedSince(root, allExperiments, records);
  writeFileSync(
    join(root, 'docs', 'experiments.md'),
    experimentsPage(allExperiments, records, changed),
  );
}

await program.parseAsync();
