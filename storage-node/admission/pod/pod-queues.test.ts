import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { PodQueues, type PodQueuesOptions, type WorkKind, workKinds } from './pod-queues.ts';

const podRate = 1000;

function open(options: Partial<PodQueuesOptions> = {}): PodQueues<string> {
  return new PodQueues({ podRate, ...options }, 0);
}

/** Spends so much that whatever comes now waits. */
function busy(queues: PodQueues<string>, now = 0): PodQueues<string> {
  queues.spend(podRate, now);
  return queues;
}

function drained(queues: PodQueues<string>, now: number): string[] {
  const ran: string[] = [];
  const fail = (work: string): void => expect.unreachable(`${work} waited too long`);
  expect(queues.drain(now, (work) => ran.push(work), fail)).toBe(ran.length);
  return ran;
}

describe('the threshold', () => {
  test('below it work runs as it comes', () => {
    const queues = open();
    for (let now = 0; now < 5000; now += 10) {
      expect(queues.offer(now % 20 === 0 ? 'read' : 'write', 8, 'w', now)).toBe('run');
    }
    expect(queues.spendRate(5000) / 800).toBeCloseTo(1, 1);
  });

  test('beyond it new work waits, though there are tokens', () => {
    const queues = open();
    // A tenth of a second of work in each tenth of a second: the bucket stays as full as it was.
    let now = 0;
    while (queues.spendRate(now) <= 0.9 * podRate) {
      queues.spend(9.9, now);
      now += 10;
    }
    expect(queues.offer('write', 1, 'w', now)).toBe('queued');
    expect(queues.lengthOf('write')).toBe(1);
    expect(drained(queues, now + 10)).toEqual(['w']);
  });

  test('switched off nothing waits', () => {
    const queues = busy(busy(open({ enabled: false })));
    for (let i = 0; i < 100; i++) expect(queues.offer('read', 1e6, 'r', 0)).toBe('run');
  });
});

describe('order', () => {
  test('writes first, and a read after 32 of them', () => {
    const queues = busy(open());
    for (let i = 0; i < 2; i++) expect(queues.offer('read', 1, `r${i}`, 1)).toBe('queued');
    for (let i = 0; i < 70; i++) expect(queues.offer('write', 1, `w${i}`, 1)).toBe('queued');
    // Reads have only just come.
    expect(drained(queues, 2)).toEqual([]);
    const order: string[] = [];
    for (let now = 900; now < 1400; now += 10) order.push(...drained(queues, now));
    // They had waited for more than half a second when the first tokens came.
    expect(order.slice(0, 2)).toEqual(['r0', 'w0']);
    expect(order.indexOf('r1')).toBe(33);
    expect(order.filter((work) => work.startsWith('w'))).toEqual(
      Array.from({ length: 70 }, (_, i) => `w${i}`),
    );
  });

  test('one read each half second however many are old', () => {
    const queues = busy(open());
    const order: string[] = [];
    for (let i = 0; i < 100; i++) queues.offer('read', 20, 'r', 0);
    for (let now = 0; now < 10_000; now += 10) {
      // As much as the pod can do, in few large pieces.
      if (now % 100 === 0) queues.offer('write', 100, 'w', now);
      order.push(...drained(queues, now));
    }
    const reads = order.filter((work) => work === 'r').length;
    expect(reads).toBeGreaterThanOrEqual(17);
    expect(reads).toBeLessThanOrEqual(21);
  });

  test('without priority of writes the two take turns', () => {
    const queues = busy(open({ writesFirst: false }));
    for (let i = 0; i < 3; i++) {
      queues.offer('write', 1, `w${i}`, 0);
      queues.offer('read', 1, `r${i}`, 0);
    }
    expect(drained(queues, 2000)).toEqual(['w0', 'r0', 'w1', 'r1', 'w2', 'r2']);
  });

  test('a large read that has the turn keeps it until there are tokens', () => {
    const queues = busy(open());
    queues.offer('read', 5000, 'large', 0);
    const order: string[] = [];
    for (let now = 0; now < 3000; now += 10) {
      queues.offer('write', 10, 'w', now);
      order.push(...drained(queues, now));
    }
    expect(order).toContain('large');
  });

  test('new work does not pass what waits of its kind', () => {
    const queues = busy(open());
    queues.offer('write', 1, 'first', 0);
    // Long after, with a full bucket and nothing spent for seconds.
    expect(queues.offer('write', 1, 'second', 3999)).toBe('queued');
    expect(queues.offer('read', 1, 'third', 3999)).toBe('run');
    expect(drained(queues, 3999)).toEqual(['first', 'second']);
  });
});

test('what waits too long is handed back, and what comes to a full queue is refused', () => {
  const queues = open({ length: 2 });
  queues.spend(1e6, 0);
  expect(queues.offer('write', 1, 'w', 0)).toBe('queued');
  expect(queues.offer('read', 1, 'r', 0)).toBe('queued');
  expect(queues.offer('write', 1, 'x', 1)).toBe('queued');
  expect(queues.offer('write', 1, 'y', 1)).toBe('full');
  const late: string[] = [];
  const drain = (now: number): number => queues.drain(now, expect.unreachable, (w) => late.push(w));
  drain(4000);
  expect(late).toEqual([]);
  drain(4001);
  expect(late).toEqual(['w']);
  drain(30_001);
  expect(late).toEqual(['w', 'x', 'r']);
});

test('each piece runs once or is late, each kind in its order, and tokens are not overspent', () => {
  const step = fc.record({
    after: fc.nat(50),
    kind: fc.constantFrom(...workKinds),
    cost: fc.integer({ min: 1, max: 400 }),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 300 }), fc.boolean(), (steps, writesFirst) => {
      const queues = new PodQueues<{ kind: WorkKind; n: number; cost: number }>(
        { podRate, writesFirst },
        0,
      );
      const none = (): Record<WorkKind, number[]> => ({ read: [], write: [], equal: [], late: [] });
      const [order, offered] = [none(), none()];
      let spent = 0;
      let now = 0;
      const ran = (work: { kind: WorkKind; n: number; cost: number }): void => {
        order[work.kind].push(work.n);
        spent += work.cost;
      };
      const late = ({ kind, n }: { kind: WorkKind; n: number }): void => {
        order[kind].push(n);
      };
      steps.forEach(({ after, kind, cost }, n) => {
        for (let tick = 10; tick <= after; tick += 10) queues.drain(now + tick, ran, late);
        now += after;
        const work = { kind, n, cost };
        offered[kind].push(n);
        if (queues.offer(kind, cost, work, now) === 'run') ran(work);
        // A bucket, what came in since, and the one debt of a piece larger than the bucket.
        expect(spent).toBeLessThanOrEqual(200 + now + 200);
      });
      for (; queues.length > 0; now += 10) {
        queues.drain(now, ran, late);
      }
      expect(order).toEqual(offered);
    }),
  );
});

test('writes of equal priority take turns with reads, and those of low priority come last', () => {
  const queues = busy(open());
  for (let i = 0; i < 4; i++) {
    queues.offer('late', 1, 'late', 1);
    queues.offer('equal', 1, 'equal', 1);
    queues.offer('read', 1, 'read', 1);
    queues.offer('write', 1, 'first', 1);
  }
  queues.drain(2, expect.unreachable, expect.unreachable);
  const order: string[] = [];
  // Tokens return before anything is old: the debt is of four fifths of a second.
  queues.spend(-900, 3);
  order.push(...drained(queues, 100));
  expect(order.slice(0, 4)).toEqual(['first', 'first', 'first', 'first']);
  expect(order.slice(4, 12)).toEqual(Array.from({ length: 4 }, () => ['equal', 'read']).flat());
  expect(order.slice(12)).toEqual(['late', 'late', 'late', 'late']);
});

test('in a line tenants take turns by their weights, and each is served in order', () => {
  const queues = busy(open());
  queues.setWeight(2, 3);
  for (let i = 0; i < 90; i++) queues.offer('write', 1, `1:${i}`, 1, 1);
  for (let i = 0; i < 30; i++) queues.offer('write', 1, `2:${i}`, 1, 2);
  const order: string[] = [];
  for (let now = 800; order.length < 120; now += 10) order.push(...drained(queues, now));
  const of = (tenant: number): string[] => order.filter((work) => work.startsWith(`${tenant}:`));
  const counted = order.slice(0, 40).filter((work) => work.startsWith('2:')).length;
  expect(counted).toBeGreaterThanOrEqual(28);
  expect(of(1)).toEqual(Array.from({ length: 90 }, (_, i) => `1:${i}`));
  expect(of(2)).toEqual(Array.from({ length: 30 }, (_, i) => `2:${i}`));
  queues.forget(1);
});

test('who leaves is not served, and who is guaranteed does not wait its turn', () => {
  const queues = busy(open());
  for (let i = 0; i < 3; i++) queues.offer('write', 1, `1:${i}`, 1, 1);
  for (let i = 0; i < 3; i++) queues.offer('write', 1, `2:${i}`, 1, 2);
  expect(queues.leave('write', '1:0', 1)).toBe(true);
  expect(queues.leave('write', '1:0', 1)).toBe(false);
  expect(queues.lengthOf('write')).toBe(5);
  const ran: string[] = [];
  let own = 2;
  const isGuaranteed = (tenant: number): boolean => tenant === 2 && own-- > 0;
  queues.drainGuaranteed(2, isGuaranteed, (work) => ran.push(work));
  expect(ran).toEqual(['2:0', '2:1']);
  for (let now = 800; queues.length > 0; now += 10) ran.push(...drained(queues, now));
  expect(ran.slice(2).sort()).toEqual(['1:1', '1:2', '2:2']);
  for (const tenant of [1, 2]) expect(queues.leave('write', `${tenant}:9`, tenant)).toBe(false);
});
