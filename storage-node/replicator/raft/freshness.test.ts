import { expect, test } from 'vitest';
import { emptyConf, MessageType } from '../engine/frames.ts';
import type { Message } from '../engine/frames.ts';
import { Freshness } from './freshness.ts';
import { decodeHeartbeats, encodeHeartbeats } from './heartbeats.ts';

const conf = { ...emptyConf, voters: [1, 2, 3] };
const applied = { index: 10, term: 4 };

function message(type: number, from: number, to: number, term = 4): Message {
  const noBytes = new Uint8Array(0);
  return {
    ...{ type, from, to, term, commit: 0, logTerm: 0, index: 0, vote: 0, reject: false },
    ...{ rejectHint: 0, hasHardState: false, context: noBytes, entries: [], snapshot: undefined },
    responses: [],
  };
}

/** Three replicas whose clocks began at other times; 1 leads. */
class Three {
  now = 0;
  /** As the replicas know it. */
  term = 4;
  readonly life: number[];
  readonly replicas: Freshness[];

  constructor(life = [0, 5, 6, 7]) {
    this.life = life;
    this.replicas = [0, 1, 2, 3].map((id) => this.#create(id));
  }

  #create(id: number): Freshness {
    const clock = (): number => this.now + id * 1_000_000;
    return new Freshness({
      incarnation: this.life[id]!,
      term: () => this.term,
      clock,
      leaseMs: 1000,
      keepsLeases: () => true,
    });
  }

  restart(id: number): void {
    this.life[id]!++;
    this.replicas[id] = this.#create(id);
  }

  get leader(): Freshness {
    return this.replicas[1]!;
  }

  /** The message as it leaves its sender, to be received later. */
  stamped(m: Message): () => void {
    const times = this.replicas[m.from]!.stamp(m, applied, conf);
    const bytes = encodeHeartbeats(this.life[m.from]!, [{ group: 1, message: m, times }]);
    const [peer] = decodeHeartbeats(bytes);
    return () => this.replicas[m.to]!.received(peer!.message, peer!.incarnation, peer!.times!);
  }

  #carry(m: Message): void {
    this.stamped(m)();
  }

  /** A heartbeat, and 20 ms later its answer. */
  beat(to: number, term = 4): void {
    this.#carry(message(MessageType.heartbeat, 1, to, term));
    this.now += 20;
    this.#carry(message(MessageType.heartbeatResponse, to, 1, term));
  }
}

test('a follower knows how old its state is once a majority has answered, and it has applied it', () => {
  const all = new Three();
  expect(all.replicas[2]!.staleness(10).ms).toBe(Infinity);
  all.beat(2);
  all.beat(3);
  // The leader had heard of its clock at 20, and then of a majority as of 0.
  all.now = 100;
  all.beat(2);
  expect(all.replicas[2]!.staleness(9)).toEqual({ ms: Infinity, entries: 1 });
  const { ms, entries } = all.replicas[2]!.staleness(10);
  expect(ms).toBeGreaterThanOrEqual(100);
  expect(ms).toBeLessThan(250);
  expect(entries).toBe(0);
  all.now += 5000;
  expect(all.replicas[2]!.staleness(10).ms).toBeGreaterThan(5000);
  // Another life has another clock.
  all.restart(2);
  all.beat(2);
  expect(all.replicas[2]!.staleness(10).ms).toBe(Infinity);
});

test('a leader has a lease from the heartbeat on that a majority has answered', () => {
  const all = new Three();
  const has = (term = 4): boolean => all.leader.hasLease(1, term, conf);
  expect(has()).toBe(false);
  all.beat(2);
  expect(has()).toBe(false);
  all.beat(3);
  expect(has()).toBe(true);
  expect(has(5)).toBe(false);
  all.now += 860;
  expect(has()).toBe(true);
  all.now += 100;
  expect(has()).toBe(false);
  all.beat(3);
  expect(has()).toBe(true);
  all.leader.transferred(4);
  expect(has()).toBe(false);
  for (const to of [2, 3]) all.beat(to, 5);
  expect(has(5)).toBe(true);
});

test('a leader is never given the clock of the one before it', () => {
  // In their first life all nodes have the same number.
  const all = new Three([0, 1, 1, 1]);
  const { heartbeat, heartbeatResponse } = MessageType;
  // 3 led; its clock is ahead of that of 1, which leads now.
  const late = all.stamped(message(heartbeat, 3, 2, 4));
  all.stamped(message(heartbeat, 1, 2, 5))();
  late();
  all.now += 20;
  all.stamped(message(heartbeatResponse, 2, 1, 5))();
  all.now += 5000;
  const pair = { ...emptyConf, voters: [1, 2] };
  expect(all.leader.hasLease(1, 5, pair)).toBe(false);
});

test('a late heartbeat of a replaced leader changes nothing', () => {
  const all = new Three();
  const { heartbeat, heartbeatResponse } = MessageType;
  const late = all.stamped(message(heartbeat, 3, 2, 4));
  all.term = 5;
  all.stamped(message(heartbeat, 1, 2, 5))();
  late();
  all.stamped(message(heartbeatResponse, 2, 1, 5))();
  const pair = { ...emptyConf, voters: [1, 2] };
  // The answer still tells when the heartbeat of 1 was sent.
  expect(all.leader.hasLease(1, 5, pair)).toBe(true);
});
