import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { CpuSlots } from './cpu-slots.ts';
import { DualQueues, type DualQueuesOptions, type PodWork } from './dual-queues.ts';
import type { Placed } from '../../../storage-node/admission/tenant-queue.ts';
import { isWriteKind, WorkKind } from '../../../storage-node/admission/work-kind.ts';

interface Job extends PodWork {
  name: string;
}

const { smallRead, smallWrite, largeRead, background } = WorkKind;

function job(kind: WorkKind, more: Partial<Job> = {}): Job {
  const none: Placed | undefined = undefined;
  return {
    name: '',
    kind,
    tenant: 1,
    cost: 1,
    bytes: isWriteKind(kind) ? 10 : 0,
    operations: 1,
    holdsLocks: false,
    priority: 0,
    startedAt: 0,
    arrivedAt: 0,
    deadline: Infinity,
    ticket: none,
    ...more,
  };
}

/** Queues with a store that has tokens for as many bytes as it is given. */
function newQueues(slots: number, options: Partial<DualQueuesOptions> = {}) {
  const store = { tokens: Infinity };
  const expired: Job[] = [];
  const queues = new DualQueues<Job>(
    { slots: new CpuSlots({ startPerCore: slots, maxPerCore: slots }), ...options },
    {
      admit(bytes) {
        if (store.tokens < bytes) return false;
        store.tokens -= bytes;
        return true;
      },
    },
    (work) => expired.push(work),
    0,
  );
  for (let tenant = 1; tenant <= 4; tenant++) queues.setTenant(tenant, tenant);
  return { queues, store, expired };
}

/** Whether it entered; otherwise it waits. */
function enter(queues: DualQueues<Job>, work: Job, now = 0): boolean {
  const { kind, tenant, cost, bytes } = work;
  if (queues.tryEnter(kind, tenant, cost, bytes, now)) return true;
  queues.wait(work, now);
  return false;
}

function leave(queues: DualQueues<Job>, { kind, tenant, cost }: Job, now = 0): void {
  queues.leave(kind, tenant, cost, now);
}

const switches = fc.record({
  kinds: fc.constantFrom(false as const, undefined),
  limits: fc.constantFrom(false as const, undefined),
  tenantCap: fc.constantFrom(false as const, undefined),
  background: fc.constantFrom(false as const, undefined),
  lockPriority: fc.constantFrom(false as const, undefined),
  order: fc.constantFrom(
    'fair' as const,
    'least-granted' as const,
    'most-requested' as const,
    'fifo' as const,
  ),
  firstQueue: fc.constantFrom('store' as const, 'cpu' as const),
});

function given(options: Record<string, unknown>): Partial<DualQueuesOptions> {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
}

test('with any rules left out: each runs once, in no more places than there are, and all run in the end', () => {
  const arrival = fc.record({
    kind: fc.constantFrom(...Object.values(WorkKind)),
    tenant: fc.integer({ min: 1, max: 4 }),
    cost: fc.integer({ min: 1, max: 40 }),
    priority: fc.integer({ min: -1, max: 1 }),
    holdsLocks: fc.boolean(),
    operations: fc.nat(2),
  });
  const step = fc.oneof(arrival, fc.constantFrom('end' as const, 'tokens' as const));
  fc.assert(
    fc.property(switches, fc.array(step, { maxLength: 150 }), (options, steps) => {
      const slots = 3;
      const { queues, store } = newQueues(slots, given(options));
      store.tokens = 0;
      let now = 0;
      const [begun, running, reading] = [new Set<Job>(), [] as Job[], [] as Job[]];
      let arrived = 0;
      const begin = (work: Job): void => {
        expect(begun.has(work)).toBe(false);
        begun.add(work);
        running.push(work);
      };
      const pump = (): void => {
        for (let next = queues.next(now); next !== undefined; next = queues.next(now)) begin(next);
        for (let next = queues.nextRead(now); next !== undefined; next = queues.nextRead(now)) {
          reading.push(next);
        }
        expect(queues.used).toBeLessThanOrEqual(slots);
        expect(queues.ioUsed).toBe(reading.length);
        expect(reading.length).toBeLessThanOrEqual(6);
        expect(running.length).toBeLessThanOrEqual(slots);
      };
      const end = (): void => {
        const read = reading.shift();
        if (read !== undefined) queues.leaveRead(read.kind, read.tenant, now);
        const work = running.shift();
        if (work === undefined) return;
        leave(queues, work, now);
        const { kind, tenant, cost, operations } = work;
        if (operations === 0) return;
        if (queues.tryRead(kind, tenant, cost, operations, now)) reading.push(work);
        else queues.waitRead(work, now);
      };
      for (const one of steps) {
        now += 0.5;
        if (one === 'end') end();
        else if (one === 'tokens') store.tokens += 15;
        else {
          arrived++;
          const work = job(one.kind, { ...one, startedAt: now });
          if (enter(queues, work, now)) begin(work);
        }
        pump();
      }
      store.tokens = Infinity;
      for (let n = 0; n < 5000 && begun.size < arrived; n++) {
        now++;
        end();
        queues.tick(now);
        pump();
      }
      expect(begun.size).toBe(arrived);
      expect(queues.length).toBe(0);
      for (let n = 0; n < 1000 && (queues.ioLength > 0 || reading.length > 0); n++) {
        now++;
        end();
        pump();
      }
      expect(queues.ioLength).toBe(0);
    }),
    { numRuns: 150 },
  );
});

test('who comes does not pass who waits of its kind, and waits for no other kind', () => {
  const { queues } = newQueues(2, { tenantCap: false });
  const first = job(smallRead);
  expect(enter(queues, first)).toBe(true);
  expect(enter(queues, job(largeRead))).toBe(true);
  expect(enter(queues, job(smallRead, { name: 'waits' }))).toBe(false);
  leave(queues, first);
  expect(queues.tryEnter(smallRead, 1, 1, 0, 0)).toBe(false);
  expect(queues.tryEnter(smallWrite, 1, 1, 10, 0)).toBe(true);
  expect(queues.next(0)).toBe(undefined);
});

describe('a write that waits for the store', () => {
  test('holds no slot, and reads go on', () => {
    const { queues, store } = newQueues(2);
    store.tokens = 5;
    expect(enter(queues, job(smallWrite, { name: 'write' }))).toBe(false);
    expect(queues.next(0)).toBe(undefined);
    expect(queues.used).toBe(0);
    expect(queues.length).toBe(1);
    // With tokens again those who waited are first.
    store.tokens = 10;
    expect(queues.tryEnter(smallWrite, 1, 1, 10, 0)).toBe(false);
    expect(queues.next(0)!.name).toBe('write');
    expect(queues.used).toBe(1);
    expect(store.tokens).toBe(0);
  });

  test('in the order turned round holds its slot', () => {
    const { queues, store } = newQueues(1, { firstQueue: 'cpu' });
    store.tokens = 5;
    enter(queues, job(smallWrite, { name: 'write' }));
    expect(queues.next(0)).toBe(undefined);
    expect(queues.used).toBe(1);
    expect(queues.tryEnter(smallRead, 1, 1, 0, 0)).toBe(false);
    store.tokens = 10;
    expect(queues.next(0)!.name).toBe('write');
  });

  test('may be withdrawn, and expires', () => {
    const { queues, store, expired } = newQueues(1);
    store.tokens = 0;
    const works = ['a', 'b', 'c'].map((name) => job(smallWrite, { name, deadline: 10 }));
    for (const work of works) enter(queues, work);
    queues.next(0);
    expect(works.map((work) => queues.withdraw(work, 0))).toEqual([true, true, true]);
    expect(queues.withdraw(works[0]!, 0)).toBe(false);
    expect(queues.length).toBe(0);
    enter(queues, job(smallWrite, { name: 'd', deadline: 10 }));
    queues.next(0);
    queues.next(11);
    expect(expired.map(({ name }) => name)).toEqual(['d']);
  });

  test('and gives its slot back if it has one', () => {
    const { queues, store, expired } = newQueues(3, { firstQueue: 'cpu' });
    store.tokens = 0;
    const works = ['a', 'b', 'c'].map((name) => job(smallWrite, { name, deadline: 10 }));
    for (const work of works) enter(queues, work);
    queues.next(0);
    expect(queues.used).toBe(3);
    queues.withdraw(works[0]!, 0);
    queues.withdraw(works[2]!, 0);
    expect(queues.used).toBe(1);
    queues.next(11);
    expect(queues.used).toBe(0);
    expect(expired).toEqual([works[1]]);
  });
});

describe('a transaction that holds locks', () => {
  const namesInOrder = (queues: DualQueues<Job>): string[] => {
    const names: string[] = [];
    for (;;) {
      queues.leave(smallRead, 1, 1, 0);
      const next = queues.next(0);
      if (next === undefined) return names;
      names.push(next.name);
    }
  };

  test.each([
    [{}, ['holder', 'raised', 'urgent', 'normal', 'restarted']],
    [{ lockPriority: false as const }, ['urgent', 'normal', 'restarted', 'holder', 'raised']],
  ])('goes before the others: %o', (options, expected) => {
    const { queues } = newQueues(1, options);
    enter(queues, job(smallRead));
    const restarted = job(smallRead, { name: 'restarted' });
    const raised = job(smallRead, { name: 'raised', priority: -1, startedAt: 4 });
    for (const work of [
      restarted,
      job(smallRead, { name: 'normal', startedAt: 1 }),
      job(smallRead, { name: 'urgent', priority: 5, startedAt: 2 }),
      job(smallRead, { name: 'holder', priority: -1, startedAt: 3, holdsLocks: true }),
      raised,
    ]) {
      enter(queues, work);
    }
    queues.raise(raised);
    queues.restart(restarted, 10);
    expect(namesInOrder(queues)).toEqual(expected);
  });

  test('and for which somebody more urgent waits goes before that one', () => {
    const { queues } = newQueues(1);
    enter(queues, job(smallRead));
    const holder = job(smallRead, { name: 'holder', holdsLocks: true });
    enter(queues, job(smallRead, { name: 'very urgent', priority: 200 }));
    enter(queues, holder);
    queues.raise(holder, 201);
    expect(namesInOrder(queues)).toEqual(['holder', 'very urgent']);
  });
});

test('background work leaves places free for others, and has its part when they leave it none', () => {
  const { queues } = newQueues(20, { tenantCap: false, limits: false });
  let entered = 0;
  while (queues.tryEnter(background, 4, 1, 0, 0)) entered++;
  expect(entered).toBe(8);
  for (let n = 0; n < entered; n++) queues.leave(background, 4, 1, 0);
  const running: [Job, number][] = [];
  const served = { reads: 0, background: 0 };
  const run = (work: Job, now: number): void => {
    served[work.kind === background ? 'background' : 'reads']++;
    running.push([work, now + 1]);
  };
  for (let now = 1; now < 3000; now++) {
    while (running.length > 0 && running[0]![1] <= now) leave(queues, running.shift()![0], now);
    for (let next = queues.next(now); next !== undefined; next = queues.next(now)) run(next, now);
    // More than there is room for, of either.
    const arriving = Array.from({ length: 24 }, (_, n) =>
      n < 2 ? job(background, { tenant: 4 }) : job(smallRead, { tenant: 1 + (n % 3) }),
    );
    for (const work of arriving) if (enter(queues, work, now)) run(work, now);
    expect(queues.used).toBe(20);
  }
  const share = served.background / (served.background + served.reads);
  expect(share).toBeGreaterThan(0.05);
  expect(share).toBeLessThan(0.07);
});
