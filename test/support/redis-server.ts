// A redis-server to compare with, reachable over its port.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { RespClient } from './resp-client.ts';
import { freePort } from './free-port.ts';

export class RedisProcess {
  readonly port: number;
  readonly #child: ChildProcess;
  readonly #folder: string;

  private constructor(port: number, child: ChildProcess, folder: string) {
    this.port = port;
    this.#child = child;
    this.#folder = folder;
  }

  /** Directory of its data. */
  get folder(): string {
    return this.#folder;
  }

  static async start(flags: readonly string[] = []): Promise<RedisProcess> {
    const port = await freePort();
    const folder = mkdtempSync(join(tmpdir(), 'redis-test-'));
    const where = ['--port', `${port}`, '--bind', '127.0.0.1', '--dir', folder];
    // As long as strings may be here by default.
    const limits = ['--proto-max-bulk-len', '16mb', ...flags];
    if (flags.includes('--cluster-enabled')) limits.push('--cluster-port', `${await freePort()}`);
    const stays = ['--save', '', '--appendonly', 'no', '--enable-debug-command', 'yes'];
    const child = spawn('redis-server', [...where, ...limits, ...stays], {
      stdio: 'ignore',
    });
    const server = new RedisProcess(port, child, folder);
    for (let attempt = 0; ; attempt++) {
      try {
        (await server.client()).close();
        return server;
      } catch (error) {
        if (attempt === 100 || child.exitCode !== null) throw error;
        await sleep(50);
      }
    }
  }

  client(version: 2 | 3 = 2): Promise<RespClient> {
    return RespClient.connect(this.port, version);
  }

  async remove(): Promise<void> {
    if (this.#child.exitCode === null) {
      this.#child.kill('SIGKILL');
      await once(this.#child, 'exit');
    }
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
