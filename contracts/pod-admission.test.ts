import { setImmediate as nextRound } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { type PodAdmission, type PodRequest, TimeSlice } from './pod-admission.ts';

/** Resumes what waits when it is told to. */
class Queue {
  readonly waiting: PodRequest[] = [];
  readonly admission = {
    isContended: () => false,
    spent: () => {},
    requeue: (request: PodRequest) => void this.waiting.push(request),
  } as unknown as PodAdmission;

  resume(): void {
    this.waiting.shift()!.resume(true);
  }
}

function workFor(ms: number): void {
  const until = performance.now() + ms;
  while (performance.now() < until);
}

/** Other requests work in this round until it has no time left for a further step. */
async function fillRound(): Promise<void> {
  await nextRound();
  const other = new TimeSlice(undefined, 1);
  expect(other.turn()).toBeUndefined();
  workFor(10);
}

test('a slice that was given in this round is used in any case', async () => {
  const queue = new Queue();
  const slice = new TimeSlice(queue.admission, 1);
  const next = slice.yield();
  await fillRound();
  queue.resume();
  expect(slice.turn()).toBeUndefined();
  // Once.
  expect(slice.turn()).toBeInstanceOf(Promise);
  await next;
});

test('a slice that was given in an earlier round waits where this one is full', async () => {
  const queue = new Queue();
  const slice = new TimeSlice(queue.admission, 1);
  const next = slice.yield();
  await nextRound();
  queue.resume();
  await next;
  await fillRound();
  expect(slice.turn()).toBeInstanceOf(Promise);
  expect(queue.waiting).toHaveLength(1);
});
