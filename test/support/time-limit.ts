// A limit on the time that a property of made-up cases takes.

/**
 * The run of a property. Those begun `ms` milliseconds after the first one end at once and count as passed. fast-check's
 * own limit ends the check while a run is under way, which then goes on beside whatever test comes next.
 */
export function withinTime<Arguments extends readonly unknown[]>(
  ms: number,
  run: (...made: Arguments) => Promise<void>,
): (...made: Arguments) => Promise<void> {
  let deadline: number | undefined;
  return async (...made) => {
    deadline ??= performance.now() + ms;
    if (performance.now() < deadline) await run(...made);
  };
}
