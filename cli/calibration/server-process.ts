// A server of our own, in a process and a directory of its own, so that nothing but what is measured is in
// its CPU time.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export class ServerProcess {
  readonly #child: ChildProcess;
  readonly #directory: string;
  #output = '';

  private constructor(child: ChildProcess, directory: string) {
    this.#child = child;
    this.#directory = directory;
  }

  /** `flags` come after the data directory and the ports, which are free ones. */
  static async start(flags: readonly string[]): Promise<ServerProcess> {
    const directory = mkdtempSync(join(tmpdir(), 'polyrow-calibrate-'));
    const ports = ['redis', 'influx', 'admin'].flatMap((name) => [`--${name}.port`, '0']);
    const words = ['start', '--data-dir', directory, ...ports, ...flags];
    // Variables meant for the user's own server must not reach this one.
    const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith('POLYROW_'));
    const child = spawn(process.execPath, [process.argv[1]!, ...words], {
      env: Object.fromEntries(inherited),
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const server = new ServerProcess(child, directory);
    await server.#ready();
    return server;
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

  /** The page of metrics. */
  async metrics(): Promise<string> {
    const token = readFileSync(join(this.#directory, 'admin-token'), 'utf8').trim();
    const answer = await fetch(`http://127.0.0.1:${this.#portOf('admin')}/metrics`, {
      headers: { authorization: `Bearer ${token}` },
    });
    return await answer.text();
  }

  async stop(): Promise<void> {
    const ended = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await ended;
    rmSync(this.#directory, { recursive: true, force: true });
  }
}
