// A part of the terminal that is drawn anew again and again, until a key or Ctrl-C ends it.

import { setTimeout as sleep } from 'node:timers/promises';

const leave = '\u001b[?25h\u001b[?1049l';
const enter = '\u001b[?1049h\u001b[?25l';
const home = '\u001b[H';
const toLineEnd = '\u001b[K';
const toScreenEnd = '\u001b[J';

interface LiveScreen {
  /** The lines to show, at most so many of at most so many characters. */
  draw: (rows: number, columns: number) => Promise<string>;
  intervalMs: number;
}

/** Resolves when the user quits. An error in `draw` ends it and is thrown. */
export async function showLive({ draw, intervalMs }: LiveScreen): Promise<void> {
  const { stdin, stdout } = process;
  const stop = new AbortController();
  const onKey = (key: Buffer): void => {
    // q, Ctrl-C, Ctrl-D
    if (key.includes(113) || key.includes(3) || key.includes(4)) stop.abort();
  };
  const onSignal = (): void => stop.abort();
  const wasRaw = stdin.isTTY && stdin.isRaw;
  if (stdin.isTTY) {
    stdin.setRawMode(true);
    stdin.on('data', onKey);
    stdin.resume();
  }
  process.on('SIGINT', onSignal);
  process.on('SIGTERM', onSignal);
  stdout.write(enter);
  try {
    while (!stop.signal.aborted) {
      // A terminal that does not know its size says 0.
      const rows = stdout.rows || 24;
      const columns = stdout.columns || 80;
      const lines = (await draw(rows, columns)).split('\n').slice(0, rows - 1);
      stdout.write(home + lines.map((line) => line + toLineEnd).join('\n') + toScreenEnd);
      await sleep(intervalMs, undefined, { signal: stop.signal }).catch(() => {});
    }
  } finally {
    stdout.write(leave);
    process.off('SIGINT', onSignal);
    process.off('SIGTERM', onSignal);
    if (stdin.isTTY) {
      stdin.off('data', onKey);
      stdin.setRawMode(wasRaw);
      stdin.pause();
    }
  }
}
