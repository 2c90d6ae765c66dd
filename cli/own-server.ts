// A temporary server for a demonstration or a measurement: a separate process on free ports of this machine, with a data
// directory that is deleted afterwards.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface OwnServerOptions {
  /** Purpose, as part of the directory's name. */
  purpose: string;
  /** Words after the data directory and the ports, which are free ones. */
  flags: readonly string[];
  /** Words before the command, as of taskset. */
  pin?: readonly string[];
  /** A signal that ends this process ends the server as well; otherwise the caller does that. */
  endsOnSignals?: boolean;
}

const endings = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const;

export class OwnServer {
  readonly #pin: readonly string[];
  readonly #directory: string;
  #child: ChildProcess | undefined;
  #output = '';

  static async start(options: OwnServerOptions): Promise<OwnServer> {
    const server = new OwnServer(options);
    try {
      await server.#spawn(options.flags);
    } catch (error) {
      await server.stop();
      throw error;
    }
    return server;
  }

  private constructor({ purpose, pin = [], endsOnSignals = false }: OwnServerOptions) {
    this.#pin = pin;
    this.#directory = mkdtempSync(join(tmpdir(), `polyrow-${purpose}-`));
    if (!endsOnSignals) return;
    process.on('exit', this.#clear);
    for (const signal of Object.keys(endings)) process.on(signal, this.#end);
  }

  readonly #end = (signal: keyof typeof endings): void => process.exit(endings[signal]);

  /** Nothing of it is left. */
  readonly #clear = (): void => {
    this.#child?.kill('SIGKILL');
    // The server may still be writing its last file.
    rmSync(this.#directory, { recursive: true, force: true, maxRetries: 20, retryDelay: 20 });
  };

  async #spawn(flags: readonly string[]): Promise<void> {
    const main = join(import.meta.dirname, 'main.js');
    const ports = ['redis', 'influx', 'admin'].flatMap((name) => [`--${name}.port`, '0']);
    const words = [...this.#pin, process.execPath, main, 'start', '--data-dir', this.#directory];
    // Variables meant for the user's own server must not reach this one.
    const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith('POLYROW_'));
    this.#output = '';
    const child = spawn(words[0]!, [...words.slice(1), ...ports, ...flags], {
      env: Object.fromEntries(inherited),
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.#child = child;
    await new Promise<void>((resolve, reject) => {
      const listen = (chunk: Buffer): void => {
        this.#output += chunk.toString();
        if (this.#output.includes('\nReady.')) resolve();
      };
      child.stdout.on('data', listen);
      child.stderr.on('data', listen);
      child.once('error', reject);
      child.once('exit', () => reject(new Error(`the server did not start:\n${this.#output}`)));
    });
  }

  /** Another one over the same data, at other ports. */
  async restart(flags: readonly string[]): Promise<void> {
    await this.#kill();
    await this.#spawn(flags);
  }

  get pid(): number {
    return this.#child!.pid!;
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

  async #kill(): Promise<void> {
    const child = this.#child;
    const isRunning = child?.pid !== undefined && child.exitCode === null;
    if (!isRunning || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  }

  /** Its data is deleted. */
  async stop(): Promise<void> {
    await this.#kill();
    this.#clear();
    process.off('exit', this.#clear);
    for (const signal of Object.keys(endings)) process.off(signal, this.#end);
  }
}
