import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { GatewaySet, type Host, usualDrainMs } from './gateway-set.ts';

const quota = 900;

/** Shares as the scheduler of request units gives them: who joins gets an equal one, who leaves leaves his to the others. */
class Shares {
  readonly #shares = new Map<string, number>();

  get count(): number {
    return this.#shares.size;
  }

  gateways(): string[] {
    return [...this.#shares.keys()];
  }

  of(gateway: string): number {
    return this.#shares.get(gateway) ?? 0;
  }

  join(gateway: string): void {
    const part = this.count / (this.count + 1);
    for (const [other, share] of this.#shares) this.#shares.set(other, share * part);
    this.#shares.set(gateway, quota * (1 - part));
  }

  leave(gateway: string): void {
    const rest = quota - this.of(gateway);
    this.#shares.delete(gateway);
    for (const [other, share] of this.#shares) this.#shares.set(other, (share * quota) / rest);
  }
}

interface Process {
  accepts: boolean;
  inFlight: number;
  /** When it was told to accept nothing more. */
  toldAt: number;
}

/** Processes as the set has them started and stopped; word that they are to drain reaches them late. */
class World {
  now = 0;
  readonly shares = new Shares();
  readonly running = new Map<string, Process>();
  readonly told: string[] = [];
  readonly faults: string[] = [];
  /** Requests that were cut. */
  cut = 0;
  readonly set = new GatewaySet({
    gatewayShare: 0.05,
    shares: {
      join: (gateway) => {
        this.told.push(`join ${gateway}`);
        this.shares.join(gateway);
      },
      leave: (gateway) => {
        this.told.push(`leave ${gateway}`);
        if (this.shares.of(gateway) === 0) this.faults.push(`${gateway} had no share`);
        this.shares.leave(gateway);
      },
    },
    actions: {
      start: (gateway) =>
        this.running.set(gateway, { accepts: true, inFlight: 0, toldAt: Infinity }),
      stopAccepting: (gateway) => (this.running.get(gateway)!.toldAt = this.now),
      stop: (gateway) => {
        const process = this.running.get(gateway)!;
        if (process.inFlight > 0) {
          this.cut += process.inFlight;
          if (this.now < process.toldAt + usualDrainMs) this.faults.push(`${gateway} cut early`);
        }
        this.running.delete(gateway);
      },
    },
  });

  nth(n: number): string | undefined {
    return [...this.running.keys()][n % Math.max(1, this.running.size)];
  }

  /** A client's request: it may still reach a gateway that has not got the word. */
  request(gateway: string): boolean {
    const process = this.running.get(gateway);
    if (process === undefined || this.set.stateOf(gateway) === 'starting') return false;
    if (!process.accepts) return false;
    process.inFlight++;
    return true;
  }

  report(gateway: string): void {
    const process = this.running.get(gateway);
    if (process === undefined) return;
    const { accepts, inFlight } = process;
    this.set.report(gateway, { accepts, inFlight, connections: inFlight });
  }

  /** The word to drain arrives. */
  hear(gateway: string): void {
    const process = this.running.get(gateway);
    if (process !== undefined && process.toldAt <= this.now) process.accepts = false;
  }

  check(): void {
    const members = this.set.list();
    for (const { id, state } of members) {
      const hasShare = this.shares.of(id) > 0;
      if (hasShare !== (state !== 'starting')) this.faults.push(`${id} is ${state}: ${hasShare}`);
    }
    for (const id of this.shares.gateways()) {
      if (this.set.stateOf(id) === undefined) this.faults.push(`${id} is gone with a share`);
    }
    let total = 0;
    for (const id of this.shares.gateways()) total += this.shares.of(id);
    if (this.shares.count > 0 && Math.abs(total - quota) > 1e-6) {
      this.faults.push(`shares come to ${total}`);
    }
    for (const id of this.running.keys()) {
      if (this.set.stateOf(id) === undefined) this.faults.push(`${id} runs and is not known`);
    }
  }
}

type Event =
  | { kind: 'start' | 'serves' | 'request' | 'finish' | 'report' | 'hear' | 'lost'; n: number }
  | { kind: 'drain'; n: number }
  | { kind: 'pass'; n: number }
  | { kind: 'adjust'; n: number; use: number; cpu: number };

const event: fc.Arbitrary<Event> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constantFrom('start', 'serves', 'request', 'finish', 'report', 'hear'),
      n: fc.nat(20),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constantFrom('drain', 'lost'), n: fc.nat(20) }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('pass'), n: fc.nat(20_000) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('adjust'),
      n: fc.nat(9),
      use: fc.double({ min: 0, max: 2, noNaN: true }),
      cpu: fc.double({ min: 0, max: 1, noNaN: true }),
    }),
  },
);

const host = (node: number, cpu: number): Host => ({ node, cpu, cpuP95: 0.2, memory: 0.3 });
const hosts = Array.from({ length: 10 }, (_, node) => host(node, 0.3));

function apply(world: World, one: Event): void {
  const { set } = world;
  const gateway = world.nth(one.n);
  if (one.kind === 'start') set.start(one.n % hosts.length);
  else if (one.kind === 'pass') set.tick((world.now += one.n));
  else if (one.kind === 'adjust') {
    const pressed = hosts.map((each) => (each.node === one.n ? host(one.n, one.cpu) : each));
    set.adjust(world.now, one.use, pressed);
  } else if (gateway === undefined) return;
  else if (one.kind === 'serves') set.serves(gateway);
  else if (one.kind === 'request') world.request(gateway);
  else if (one.kind === 'report') world.report(gateway);
  else if (one.kind === 'hear') world.hear(gateway);
  else if (one.kind === 'drain') set.drain(gateway, world.now);
  else if (one.kind === 'finish') {
    const process = world.running.get(gateway)!;
    process.inFlight = Math.max(0, process.inFlight - 1);
  } else {
    world.running.delete(gateway);
    set.lost(gateway);
  }
}

describe('whatever happens to gateways', () => {
  test('shares come to the quota, none goes with one or twice, none is cut before its time', () => {
    let drained = 0;
    let cut = 0;
    fc.assert(
      fc.property(fc.array(event, { minLength: 20, maxLength: 150, size: 'max' }), (history) => {
        const world = new World();
        for (const one of history) {
          apply(world, one);
          world.check();
          expect(world.faults).toEqual([]);
        }
        const left = world.told.filter((line) => line.startsWith('leave'));
        expect(new Set(world.told).size).toBe(world.told.length);
        drained += left.length;
        cut += world.cut;
      }),
      { numRuns: 150 },
    );
    // Histories that never come so far would show nothing.
    expect(drained).toBeGreaterThan(100);
    expect(cut).toBeGreaterThan(0);
  });

  test('one that has got the word to drain takes no request, and never serves again', () => {
    fc.assert(
      fc.property(fc.array(event, { minLength: 20, maxLength: 150, size: 'max' }), (history) => {
        const world = new World();
        const drains = new Set<string>();
        for (const one of history) {
          apply(world, one);
          for (const { id, state } of world.set.list()) {
            if (drains.has(id)) expect(state).toBe('draining');
            if (state !== 'draining') continue;
            drains.add(id);
            world.hear(id);
            expect(world.request(id)).toBe(false);
          }
        }
      }),
      { numRuns: 100 },
    );
  });
});

/** So many that serve, on nodes of their own. */
function serving(count: number): World {
  const world = new World();
  for (let node = 0; node < count; node++) world.set.serves(world.set.start(node));
  return world;
}

test('a gateway that drains keeps its share until its last request is done', () => {
  const world = serving(3);
  const { set, shares } = world;
  world.request('gateway-1');
  expect(set.drain('gateway-1', 0)).toBe(true);
  // This report was under way when it was told.
  set.report('gateway-1', { accepts: true, connections: 0, inFlight: 0 });
  expect(set.stateOf('gateway-1')).toBe('draining');
  world.hear('gateway-1');
  world.report('gateway-1');
  expect(shares.of('gateway-1')).toBeCloseTo(300);
  world.running.get('gateway-1')!.inFlight = 0;
  world.report('gateway-1');
  expect(set.stateOf('gateway-1')).toBeUndefined();
  expect(shares.of('gateway-2')).toBeCloseTo(450);
  expect(world.told.filter((line) => line === 'leave gateway-1')).toHaveLength(1);
});

test('requests that take longer than a gateway has for draining are cut', () => {
  const world = serving(2);
  world.request('gateway-2');
  world.set.drain('gateway-2', 0);
  world.set.tick((world.now = usualDrainMs - 1));
  expect(world.set.stateOf('gateway-2')).toBe('draining');
  world.set.tick((world.now = usualDrainMs));
  expect(world.set.stateOf('gateway-2')).toBeUndefined();
  expect([world.cut, world.shares.of('gateway-1')]).toEqual([1, quota]);
});

test('the last one that serves stays; one that starts just stops', () => {
  const world = serving(1);
  const started = world.set.start(4);
  expect(world.set.drain('gateway-1', 0)).toBe(false);
  expect(world.set.drain(started, 0)).toBe(true);
  expect(world.set.stateOf(started)).toBeUndefined();
  expect(world.told).toEqual(['join gateway-1']);
});

describe('the order in which they leave', () => {
  const connections = (world: World, counts: readonly number[]): void => {
    counts.forEach((count, i) => {
      const report = { accepts: true, connections: count, inFlight: 0 };
      world.set.report(`gateway-${i + 1}`, report);
    });
  };

  test('is first the node that needs its processors, then the fewest connections', () => {
    const world = serving(4);
    connections(world, [7, 3, 9, 5]);
    const order = (...cpu: number[]): string[] =>
      world.set.leaving(cpu.map((use, node) => host(node, use))).map((id) => id.slice(-1));
    expect(order(0.3, 0.3, 0.3, 0.3)).toEqual(['2', '4', '1', '3']);
    expect(order(0.3, 0.3, 0.7, 0.3)).toEqual(['3', '2', '4', '1']);
    expect(order(0.7, 0.3, 0.8, 0.3)).toEqual(['3', '1', '2', '4']);
  });

  test('one leaves a node that needs its processors, and another starts elsewhere', () => {
    const world = serving(4);
    connections(world, [7, 3, 9, 5]);
    const pressed = hosts.map((one) => (one.node === 2 ? host(2, 0.7) : one));
    world.set.adjust(0, 0.7, pressed);
    expect(world.set.stateOf('gateway-3')).toBe('draining');
    expect(world.set.list().filter(({ state }) => state === 'starting')).toHaveLength(1);
    expect(world.set.list().at(-1)!.node).not.toBe(2);
    world.set.adjust(15_000, 0.7, pressed);
    expect(world.set.count).toBe(4);
  });
});
