// Immediate answers are returned in the same tick; only pending ones are promises.

export type MaybePromise<T> = T | Promise<T>;

/** Runs `next` now or later. A hot path writes the branch out instead, and makes no closure. */
export function whenReady<T, U>(
  value: MaybePromise<T>,
  next: (value: T) => MaybePromise<U>,
): MaybePromise<U> {
  return value instanceof Promise ? value.then(next) : next(value);
}
