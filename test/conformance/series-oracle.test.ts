// Random operations on an engine of time series and on the toy, which must always answer the same, with
// flushes, merges, reopens and moves to another engine in between. A failure prints its seed; POLYROW_SEED
// runs that one, POLYROW_FULL=1 many.

import assert from 'node:assert/strict';
import { describe, expect, test } from 'vitest';
import { foldsOf } from '../../engines/series-conformance/fold.ts';
import { SeriesTrial, type SeriesSubject } from '../../engines/series-conformance/trial.ts';
import { FaultyDisk } from '../../storage-node/disk/faulty-disk.ts';
import { Random } from '../support/random.ts';
import { seedFrom } from '../support/seed.ts';
import {
  databases,
  describeOperation,
  fields,
  firstSteps,
  measurements,
  perform,
  policies,
  SeriesSteps,
  type Operation,
} from './series-random-steps.ts';
import { seriesToy, tsmWith } from './series-subjects.ts';

const full = process.env['POLYROW_FULL'] === '1';
const given = process.env['POLYROW_SEED'];
const firstSeed = seedFrom('POLYROW_SEED');
const seeds = given !== undefined ? 1 : full ? 200 : 2;
const operationsPerSeed = full ? 2000 : 500;
const recentSteps = 30;

/** How often after a step, by chance. */
const often = {
  read: 0.5,
  background: 0.2,
  settle: 0.02,
  checkpoint: 0.03,
  reopen: 0.03,
  discard: 0.05,
  move: 0.005,
  check: 0.01,
};

const disk = new FaultyDisk({ rng: new Random(1) });
const subjects: { name: string; subject: SeriesSubject }[] = [
  { name: 'tsm with ample memory', subject: tsmWith({ disk }) },
  {
    name: 'tsm with little memory',
    subject: tsmWith({ disk, headBytes: 16 * 1024, coldAfterMs: 0 }),
  },
  { name: 'tsm with no memory', subject: tsmWith({ disk, headBytes: 1, coldAfterMs: 100 }) },
];

class Comparison {
  readonly #random: Random;
  readonly #steps: SeriesSteps;
  readonly #toy: SeriesTrial;
  #trial: SeriesTrial;
  readonly #others: SeriesTrial[] = [];
  readonly recent: string[] = [];

  constructor(seed: number, trial: SeriesTrial, toy: SeriesTrial) {
    this.#random = new Random(seed);
    this.#steps = new SeriesSteps(this.#random, seed % 2 === 1);
    this.#trial = trial;
    this.#toy = toy;
  }

  async run(operations: number): Promise<void> {
    for (const step of firstSteps) await this.#perform(step);
    for (let done = 0; done < operations; done++) {
      for (const step of this.#steps.next()) await this.#perform(step);
      await this.#between();
    }
    this.#check();
    await this.#reach('settle');
    await this.#reach('reopen');
    this.#check();
  }

  async #perform(step: Operation): Promise<void> {
    this.#note(describeOperation(step));
    const outcome = await perform(step, this.#trial);
    assert.deepEqual(outcome, await perform(step, this.#toy), describeOperation(step));
  }

  #note(text: string): void {
    this.recent.push(text);
    if (this.recent.length > recentSteps) this.recent.shift();
  }

  async #between(): Promise<void> {
    const random = this.#random;
    if (random.chance(often.background)) this.#trial.engine.background(random.below(4));
    for (const what of ['settle', 'checkpoint', 'reopen', 'discard', 'move'] as const) {
      if (random.chance(often[what])) await this.#reach(what);
    }
    if (random.chance(often.read)) this.#read();
    if (random.chance(often.check)) this.#check();
  }

  async #reach(what: 'settle' | 'checkpoint' | 'reopen' | 'discard' | 'move'): Promise<void> {
    this.#note(what);
    switch (what) {
      case 'discard':
        for (const step of this.#steps.next()) {
          if (step.kind === 'delete') {
            const selection = { database: 'db', ...step.selected };
            const { engine } = this.#trial;
            for (const part of engine.deletion(step.of, selection)) {
              if (part !== undefined) this.#trial.discarded(part);
            }
          }
        }
        break;
      case 'move': {
        const other = await this.#trial.another();
        await other.take(this.#trial.engine.exportSnapshot(), this.#trial.index);
        this.#others.push(this.#trial);
        this.#trial = other;
        break;
      }
      default:
        await this.#trial[what]();
    }
  }

  #read(): void {
    const options = this.#steps.read();
    this.#note(
      `read ${JSON.stringify(options, (_, v: unknown) => (typeof v === 'bigint' ? `${v}` : v))}`,
    );
    const expected = this.#toy.read(options);
    assert.deepEqual(this.#trial.read(options), expected);
    if (options.rowsPerSeries !== undefined || this.#random.chance(0.7)) return;
    // Sums of these have no order, and neither overflow.
    const exact = { ...options, fields: ['i', 'b', 's'] };
    const width = this.#random.pick([0n, 3_600_000_000_000n, 10n ** 12n * 77n]);
    const { folds } = this.#trial.view.fold(width, exact);
    assert.deepEqual(folds, foldsOf(this.#toy.read(exact), width));
  }

  /** All there is. */
  #check(): void {
    this.#note('check');
    for (const database of databases) {
      const [mine, toys] = [this.#trial.view, this.#toy.view];
      assert.deepEqual(mine.engine.database(database), toys.engine.database(database));
      assert.deepEqual(mine.seriesKeys({ database }), toys.seriesKeys({ database }));
      assert.deepEqual(mine.measurements({ database }), toys.measurements({ database }));
      for (const measurement of measurements) {
        for (const tag of ['host', 'region']) {
          const selected = { database, measurement };
          assert.deepEqual(mine.tagValues(tag, selected), toys.tagValues(tag, selected));
        }
        for (const retentionPolicy of policies) {
          const options = { database, measurement, retentionPolicy, fields };
          assert.deepEqual(mine.read(options), toys.read(options));
        }
      }
    }
  }
}

async function runSeed(seed: number, subject: SeriesSubject): Promise<void> {
  const trial = await SeriesTrial.open(subject);
  const toy = await SeriesTrial.open(seriesToy);
  const comparison = new Comparison(seed, trial, toy);
  try {
    await comparison.run(operationsPerSeed);
  } catch (error) {
    const steps = comparison.recent.join('\n  ');
    throw new Error(`POLYROW_SEED=${seed}; the last steps:\n  ${steps}\n${String(error)}`, {
      cause: error,
    });
  } finally {
    await trial.close();
    await toy.close();
  }
}

describe.each(subjects)('random operations on $name', ({ subject }) => {
  for (let i = 0; i < seeds; i++) {
    const seed = firstSeed + i;
    test(`seed ${seed}`, { timeout: 600_000 }, () => runSeed(seed, subject));
  }
});

test('a seed gives the same operations each time', () => {
  const texts = (seed: number): string[] => {
    const steps = new SeriesSteps(new Random(seed), false);
    return Array.from({ length: 200 }, () => steps.next().map(describeOperation)).flat();
  };
  expect(texts(7)).toEqual(texts(7));
  expect(texts(7)).not.toEqual(texts(8));
});
