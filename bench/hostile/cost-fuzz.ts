// Fuzzing for cost: of many random inputs, those with the highest cost per byte are repeated at
// several times their length. If the cost per byte then rises much, it grows faster than the input.

import type { Rng } from '../../universal-row/environment.ts';
import { Chance } from '../../control/scheduler/simulation/chance.ts';
import type { FuzzTarget } from './fuzz-targets.ts';

interface CostFuzzOptions {
  inputs: number;
  seed: number;
  /** Cost of one run, in any unit. */
  measure: (run: () => void) => number;
  /** Runs of which the least counts, where something else may add to a measurement. */
  repeats: number;
  /** Told of an input that was answered by an error that no client should see. */
  failed: (target: FuzzTarget, text: string, error: unknown) => void;
}

export interface CostReport {
  target: string;
  inputs: number;
  /** The most a byte of inputs of at least `leastBytes`. */
  worstPerByte: number;
  /** Cost of the most expensive byte of the lengthened inputs, over that of the original ones. */
  growth: number;
  /** The beginning of that input, and the seed that makes it. */
  example: string;
  exampleSeed: number;
}

/** For shorter inputs the cost of the call dominates. */
const leastBytes = 256;
const mostBytes = 4096;
/** Inputs made again, and how much longer. */
const grown = 12;
const factor = 8;
const leastGrown = 4096;

interface Found {
  seed: number;
  length: number;
  perByte: number;
}

export function costFuzz(target: FuzzTarget, options: CostFuzzOptions): CostReport {
  const chance = new Chance(options.seed);
  let worst: Found[] = [];
  for (let n = 0; n < options.inputs; n++) {
    const seed = Math.floor(chance.next() * 2 ** 31);
    // Most are short: there are more of them to be had in the time.
    const length = Math.ceil(16 * (mostBytes / 16) ** (chance.next() ** 2));
    const text = make(target, seed, length);
    const cost = attempt(target, text, options);
    if (text.length < leastBytes) continue;
    const leastOfWorst = worst.length === grown ? worst.at(-1)!.perByte : 0;
    if (cost / text.length <= leastOfWorst) continue;
    // Something else may have had the processor.
    const perByte = costOf(target, text, options);
    if (perByte <= leastOfWorst) continue;
    worst.push({ seed, length, perByte });
    worst = worst.sort((a, b) => b.perByte - a.perByte).slice(0, grown);
  }
  const report: CostReport = {
    target: target.name,
    inputs: options.inputs,
    worstPerByte: worst[0]?.perByte ?? 0,
    growth: 0,
    example: '',
    exampleSeed: 0,
  };
  // A longer text of the same seed is a different text, so the most expensive ones are compared, not pairs.
  let before = 0;
  let after = 0;
  for (const { seed, length } of worst) {
    // Long enough for bounds on a part of the input to have been met.
    const from = Math.max(length, leastGrown);
    before = Math.max(before, costOf(target, make(target, seed, from), options));
    const cost = costOf(target, make(target, seed, from * factor), options);
    if (cost <= after) continue;
    after = cost;
    report.example = make(target, seed, length).slice(0, 120);
    report.exampleSeed = seed;
  }
  report.growth = before === 0 ? 0 : after / before;
  return report;
}

function make(target: FuzzTarget, seed: number, length: number): string {
  const rng: Rng = new Chance(seed);
  return target.make(rng, length);
}

function attempt(target: FuzzTarget, text: string, { measure, failed }: CostFuzzOptions): number {
  try {
    return measure(() => target.read(text));
  } catch (error) {
    failed(target, text, error);
    return 0;
  }
}

/** Cost of a byte. */
function costOf(target: FuzzTarget, text: string, options: CostFuzzOptions): number {
  let least = Infinity;
  for (let n = 0; n < options.repeats; n++) least = Math.min(least, attempt(target, text, options));
  return least / Math.max(text.length, leastBytes);
}
