import { beforeEach, expect, test } from 'vitest';
import { Meter, ChargeClass } from '../../../request-units/meter.ts';
import type { PodRequest } from '../../../contracts/pod-admission.ts';
import type { WritePriority } from '../../../contracts/table-properties.ts';
import { PodCapacity } from './pod-capacity.ts';
import { AdmissionQueue } from './admission-queue.ts';

const podRate = 1000;
let now: number;
let meter: Meter;
let capacity: PodCapacity;
let queue: AdmissionQueue;
let ended: string[];

const priorities = new Map<string, WritePriority>();

beforeEach(() => {
  now = 0;
  ended = [];
  meter = new Meter({ plane: 'influx', run: 'test' });
  capacity = new PodCapacity({ podRate, accounts: () => meter.activeAccounts(), now });
  queue = new AdmissionQueue({
    clock: { monotonic: () => now },
    priorityOf: (_, database) => priorities.get(database) ?? 'high',
    ended: (request, isAdmitted) => request.resume(isAdmitted),
  });
  queue.watch({ podRate, capacity, isContended: () => true });
});

function request(name: string, { tenant = 1, isWrite = true, database = 'd' } = {}): PodRequest {
  const resume = (isAdmitted: boolean): void => void ended.push(isAdmitted ? name : `not ${name}`);
  const kind = isWrite ? 'write' : 'read';
  return { tenant, database, kind, isLarge: false, debited: 0, resume };
}

function charge(tenant: number, units: number): void {
  meter.account(tenant).charge(ChargeClass.write, 0, false, units, 1, 1, 1, 1);
}

/** Whether it may begin; if not it waits. */
function come(one: PodRequest): boolean {
  if (queue.mayBegin(one, now)) return true;
  expect(queue.wait(one, now)).toBe(true);
  return false;
}

function done(one: PodRequest, units: number): void {
  charge(one.tenant, units);
  queue.settle(one, units, now);
}

function pass(ms: number): void {
  for (const end = now + ms; now < end; ) {
    now += 10;
    queue.tick(capacity.take(now), now);
  }
}

test('while there is enough nobody waits, and what requests cost is learnt', () => {
  for (let i = 0; i < 200; i++) {
    const one = request('w');
    expect(come(one)).toBe(true);
    done(one, 4);
    pass(10);
  }
  // Requests of four units, and of one each ten milliseconds: less than half of the capacity.
  const other = request('w');
  expect(come(other)).toBe(true);
  expect(other.debited).toBeCloseTo(4, 1);
});

test('is calm while the pod does less than half of what it can, and nobody waits', () => {
  expect(queue.isUncongested).toBe(true);
  for (let i = 0; i < 200; i++) {
    charge(1, 4);
    pass(10);
  }
  expect(queue.isUncongested).toBe(true);
  for (let i = 0; i < 200; i++) {
    charge(1, 8);
    pass(10);
  }
  expect(queue.isUncongested).toBe(false);
  charge(1, 2000);
  pass(10);
  expect(come(request('w'))).toBe(false);
  pass(1500);
  // The average of a second is low again, but one waits.
  expect(queue.isUncongested).toBe(false);
  pass(3000);
  expect(ended).toEqual(['w']);
  expect(queue.isUncongested).toBe(true);
});

test('is not calm while the pod owes, however long ago it was that much was spent', () => {
  charge(1, 10 * podRate);
  pass(10);
  // Hardly anything of the average is left, and more than half of the debt.
  pass(4500);
  expect(queue.isUncongested).toBe(false);
  pass(6000);
  expect(queue.isUncongested).toBe(true);
});

test('what is charged to nobody here counts as well', () => {
  charge(9, 5000);
  pass(10);
  expect(come(request('w'))).toBe(false);
  expect(queue.waitingOf('write')).toBe(1);
  pass(3990);
  // It had waited its four seconds first: the debt is five seconds' worth.
  expect(ended).toEqual([]);
  pass(20);
  expect(ended).toEqual(['not w']);
  expect(queue.counts.write).toMatchObject({ queued: 1, refused: 1 });
});

test('writes go first, where the database says nothing else', () => {
  priorities.set('low', 'low');
  charge(9, 1000);
  pass(10);
  const read = request('read', { isWrite: false });
  expect(come(request('low', { database: 'low' }))).toBe(false);
  expect(come(read)).toBe(false);
  expect(come(request('w1'))).toBe(false);
  expect(come(request('w2'))).toBe(false);
  expect(queue.waitingOf('read')).toBe(1);
  // Before they are old.
  queue.settle({ ...request('x'), debited: 1000 }, 0, now);
  pass(20);
  expect(ended).toEqual(['w1', 'w2', 'read', 'low']);
  priorities.clear();
});

test('tenants within their quotas go past who waits', () => {
  capacity.setTenant(2, 100, now);
  charge(9, 3000);
  pass(10);
  expect(come(request('other'))).toBe(false);
  const own = Array.from({ length: 12 }, (_, i) => request(`own ${i}`, { tenant: 2 }));
  // A tenth of a second of its own, at one unit each until they are done.
  expect(own.map((one) => queue.mayBegin(one, now)).filter((is) => is)).toHaveLength(10);
  for (const one of own.slice(0, 10)) done(one, 1);
  pass(10);
  expect(queue.wait(own[10]!, now)).toBe(true);
  pass(40);
  expect(ended).toEqual(['own 10']);
});

test('who leaves is not let in, and all are when nothing is watched any more', () => {
  charge(9, 1000);
  pass(10);
  const [a, b] = [request('a'), request('b', { isWrite: false })];
  come(a);
  come(b);
  expect(queue.leave(a)).toBe(true);
  expect(queue.leave(a)).toBe(false);
  expect(queue.isActive).toBe(true);
  queue.watch(undefined);
  expect(ended).toEqual(['b']);
  expect(queue.isActive).toBe(false);
  expect(queue.mayBegin(request('c'), now)).toBe(true);
  queue.settle(b, 10, now);
  queue.forget(1);
});

test('without contention no request is queued, and its units are debited all the same', () => {
  queue.watch({ podRate, capacity, isContended: () => false });
  charge(9, 3000);
  pass(10);
  for (let i = 0; i < 50; i++) expect(come(request('w'))).toBe(true);
  queue.watch({ podRate, capacity, isContended: () => true });
  pass(10);
  charge(9, 3000);
  pass(10);
  expect(come(request('w'))).toBe(false);
});

test('a higher rate admits queued requests', () => {
  charge(9, 1500);
  pass(10);
  expect(come(request('w'))).toBe(false);
  queue.setRate(100_000, now);
  pass(100);
  expect(ended).toEqual(['w']);
});
