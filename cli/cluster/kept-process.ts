// A server in a process of its own, which is started again when it ends by itself.

import { type ChildProcess, spawn, type StdioOptions } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const main = fileURLToPath(new URL('../main.js', import.meta.url));
const firstRestartMs = 1000;
const longestRestartMs = 30_000;
/** One that ran for so long is started again at once, as at the first time. */
const steadyMs = 60_000;

interface KeptProcessOptions {
  /** For people: `node 1`. */
  readonly name: string;
  /** Arguments of `polyrow start`. */
  readonly words: readonly string[];
  /** Asked at each start; `opened` is told when the process has its files. */
  readonly stdio: () => { stdio: StdioOptions; opened?: () => void };
  /** Whether settings of this process's environment are for it. */
  readonly takesEnvironment: boolean;
  readonly restarts: boolean;
  /** The process ended by itself. */
  readonly onExit: (message: string) => void;
  /** Why it does not start any more, as its end has shown; undefined when it may. */
  readonly isOver: () => string | undefined;
}

export class KeptProcess {
  readonly #options: KeptProcessOptions;
  #child: ChildProcess | undefined;
  #exit: Promise<void> = Promise.resolve();
  #restartMs = firstRestartMs;
  #timer: NodeJS.Timeout | undefined;
  #stopping = false;
  #isOver = false;
  #ended = '';

  constructor(options: KeptProcessOptions) {
    this.#options = options;
  }

  get pid(): number {
    return this.#child?.pid ?? 0;
  }

  get child(): ChildProcess | undefined {
    return this.#child;
  }

  /** The process is not restarted any more. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** How it has ended; '' while it runs. */
  get ended(): string {
    return this.#ended;
  }

  start(): void {
    const { words, stdio, takesEnvironment } = this.#options;
    const startedAt = performance.now();
    const files = stdio();
    const inherited = Object.entries(process.env).filter(
      ([name]) => takesEnvironment || !name.startsWith('POLYROW_'),
    );
    const child = spawn(process.execPath, [main, 'start', ...words], {
      env: Object.fromEntries(inherited),
      stdio: files.stdio,
      // Ctrl-C is for this process, which stops the others in good order.
      detached: true,
    });
    files.opened?.();
    this.#child = child;
    this.#ended = '';
    this.#exit = new Promise((resolve) => {
      const end = (reason: string): void => {
        this.#ended = reason;
        resolve();
        if (!this.#stopping) this.#endedAlone(reason, performance.now() - startedAt);
      };
      child.once('error', (error) => end(error.message));
      child.once('exit', (code, signal) => end(signal ?? `exit code ${code}`));
    });
  }

  #endedAlone(reason: string, ranMs: number): void {
    const { name, restarts, onExit, isOver } = this.#options;
    const over = isOver();
    if (over !== undefined) {
      this.#isOver = true;
      onExit(`${name} ${over}`);
      return;
    }
    if (ranMs >= steadyMs) this.#restartMs = firstRestartMs;
    const waitMs = this.#restartMs;
    const next = restarts ? `; it is started again in ${waitMs / 1000} s` : '';
    onExit(`${name} has ended (${reason})${next}`);
    if (!restarts) return;
    this.#restartMs = Math.min(longestRestartMs, waitMs * 2);
    this.#timer = setTimeout(() => this.start(), waitMs);
  }

  /** In good order. */
  async stop(): Promise<void> {
    this.#stopping = true;
    clearTimeout(this.#timer);
    this.#child?.kill('SIGTERM');
    await this.#exit;
  }
}
