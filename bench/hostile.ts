// Attacks on a server beside one pinging client on each plane: how long that client waits beyond the same run without the
// attack, how resident memory grows, and whether anything ends. The table of docs/security.md, as a program.

import Table from 'cli-table3';
import { hostileCases } from './hostile/cases.ts';
import { saveResults } from './hostile/record.ts';
import { type CaseResult, gapLimitMs, isKept, runCase } from './hostile/run-case.ts';
import { machine } from './support/report.ts';

interface HostileOptions {
  /** Names of cases; all if empty. */
  only: string[];
  /** The folder of the build under attack. */
  dist: string;
  seconds: number;
  /** Limit of each thread's heap. */
  heapMegabytes: number;
  /** Results go to bench/results/hostile.json. */
  save?: boolean;
}

/** Resolves to whether all cases kept within their limits. */
export async function hostileBench(options: HostileOptions, command: string): Promise<boolean> {
  const names = hostileCases.map(({ name }) => name);
  const unknown = options.only.find((name) => !names.includes(name));
  if (unknown !== undefined) throw new RangeError(`there is no case ${unknown}`);
  console.log(`${command}\n${machine()}, heaps of ${options.heapMegabytes} MB, ${options.dist}\n`);
  const results: CaseResult[] = [];
  for (const one of hostileCases) {
    if (options.only.length > 0 && !options.only.includes(one.name)) continue;
    process.stderr.write(`${one.name} … `);
    const result = await runCase(one, options);
    process.stderr.write(isKept(result) ? 'kept\n' : `MISSED: ${reasonsOf(result).join('; ')}\n`);
    results.push(result);
  }
  print(results);
  for (const { name, unfinished } of results) {
    if (unfinished.length > 0) console.log(`\n${name}: not done in time: ${unfinished.join(', ')}`);
  }
  const missed = results.filter((result) => !isKept(result));
  if (missed.length > 0) {
    console.log(`\n${missed.length} of ${results.length} missed:`);
    for (const result of missed) {
      console.log(`  ${result.name}: ${reasonsOf(result).join('; ')}`);
      for (const step of result.steps) {
        const { plane, text, durationMs, collectionMs, preemptedMs, cause } = step;
        const parts = `${collectionMs} collecting, ${preemptedMs} without a processor`;
        console.log(`    ${plane} ${cause} ${durationMs} ms (${parts}): ${text}`);
      }
    }
  }
  if (options.save === true) saveResults(results, command, names);
  return missed.length === 0;
}

function reasonsOf(result: CaseResult): string[] {
  const { beyondMs, growthBytes, growthLimit, died, verdict, failure } = result;
  const reasons: string[] = [];
  if (died) reasons.push('the server ended');
  if (beyondMs > gapLimitMs) reasons.push(`gap ${Math.round(beyondMs)} ms beyond the quiet run`);
  if (growthBytes > growthLimit) {
    reasons.push(`grew by ${megabytes(growthBytes)} MB of ${megabytes(growthLimit)}`);
  }
  if (verdict !== undefined) reasons.push(verdict);
  if (failure !== undefined) reasons.push(`could not be run: ${failure}`);
  return reasons;
}

function print(results: readonly CaseResult[]): void {
  const table = new Table({
    head: ['case', 'quiet ms', 'gap ms', 'beyond', 'grew MB', 'of', 'restarts', 'rounds', ''],
    style: { head: [], border: [] },
    colAligns: ['left', ...Array<'right'>(7).fill('right'), 'left'],
  });
  for (const result of results) {
    table.push([
      result.name,
      result.quietMs.toFixed(1),
      result.attackedMs.toFixed(1),
      result.beyondMs.toFixed(1),
      megabytes(result.growthBytes),
      megabytes(result.growthLimit),
      result.died ? 1 : 0,
      result.rounds,
      isKept(result) ? 'kept' : 'MISSED',
    ]);
  }
  console.log(table.toString());
}

function megabytes(bytes: number): string {
  return String(Math.round(bytes / 1e6));
}
