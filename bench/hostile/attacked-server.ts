// A server for one case, from this build or another one.

import { mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { adminAccess } from '../support/admin.ts';
import { type Running, startServer } from '../support/processes.ts';
import { makeDirectory } from './login-attacks.ts';
import type { Attack, Target } from './attack.ts';
import { freePort } from '../../test/support/free-port.ts';

export interface AttackedServer extends Target {
  readonly pid: number;
  /** Whether the process that was started is still there. */
  isUp(): boolean;
  stop(): Promise<void>;
}

export interface ServerOptions {
  /** The folder of the build. */
  dist: string;
  /** Limit of each thread's heap, in MB. */
  heapMegabytes: number;
}

/** A free port may be taken by another process before the server has it. */
const starts = 5;

export async function startAttacked(
  attack: Pick<Attack, 'flags' | 'directoryMode'>,
  options: ServerOptions,
): Promise<AttackedServer> {
  for (let left = starts; ; left--) {
    try {
      return await start(attack, options);
    } catch (error) {
      if (left === 1) throw error;
    }
  }
}

async function start(
  attack: Pick<Attack, 'flags' | 'directoryMode'>,
  { dist, heapMegabytes }: ServerOptions,
): Promise<AttackedServer> {
  const directory = mkdtempSync(join(tmpdir(), 'polyrow-hostile-'));
  const data = join(directory, 'data');
  if (attack.directoryMode !== undefined) makeDirectory(data, attack.directoryMode);
  const redisPort = await freePort();
  const influxPort = await freePort();
  const running: Running = await startServer(
    'polyrow',
    process.execPath,
    [
      // Holds for every thread of the process: each plane has a heap of its own.
      `--max-old-space-size=${heapMegabytes}`,
      join(dist, 'cli', 'main.js'),
      'start',
      ...['--data-dir', data, '--redis.port', String(redisPort)],
      ...['--influx.port', String(influxPort), '--admin.port', '0', '--log.level', 'error'],
      ...['--admin.requests-per-second', '0', ...(attack.flags ?? [])],
    ],
    redisPort,
    directory,
    // That it wants a password is an answer, too.
    { request: 'PING', isReady: (answer) => /^[+-]/.test(answer) },
  );
  const { url, token } = await adminAccess(data);
  return {
    redisPort,
    influxPort,
    admin: url,
    adminToken: token,
    directory: data,
    pid: running.pid,
    isUp: () => isRunning(running.pid),
    stop: () => running.stop(),
  };
}

function isRunning(pid: number): boolean {
  try {
    // A process that has ended and was not yet waited for has no state but Z.
    return !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, 'latin1'));
  } catch {
    return false;
  }
}
