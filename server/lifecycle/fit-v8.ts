// Settings of V8 for a server, whose data are outside of its heap: the heap is small, and memory of requests is short-lived.

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

/**
 * In MB. V8 marks its whole heap each time that so much memory was allocated, buffers included. Its own limit grows with the
 * heap, which here is small: without this, nodes that replicate values of 10 kB mark theirs eight times a second.
 */
const oldSpaceFlag = '--initial-old-space-size=64';

const oneProcessorFlags = [
  '--no-parallel-scavenge',
  // A thread with nothing to do would collect its garbage once more, while another one answers.
  '--no-memory-reducer',
];

/** Holds for threads that begin later: must be called before any does. */
export function fitV8(): void {
  setFlagsFromString(oldSpaceFlag);
  if (availableParallelism() > 1) return;
  // As in a small container. V8's helper threads for garbage collection and compilation compete with the thread that
  // answers: a pause of one millisecond becomes one of ten.
  for (const flag of oneProcessorFlags) setFlagsFromString(flag);
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
