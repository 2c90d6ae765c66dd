// The compiled `polyrow` command as a child process, as a user runs it.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const dist = process.env['DIST_DIR'] ?? fileURLToPath(new URL('../../dist', import.meta.url));
export const main = `${dist}/cli/main.js`;

/** Compiled by `npm run build`, which `npm test` does first. */
export const isBuilt = existsSync(main);

/** Our own variables in the environment of the tests must not leak into the server. */
function cleanEnvironment(more: Record<string, string>): NodeJS.ProcessEnv {
  const entries = Object.entries(process.env).filter(([name]) => !name.startsWith('POLYROW_'));
  return { ...Object.fromEntries(entries), ...more };
}

export interface Finished {
  code: number | null;
  out: string;
  err: string;
}

export class PolyrowProcess {
  readonly #child: ChildProcess;
  readonly #exit: Promise<unknown[]>;
  out = '';
  err = '';

  constructor(words: readonly string[], environment: Record<string, string> = {}) {
    const env = cleanEnvironment(environment);
    this.#child = spawn(process.execPath, [main, ...words], { env });
    this.#exit = once(this.#child, 'close');
    this.#child.stdout!.on('data', (chunk) => (this.out += String(chunk)));
    this.#child.stderr!.on('data', (chunk) => (this.err += String(chunk)));
  }

  get pid(): number {
    return this.#child.pid!;
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  async finish(): Promise<Finished> {
    const [code] = (await this.#exit) as [number | null];
    return { code, out: this.out, err: this.err };
  }

  /** Resolves when it serves; rejects with what it said when it ends instead. */
  async ready(): Promise<void> {
    let ended = false;
    const end = this.#exit.then(() => (ended = true));
    while (!this.out.includes('Ready.')) {
      await Promise.race([end, new Promise((resolve) => setTimeout(resolve, 20))]);
      if (ended) throw new Error(`it ended instead of serving:\n${this.out}${this.err}`);
    }
  }

  /** URL of an endpoint it has printed. */
  url(name: string): string {
    const found = new RegExp(`^ +${name} +(\\S+)$`, 'm').exec(this.out);
    if (found === null) throw new Error(`no ${name} in:\n${this.out}`);
    return found[1]!;
  }

  port(name: string): number {
    return Number(new URL(this.url(name)).port);
  }
}

export function polyrow(words: string[], environment?: Record<string, string>): Promise<Finished> {
  return new PolyrowProcess(words, environment).finish();
}
