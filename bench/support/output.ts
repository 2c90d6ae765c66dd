// Runs a program to its end and returns its output.

import { spawn } from 'node:child_process';

interface OutputOptions {
  directory?: string;
  environment?: NodeJS.ProcessEnv;
}

/** Standard output. Rejects, with all that was printed, when the program fails. */
export function output(
  command: string,
  args: readonly string[],
  options: OutputOptions = {},
): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      stdio: ['ignore', 'pipe', 'pipe'],
      cwd: options.directory,
      env: { ...process.env, ...options.environment },
    });
    let out = '';
    let err = '';
    child.stdout.on('data', (data: Buffer) => (out += data.toString()));
    child.stderr.on('data', (data: Buffer) => (err += data.toString()));
    child.once('error', reject);
    child.once('close', (code) =>
      code === 0 ? resolve(out) : reject(new Error(`${command} ended with ${code}: ${err}${out}`)),
    );
  });
}

/** As `output`, and the processor time that the program took, in seconds. */
export async function outputAndCpu(
  command: string,
  args: readonly string[],
): Promise<{ text: string; cpuSeconds: number }> {
  const script = '"$@"; code=$?; times; exit $code';
  const printed = (await output('sh', ['-c', script, 'sh', command, ...args])).trimEnd();
  const lastLine = printed.lastIndexOf('\n');
  // User and system time of the shell's children, as `0m1.230s 0m0.450s`.
  const times = [...printed.slice(lastLine).matchAll(/(\d+)m([\d.]+)s/g)];
  const cpuSeconds = times.reduce((sum, [, m, s]) => sum + Number(m) * 60 + Number(s), 0);
  return { text: printed.slice(0, lastLine), cpuSeconds };
}
