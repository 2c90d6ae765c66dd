// Starts and stops the servers under test. Only processes started here are ended, each by its pid.

import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createConnection } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../../test/support/free-port.ts';

export interface Running {
  name: string;
  port: number;
  pid: number;
  directory: string;
  /** Ends the process and leaves its directory, for another start on it. */
  end(signal: 'SIGTERM' | 'SIGKILL'): Promise<void>;
  /** Ends the process and removes its directory. */
  stop(): Promise<void>;
}

/** Probe of a ready server. */
export interface Probe {
  /** One inline command, without the line's end. */
  request: string;
  isReady(answer: string): boolean;
}

export interface StartOptions {
  /** Directory of an earlier start; a new one if not given. */
  directory?: string;
  /** The folder of the build to start; this one unless given. */
  dist?: string;
  /** PING unless given. */
  probe?: Probe;
}

/** A program the bench cannot do without is not installed. */
export class MissingToolError extends Error {
  override readonly name = 'MissingToolError';
}

/** The full path of an installed program, or undefined. */
export function findProgram(name: string): string | undefined {
  const found = spawnSync('sh', ['-c', `command -v ${name}`], { encoding: 'utf8' });
  return found.status === 0 ? found.stdout.trim() : undefined;
}

/** Throws `MissingToolError` unless the program is installed. */
export function requireProgram(name: string, from: string): string {
  const path = findProgram(name);
  if (path === undefined) throw new MissingToolError(`${name} is needed (${from})`);
  return path;
}

const ping: Probe = { request: 'PING', isReady: (answer) => answer.startsWith('+PONG') };
const startTimeoutMs = 300_000;
const probeEveryMs = 5;

/** Waits until the server on `port` answers the probe. */
async function answers(port: number, child: ChildProcess, probe: Probe): Promise<void> {
  const deadline = Date.now() + startTimeoutMs;
  while (Date.now() < deadline) {
    if (hasEnded(child)) throw new Error(`the server ended with ${child.exitCode}`);
    const ok = await new Promise<boolean>((resolve) => {
      const socket = createConnection(port, '127.0.0.1', () =>
        socket.write(`${probe.request}\r\n`),
      );
      socket.once('data', (data) => {
        socket.destroy();
        resolve(probe.isReady(data.toString()));
      });
      socket.once('error', () => resolve(false));
      socket.once('close', () => resolve(false));
    });
    if (ok) return;
    await new Promise((resolve) => setTimeout(resolve, probeEveryMs));
  }
  throw new Error(`no answer on port ${port} within ${startTimeoutMs / 1000} s`);
}

function hasEnded(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null;
}

/** Starts a server on `port` with `directory` its own, and waits until it answers. */
export async function startServer(
  name: string,
  command: string,
  args: readonly string[],
  port: number,
  directory: string,
  probe: Probe = ping,
): Promise<Running> {
  const child = spawn(command, args, { stdio: ['ignore', 'ignore', 'inherit'] });
  const gone = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const end = async (signal: 'SIGTERM' | 'SIGKILL'): Promise<void> => {
    if (!hasEnded(child)) child.kill(signal);
    await gone;
  };
  try {
    await answers(port, child, probe);
  } catch (error) {
    await end('SIGKILL');
    throw error;
  }
  return {
    name,
    port,
    pid: child.pid!,
    directory,
    end,
    async stop() {
      await end('SIGTERM');
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

export type Fsync = 'always' | 'everysec' | 'no';

export async function startRedis(fsync: Fsync, options: StartOptions = {}): Promise<Running> {
  const directory = options.directory ?? mkdtempSync(join(tmpdir(), 'polyrow-bench-redis-'));
  const port = await freePort();
  const args = ['--port', String(port), '--bind', '127.0.0.1', '--dir', directory, '--save', ''];
  args.push('--appendonly', 'yes', '--appendfsync', fsync, '--loglevel', 'warning');
  return startServer('redis-server', 'redis-server', args, port, directory, options.probe);
}

/** The program of a build. */
export function mainOf({ dist = join(import.meta.dirname, '..', '..') }: StartOptions): string {
  return join(dist, 'cli', 'main.js');
}

export async function startPolyrow(
  fsync: Fsync,
  flags: readonly string[] = [],
  nodeOptions: readonly string[] = [],
  options: StartOptions = {},
): Promise<Running> {
  const directory = options.directory ?? mkdtempSync(join(tmpdir(), 'polyrow-bench-'));
  const port = await freePort();
  const main = mainOf(options);
  const args = [...nodeOptions, main, 'start', '--data-dir', directory];
  args.push(
    '--redis.port',
    String(port),
    '--influx.port',
    '0',
    '--admin.port',
    '0',
    '--wal.fsync',
    fsync,
  );
  args.push('--log.level', 'warn', ...flags);
  return startServer('polyrow', process.execPath, args, port, directory, options.probe);
}
