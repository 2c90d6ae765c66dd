// A server for a demonstration: a process of its own on free ports of this machine, and a directory that goes with it.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export class OwnServer {
  readonly #child: ChildProcess;
  readonly #directory = mkdtempSync(join(tmpdir(), 'polyrow-demo-'));
  #output = '';

  /** `pin` are words before the command, as of taskset. */
  static async start(flags: readonly string[], pin: readonly string[]): Promise<OwnServer> {
    const server = new OwnServer(flags, pin);
    try {
      await server.#ready();
    } catch (error) {
      await server.stop();
      throw error;
    }
    return server;
  }

  private constructor(flags: readonly string[], pin: readonly string[]) {
    const main = join(import.meta.dirname, '..', 'main.js');
    const ports = ['redis', 'influx', 'admin'].flatMap((name) => [`--${name}.port`, '0']);
    const words = [...pin, process.execPath, main, 'start', '--data-dir', this.#directory];
    // Variables meant for the user's own server must not reach this one.
    const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith('POLYROW_'));
    this.#child = spawn(words[0]!, [...words.slice(1), ...ports, ...flags], {
      env: Object.fromEntries(inherited),
      stdio: ['ignore', 'pipe', 'pipe'],
    });
  }

  async #ready(): Promise<void> {
    const child = this.#child;
    await new Promise<void>((resolve, reject) => {
      const listen = (chunk: Buffer): void => {
        this.#output += chunk.toString();
        if (this.#output.includes('\nReady.')) resolve();
      };
      child.stdout!.on('data', listen);
      child.stderr!.on('data', listen);
      child.once('error', reject);
      child.once('exit', () => reject(new Error(`the server did not start:\n${this.#output}`)));
    });
  }

  get pid(): number {
    return this.#child.pid!;
  }

  portOf(name: 'redis' | 'influx'): number {
    return Number(new URL(this.#urlOf(name)).port);
  }

  get adminUrl(): string {
    return this.#urlOf('admin');
  }

  get adminToken(): string {
    return readFileSync(join(this.#directory, 'admin-token'), 'utf8').trim();
  }

  /** The page of metrics. */
  async metrics(): Promise<string> {
    const answer = await fetch(`${this.adminUrl}/metrics`, {
      headers: { authorization: `Bearer ${this.adminToken}` },
    });
    return await answer.text();
  }

  #urlOf(name: string): string {
    const url = new RegExp(`^ +${name} +(\\S+)$`, 'm').exec(this.#output)?.[1];
    if (url === undefined) throw new Error(`the server serves no ${name}:\n${this.#output}`);
    return url;
  }

  /** What it has kept is of no use any more. */
  async stop(): Promise<void> {
    const child = this.#child;
    if (child.exitCode === null && child.signalCode === null && child.pid !== undefined) {
      const ended = once(child, 'exit');
      child.kill('SIGKILL');
      await ended;
    }
    rmSync(this.#directory, { recursive: true, force: true });
  }
}
