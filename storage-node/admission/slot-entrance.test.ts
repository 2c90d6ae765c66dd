import fc from 'fast-check';
import { beforeEach, expect, test } from 'vitest';
import { ChargeClass, Meter } from '../../request-units/meter.ts';
import type { Guest } from '../../universal-row/entrance.ts';
import { CpuSlots } from './cpu-slots.ts';
import { PodCapacity } from './pod-capacity.ts';
import { PodEntrance } from './pod-entrance.ts';
import { SlotEntrance } from './slot-entrance.ts';

const podRate = 1000;
let now: number;
let meter: Meter;
let capacity: PodCapacity;
let units: PodEntrance;
let entrance: SlotEntrance;
let ended: string[];

beforeEach(begin);

function begin(): void {
  now = 0;
  ended = [];
  meter = new Meter({ plane: 'influx', run: 'test' });
  capacity = new PodCapacity({ podRate, accounts: () => meter.activeAccounts(), now });
  const clock = { monotonic: () => now };
  const priorityOf = (): 'high' => 'high';
  units = new PodEntrance({ clock, priorityOf });
  entrance = new SlotEntrance({ clock, priorityOf, units });
  entrance.setSlots(new CpuSlots({ startPerCore: 2 }));
}

interface GuestOptions {
  tenant?: number;
  isWrite?: boolean;
  isLong?: boolean;
}

function guest(name: string, options: GuestOptions = {}): Guest {
  const { tenant = 1, isWrite = false, isLong = true } = options;
  const end = (letIn: boolean): void => void ended.push(letIn ? name : `not ${name}`);
  return { tenant, database: 'd', isWrite, isLong, taken: 0, end };
}

/** Comes in; whether it did so at once. */
function come(one: Guest): boolean {
  if (entrance.mayBegin(one, now)) return true;
  expect(entrance.wait(one, now)).toBe(true);
  return false;
}

/** With a lag at which slots stay as many as they are, unless it is said otherwise. */
function pass(ms: number, lagMs = 1.5): void {
  for (const end = now + ms; now < end; ) {
    now += 5;
    units.tick(capacity.take(now), now);
    entrance.tick(lagMs, now);
  }
}

/** Nobody is let in for a while: the pod owes so much. */
function indebt(debt: number): void {
  units.watch({ podRate, capacity, hasGuarantees: false });
  meter.account(9).charge(ChargeClass.write, 0, false, debt, 1, 1, 1, 1);
  pass(5);
}

test('two are under way, others wait until one is done, and short ones pass by', () => {
  const [a, b, c, d] = ['a', 'b', 'c', 'd'].map((name) => guest(name));
  expect([a!, b!, c!, d!].map(come)).toEqual([true, true, false, false]);
  expect(come(guest('short', { isLong: false, isWrite: true }))).toBe(true);
  expect(entrance.waiting).toBe(2);
  entrance.done(a!, now);
  expect(ended).toEqual(['c']);
  now += 100;
  entrance.settle(a!, 3, now);
  expect(ended).toEqual(['c']);
  entrance.settle(b!, 3, now);
  expect(ended).toEqual(['c', 'd']);
  expect(entrance.counts).toEqual({ waited: 2, waitedMs: 100, refused: 0 });
  expect(entrance.slots!.used).toBe(2);
});

test('slots are more while they are all in use and the loop is on time, and fewer while it lags', () => {
  for (let i = 0; i < 20; i++) come(guest(`${i}`));
  pass(1000, 0.2);
  expect(entrance.slots!.slots).toBe(16);
  expect(entrance.waiting).toBe(4);
  pass(1000, 3);
  expect(entrance.slots!.slots).toBe(1);
  expect(entrance.waiting).toBe(4);
});

test('tenants have slots in turn, and writes go first', () => {
  const first = [guest('x'), guest('y')];
  first.forEach(come);
  for (let i = 0; i < 4; i++) come(guest(`flood${i}`));
  come(guest('light', { tenant: 2 }));
  come(guest('write', { tenant: 3, isWrite: true }));
  for (const one of first) entrance.settle(one, 1, now);
  expect(ended).toEqual(['write', 'flood0']);
  const third = guest('z');
  expect(come(third)).toBe(false);
  entrance.setSlots(undefined);
  expect(ended).toHaveLength(7);
});

test('who waits for units holds no slot, and what was taken for who leaves is given back', () => {
  indebt(300);
  const waits = guest('waits');
  expect(come(waits)).toBe(false);
  expect(entrance.slots!.used).toBe(0);
  expect(entrance.waiting).toBe(0);
  expect(entrance.leave(waits)).toBe(true);
  for (const name of ['a', 'b', 'c']) expect(come(guest(name))).toBe(false);
  pass(1000);
  // They have their units, and two of them a slot.
  expect(ended).toEqual(['a', 'b']);
  expect(entrance.waiting).toBe(1);
  const late = guest('late');
  expect(come(late)).toBe(false);
  expect(late.taken).toBeGreaterThan(0);
  expect(entrance.leave(late)).toBe(true);
  expect(entrance.leave(late)).toBe(false);
  expect(late.taken).toBe(0);
});

test('who has waited too long is refused, its time with units included', () => {
  indebt(2500);
  const slow = [guest('x'), guest('y')];
  slow.forEach((one) => come(one));
  const write = guest('write', { isWrite: true });
  expect(come(write)).toBe(false);
  pass(3000);
  expect(ended.sort()).toEqual(['write', 'x']);
  const other = guest('other', { isWrite: true });
  come(other);
  pass(4100);
  expect(ended).toContain('not other');
  expect(other.taken).toBe(0);
  expect(entrance.counts.refused).toBe(1);
});

test('who waits for a slow client has no slot meanwhile, and goes on all the same', () => {
  const [a, b, c] = [guest('a'), guest('b'), guest('c')];
  [a, b, c].forEach(come);
  entrance.away(a, now);
  pass(20);
  entrance.back(a);
  pass(100);
  expect(ended).toEqual([]);
  entrance.away(a, now);
  pass(100);
  expect(ended).toEqual(['c']);
  expect(entrance.slots!.used).toBe(2);
  entrance.back(a);
  expect(entrance.slots!.used).toBe(3);
  for (const one of [a, b, c]) entrance.settle(one, 1, now);
  expect(entrance.slots!.used).toBe(0);
});

test('any history ends with everyone let in or refused once, and all slots free', () => {
  const step = fc.record({
    act: fc.constantFrom('come', 'come', 'come', 'end', 'end', 'leave', 'away', 'back', 'done'),
    and: fc.constantFrom('nothing', 'pass', 'pass', 'switch', 'watch', 'indebt'),
    tenant: fc.integer({ min: 1, max: 3 }),
    isWrite: fc.boolean(),
    isLong: fc.boolean(),
    at: fc.nat(100),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80, size: 'max' }), (steps) => {
      begin();
      const waiting = new Map<string, Guest>();
      const inside: Guest[] = [];
      const settleEnded = (): void => {
        for (const name of ended.splice(0)) {
          const isIn = !name.startsWith('not ');
          const one = waiting.get(isIn ? name : name.slice(4));
          // Told once, and only who waits.
          expect(one).toBeDefined();
          waiting.delete(isIn ? name : name.slice(4));
          if (isIn) inside.push(one!);
        }
      };
      for (const [i, { act, and, at, ...options }] of steps.entries()) {
        const one = inside[at % Math.max(1, inside.length)];
        const name = [...waiting.keys()][at % Math.max(1, waiting.size)];
        if (act === 'come') {
          const fresh = guest(`g${i}`, options);
          if (entrance.mayBegin(fresh, now)) inside.push(fresh);
          else if (entrance.wait(fresh, now)) waiting.set(`g${i}`, fresh);
        } else if (act === 'leave') {
          if (name !== undefined) {
            expect(entrance.leave(waiting.get(name)!)).toBe(true);
            waiting.delete(name);
          }
        } else if (one !== undefined) {
          if (act === 'end') {
            inside.splice(inside.indexOf(one), 1);
            entrance.settle(one, at / 10, now);
          } else if (act === 'back') entrance.back(one);
          else entrance[act](one, now);
        }
        settleEnded();
        if (and === 'pass') pass(at * 2, at % 4);
        else if (and === 'switch') entrance.setSlots(at % 2 === 0 ? new CpuSlots() : undefined);
        else if (and === 'watch') units.watch(undefined);
        else if (and === 'indebt' && !units.isWatched) indebt(at * 5);
        settleEnded();
      }
      for (let rounds = 0; waiting.size > 0 && rounds < 100; rounds++) {
        for (const one of inside.splice(0)) entrance.settle(one, 1, now);
        settleEnded();
        pass(1000);
        settleEnded();
      }
      for (const one of inside.splice(0)) entrance.settle(one, 1, now);
      expect(waiting.size).toBe(0);
      expect(entrance.waiting).toBe(0);
      expect(entrance.slots?.used ?? 0).toBe(0);
    }),
  );
});
