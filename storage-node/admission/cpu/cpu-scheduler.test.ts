import { afterEach, expect, test, vi } from 'vitest';
import { batchRequest, backgroundWork, TimeSlice } from '../../../contracts/pod-admission.ts';
import { AdmissionController } from '../admission-controller.ts';
import { CpuScheduler } from './cpu-scheduler.ts';

afterEach(() => {
  vi.useRealTimers();
});

/** A clock that only work moves, and work that takes so long. */
function setUp(options: { sliceMs?: number } = {}): {
  queue: CpuScheduler;
  clock: { ms: number };
  ran: string[];
  work: (name: string, ms: number) => () => void;
} {
  const clock = { ms: 1000 };
  const time = { now: () => clock.ms, monotonic: () => clock.ms };
  const queue = new CpuScheduler({ clock: time, sliceMs: 2, ...options });
  const ran: string[] = [];
  const work = (name: string, ms: number) => () => {
    clock.ms += ms;
    ran.push(name);
  };
  return { queue, clock, ran, work };
}

const immediates = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

async function drained(queue: CpuScheduler): Promise<void> {
  while (queue.length > 0) await immediates();
}

test('within a slice everyone runs at once, and who is alone always', () => {
  const { queue, clock } = setUp();
  queue.beginTick(clock.ms);
  expect(queue.mayRun(1, clock.ms)).toBe(true);
  clock.ms += 1;
  expect(queue.mayRun(2, clock.ms)).toBe(true);
  clock.ms += 5;
  expect(queue.mayRun(2, clock.ms)).toBe(false);
  clock.ms += 200;
  expect(queue.mayRun(2, clock.ms)).toBe(true);
  queue.beginTick(clock.ms);
  // A tenant with little use of the round passes one with much.
  expect(queue.mayRun(1, clock.ms)).toBe(true);
  expect(queue.mayRun(2, clock.ms)).toBe(true);
  clock.ms += 3;
  expect(queue.mayRun(1, clock.ms)).toBe(true);
  expect(queue.mayRun(2, clock.ms)).toBe(false);
});

test('nobody goes past the line in a round that has been long', () => {
  const { queue, clock } = setUp();
  queue.beginTick(clock.ms);
  expect(queue.mayRun(1, clock.ms)).toBe(true);
  clock.ms += 9;
  expect(queue.mayRun(2, clock.ms)).toBe(true);
  clock.ms += 1;
  expect(queue.isSliceOver(clock.ms)).toBe(true);
  expect(queue.mayRun(3, clock.ms)).toBe(false);
});

test('who has something in line does not go past it', async () => {
  const { queue, clock, ran, work } = setUp();
  for (let i = 0; i < 5; i++) queue.enqueue(batchRequest(1, work('heavy', 1)));
  queue.enqueue(batchRequest(2, work('light', 0.1)));
  queue.beginTick(clock.ms);
  expect(queue.mayRun(2, clock.ms)).toBe(false);
  expect(queue.mayRun(3, clock.ms)).toBe(true);
  await drained(queue);
  expect(ran).toHaveLength(6);
});

test('switched off, nobody waits', () => {
  const { queue, clock } = setUp();
  queue.beginTick(clock.ms);
  queue.enabled = false;
  queue.mayRun(1, clock.ms);
  clock.ms += 50;
  expect(queue.mayRun(2, clock.ms)).toBe(true);
});

test('a light tenant goes before what a heavy one has in line', async () => {
  const { queue, ran, work } = setUp();
  for (let i = 0; i < 50; i++) queue.enqueue(batchRequest(1, work('heavy', 1)));
  await immediates();
  queue.enqueue(batchRequest(2, work('light', 0.2)));
  await drained(queue);
  expect(ran).toHaveLength(51);
  // One slice had run, and another may have begun.
  expect(ran.indexOf('light')).toBeLessThanOrEqual(6);
});

test('who comes back with much does not go before who comes back with little', async () => {
  const { queue, ran, work } = setUp({ sliceMs: 0.1 });
  queue.setWeight(1, 1);
  queue.setWeight(2, 3);
  queue.enqueue(batchRequest(1, work('heavy', 0.1)));
  for (let i = 0; i < 200; i++) queue.enqueue(batchRequest(2, work('light', 0.1)));
  await drained(queue);
  ran.length = 0;
  // A flood that was throttled until it had units again.
  for (let i = 0; i < 60; i++) queue.enqueue(batchRequest(1, work('heavy', 0.1)));
  queue.enqueue(batchRequest(2, work('light', 0.1)));
  await drained(queue);
  expect(ran.indexOf('light')).toBeLessThanOrEqual(2);
});

test('before a expensive turn of another tenant, what was answered leaves', async () => {
  const { queue, ran, work } = setUp();
  // So many that it is known what one of them takes.
  for (let i = 0; i < 20; i++) queue.enqueue(batchRequest(1, work('expensive', 1.5)));
  await drained(queue);
  queue.afterSlice = () => ran.push('leaves');
  ran.length = 0;
  queue.enqueue(batchRequest(2, work('cheap', 0.1)));
  queue.enqueue(batchRequest(3, work('cheap', 0.1)));
  queue.enqueue(batchRequest(1, work('expensive', 1.5)));
  await drained(queue);
  expect(ran).toEqual(['cheap', 'cheap', 'leaves', 'expensive', 'leaves']);
});

test('tenants that always have work get the processor by their weights', async () => {
  const { queue, clock, work } = setUp();
  queue.setWeight(1, 1);
  queue.setWeight(2, 3);
  const spent = [0, 0, 0];
  const again = (tenant: number, ms: number): void => {
    queue.enqueue(
      batchRequest(tenant, () => {
        work('', ms)();
        spent[tenant]! += ms;
        if (clock.ms < 3000) again(tenant, ms);
      }),
    );
  };
  // Many cheap batches of one tenant, few expensive ones of the other.
  for (let i = 0; i < 100; i++) again(1, 0.1);
  for (let i = 0; i < 4; i++) again(2, 1);
  await drained(queue);
  expect(spent[2]! / spent[1]!).toBeGreaterThan(2.7);
  expect(spent[2]! / spent[1]!).toBeLessThan(3.3);
});

test('background work gets a little, and no more', async () => {
  const { queue, clock, work } = setUp();
  let background = 0;
  const maintenance = (): void => {
    queue.enqueue(
      batchRequest(backgroundWork, () => {
        work('', 0.5)();
        background += 0.5;
        if (clock.ms < 3000) maintenance();
      }),
    );
  };
  const busy = (): void => {
    queue.enqueue(
      batchRequest(1, () => {
        work('', 0.5)();
        if (clock.ms < 3000) busy();
      }),
    );
  };
  maintenance();
  for (let i = 0; i < 10; i++) busy();
  await drained(queue);
  expect(background / 2000).toBeGreaterThan(0.04);
  expect(background / 2000).toBeLessThan(0.07);
});

test('what was answered leaves after each slice, and a tenant may be forgotten', async () => {
  const { queue, ran, work } = setUp({ sliceMs: 2 });
  let slices = 0;
  queue.afterSlice = () => slices++;
  for (let i = 0; i < 10; i++) queue.enqueue(batchRequest(3, work('x', 1)));
  queue.forget(3);
  await drained(queue);
  expect(ran).toHaveLength(10);
  expect(slices).toBe(5);
  queue.forget(3);
  queue.enqueue(batchRequest(3, work('y', 1)));
  await drained(queue);
  expect(ran.at(-1)).toBe('y');
});

test('work that stops by itself takes turns as well, by what it took', async () => {
  const { clock } = setUp({ sliceMs: 0 });
  const slices: number[] = [];
  const admission = new AdmissionController({
    clock: { now: () => clock.ms, monotonic: () => clock.ms },
    sliceMs: 0,
  });
  // A time slice measures real time, which a busy machine would add to.
  vi.useFakeTimers({ toFake: ['performance'] });
  const one = async (tenant: number, ms: number, count: number): Promise<void> => {
    const slice = new TimeSlice(admission, tenant);
    for (let i = 0; i < count; i++) {
      vi.advanceTimersByTime(ms);
      slices.push(tenant);
      clock.ms += ms;
      await slice.yield();
    }
  };
  await Promise.all([one(1, 4, 20), one(1, 4, 20), one(1, 4, 20), one(2, 4, 20)]);
  // Three requests of one tenant, one of the other: by the time that one is done each has had about half.
  const last = slices.lastIndexOf(2);
  const others = slices.slice(0, last).filter((tenant) => tenant === 1).length;
  expect(others).toBeGreaterThanOrEqual(12);
  expect(others).toBeLessThanOrEqual(30);
});

test('of many long requests few go on in one round of the event loop', async () => {
  const admission = new AdmissionController({ clock: { now: () => 0, monotonic: () => 0 } });
  let resumed = 0;
  const all = Array.from({ length: 20 }, () =>
    new TimeSlice(admission, 1, 1).yield().then(() => resumed++),
  );
  const perRound: number[] = [];
  while (resumed < all.length) {
    const before = resumed;
    await immediates();
    perRound.push(resumed - before);
  }
  expect(Math.max(...perRound)).toBe(4);
});

test('long requests whose input arrives in one round of the event loop do not all work in it, and all proceed', async () => {
  // The round of the tests before has its beginning by another clock.
  await immediates();
  vi.useFakeTimers({ toFake: ['performance'] });
  const admission = new AdmissionController({
    clock: { now: () => 0, monotonic: () => performance.now() },
  });
  let round = 0;
  const steps: number[][] = [];
  const arrives = async (request: number): Promise<void> => {
    const slice = new TimeSlice(admission, 1, 8);
    for (let step = 0; step < 3; step++) {
      const turn = slice.turn();
      if (turn !== undefined) await turn;
      vi.advanceTimersByTime(5);
      (steps[round] ??= []).push(request);
      if (slice.isOver) await slice.yield();
    }
  };
  let left = 16;
  for (let request = 0; request < 16; request++) void arrives(request).then(() => left--);
  while (left > 0) {
    await immediates();
    round++;
  }
  // Without turns, all 16 would work at once. Two steps fill a round, and the scheduler resumes four requests after it.
  expect(Math.max(...steps.map((all) => all?.length ?? 0))).toBeLessThanOrEqual(8);
  expect(steps.flat()).toHaveLength(16 * 3);
});

test('the queued batches of one tenant are no competition', async () => {
  const { queue, clock, work } = setUp();
  queue.mayRun(1, clock.ms);
  clock.ms += 200;
  for (let i = 0; i < 3; i++) queue.enqueue(batchRequest(1, work('one', 1)));
  expect([queue.isContended(clock.ms), queue.hasSeveralTenants(clock.ms)]).toEqual([true, false]);
  queue.note(2, clock.ms);
  expect(queue.hasSeveralTenants(clock.ms)).toBe(true);
  await drained(queue);
  clock.ms += 200;
  expect(queue.hasSeveralTenants(clock.ms)).toBe(false);
});

test('a request that leaves the admission queue is not queued for the thread as well', async () => {
  const clock = { ms: 1000 };
  const time = { now: () => clock.ms, monotonic: () => clock.ms };
  const controller = new AdmissionController({ clock: time, priorityOf: () => 'normal' });
  const capacity = { isWithin: () => false, setRate: () => {} };
  const pod = { podRate: 100, capacity: capacity as never, isContended: () => true };
  controller.queue!.watch(pod);
  const ended: boolean[] = [];
  const request = (tenant: number) => ({
    tenant,
    kind: 'read' as const,
    database: 'db',
    isLarge: false,
    debited: 0,
    resume: (isAdmitted: boolean) => void ended.push(isAdmitted),
  });
  let queued = 0;
  for (let i = 0; i < 400; i++) {
    if (controller.admit(request(1 + (i % 2)), clock.ms) === 'queued') queued++;
  }
  expect(queued).toBeGreaterThan(0);
  // The thread has more to do than a slice of work.
  for (let i = 0; i < 10; i++) controller.requeue(batchRequest(3, () => {}));
  const before = controller.cpu.length;
  for (let ms = 0; ms < 100; ms += 10) controller.queue!.tick(0, (clock.ms += 10));
  expect(ended.length).toBeGreaterThan(0);
  expect(controller.cpu.length).toBe(before);
});
