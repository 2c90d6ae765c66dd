// bench/results/hostile.json: the last saved result of each case. A run of some cases leaves those of the others.

import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { machine } from '../support/report.ts';
import { type CaseResult, gapLimitMs, isKept } from './run-case.ts';
import type { ServerStep } from './server-steps.ts';

interface SavedCase {
  name: string;
  isKept: boolean;
  /** Longest gaps of another client, in ms. */
  quietMs: number;
  attackedMs: number;
  beyondMs: number;
  grewMegabytes: number;
  growthLimitMegabytes: number;
  died: boolean;
  rounds: number;
  verdict: string | undefined;
  /** Of a case that was missed: the longest steps of the server. */
  steps: ServerStep[] | undefined;
  commit: string;
  date: string;
}

interface Saved {
  bench: 'hostile';
  command: string;
  machine: string;
  gapLimitMs: number;
  cases: SavedCase[];
}

const path = join(import.meta.dirname, '..', '..', '..', 'bench', 'results', 'hostile.json');

export function saveResults(
  results: readonly CaseResult[],
  command: string,
  order: readonly string[],
): void {
  const before = existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as Saved).cases : [];
  const commit = execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim();
  const date = new Date().toISOString();
  const cases = new Map(before.map((one) => [one.name, one]));
  for (const result of results) {
    cases.set(result.name, {
      name: result.name,
      isKept: isKept(result),
      quietMs: tenths(result.quietMs),
      attackedMs: tenths(result.attackedMs),
      beyondMs: tenths(result.beyondMs),
      grewMegabytes: Math.round(result.growthBytes / 1e6),
      growthLimitMegabytes: Math.round(result.growthLimit / 1e6),
      died: result.died,
      rounds: result.rounds,
      verdict: result.failure ?? result.verdict,
      steps: isKept(result) ? undefined : result.steps,
      commit,
      date,
    });
  }
  const saved: Saved = {
    bench: 'hostile',
    command,
    machine: machine(),
    gapLimitMs,
    cases: order.flatMap((name) => cases.get(name) ?? []),
  };
  writeFileSync(path, `${JSON.stringify(saved, null, 2)}\n`);
  console.log('\nwritten: bench/results/hostile.json');
}

function tenths(ms: number): number {
  return Math.round(ms * 10) / 10;
}
