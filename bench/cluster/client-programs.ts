// Client programs in other languages and with other libraries, each in its own process. Each writes numbers until its
// input ends, then reports how many it wrote, which were refused, and its longest wait.

import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { goProgram } from '../support/go-program.ts';
import { output } from '../support/output.ts';
import { findProgram, MissingToolError } from '../support/processes.ts';

export type ClientKind = 'plain' | 'cluster';

export interface ClientProgram {
  readonly name: string;
  /** Whether clients are asked to go to the nodes that lead. */
  readonly kind: ClientKind;
  /** Of the process. Throws `MissingToolError` where it cannot be had here. */
  readonly command: (ports: string, key: string) => Promise<readonly string[]>;
}

interface Told {
  written: number;
  refused: number[];
  errors: Record<string, number>;
  longestGapMs: number;
}

// Beside the sources, whether this runs from them or compiled.
const folder = ['client-programs', join('..', '..', '..', 'bench', 'cluster', 'client-programs')]
  .map((path) => join(import.meta.dirname, path))
  .find((path) => existsSync(join(path, 'redis_writer.py')))!;
const queues = process.env['QUEUE_CLIENTS'] ?? '';

function python(module: string): string {
  const ours = join(queues, 'venv', 'bin', 'python');
  const found = [ours, 'python3', '/usr/bin/python3'].find(
    (name) => spawnSync(name, ['-c', `import ${module}`]).status === 0,
  );
  if (found === undefined) throw new MissingToolError(`there is no Python with ${module}`);
  return found;
}

function ofRedisPy(kind: ClientKind): ClientProgram {
  return {
    name: kind === 'plain' ? 'redis-py' : 'redis-py RedisCluster',
    kind,
    command: async (ports, key) => [
      python('redis.backoff'),
      join(folder, 'redis_writer.py'),
      kind,
      ports,
      key,
    ],
  };
}

function ofGo(kind: ClientKind): ClientProgram {
  return {
    name: kind === 'plain' ? 'go-redis' : 'go-redis ClusterClient',
    kind,
    command: async (ports, key) => [
      await goProgram(join('cluster', 'client-programs', 'go')),
      kind,
      ports,
      key,
    ],
  };
}

function ofJedis(kind: ClientKind): ClientProgram {
  return {
    name: kind === 'plain' ? 'Jedis' : 'Jedis, cluster',
    kind,
    command: async (ports, key) => [
      'java',
      '-cp',
      await jedisClassPath(),
      join(folder, 'jedis', 'JedisWriter.java'),
      kind,
      ports,
      key,
    ],
  };
}

/** Fetched by Maven on first use. */
async function jedisClassPath(): Promise<string> {
  for (const tool of ['java', 'mvn']) {
    if (findProgram(tool) === undefined) throw new MissingToolError(`Jedis needs ${tool}`);
  }
  const directory = mkdtempSync(join(tmpdir(), 'polyrow-jedis-'));
  const file = join(directory, 'class-path');
  const goal = ['dependency:build-classpath', `-Dmdep.outputFile=${file}`];
  try {
    await output('mvn', ['-q', '-f', join(folder, 'jedis', 'pom.xml'), ...goal], { directory });
    return readFileSync(file, 'utf8').trim();
  } catch (error) {
    throw new MissingToolError(`Jedis could not be fetched: ${(error as Error).message}`);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

const bullmq: ClientProgram = {
  name: 'BullMQ, queue and three workers',
  kind: 'plain',
  command: async (ports, key) => {
    if (!existsSync(join(queues, 'node_modules', 'bullmq'))) {
      throw new MissingToolError('QUEUE_CLIENTS names no directory with bullmq');
    }
    return [process.execPath, join(folder, 'bullmq.mjs'), ports, key, queues];
  },
};

const celery: ClientProgram = {
  name: 'Celery, sender and worker',
  kind: 'plain',
  command: async (ports, key) => [python('celery'), join(folder, 'celery_tasks.py'), ports, key],
};

export const clientPrograms: readonly ClientProgram[] = [
  ofRedisPy('plain'),
  ofRedisPy('cluster'),
  ofGo('plain'),
  ofGo('cluster'),
  ofJedis('plain'),
  ofJedis('cluster'),
  bullmq,
  celery,
];

/** One that runs. */
export class RunningClient {
  readonly program: ClientProgram;
  readonly key: string;
  readonly #child: ChildProcess;
  readonly #exit: Promise<unknown[]>;
  #output = '';
  #complaints = '';

  static async start(program: ClientProgram, ports: readonly number[]): Promise<RunningClient> {
    // Names of queues have no colon.
    const key = `of-${program.name.replaceAll(/\W+/g, '-')}`;
    return new RunningClient(program, key, await program.command(ports.join(), key));
  }

  private constructor(program: ClientProgram, key: string, command: readonly string[]) {
    this.program = program;
    this.key = key;
    const [name, ...words] = command as [string, ...string[]];
    // Python imports what lies beside it.
    const env = { ...process.env, PYTHONDONTWRITEBYTECODE: '1' };
    this.#child = spawn(name, words, { cwd: folder, env });
    this.#exit = once(this.#child, 'close');
    this.#child.stdout!.on('data', (chunk) => (this.#output += String(chunk)));
    this.#child.stderr!.on('data', (chunk) => (this.#complaints += String(chunk)));
  }

  /** Ends the program. Resolves to its report and the acknowledged numbers. */
  async end(): Promise<Told & { acknowledged: number[] }> {
    this.#child.stdin!.end();
    const [code] = await this.#exit;
    if (code !== 0)
      throw new Error(`${this.program.name} ended with ${String(code)}: ${this.#complaints}`);
    const told = JSON.parse(this.#output) as Told;
    const refused = new Set(told.refused);
    const all = Array.from({ length: told.written }, (_, n) => n);
    return { ...told, acknowledged: all.filter((n) => !refused.has(n)) };
  }

  kill(): void {
    this.#child.kill('SIGKILL');
  }
}
