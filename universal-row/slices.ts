// Work cut into slices: a generator that yields after a bounded amount of it. Its runner checks the
// clock between two slices, and lets other work run when the time is used up. Where the work has to
// wait, it yields a promise that never rejects; the work resumes once that has resolved.

export type Slices<T> = Generator<Promise<unknown> | undefined, T, void>;

/** Elements that are looked at between two yields: about a millisecond where each takes a tenth of a microsecond. */
export const sliceElements = 8192;

/** All slices at once, for work that is known to be small and never to wait, and for tests. */
export function inOneGo<T>(slices: Slices<T>): T {
  let step = slices.next();
  while (step.done !== true) {
    if (step.value !== undefined) throw new Error('the work has to wait');
    step = slices.next();
  }
  return step.value;
}

/** Slices of work that never waits, for generators that yield other values where they wait. */
export function* unwaiting<T>(slices: Slices<T>): Generator<undefined, T, void> {
  for (let step = slices.next(); ; step = slices.next()) {
    if (step.done === true) return step.value;
    if (step.value !== undefined) throw new Error('the work has to wait');
    yield;
  }
}

/** As `inOneGo`, of work that may wait. */
export async function whenFinished<T>(slices: Slices<T>): Promise<T> {
  let step = slices.next();
  while (step.done !== true) {
    if (step.value !== undefined) await step.value;
    step = slices.next();
  }
  return step.value;
}

/** Waits for the promise, and throws its rejection. */
export function* awaited<T>(promise: Promise<T>): Slices<T> {
  let result: { value: T } | { error: unknown } | undefined;
  const settled = promise.then(
    (value) => {
      result = { value };
    },
    (error: unknown) => {
      result = { error };
    },
  );
  while (result === undefined) yield settled;
  const { value, error } = result as { value: T; error?: unknown };
  if ('error' in result) throw error;
  return value;
}

/** A sorted copy. Stable. */
export function* sortedInSlices<T>(
  items: readonly T[],
  compare: (a: T, b: T) => number,
): Slices<T[]> {
  let from: T[] = [];
  for (let start = 0; start < items.length; start += sliceElements) {
    const run = items.slice(start, start + sliceElements).sort(compare);
    if (items.length <= sliceElements) return run;
    for (const item of run) from.push(item);
    yield;
  }
  for (let length = sliceElements; length < from.length; length *= 2) {
    const to: T[] = [];
    for (let start = 0; start < from.length; start += 2 * length) {
      const middle = Math.min(start + length, from.length);
      const end = Math.min(middle + length, from.length);
      let a = start;
      let b = middle;
      while (a < middle || b < end) {
        const isFirst = b >= end || (a < middle && compare(from[a]!, from[b]!) <= 0);
        to.push(from[isFirst ? a++ : b++]!);
        if (to.length % sliceElements === 0) yield;
      }
    }
    from = to;
  }
  return from;
}

/** A single slice: for stores that are small. */
export function* oneSlice<T>(work: () => T): Slices<T> {
  const result = work();
  yield;
  return result;
}
