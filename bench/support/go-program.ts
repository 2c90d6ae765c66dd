// Programs in Go of our own that generate load, built on first use.

import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { output } from './output.ts';
import { findProgram, MissingToolError } from './processes.ts';

/** Path of the program that the folder under bench/ makes. Throws `MissingToolError` without Go. */
export async function goProgram(folder: string): Promise<string> {
  // Beside the sources, whether this runs from them or compiled.
  const directory = [join('..', folder), join('..', '..', '..', 'bench', folder)]
    .map((path) => join(import.meta.dirname, path))
    .find((path) => existsSync(join(path, 'go.mod')))!;
  const hash = createHash('sha256');
  for (const name of readdirSync(directory).sort())
    hash.update(readFileSync(join(directory, name)));
  const name = `polyrow-${basename(folder)}-${hash.digest('hex').slice(0, 12)}`;
  const path = join(tmpdir(), name);
  if (existsSync(path)) return path;
  if (findProgram('go') === undefined) throw new MissingToolError(`${folder} is built by Go`);
  await output('go', ['build', '-buildvcs=false', '-o', path, '.'], { directory });
  return path;
}
