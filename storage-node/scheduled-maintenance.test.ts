import { expect, test } from 'vitest';
import {
  backgroundWork,
  contendedSliceMs,
  urgentBackgroundWork,
} from '../contracts/pod-admission.ts';
import { QueueAll } from './pod-admission-fixture.ts';
import { systemClock } from '../universal-row/environment.ts';
import { ScheduledMaintenance } from './scheduled-maintenance.ts';

const nextTick = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('a slice waits for the scheduler, and is short while tenants compete', async () => {
  const admission = new QueueAll();
  const slices: number[] = [];
  const maintenance = new ScheduledMaintenance(admission, systemClock);
  const done = maintenance.run(false, (ms) => slices.push(ms));
  const urgent = maintenance.run(true, (ms) => slices.push(ms));
  await nextTick();
  await nextTick();
  expect(slices).toEqual([]);
  expect(admission.queued.map(({ tenant }) => tenant)).toEqual([
    backgroundWork,
    urgentBackgroundWork,
  ]);
  for (const request of admission.queued) request.resume(true);
  expect(await Promise.all([done, urgent])).toEqual([1, 2]);
  expect(slices[0]).toBe(contendedSliceMs);
  expect(slices[1]).toBeGreaterThan(contendedSliceMs);
});

test('while no tenant competes a slice runs in the next tick, never in this one', async () => {
  const admission = new QueueAll();
  admission.result = 'admitted';
  for (const scheduler of [admission, undefined]) {
    let ms = 0;
    const done = new ScheduledMaintenance(scheduler, systemClock).run(false, (length) => {
      ms = length;
    });
    expect(ms).toBe(0);
    await done;
    expect(ms).toBeGreaterThan(contendedSliceMs);
  }
});

test('what the work throws rejects', async () => {
  const failed = new ScheduledMaintenance(undefined, systemClock).run(true, () => {
    throw new Error('no room');
  });
  await expect(failed).rejects.toThrow('no room');
});
