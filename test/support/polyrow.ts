// The compiled server as a child process, over several starts on one data directory: started,
// stopped as by an operator, killed as by a crash, and restarted.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { RespClient } from './resp-client.ts';

const dist = process.env['DIST_DIR'] ?? fileURLToPath(new URL('../../dist', import.meta.url));
const main = `${dist}/cli/main.js`;

interface PolyrowOptions {
  /** Flags of `polyrow start` besides data directory and ports. */
  flags?: readonly string[];
  /** A directory of its own by default, removed with the server. */
  dataDir?: string;
  /** Beside the environment of the test. */
  env?: Readonly<Record<string, string>>;
  /** Words before the command, as of taskset, that leave it its process number. */
  before?: readonly string[];
}

/** Thrown when the server ends although it was to start; tells what it said. */
export class StartError extends Error {
  override readonly name = 'StartError';
  readonly code: number | null;
  readonly output: string;

  constructor(code: number | null, output: string) {
    super(`polyrow ended with code ${code} instead of serving:\n${output}`);
    this.code = code;
    this.output = output;
  }
}

export class Polyrow {
  readonly dataDir: string;
  /** Standard output and error since the first start. */
  output = '';
  readonly #ownsDirectory: boolean;
  #flags: readonly string[];
  readonly #before: readonly string[];
  readonly #env: Readonly<Record<string, string>>;
  #child: ChildProcess | undefined;
  #exit: Promise<unknown[]> | undefined;
  #lifeBegan = 0;

  private constructor(options: PolyrowOptions) {
    this.#flags = options.flags ?? [];
    this.#before = options.before ?? [];
    this.#env = options.env ?? {};
    this.#ownsDirectory = options.dataDir === undefined;
    this.dataDir = options.dataDir ?? mkdtempSync(join(tmpdir(), 'polyrow-test-'));
  }

  static async start(options: PolyrowOptions = {}): Promise<Polyrow> {
    const server = new Polyrow(options);
    try {
      await server.#launch();
    } catch (error) {
      await server.remove();
      throw error;
    }
    return server;
  }

  /** Output since the last start. */
  get lifeOutput(): string {
    return this.output.slice(this.#lifeBegan);
  }

  get pid(): number {
    return this.#child!.pid!;
  }

  get running(): boolean {
    return this.#child !== undefined && this.#child.exitCode === null && !this.#child.signalCode;
  }

  get redisPort(): number {
    return Number(new URL(this.#url('redis')).port);
  }

  /** Where InfluxDB clients are served, as http://127.0.0.1:8086. */
  get influx(): string {
    return this.#url('influx');
  }

  get admin(): string {
    return this.#url('admin');
  }

  /** Admin token of an operator. */
  get adminToken(): string {
    return readFileSync(join(this.dataDir, 'admin-token'), 'utf8').trim();
  }

  /** A call of the admin API as an operator, or with the token given. */
  async askAdmin(
    method: string,
    path: string,
    body?: object,
    token = this.adminToken,
  ): Promise<{ status: number; body: unknown }> {
    const response = await fetch(this.admin + path, {
      method,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return { status: response.status, body: await response.json() };
  }

  /** Memory of the process as the system sees it. */
  residentBytes(): number {
    const [, kilobytes] = /^VmRSS:\s+(\d+) kB$/m.exec(
      readFileSync(`/proc/${this.pid}/status`, 'utf8'),
    )!;
    return Number(kilobytes) * 1024;
  }

  client(version: 2 | 3 = 2): Promise<RespClient> {
    return RespClient.connect(this.redisPort, version);
  }

  /** An orderly end, which must be one: anything but exit code 0 is an error. */
  async stop(): Promise<void> {
    if (!this.running) throw new Error(`not running:\n${this.lifeOutput}`);
    this.#child!.kill('SIGTERM');
    const code = await this.exited();
    if (code !== 0) throw new Error(`stopping ended with code ${code}:\n${this.lifeOutput}`);
  }

  /** An end without warning. The system keeps what was written, synced or not. */
  async kill(): Promise<void> {
    if (!this.running) throw new Error(`died before it was killed:\n${this.lifeOutput}`);
    this.#child!.kill('SIGKILL');
    await this.exited();
  }

  /** The next life on the same data; `flags` replace the former ones. */
  async restart(flags?: readonly string[]): Promise<void> {
    if (this.running) await this.stop();
    if (flags !== undefined) this.#flags = flags;
    await this.#launch();
  }

  async exited(): Promise<number | null> {
    const [code] = (await this.#exit) as [number | null];
    return code;
  }

  /** For `afterEach`: ends it however it is, and removes its data. */
  async remove(): Promise<void> {
    if (this.running) await this.kill();
    if (this.#ownsDirectory) rmSync(this.dataDir, { recursive: true, force: true });
  }

  async #launch(): Promise<void> {
    if (!existsSync(main)) throw new Error(`${main} is missing: run \`npm run build\` first`);
    const words = [
      'start',
      '--data-dir',
      this.dataDir,
      '--redis.port',
      '0',
      '--influx.port',
      '0',
      '--admin.port',
      '0',
    ];
    // Variables meant for a server of the user's must not reach this one.
    const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith('POLYROW_'));
    const command = [...this.#before, process.execPath, main, ...words, ...this.#flags];
    const child = spawn(command[0]!, command.slice(1), {
      env: { ...Object.fromEntries(inherited), ...this.#env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.#lifeBegan = this.output.length;
    this.#child = child;
    this.#exit = once(child, 'close');
    let wake: () => void;
    const ready = new Promise<void>((resolve) => (wake = resolve));
    const listen = (chunk: Buffer) => {
      this.output += chunk.toString();
      if (this.lifeOutput.includes('\nReady.')) wake();
    };
    child.stdout.on('data', listen);
    child.stderr.on('data', listen);
    await Promise.race([ready, this.#exit]);
    if (!this.running) throw new StartError(await this.exited(), this.lifeOutput);
  }

  #url(name: string): string {
    const found = new RegExp(`^ +${name} +(\\S+)$`, 'm').exec(this.lifeOutput);
    if (found === null) throw new Error(`no ${name} endpoint in:\n${this.lifeOutput}`);
    return found[1]!;
  }
}
