// Commit of the build that a record was made from.

import { execFileSync } from 'node:child_process';

/** The commit, with a plus where files have changed since. Records and pictures of runs do not count as changes. */
export function commitOf(root: string): string {
  const git = (...words: string[]): string =>
    execFileSync('git', words, { cwd: root, encoding: 'utf8' }).trim();
  const changed = git('status', '--porcelain', '--', '.', ':!bench/results', ':!docs');
  return `${git('rev-parse', '--short=10', 'HEAD')}${changed === '' ? '' : '+'}`;
}
