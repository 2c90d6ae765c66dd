// Programs in Go that the tests drive the server with, built on first use from the Go module proxy at the
// versions that the go.mod beside their tests names.

import { execFile, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const buildTimeoutMs = 600_000;

interface GoTool {
  /** Directory with the go.mod. */
  module: string;
  /** Import path of the program. */
  program: string;
  tags?: string;
  /** For programs that compute much. Without optimization a build takes two thirds of the time. */
  optimized?: boolean;
}

const hasGo = spawnSync('go', ['version']).status === 0;

/** The program's path, or why it cannot be had. Building takes a minute or more the first time. */
export async function goTool(tool: GoTool): Promise<{ path: string } | { missing: string }> {
  const hash = createHash('sha256').update(readFileSync(join(tool.module, 'go.sum')));
  // tools.go only names programs that are elsewhere.
  for (const name of readdirSync(tool.module).sort()) {
    if (name.endsWith('.go') && name !== 'tools.go') {
      hash.update(readFileSync(join(tool.module, name)));
    }
  }
  if (tool.optimized) hash.update('optimized');
  const version = hash.digest('hex').slice(0, 12);
  const path = join(tmpdir(), `polyrow-${basename(tool.program)}-${version}`);
  if (existsSync(path)) return { path };
  if (!hasGo) return { missing: `${tool.program} is built by Go, which is not installed` };
  const tags = ['tools', tool.tags ?? []].flat().join(',');
  // Debug information would take an eighth of a build's processor time, and these programs are not debugged.
  const flags = tool.optimized ? [] : ['-gcflags=all=-N -l -dwarf=false', '-ldflags=-s -w'];
  const args = ['build', '-buildvcs=false', ...flags, '-tags', tags, '-o', path, tool.program];
  try {
    await run('go', args, {
      cwd: tool.module,
      maxBuffer: 16 * 1024 * 1024,
      timeout: buildTimeoutMs,
    });
  } catch (error) {
    return { missing: `${tool.program} could not be built: ${(error as Error).message}` };
  }
  return { path };
}
