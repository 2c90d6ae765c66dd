// A server of our own, in a process and a directory of its own, so that nothing but what is measured is in
// its CPU time.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Whoever ends us with one of these ends the server, too. */
const endings = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const;

export class ServerProcess {
  readonly #directory = mkdtempSync(join(tmpdir(), 'polyrow-calibrate-'));
  #child: ChildProcess | undefined;
  #output = '';

  private constructor() {
    process.on('exit', this.#clear);
    for (const signal of Object.keys(endings)) process.on(signal, this.#end);
  }

  readonly #end = (signal: keyof typeof endings): void => process.exit(endings[signal]);

  /** Nothing of it is left. */
  readonly #clear = (): void => {
    this.#child?.kill('SIGKILL');
    // It may still be writing its last file.
    rmSync(this.#directory, { recursive: true, force: true, maxRetries: 20, retryDelay: 20 });
  };

  /** `flags` come after the data directory and the ports, which are free ones. */
  static async start(flags: readonly string[]): Promise<ServerProcess> {
    const server = new ServerProcess();
    try {
      await server.#spawn(flags);
    } catch (error) {
      await server.stop();
      throw error;
    }
    return server;
  }

  async #spawn(flags: readonly string[]): Promise<void> {
    const ports = ['redis', 'influx', 'admin'].flatMap((name) => [`--${name}.port`, '0']);
    const words = ['start', '--data-dir', this.#directory, ...ports, ...flags];
    // Variables meant for the user's own server must not reach this one.
    const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith('POLYROW_'));
    this.#output = '';
    const child = spawn(process.execPath, [process.argv[1]!, ...words], {
      env: Object.fromEntries(inherited),
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.#child = child;
    await this.#ready(child);
  }

  /** Another one over the same data, at other ports. */
  async restart(flags: readonly string[]): Promise<void> {
    await this.#kill();
    await this.#spawn(flags);
  }

  async #ready(child: ChildProcess): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      const listen = (chunk: Buffer): void => {
        this.#output += chunk.toString();
        if (this.#output.includes('\nReady.')) resolve();
      };
      child.stdout!.on('data', listen);
      child.stderr!.on('data', listen);
      child.once('exit', () => reject(new Error(`the server did not start:\n${this.#output}`)));
    });
  }

  get redisPort(): number {
    return this.#portOf('redis');
  }

  get influxPort(): number {
    return this.#portOf('influx');
  }

  #portOf(name: string): number {
    const url = new RegExp(`^ +${name} +(\\S+)$`, 'm').exec(this.#output)?.[1];
    if (url === undefined) throw new Error(`the server serves no ${name}:\n${this.#output}`);
    return Number(new URL(url).port);
  }

  get pid(): number {
    return this.#child!.pid!;
  }

  get adminUrl(): string {
    return `http://127.0.0.1:${this.#portOf('admin')}`;
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

  async #kill(): Promise<void> {
    const child = this.#child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  }

  async stop(): Promise<void> {
    await this.#kill();
    this.#clear();
    process.off('exit', this.#clear);
    for (const signal of Object.keys(endings)) process.off(signal, this.#end);
  }
}
