// What a read will cost is estimated before it is admitted (ABase, section 4.1): by the hits and sizes of the reads
// before it, and for a whole collection by the lengths seen before.

import { ReadHistory } from '../../request-units/estimate.ts';
import { TokenBucket } from '../../request-units/token-bucket.ts';
import { median } from '../support/statistics.ts';
import { CollectionHistory } from './baselines/abase-units.ts';
import type { Experiment, Line } from './experiment.ts';
import { overSeeds } from './over-seeds.ts';
import { Chance, Zipf } from './sim/chance.ts';
import { Simulation } from './sim/simulation.ts';

const unitBytes = 2048;
/** What a hit costs, of a unit. */
const hitUnits = 0.1;
/** Units a second that the disk can serve, which is the tenant's quota. */
const diskUnits = 1000;
/** Reads a second that the tenant asks for: at all times more than its quota. */
const offered = 15_000;
const serviceMs = 5;
const warmHit = 1;
const coldHit = 0.02;
/** Reads that the estimate looks back on. */
const windowReads = 100;

type Pricing = 'estimate' | 'cache-blind';

interface ColdRun {
  /** Bytes read from disk in each second, in units over `diskUnits`. */
  disk: number[];
  /** Mean error of the estimate from so many reads after the cache was lost on, %. */
  errorPercent: number;
}

/** The cache is lost half-way. A cache-blind price is that of a hit, which all reads were when the quota was set. */
function coldRun(pricing: Pricing, seconds: number, seed: number): ColdRun {
  const simulation = new Simulation();
  const chance = new Chance(seed);
  const bucket = new TokenBucket(diskUnits, diskUnits, 0);
  const history = new ReadHistory();
  const disk = Array.from({ length: seconds }, () => 0);
  const coldAt = (seconds / 2) * 1000;
  let [coldReads, errors, compared] = [0, 0, 0];
  const serve = (estimate: number): void => {
    const now = simulation.now();
    const isHit = chance.happens(now < coldAt ? warmHit : coldHit);
    const bytes = chance.uniform(0.5, 1.5) * unitBytes;
    if (!isHit && now < seconds * 1000) disk[Math.floor(now / 1000)]! += bytes / unitBytes;
    if (pricing === 'cache-blind') return;
    bucket.debit((isHit ? hitUnits : bytes / unitBytes) - estimate, now);
    history.observe(bytes, isHit);
    if (now < coldAt || ++coldReads <= windowReads) return;
    const expected = 1 - coldHit;
    errors += Math.abs(history.readUnits - expected) / expected;
    compared++;
  };
  const arrive = (): void => {
    const estimate = pricing === 'estimate' ? history.readUnits : hitUnits;
    if (bucket.take(estimate, simulation.now())) {
      simulation.after(serviceMs * chance.uniform(0.7, 1.3), () => serve(estimate));
    }
    simulation.after(chance.exponential(offered / 1000), arrive);
  };
  arrive();
  simulation.runUntil(seconds * 1000);
  return {
    disk: disk.map((units) => units / diskUnits),
    errorPercent: compared === 0 ? 0 : (100 * errors) / compared,
  };
}

function diskLines(label: string, { disk }: ColdRun): Line[] {
  return [{ label, points: disk.map((load, second) => [second, load] as const) }];
}

const highest = ({ disk }: ColdRun): number => Math.max(...disk);

export const readEstimate: Experiment = {
  id: 'AB-4.1-read',
  title: 'A read costs what its expected misses read from disk',
  kind: 'SIM',
  source: 'ABase, section 4.1; the paper has no figure',
  setup:
    'A tenant asks for 15,000 reads of 1 to 3 kB a second, all of them hits; its quota is what the disk can read, and a hit ' +
    'costs a tenth of a unit. Half-way its cache is lost, and 2 % are hits. A read is admitted by its estimate, and charged ' +
    'what it really read 3.5 to 6.5 ms later. Without the mechanism a read has the price at which the quota was set, that of a hit.',
  run({ seeds, quick, progress }) {
    const seconds = quick ? 10 : 60;
    const runs = seeds.map((seed) => {
      progress(`seed ${seed}`);
      return {
        with_: coldRun('estimate', seconds, seed),
        without: coldRun('cache-blind', seconds, seed),
      };
    });
    const [first] = runs;
    return {
      measures: [
        overSeeds(
          runs.map(({ with_ }) => with_.errorPercent),
          {
            metric: 'error of the estimate from 100 reads after the cache was lost, mean, %',
            threshold: 10,
            better: 'lower',
          },
        ),
        overSeeds(
          runs.map(({ with_ }) => highest(with_)),
          {
            metric: 'disk load in the busiest second, of capacity',
            threshold: 1.05,
            better: 'lower',
          },
          runs.map(({ without }) => highest(without)),
        ),
        overSeeds(
          runs.map(({ without }) => highest(without)),
          { metric: 'the same by a cache-blind price', threshold: 2, better: 'higher' },
        ),
      ],
      xLabel: 'second',
      yLabel: 'disk load, of capacity',
      before: { title: 'cache-blind', lines: diskLines('disk', first!.without) },
      after: { title: 'by expected hits', lines: diskLines('disk', first!.with_) },
    };
  },
};

const keys = 1000;
const exponent = 0.9;
const callsBefore = 100;
const itemBytes = 64;
/** By which a collection grows or shrinks between two calls, as the deviation of a logarithm. */
const drift = 0.05;
/** Tokens of a tenant that is short of them, and fields of the collection that it reads. */
const tokens = 100;
const manyFields = 1_000_000;

interface LengthRun {
  /** Relative errors of the calls after the first hundred. */
  errors: number[];
  errorsTypical: number[];
  /** The median error of each fifty calls, from the first on. */
  course: [calls: number, error: number][];
  /** Of 100 reads of a million fields by a tenant short of tokens, how many were walked. */
  walked: number;
}

function lengthRun(calls: number, seed: number): LengthRun {
  const chance = new Chance(seed);
  const zipf = new Zipf(keys, exponent, chance);
  const lengths = Array.from({ length: keys }, () => Math.ceil(chance.lognormal(Math.log(100), 1)));
  const [history, typical] = [new CollectionHistory(), new CollectionHistory()];
  const run: LengthRun = { errors: [], errorsTypical: [], course: [], walked: 0 };
  let recent: number[] = [];
  for (let call = 0; call < calls; call++) {
    const key = zipf.next();
    const length = Math.max(1, Math.round(lengths[key]! * Math.exp(chance.normal(0, drift))));
    lengths[key] = length;
    const error = Math.abs(history.expectedLength(key) - length) / length;
    recent.push(error);
    if (call >= callsBefore) {
      run.errors.push(error);
      run.errorsTypical.push(Math.abs(typical.expectedLength(keys + call) - length) / length);
    }
    history.observe(key, length, length * itemBytes);
    typical.observe(key, length, length * itemBytes);
    if (recent.length < 50) continue;
    run.course.push([call + 1, 100 * median(recent)]);
    recent = [];
  }
  run.walked = walkedWhenShort(history);
  return run;
}

/** The first stage finds the length, for one unit; the second is taken at what that length costs. */
function walkedWhenShort(history: CollectionHistory): number {
  const bucket = new TokenBucket(tokens, tokens, 0);
  const key = keys + 1;
  let walked = 0;
  for (let read = 0; read < 100; read++) {
    const now = read * 1000;
    if (!bucket.take(1, now)) continue;
    history.observe(key, manyFields, manyFields * history.expectedItemBytes);
    const units = (history.expectedLength(key) * history.expectedItemBytes) / unitBytes;
    if (bucket.take(units, now)) walked++;
  }
  return walked;
}

export const collectionEstimate: Experiment = {
  id: 'AB-4.1-complex',
  title: 'A read of a collection costs by the length it is expected to have',
  kind: 'SIM',
  source: 'ABase, section 4.1; the paper has no figure',
  setup:
    '1,000 hashes with lognormal lengths (σ 1, median 100), asked for by Zipf .9; between two calls a length changes by 5 %. ' +
    'The estimate is the length of the same hash when it was last walked, or else the typical one; without the mechanism it is ' +
    'always the typical one. And: a tenant with 100 units a second reads a hash of a million fields, in two stages. Admission of ' +
    'the server does not ask for this estimate: it debits what a command has cost.',
  run({ seeds, quick, progress }) {
    const calls = quick ? 500 : 5000;
    const runs = seeds.map((seed) => {
      progress(`seed ${seed}`);
      return lengthRun(calls, seed);
    });
    const medians = (of: (run: LengthRun) => number[]): number[] =>
      runs.map((run) => 100 * median(of(run)));
    const course = runs[0]!.course;
    const typical = 100 * median(runs[0]!.errorsTypical);
    return {
      measures: [
        overSeeds(
          medians(({ errors }) => errors),
          {
            metric: 'median error of the length from the 101st call on, %',
            threshold: 20,
            better: 'lower',
          },
          medians(({ errorsTypical }) => errorsTypical),
        ),
        overSeeds(
          runs.map(({ walked }) => walked),
          {
            metric: 'hashes of a million fields that a tenant short of tokens had walked, of 100',
            threshold: 0,
            better: 'lower',
          },
        ),
      ],
      xLabel: 'calls',
      yLabel: 'median error, %',
      before: {
        title: 'typical length alone',
        lines: [{ label: 'error', points: course.map(([call]) => [call, typical] as const) }],
      },
      after: { title: 'by hash', lines: [{ label: 'error', points: course }] },
    };
  },
};
