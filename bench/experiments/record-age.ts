// Which records of experiments are older than the code they vouch for: files that an experiment imports, directly or not,
// and that have changed since the commit of its record. Processes that an experiment starts are not imported: a record of a
// running server is of its commit alone.

import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import type { Experiment, Recorded } from './experiment.ts';

/** Statements that only import types are left out: they change no figure. */
const importPattern = /^(?:import|export)\s(?!type\s)[^;]*?from\s+'(\.[^']+)'/gm;

function importsOf(file: string): string[] {
  const source = readFileSync(file, 'utf8');
  return [...source.matchAll(importPattern)].map(([, path]) => join(dirname(file), path!));
}

function addReached(file: string, reached: Set<string>): void {
  if (reached.has(file) || !existsSync(file)) return;
  reached.add(file);
  for (const next of importsOf(file)) addReached(next, reached);
}

/** The source file of each experiment, by id: `all.ts` imports them all. */
async function sourcesOf(
  root: string,
  experiments: readonly Experiment[],
): Promise<Map<string, string>> {
  const sources = new Map<string, string>();
  for (const file of importsOf(join(root, 'bench', 'experiments', 'all.ts'))) {
    const built = join(root, 'dist', relative(root, file).replace(/\.ts$/, '.js'));
    const module = (await import(built)) as Record<string, unknown>;
    for (const one of Object.values(module) as Experiment[]) {
      if (experiments.includes(one)) sources.set(one.id, file);
    }
  }
  return sources;
}

/**
 * For each record with a commit, the files that have changed since, by the id of the experiment. A commit that the history
 * does not have is left out.
 */
export async function changedSince(
  root: string,
  experiments: readonly Experiment[],
  records: ReadonlyMap<string, Recorded>,
): Promise<Map<string, string[]>> {
  const changed = new Map<string, string[]>();
  for (const [id, source] of await sourcesOf(root, experiments)) {
    const commit = records.get(id)?.commit?.replace('+', '');
    if (commit === undefined) continue;
    const reached = new Set<string>();
    addReached(source, reached);
    const paths = [...reached].map((file) => relative(root, file));
    const words = ['diff', '--name-only', commit, 'HEAD', '--', ...paths];
    try {
      const files = execFileSync('git', words, { cwd: root, encoding: 'utf8', stdio: 'pipe' });
      changed.set(id, files.split('\n').filter(Boolean));
    } catch (error) {
      if (!String(error).includes('bad object') && !String(error).includes('unknown revision')) {
        throw error;
      }
    }
  }
  return changed;
}
