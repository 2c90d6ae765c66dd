import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, it, vi } from 'vitest';
import { PlaneSteps } from './plane-steps.ts';

let steps: PlaneSteps | undefined;
afterEach(() => steps?.close());

it('finds a stall that no step was told of, and what was touched before it', async () => {
  steps = new PlaneSteps('redis', () => {});
  steps.start();
  // The heartbeat begins.
  await new Promise((resolve) => setTimeout(resolve, 30));
  steps.watch.touched({ stepInfo: () => ({ what: 'keys', tenant: 7, bytes: 5 }) });
  const until = performance.now() + 80;
  while (performance.now() < until);
  await expect
    .poll(() => steps!.list({ limit: 10 }))
    .toContainEqual(expect.objectContaining({ text: 'after keys', tenant: 7, bytes: 5 }));
  const [entry] = steps.list({ limit: 10 });
  expect(entry!.durationMicros).toBeGreaterThan(25_000);
  const counted = steps.samples().filter(({ name }) => name === 'polyrow_long_steps_total');
  expect(counted.reduce((sum, { value }) => sum + value, 0)).toBeGreaterThan(0);
});

it('does not wake a thread that has nothing to do, and watches again once it has', async () => {
  steps = new PlaneSteps('redis', () => {});
  const beats = vi.spyOn(steps.watch, 'heartbeat');
  steps.start();
  await expect.poll(() => beats.mock.calls.length).toBe(1);
  // Several more would have come.
  await new Promise((resolve) => setTimeout(resolve, 60));
  expect(beats).toHaveBeenCalledOnce();
  steps.watch.touched({ stepInfo: () => ({ what: 'later', tenant: 1, bytes: 0 }) });
  const until = performance.now() + 80;
  while (performance.now() < until);
  await expect
    .poll(() => steps!.list({ limit: 10 }))
    .toContainEqual(expect.objectContaining({ text: 'after later' }));
});

it('adds a line for each long step to the file that the environment names', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'polyrow-steps-'));
  const file = join(directory, 'steps');
  vi.stubEnv('TEST_LONG_STEPS', file);
  try {
    steps = new PlaneSteps('influx', () => {});
    steps.watch.ended(0, 30, { stepInfo: () => ({ what: 'a write', tenant: 3, bytes: 9 }) });
    await expect.poll(() => steps!.list({ limit: 10 })).toHaveLength(1);
    expect(JSON.parse(readFileSync(file, 'utf8'))).toMatchObject({
      plane: 'influx',
      what: 'a write',
      tenant: 3,
      bytes: 9,
      durationMs: 30,
    });
  } finally {
    vi.unstubAllEnvs();
    rmSync(directory, { recursive: true });
  }
});
