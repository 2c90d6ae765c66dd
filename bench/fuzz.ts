// npm run bench -- fuzz: random inputs to every parser, by time. A target fails when the cost of a byte grows with the
// length of its input, or when an input causes an error that no client should see.

import Table from 'cli-table3';
import { costFuzz, type CostReport } from './hostile/cost-fuzz.ts';
import { type FuzzTarget, fuzzTargets } from './hostile/fuzz-targets.ts';
import { machine } from './support/report.ts';

interface FuzzOptions {
  /** Inputs of all targets together. */
  inputs: number;
  seed: number;
  /** Names of targets; all if empty. */
  only: string[];
}

/** Times that a byte may cost more in an input of eight times the length: caches and the machine account for some. */
const growthLimit = 3;

interface Outcome extends CostReport {
  /** Errors that no client should see. */
  faults: Map<string, string>;
  seconds: number;
}

/** Resolves to whether all targets read their inputs at a cost that does not grow. */
export function fuzzBench({ inputs, seed, only }: FuzzOptions, command: string): boolean {
  const targets = fuzzTargets.filter(({ name }) => only.length === 0 || only.includes(name));
  const each = Math.ceil(inputs / targets.length);
  const outcomes = targets.map((target) => fuzzed(target, each, seed));
  const table = new Table({
    head: ['reads', 'inputs', 's', 'worst ns a byte', 'growth at 8 times', 'faults', ''],
    style: { head: [], border: [] },
    colAligns: ['left', 'right', 'right', 'right', 'right', 'right', 'left'],
  });
  for (const outcome of outcomes) {
    table.push([
      outcome.target,
      outcome.inputs,
      outcome.seconds.toFixed(0),
      outcome.worstPerByte.toFixed(0),
      outcome.growth.toFixed(2),
      outcome.faults.size,
      isKept(outcome) ? 'kept' : 'MISSED',
    ]);
  }
  console.log(`${command}\n${machine()}, seed ${seed}\n${table.toString()}`);
  for (const outcome of outcomes.filter((one) => !isKept(one))) tell(outcome);
  return outcomes.every(isKept);
}

function fuzzed(target: FuzzTarget, inputs: number, seed: number): Outcome {
  process.stderr.write(`${target.name} … `);
  const faults = new Map<string, string>();
  const startedAt = performance.now();
  const report = costFuzz(target, {
    inputs,
    seed,
    repeats: 5,
    measure: (run) => {
      const began = performance.now();
      run();
      return (performance.now() - began) * 1e6;
    },
    failed: (_target, text, error) => {
      const message = error instanceof Error ? error.message : String(error);
      if (faults.size < 20 && !faults.has(message)) faults.set(message, text.slice(0, 200));
    },
  });
  const seconds = (performance.now() - startedAt) / 1000;
  process.stderr.write(`${report.growth.toFixed(2)}, ${faults.size} faults\n`);
  return { ...report, faults, seconds };
}

function isKept({ growth, faults }: Outcome): boolean {
  return growth <= growthLimit && faults.size === 0;
}

function tell({ target, growth, example, exampleSeed, faults }: Outcome): void {
  if (growth > growthLimit) {
    console.log(`\n${target} grows, seed ${exampleSeed}: ${JSON.stringify(example)}`);
  }
  for (const [message, text] of faults) {
    console.log(`\n${target}: ${message}\n  ${JSON.stringify(text)}`);
  }
}
