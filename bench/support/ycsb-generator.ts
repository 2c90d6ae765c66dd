// The load generator: the Java YCSB where $YCSB_HOME points to one, else a driver of ours around go-ycsb's
// workloads, built on first use. Both take YCSB's properties and print the same lines.

import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { output } from './output.ts';
import { findProgram, MissingToolError } from './processes.ts';

export type Phase = 'load' | 'run';
export type Properties = Readonly<Record<string, string | number>>;

export interface Generator {
  name: string;
  command(phase: Phase, properties: Properties): { command: string; args: string[] };
}

export async function findGenerator(): Promise<Generator> {
  const home = process.env['YCSB_HOME'];
  return home === undefined || home === '' ? goGenerator() : javaGenerator(home);
}

// ---- Java

function javaGenerator(home: string): Generator {
  const script = join(home, 'bin', 'ycsb.sh');
  if (existsSync(script)) {
    return {
      name: 'YCSB (bin/ycsb.sh)',
      command: (phase, properties) => ({
        command: script,
        args: [phase, 'redis', ...javaArguments(properties)],
      }),
    };
  }
  const jars = ['.', 'lib', 'core/lib', 'redis-binding/lib'].flatMap((folder) => {
    const path = join(home, folder);
    if (!existsSync(path)) return [];
    return readdirSync(path)
      .filter((name) => name.endsWith('.jar'))
      .map((name) => join(path, name));
  });
  if (jars.length === 0) {
    throw new MissingToolError(`YCSB_HOME is ${home}, but neither bin/ycsb.sh nor jars are there`);
  }
  return {
    name: 'YCSB (jars)',
    command: (phase, properties) => ({
      command: 'java',
      args: [
        ...['-cp', jars.join(':'), 'site.ycsb.Client', '-db', 'site.ycsb.db.RedisClient'],
        ...[phase === 'load' ? '-load' : '-t', ...javaArguments(properties)],
      ],
    }),
  };
}

function javaArguments(properties: Properties): string[] {
  const args = ['-p', 'workload=site.ycsb.workloads.CoreWorkload'];
  for (const [name, value] of Object.entries(properties)) {
    if (name === 'threadcount') args.push('-threads', String(value));
    else args.push('-p', `${name}=${value}`);
  }
  return args;
}

// ---- Go

const driverSource = join(import.meta.dirname, '..', '..', '..', 'bench', 'ycsb-driver');

async function goGenerator(): Promise<Generator> {
  const binary = await buildDriver();
  return {
    name: 'go-ycsb (bench/ycsb-driver)',
    command: (phase, properties) => ({
      command: binary,
      args: [phase, ...Object.entries(properties).map(([name, value]) => `${name}=${value}`)],
    }),
  };
}

/** The driver's path; its name tells which source it was built from. */
async function buildDriver(): Promise<string> {
  const hash = createHash('sha256');
  for (const name of readdirSync(driverSource).sort()) {
    hash.update(readFileSync(join(driverSource, name)));
  }
  const binary = join(tmpdir(), `polyrow-ycsb-driver-${hash.digest('hex').slice(0, 16)}`);
  if (existsSync(binary)) return binary;
  if (findProgram('go') === undefined) {
    throw new MissingToolError(
      'the YCSB bench needs a load generator: install Go (1.18 or later), from which bench/ycsb-driver ' +
        'is built, or set YCSB_HOME to an unpacked Java YCSB',
    );
  }
  process.stderr.write('building bench/ycsb-driver ...\n');
  await output('go', ['build', '-buildvcs=false', '-o', binary, '.'], { directory: driverSource });
  return binary;
}
