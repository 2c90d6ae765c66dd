// A load generator process, from the side of its parent.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setPriority } from 'node:os';
import { join } from 'node:path';
import type { LoadAnswer, LoadOptions, LoadOrder, LoadReport } from './load-messages.ts';

/** Priority of flooding processes: measurements come first. */
const lowPriority = 10;

export class Generator {
  readonly #child: ChildProcess;
  #output = '';

  /**
   * `pin` is a prefix of the command, for example taskset. Generators that drop late requests run
   * at a lower priority.
   */
  static async make(options: LoadOptions, pin: readonly string[] = []): Promise<Generator> {
    const generator = new Generator(options, pin);
    await generator.#order({ do: 'prepare', options });
    return generator;
  }

  private constructor({ drops }: LoadOptions, pin: readonly string[]) {
    const words = [...pin, process.execPath, join(import.meta.dirname, 'load-process.js')];
    this.#child = spawn(words[0]!, words.slice(1), {
      serialization: 'advanced',
      stdio: ['ignore', 'inherit', 'pipe', 'ipc'],
    });
    this.#child.stderr!.on('data', (chunk: Buffer) => (this.#output += chunk.toString()));
    if (drops) setPriority(this.#child.pid!, lowPriority);
  }

  async start(rate: number): Promise<void> {
    await this.#order({ do: 'start', rate });
  }

  /** Sets the rate in requests a second; returns the report since the last call. */
  change(rate: number): Promise<LoadReport> {
    return this.#order({ do: 'change', rate });
  }

  /** The report since the start or the previous call. */
  take(): Promise<LoadReport> {
    return this.#order({ do: 'take' });
  }

  /** The rest. It can be started again. */
  stop(): Promise<LoadReport> {
    return this.#order({ do: 'stop' });
  }

  async #order(order: LoadOrder): Promise<LoadReport> {
    const ended = new AbortController();
    const child = this.#child;
    try {
      const answered = Promise.race([
        once(child, 'message', { signal: ended.signal }),
        once(child, 'exit', { signal: ended.signal }).then(() => {
          throw new Error(`a process that makes load has ended:\n${this.#output}`);
        }),
      ]);
      child.send(order);
      const [answer] = (await answered) as [LoadAnswer];
      if ('error' in answer) throw new Error(answer.error);
      return answer.report;
    } finally {
      ended.abort();
    }
  }

  /** Requests in flight fail. */
  kill(): void {
    this.#child.kill('SIGKILL');
  }

  async close(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const ended = once(this.#child, 'exit');
    this.#child.send({ do: 'exit' } satisfies LoadOrder);
    await ended;
  }
}
