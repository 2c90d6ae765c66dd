// Attacks on a server beside one pinging client on each plane: how long that client waits beyond the same run without the
// attack, how resident memory grows, and whether anything ends. The table of docs/security.md, as a program.

import Table from 'cli-table3';
import type { Attack } from './hostile/attack.ts';
import { influxAttacks } from './hostile/influx-attacks.ts';
import { loginAttacks } from './hostile/login-attacks.ts';
import { saveResults } from './hostile/record.ts';
import { redisAttacks } from './hostile/redis-attacks.ts';
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

const everything = 'all-at-once';
/** These change the server, or take long: they say nothing more beside the others. */
const alone: ReadonlySet<string> = new Set([
  'silent-connections',
  'readable-files',
  'audit-flood',
  'made-up-credentials',
]);

const attacks: readonly Attack[] = [...redisAttacks, ...influxAttacks, ...loginAttacks];

export const hostileCases: readonly string[] = [...attacks.map(({ name }) => name), everything];

/** Resolves to whether all cases kept within their limits. */
export async function hostileBench(options: HostileOptions, command: string): Promise<boolean> {
  const unknown = options.only.find((name) => !hostileCases.includes(name));
  if (unknown !== undefined) throw new RangeError(`there is no case ${unknown}`);
  const isWanted = (name: string): boolean =>
    options.only.length === 0 || options.only.includes(name);
  console.log(`${command}\n${machine()}, heaps of ${options.heapMegabytes} MB, ${options.dist}\n`);
  const results: CaseResult[] = [];
  for (const attack of attacks.filter(({ name }) => isWanted(name))) {
    results.push(await attempt([attack], attack, options));
  }
  if (isWanted(everything)) {
    const all = attacks
      .filter(({ name }) => !alone.has(name))
      // Attacks judged on their own are not judged again where all share the machine.
      .map(({ verdict: _verdict, ...attack }) => attack);
    const what = `the other ${all.length} at the same time`;
    results.push(await attempt(allOnce(all), { name: everything, what }, options));
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
  if (options.save === true) saveResults(results, command, hostileCases);
  return missed.length === 0;
}

/** Tenants are created once, and the memory bound is that of one attack: they share one budget. */
function allOnce(all: readonly Attack[]): Attack[] {
  let made: Promise<void> | undefined;
  const tenants = all.find(({ name }) => name === 'password-queue')?.prepare;
  return all.map((attack) => {
    if (attack.prepare === undefined || attack.prepare !== tenants) return attack;
    return { ...attack, prepare: (target) => (made ??= tenants(target)) };
  });
}

async function attempt(
  all: readonly Attack[],
  head: Pick<Attack, 'name' | 'what'>,
  options: HostileOptions,
): Promise<CaseResult> {
  process.stderr.write(`${head.name} … `);
  const result = await runCase(all, head, options);
  process.stderr.write(isKept(result) ? 'kept\n' : `MISSED: ${reasonsOf(result).join('; ')}\n`);
  return result;
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
