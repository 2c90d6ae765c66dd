// Random operations on each engine, against the oracle, with reopens and moves from engine to engine
// in between. A failure prints its seed; POLYROW_SEED runs that one, POLYROW_FULL=1 a million operations.

import { describe, expect, test } from 'vitest';
import { assertSameContents, decodeSnapshot } from '../../engines/conformance/contents.ts';
import { transfer, variedContents } from '../../engines/conformance/snapshot-cases.ts';
import { Trial, type Subject } from '../../engines/conformance/trial.ts';
import { Oracle } from './oracle.ts';
import { randomOf, runOperations, StepMaker, tableCount } from './random-steps.ts';
import { engines, toys, type NamedSubject } from './subjects.ts';
import { seedFrom } from '../support/seed.ts';

const full = process.env['POLYROW_FULL'] === '1';
const operations = full ? 1_000_000 : 20_000;
// A new engine, oracle and seed after so many, so that a failure is reached again quickly.
const operationsPerSeed = full ? 20_000 : 5_000;
const firstSeed = seedFrom('POLYROW_SEED');
const seeds = process.env['POLYROW_SEED'] === undefined ? operations / operationsPerSeed : 1;

/** How often after a step, by chance. */
const often = { rollback: 0.02, check: 0.003, reopen: 0.002, move: 0.002, background: 0.02 };

const recentSteps = 25;

async function runSeed(seed: number, subject: Subject, partner: Subject): Promise<void> {
  const random = randomOf(seed);
  const maker = new StepMaker(new Oracle(tableCount), random);
  const recent: string[] = [];
  const note = (text: string): void => {
    recent.push(text);
    if (recent.length > recentSteps) recent.shift();
  };
  let trial = await Trial.open(subject);
  try {
    for (let done = 0; done < operationsPerSeed; ) {
      const chance = random();
      const before = chance < often.rollback ? maker.oracle.copy() : undefined;
      const step = maker.step();
      done += step.length;
      const undo = before !== undefined && trial.subject.supports.rollback;
      note(step.map(({ text }) => text).join('; ') + (undo ? ' (undone)' : ''));
      if (undo) {
        await trial.undone((_, engine) => runOperations(step, engine));
        maker.oracle = before;
      } else {
        await trial.run((_, engine) => runOperations(step, engine));
      }
      if (random() < often.background) trial.engine.background(1);
      if (random() < often.check) {
        note('check');
        await trial.check(maker.oracle.contents());
      }
      if (random() < often.reopen && trial.subject.supports.reopen) {
        note('reopen');
        await trial.checkpointAndReopen();
      }
      if (random() < often.move) {
        const to = await Trial.open(trial.subject === subject ? partner : subject);
        note(`move to ${to.subject.model}`);
        await transfer(trial, to);
        await trial.close();
        trial = to;
      }
    }
    note('last check');
    await trial.check(maker.oracle.contents());
  } catch (error) {
    const steps = recent.join('\n  ');
    throw new Error(`POLYROW_SEED=${seed} on ${trial.subject.model}; the last steps:\n  ${steps}`, {
      cause: error,
    });
  } finally {
    await trial.close();
  }
}

const subjects: readonly NamedSubject[] = [toys[1]!, ...engines];

/** Where rows move to and back from. */
function partnerOf(name: string): Subject {
  const partner = name === 'memory' ? engines[1]! : engines[0]!;
  return partner.subject;
}

describe.each(subjects)('random operations on $name', ({ name, subject }) => {
  for (let i = 0; i < seeds; i++) {
    const seed = firstSeed + i;
    test(`seed ${seed}`, { timeout: 600_000 }, () => runSeed(seed, subject, partnerOf(name)));
  }
});

describe('moves between engines', () => {
  const all = [...toys, ...engines];
  const pairs = all.flatMap((from) => all.map((to) => ({ from, to })));
  test.each(pairs)('$from.name to $to.name', async ({ from, to }) => {
    const source = await Trial.open(from.subject);
    const target = await Trial.open(to.subject);
    try {
      await source.fill(variedContents);
      await transfer(source, target);
      const exported = await decodeSnapshot(source.engine.exportSnapshot());
      const arrived = await decodeSnapshot(target.engine.exportSnapshot());
      assertSameContents(exported, variedContents, 'what is sent');
      assertSameContents(arrived, exported, 'what arrives');
      assertSameContents(await target.contents(), variedContents, 'what is read');
      expect(target.engine.appliedIndex).toBe(source.engine.appliedIndex);
    } finally {
      await source.close();
      await target.close();
    }
  });
});

test('a seed gives the same operations each time', () => {
  const texts = (seed: number): string[] => {
    const maker = new StepMaker(new Oracle(tableCount), randomOf(seed));
    return Array.from({ length: 500 }, () => maker.step().map(({ text }) => text)).flat();
  };
  expect(texts(7)).toEqual(texts(7));
  expect(texts(7)).not.toEqual(texts(8));
});
