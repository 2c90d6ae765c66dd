// A private server on a data directory during a restore, so that the restore is done by the program that will read the
// data later. It listens on loopback, on random ports.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { ExitError } from '../../server/lifecycle/exit-error.ts';

const main = fileURLToPath(new URL('../main.js', import.meta.url));
const loopback = ['redis', 'influx', 'admin'].flatMap((part) => [
  `--${part}.host`,
  '127.0.0.1',
  `--${part}.port`,
  '0',
]);

export class PrivateServer {
  readonly #child: ChildProcess;
  readonly #exit: Promise<unknown[]>;
  #output = '';

  /** Resolves when it serves. `flags` are settings. */
  static async start(dataDirectory: string, flags: readonly string[]): Promise<PrivateServer> {
    const server = new PrivateServer(['start', '--data-dir', dataDirectory, ...loopback, ...flags]);
    await server.#ready();
    return server;
  }

  private constructor(words: readonly string[]) {
    // Settings meant for a server of the user's must not reach this one.
    const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith('POLYROW_'));
    this.#child = spawn(process.execPath, [main, ...words], {
      env: Object.fromEntries(inherited),
      stdio: ['ignore', 'pipe', 'pipe'],
      // Ctrl-C cancels the restore, and the restore ends the server.
      detached: true,
    });
    this.#exit = once(this.#child, 'close');
    const listen = (chunk: Buffer): void => {
      this.#output = (this.#output + chunk.toString()).slice(-longestOutput);
    };
    this.#child.stdout!.on('data', listen);
    this.#child.stderr!.on('data', listen);
  }

  async #ready(): Promise<void> {
    for (;;) {
      if (this.#output.includes('\nReady.')) return;
      if (this.#child.exitCode !== null) {
        throw new ExitError(`no server could be started for the restore: ${this.#lastLine()}`);
      }
      await Promise.race([this.#exit, new Promise((resolve) => setTimeout(resolve, pollMs))]);
    }
  }

  /** In good order: everything is on disk then. */
  async stop(): Promise<void> {
    this.#child.kill('SIGTERM');
    const [code] = (await this.#exit) as [number | null];
    if (code !== 0) {
      throw new ExitError(`the restored server did not stop cleanly: ${this.#lastLine()}`);
    }
  }

  #lastLine(): string {
    return this.#output.trim().split('\n').at(-1) ?? '';
  }
}

const pollMs = 50;
const longestOutput = 64 * 1024;
