// The module is what its sources build, and they pass upstream's tests. In CI, or with POLYROW_FULL=1, where Go is.

import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { delimiter } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const goFolder = '/usr/local/go/bin';
const env = {
  ...process.env,
  PATH: existsSync(goFolder)
    ? `${process.env['PATH']}${delimiter}${goFolder}`
    : process.env['PATH'],
};
const script = (name: string): string => fileURLToPath(new URL(`wrapper/${name}`, import.meta.url));

/** Why the tests cannot run, empty when they can. */
function reason(): string {
  if (!process.env['CI'] && !process.env['POLYROW_FULL'])
    return 'neither CI nor POLYROW_FULL is set';
  if (spawnSync('go', ['version'], { env }).status !== 0) return 'Go is not installed';
  const got = spawnSync('go', ['mod', 'download', 'go.etcd.io/raft/v3'], {
    env,
    cwd: script(''),
  });
  return got.status === 0 ? '' : 'the Go module proxy cannot be reached';
}

const why = reason();
const suffix = why === '' ? '' : ` (skipped: ${why})`;
const run = (name: string, ...words: string[]): string =>
  execFileSync(script(name), words, { env, encoding: 'utf8', stdio: 'pipe' });

test.skipIf(why !== '')(
  `the module is built from its sources byte for byte${suffix}`,
  { timeout: 600_000 },
  () => {
    expect(run('build.sh', '--check')).toContain('is what these sources build');
  },
);

test.skipIf(why !== '')(
  `the messages are encoded as published, and upstream's tests pass${suffix}`,
  { timeout: 600_000 },
  () => {
    const output = run('test.sh');
    for (const part of [
      'fuzz',
      'raft/v3',
      'raft/v3/confchange',
      'raft/v3/quorum',
      'raft/v3/rafttest',
    ]) {
      expect(output).toMatch(new RegExp(`^ok\\s+\\S*${part}\\s`, 'm'));
    }
  },
);
