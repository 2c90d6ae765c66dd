// Time as the workflow engine needs it, so that tests hand in a time of their own.

export interface Timers {
  /** Wall-clock time, milliseconds since 1970. */
  now(): number;
  /** Milliseconds since an arbitrary start. Never goes back. */
  monotonic(): number;
  /** Calls `run` once after a delay. Returns how to cancel. */
  after(delayMs: number, run: () => void): () => void;
}

export const systemTimers: Timers = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after: (delayMs, run) => {
    const timer = setTimeout(run, delayMs).unref();
    return () => clearTimeout(timer);
  },
};

/** Resolves after a delay, or at once when `signal` is aborted. */
export async function pause(timers: Timers, delayMs: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await new Promise<void>((resolve) => {
    const end = (): void => {
      cancel();
      signal.removeEventListener('abort', end);
      resolve();
    };
    const cancel = timers.after(delayMs, end);
    signal.addEventListener('abort', end);
  });
}

/** Delay before the attempt after `failures` failed ones. */
export function backOff(failures: number, firstMs: number, mostMs: number): number {
  return Math.min(mostMs, firstMs * 2 ** (failures - 1));
}
