// Signals that ask the server to stop. The first signal begins a graceful stop, a second signal stops at once.

import { constants } from 'node:os';
import { type Clock, systemClock } from '../../universal-row/environment.ts';

const stopSignals = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;
type StopSignal = (typeof stopSignals)[number];

// npm passes on a Ctrl-C that the terminal has sent to the server already: that is one wish, not two.
const sameWishMs = 300;

/** For a server that has something to read again: a hang-up then asks for that instead. */
export const stopSignalsOfService: readonly StopSignal[] = ['SIGTERM', 'SIGINT'];

export function onReloadSignal(reload: () => void): void {
  process.on('SIGHUP', reload);
}

/** Calls `stop` at the first signal; ends the process at the second, with the shell's code for it. */
export function onStopSignals(
  stop: (signal: StopSignal) => void,
  exit: (code: number) => void = (code) => process.exit(code),
  clock: Clock = systemClock,
  signals: readonly StopSignal[] = stopSignals,
): void {
  let firstAt: number | undefined;
  const heard = (signal: StopSignal) => {
    const now = clock.monotonic();
    if (firstAt === undefined) {
      firstAt = now;
      stop(signal);
    } else if (now - firstAt > sameWishMs) {
      exit(128 + constants.signals[signal]);
    }
  };
  for (const signal of signals) process.on(signal, heard);
}
