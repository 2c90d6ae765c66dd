// The policies of a `TurnQueue` that can be had beside the usual one, and changed while batches wait.

import fc from 'fast-check';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { backgroundWork } from '../../universal-row/turns.ts';
import type { TurnRule } from './tenant-turns.ts';
import { TurnCap } from './turn-cap.ts';
import { TurnQueue } from './turn-queue.ts';

const rules: readonly TurnRule[] = [
  'virtual-finish-time',
  'least-granted',
  'most-requested',
  'arrival',
];

/** An event loop whose time only work moves, and waiting for a timer. */
class Loop {
  ms = 0;
  #immediates: (() => void)[] = [];
  readonly #timers = new Map<number, { at: number; run: () => void }>();
  #next = 1;

  readonly setImmediate = (run: () => void): void => void this.#immediates.push(run);
  readonly setTimeout = (run: () => void, ms: number): number => {
    this.#timers.set(this.#next, { at: this.ms + ms, run });
    return this.#next++;
  };
  readonly clearTimeout = (timer: number): void => void this.#timers.delete(timer);

  /** One round; waits for a timer where nothing else is to be done. False when there is nothing left at all. */
  round(): boolean {
    const next = Math.min(...Array.from(this.#timers.values(), ({ at }) => at));
    if (this.#immediates.length === 0) {
      if (next === Infinity) return false;
      this.ms = Math.max(this.ms, next);
    }
    for (const [timer, { at, run }] of [...this.#timers]) {
      if (at > this.ms || !this.#timers.delete(timer)) continue;
      run();
    }
    for (const run of this.#immediates.splice(0)) run();
    return true;
  }

  /** Rounds until then. */
  passUntil(ms: number): void {
    this.setTimeout(() => {}, Math.max(0, ms - this.ms));
    while (this.ms < ms) this.round();
  }
}

let loop: Loop;
let queue: TurnQueue;
let ran: string[];

function work(name: string, ms: number): () => void {
  return () => {
    loop.ms += ms;
    ran.push(name);
  };
}

function begin(sliceMs = 2): void {
  loop = new Loop();
  ran = [];
  vi.stubGlobal('setImmediate', loop.setImmediate);
  vi.stubGlobal('setTimeout', loop.setTimeout);
  vi.stubGlobal('clearTimeout', loop.clearTimeout);
  const monotonic = (): number => loop.ms;
  queue = new TurnQueue({ clock: { now: monotonic, monotonic }, sliceMs });
}

/** Until nobody waits. */
function drain(): void {
  while (queue.length > 0) if (!loop.round()) throw new Error(`${queue.length} wait for ever`);
}

beforeEach(() => begin());
afterEach(() => {
  vi.unstubAllGlobals();
});

test('any changes of rules and caps have each batch run once, those of a tenant in order', () => {
  const tenant = fc.constantFrom(1, 2, 3, backgroundWork);
  const step = fc.oneof(
    {
      weight: 8,
      arbitrary: fc.record({
        kind: fc.constant('wait'),
        tenant,
        ms: fc.constantFrom(0, 0.1, 1, 60),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({ kind: fc.constant('run'), tenant, ms: fc.constantFrom(0.1, 3) }),
    },
    {
      weight: 1,
      arbitrary: fc.record({ kind: fc.constant('rule'), rule: fc.constantFrom(...rules) }),
    },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('cap'), isOn: fc.boolean() }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('capacity'), isThere: fc.boolean() }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('layers'), isLow: fc.boolean() }) },
    {
      weight: 1,
      arbitrary: fc.record({ kind: fc.constant('spent'), tenant, ms: fc.constantFrom(0.1, 5) }),
    },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('forget'), tenant }) },
    {
      weight: 1,
      arbitrary: fc.record({
        kind: fc.constant('weigh'),
        tenant,
        weight: fc.constantFrom(0.1, 1, 100),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({ kind: fc.constant('pass'), ms: fc.constantFrom(0, 1, 5, 200) }),
    },
  );
  fc.assert(
    fc.property(
      fc.array(step as fc.Arbitrary<Step>, { maxLength: 100, size: 'max' }),
      fc.constantFrom(0, 2),
      (steps, sliceMs) => {
        begin(sliceMs);
        queue.order.classes = false;
        const waiting: string[] = [];
        for (const one of steps) act(one, waiting);
        queue.setCapacity(undefined);
        drain();
        expect([...ran].sort()).toEqual([...waiting].sort());
        for (const own of ['1', '2', '3', String(backgroundWork)]) {
          const of = (names: string[]): string[] =>
            names.filter((name) => name.startsWith(`${own}:`));
          expect(of(ran)).toEqual(of(waiting));
        }
      },
    ),
  );
});

interface Step {
  kind: string;
  tenant: number;
  ms: number;
  rule: TurnRule;
  isOn: boolean;
  isThere: boolean;
  isLow: boolean;
  weight: number;
}

function act(step: Step, waiting: string[]): void {
  const { tenant, ms } = step;
  switch (step.kind) {
    case 'wait': {
      const name = `${tenant}:${waiting.length}`;
      waiting.push(name);
      queue.wait(tenant, work(name, ms));
      break;
    }
    case 'run':
      if (queue.mayRun(tenant, loop.ms)) loop.ms += ms;
      break;
    case 'rule':
      queue.setRule(step.rule);
      break;
    case 'cap':
      queue.setCap(step.isOn ? new TurnCap() : undefined);
      break;
    case 'capacity':
      queue.setCapacity(step.isThere ? undefined : { mayBegin: (one) => one === 1 });
      break;
    case 'layers':
      queue.setBackgroundLow(step.isLow);
      break;
    case 'spent':
      queue.spent(tenant, ms);
      break;
    case 'forget':
      queue.forget(tenant);
      break;
    case 'weigh':
      queue.setWeight(tenant, step.weight);
      break;
    case 'pass':
      loop.passUntil(loop.ms + ms);
      break;
    default:
      throw new Error(step.kind);
  }
}

test('one who comes beside a flood is served soon, whatever the rule but by arrival', () => {
  const place = (rule: TurnRule): number => {
    begin();
    queue.setRule(rule);
    // What its batches take is known.
    for (let i = 0; i < 30; i++) queue.wait(1, work('flood', 1));
    drain();
    ran = [];
    for (let i = 0; i < 50; i++) queue.wait(1, work('flood', 1));
    loop.round();
    queue.wait(2, work('light', 0.2));
    drain();
    expect(ran).toHaveLength(51);
    return ran.indexOf('light');
  };
  expect(place('virtual-finish-time')).toBeLessThan(8);
  expect(place('least-granted')).toBeLessThan(8);
  expect(place('most-requested')).toBeGreaterThan(20);
  expect(place('arrival')).toBe(50);
});

test('those who wait follow a rule that changes', () => {
  queue.setRule('arrival');
  for (let i = 0; i < 20; i++) queue.wait(1, work('flood', 1));
  for (let i = 0; i < 3; i++) queue.wait(2, work('light', 1));
  loop.round();
  expect(ran).not.toContain('light');
  queue.setRule('virtual-finish-time');
  drain();
  expect(ran).toHaveLength(23);
  expect(ran.lastIndexOf('light')).toBeLessThan(12);
});

/** Keeps `count` batches of a tenant in line until `untilMs`. */
function flood(tenant: number, count: number, ms: number, untilMs: number): { ms: number } {
  const spent = { ms: 0 };
  const again = (): void => {
    queue.wait(tenant, () => {
      loop.ms += ms;
      spent.ms += ms;
      if (loop.ms < untilMs) again();
    });
  };
  for (let i = 0; i < count; i++) again();
  return spent;
}

test('under the cap a flood leaves a tenth of the thread to whoever may come', () => {
  queue.setCap(new TurnCap());
  const spent = flood(1, 10, 0.1, 2000);
  const light: number[] = [];
  const look = (): void => {
    const cameAt = loop.ms;
    if (queue.mayRun(2, cameAt)) light.push(0);
    else queue.wait(2, () => light.push(loop.ms - cameAt));
    if (loop.ms < 2000) setTimeout(look, 20);
  };
  look();
  loop.passUntil(2000);
  drain();
  expect(spent.ms / 2000).toBeLessThan(0.9);
  expect(spent.ms / 2000).toBeGreaterThan(0.85);
  expect(queue.held).toBeGreaterThan(100);
  expect(Math.max(...light)).toBeLessThan(5);
});

test('the cap holds nobody who is alone', () => {
  queue.setCap(new TurnCap());
  const spent = flood(1, 10, 0.1, 500);
  loop.passUntil(500);
  drain();
  expect(queue.held).toBe(0);
  expect(spent.ms).toBeGreaterThan(490);
});

test('who finds nobody in line while another is held back has the thread', () => {
  queue.setCap(new TurnCap());
  queue.mayRun(2, loop.ms);
  queue.wait(1, work('long', 50));
  loop.round();
  queue.wait(1, work('next', 1));
  loop.round();
  expect(ran).toEqual(['long']);
  expect(queue.held).toBe(1);
  queue.begin(loop.ms);
  expect(queue.mayRun(1, loop.ms)).toBe(false);
  expect(queue.mayRun(2, loop.ms)).toBe(true);
  queue.setCap(undefined);
  drain();
  expect(ran).toEqual(['long', 'next']);
});

test('background work has a little, or as much as a tenant', () => {
  const share = (isLow: boolean): number => {
    begin();
    queue.setBackgroundLow(isLow);
    const upkeep = flood(backgroundWork, 1, 0.5, 1000);
    const others = flood(1, 10, 0.5, 1000);
    loop.passUntil(1000);
    drain();
    return upkeep.ms / (upkeep.ms + others.ms);
  };
  expect(share(true)).toBeLessThan(0.07);
  expect(share(true)).toBeGreaterThan(0.04);
  expect(share(false)).toBeGreaterThan(0.45);
});
test('who is held back for long is not forgotten', () => {
  queue.setCap(new TurnCap());
  queue.mayRun(2, loop.ms);
  queue.wait(1, work('long', 60));
  loop.round();
  queue.wait(1, work('next', 1));
  queue.wait(1, work('last', 1));
  drain();
  expect(ran).toEqual(['long', 'next', 'last']);
  expect(loop.ms).toBeGreaterThan(66);
});

test('what runs at once counts until the end of the round, and no longer', () => {
  queue.setCap(new TurnCap());
  queue.begin(loop.ms);
  queue.mayRun(2, loop.ms);
  expect(queue.mayRun(1, loop.ms)).toBe(true);
  loop.ms += 50;
  loop.round();
  queue.begin(loop.ms);
  expect(queue.mayRun(1, loop.ms)).toBe(false);
  // Nobody has it.
  loop.ms += 30;
  queue.begin(loop.ms);
  expect(queue.mayRun(1, loop.ms)).toBe(true);
});

test('background work that others wait for goes before them, if it is to be raised', () => {
  queue.wait(1, work('busy', 1));
  expect(queue.mayRun(backgroundWork, loop.ms)).toBe(false);
  expect(queue.mayRun(backgroundWork, loop.ms, true)).toBe(false);
  queue.raisesWaitedFor = true;
  expect(queue.mayRun(backgroundWork, loop.ms)).toBe(false);
  expect(queue.mayRun(backgroundWork, loop.ms, true)).toBe(true);
});
