// Progress of a backup, a restore or a check: a bar on standard error on terminals, lines of JSON
// on standard output for programs.

import type { SingleBar } from 'cli-progress';
import { formatBytes, printable } from '../output/values.ts';

interface ProgressView {
  update(state: { phase: string; fraction: number; bytes: number }): void;
  end(): void;
}

export async function progressView(json: boolean): Promise<ProgressView> {
  if (json) return new JsonLines();
  if (!process.stderr.isTTY) return silent;
  const { Format, SingleBar: Bar } = (await import('cli-progress')).default;
  const bar = new Bar({
    stream: process.stderr,
    hideCursor: true,
    clearOnComplete: true,
    barsize: 40,
    barCompleteChar: '=',
    barIncompleteChar: ' ',
    formatValue: (value, options, type) =>
      type === 'percentage' ? Format.ValueFormat(value, options, type).padStart(3) : String(value),
    format: '{phase} [{bar}] {percentage}% {size}',
  });
  return new BarView(bar);
}

class BarView implements ProgressView {
  readonly #bar: SingleBar;
  #started = false;

  constructor(bar: SingleBar) {
    this.#bar = bar;
  }

  update({ phase, fraction, bytes }: { phase: string; fraction: number; bytes: number }): void {
    const shown = { phase: printable(phase).padEnd(9), size: formatBytes(bytes) };
    if (!this.#started) {
      this.#bar.start(1000, 0, shown);
      this.#started = true;
    }
    this.#bar.update(Math.round(fraction * 1000), shown);
  }

  end(): void {
    if (this.#started) this.#bar.stop();
  }
}

class JsonLines implements ProgressView {
  #last = '';

  update({ phase, fraction, bytes }: { phase: string; fraction: number; bytes: number }): void {
    const line = JSON.stringify({ phase, fraction: Number(fraction.toFixed(3)), bytes });
    if (line === this.#last) return;
    this.#last = line;
    process.stdout.write(`${line}\n`);
  }

  end(): void {}
}

const silent: ProgressView = { update() {}, end() {} };
