// On one processor, as in a small container, V8's helper threads for garbage collection and compilation compete with the
// thread that answers: a pause of one millisecond becomes one of ten.

import { readdirSync } from 'node:fs';
import { availableParallelism, setPriority } from 'node:os';
import { setFlagsFromString } from 'node:v8';

/** V8's worker threads, and the thread that wakes them for delayed tasks. A process starts these first. */
const helperThreads = 5;

/**
 * Gives them a thirtieth of the answering thread's share. With the lowest priority a busy server's code would be
 * compiled too late, with a higher one requests are delayed.
 */
const helperNiceness = 15;

/** For the threads that begin later. */
const flags = [
  '--no-parallel-scavenge',
  // A thread with nothing to do would collect its garbage once more, while another one answers.
  '--no-memory-reducer',
  // In MB. Otherwise the short-lived memory of requests would trigger a marking of the whole heap
  // every second.
  '--initial-old-space-size=64',
];

/** For machines with one processor. Must be called before other threads begin. */
export function fitToOneProcessor(): void {
  if (availableParallelism() > 1) return;
  for (const flag of flags) setFlagsFromString(flag);
  for (const thread of helpers()) setPriority(thread, helperNiceness);
}

/** Thread numbers, which rise and are not reused while a thread exists. */
function helpers(): number[] {
  if (process.platform !== 'linux') return [];
  const threads = readdirSync('/proc/self/task').map(Number);
  return threads
    .filter((thread) => thread > process.pid)
    .sort((a, b) => a - b)
    .slice(0, helperThreads);
}
