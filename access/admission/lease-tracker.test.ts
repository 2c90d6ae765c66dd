import { expect, test } from 'vitest';
import type { PeerAnswer, PeerAsk } from '../../universal-row/tenancy/pool-messages.ts';
import { LeaseTracker } from './lease-tracker.ts';

const quota = 1000;
const loanMs = 600;

/** A tracker of tenant 1, which is asked by `a`. */
class World {
  readonly tracker = new LeaseTracker({
    quotaOf: () => quota,
    times: { slowMs: 200, fastMs: 400 },
  });
  number = 0;
  answered = 0;

  ask(now: number, change: Partial<PeerAsk> = {}): PeerAnswer | undefined {
    const ask: PeerAsk = {
      type: 'ask',
      number: ++this.number,
      answered: this.answered,
      heldMs: 0,
      tenants: [1],
      parts: [0.5],
      loanMs: [loanMs],
      rates: [1000],
      seen: [100],
      left: [0],
      ...change,
    };
    const answer = this.tracker.answer('a', ask, now);
    this.answered = answer?.number ?? this.answered;
    return answer;
  }

  /** Takes all that is there, as a lease of this gateway itself, which lends the other half. */
  there(now: number): number {
    const wish = { member: 'me', part: 0.5, until: Infinity, rate: 1e9, seen: 0, left: 0 };
    let all = 0;
    for (let units = Infinity; units > 0; all += units) {
      ({ units } = this.tracker.grant(1, wish, now));
    }
    return all;
  }
}

test('nothing is lent by who was not answered before, and nothing given to it', () => {
  const world = new World();
  expect(world.ask(0)).toMatchObject({ units: [0], leaseMs: [0] });
  expect(world.tracker.used()).toEqual([]);
  expect(world.ask(10)!.leaseMs).toEqual([200]);
  expect(world.tracker.used()).toEqual([1]);
});

test.each([
  [0, 0, 600],
  [100, 0, 500],
  [0, 250, 350],
  [250, 250, 100],
])(
  'a question that took its time lends for that much less: %s ms, answer %s ms',
  (ask, answer, left) => {
    const world = new World();
    world.ask(0);
    // The answer was `answer` on its way and was held for 50 ms, then the question was on its.
    const at = answer + 50 + ask;
    world.ask(at, { heldMs: 50 });
    world.there(at);
    // What is lent comes at 500 a second until then, beside the 500 of its own.
    world.there(at + left - 1);
    expect(world.there(at + left + 100)).toBeCloseTo(1 + 50, 6);
  },
);

test('one that took longer than a loan lends nothing', () => {
  const world = new World();
  world.ask(0);
  expect(world.ask(700, { heldMs: 50 })).toMatchObject({ units: [0], leaseMs: [0] });
});

test('a question that comes twice, or was overtaken, is not answered again', () => {
  const world = new World();
  world.ask(0);
  expect(world.ask(10)).toBeDefined();
  expect(world.ask(20, { number: 2 })).toBeUndefined();
  expect(world.ask(20, { number: 1 })).toBeUndefined();
});

test('units whose answer had not come when the next question left are there again', () => {
  const world = new World();
  world.ask(0);
  world.ask(10);
  const { answered } = world;
  const granted = world.ask(110)!.units[0]!;
  expect(granted).toBeCloseTo(50, 6);
  // The answer before is the last one that was heard.
  expect(world.ask(110, { answered, heldMs: 100 })!.units[0]).toBeCloseTo(granted, 6);
  expect(world.ask(110)!.units[0]).toBeCloseTo(0, 6);
});

test('a part of 0 ends the loan at once', () => {
  const world = new World();
  world.ask(0);
  world.ask(10);
  world.there(10);
  world.ask(20, { parts: [0] });
  world.there(20);
  expect(world.there(120)).toBeCloseTo(50, 6);
});
