// Progress of an import on standard error: a bar and then a line of lag on terminals, else a line
// now and then; lines of JSON on standard output for programs.

import { progressView } from '../commands/backup-progress.ts';
import { formatBytes, formatNumber } from '../output/values.ts';

interface Lag {
  /** Bytes of commands that the target has. */
  appliedBytes: number;
  commands: number;
  lagBytes: number;
}

const lineMs = 10_000;
const screenMs = 200;

export class ImportView {
  readonly #isJson: boolean;
  readonly #bar: Awaited<ReturnType<typeof progressView>>;
  #shownAt = 0;

  private constructor(isJson: boolean, bar: Awaited<ReturnType<typeof progressView>>) {
    this.#isJson = isJson;
    this.#bar = bar;
  }

  static async open(isJson: boolean): Promise<ImportView> {
    return new ImportView(isJson, await progressView(isJson));
  }

  note(text: string): void {
    if (!this.#isJson) process.stderr.write(`polyrow: ${text}\n`);
  }

  /** A part of the whole is there; NaN when it is not known how much that is. */
  loading(fraction: number, bytes: number, keys: number): void {
    if (!this.#isDue()) return;
    const known = Number.isNaN(fraction) ? 0 : Math.min(1, fraction);
    if (this.#isJson || process.stderr.isTTY) {
      this.#bar.update({ phase: 'import', fraction: known, bytes });
      return;
    }
    const part = Number.isNaN(fraction) ? '' : `${Math.floor(known * 100)} %, `;
    this.note(`import: ${part}${formatBytes(bytes)}, ${formatNumber(keys)} keys`);
  }

  loaded(): void {
    this.#bar.end();
    this.#shownAt = 0;
  }

  live(lag: Lag): void {
    if (!this.#isDue()) return;
    if (this.#isJson) {
      process.stdout.write(`${JSON.stringify({ phase: 'live', ...lag })}\n`);
      return;
    }
    const text = `live: ${formatNumber(lag.commands)} commands, lag ${formatBytes(lag.lagBytes)}`;
    if (process.stderr.isTTY) process.stderr.write(`\r${text.padEnd(60)}`);
    else this.note(text);
  }

  end(): void {
    this.#bar.end();
    if (process.stderr.isTTY && !this.#isJson) process.stderr.write('\n');
  }

  #isDue(): boolean {
    const now = Date.now();
    const every = this.#isJson || process.stderr.isTTY ? screenMs : lineMs;
    if (now - this.#shownAt < every) return false;
    this.#shownAt = now;
    return true;
  }
}
