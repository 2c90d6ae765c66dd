// Random histories of a `CpuScheduler`: every queued batch runs exactly once, in order within its tenant.

import fc from 'fast-check';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { batchRequest, backgroundWork } from '../../../contracts/pod-admission.ts';
import { CpuScheduler } from './cpu-scheduler.ts';

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
let queue: CpuScheduler;
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
  queue = new CpuScheduler({ clock: { now: monotonic, monotonic }, sliceMs });
}

/** Runs until the queue is empty. */
function drain(): void {
  while (queue.length > 0) if (!loop.round()) throw new Error(`${queue.length} wait for ever`);
}

beforeEach(() => begin());
afterEach(() => {
  vi.unstubAllGlobals();
});

test('each batch runs once, in order within its tenant, whatever changes meanwhile', () => {
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
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('capacity'), isThere: fc.boolean() }) },
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
  isThere: boolean;
  weight: number;
}

function act(step: Step, waiting: string[]): void {
  const { tenant, ms } = step;
  switch (step.kind) {
    case 'wait': {
      const name = `${tenant}:${waiting.length}`;
      waiting.push(name);
      queue.enqueue(batchRequest(tenant, work(name, ms)));
      break;
    }
    case 'run':
      if (queue.mayRun(tenant, loop.ms)) loop.ms += ms;
      break;
    case 'capacity':
      queue.setCapacity(step.isThere ? undefined : { mayBegin: (one) => one === 1 });
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
