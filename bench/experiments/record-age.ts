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

/** Git's own list of commits that change names, comments or layout alone: they leave every figure as it is. */
const ignoredList = '.git-blame-ignore-revs';

function ignoredCommits(root: string): Set<string> {
  const lines = readFileSync(join(root, ignoredList), 'utf8').split('\n');
  return new Set(lines.filter((line) => /^[0-9a-f]{40}$/.test(line)));
}

/** Names that files had before those commits, by their names since. */
function earlierNames(root: string, commits: ReadonlySet<string>): Map<string, string> {
  const names = new Map<string, string>();
  for (const commit of commits) {
    const words = [
      'show',
      '--format=',
      '--name-status',
      '--find-renames',
      '--diff-filter=R',
      commit,
    ];
    for (const line of git(root, words).split('\n').filter(Boolean)) {
      const [, before, after] = line.split('\t');
      names.set(after!, before!);
    }
  }
  return names;
}

function git(root: string, words: readonly string[]): string {
  return execFileSync('git', words, { cwd: root, encoding: 'utf8', stdio: 'pipe' });
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
  const ignored = ignoredCommits(root);
  const names = earlierNames(root, ignored);
  for (const [id, source] of await sourcesOf(root, experiments)) {
    const commit = records.get(id)?.commit?.replace('+', '');
    if (commit === undefined) continue;
    const reached = new Set<string>();
    addReached(source, reached);
    const paths = [...reached].map((file) => relative(root, file));
    const before = paths.flatMap((path) => names.get(path) ?? []);
    const words = ['log', '--format=commit %H', '--name-only', `${commit}..HEAD`, '--'];
    try {
      const files = new Set<string>();
      let isIgnored = false;
      for (const line of git(root, [...words, ...paths, ...before])
        .split('\n')
        .filter(Boolean)) {
        if (line.startsWith('commit ')) isIgnored = ignored.has(line.slice(7));
        else if (!isIgnored) files.add(line);
      }
      changed.set(id, [...files]);
    } catch (error) {
      if (!String(error).includes('bad object') && !String(error).includes('unknown revision')) {
        throw error;
      }
    }
  }
  return changed;
}
