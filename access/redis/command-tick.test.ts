import { afterEach, expect, test, vi } from 'vitest';
import type { Executor, Outcome } from '../../universal-row/executor.ts';
import { noLog } from './unsent-answers.ts';
import { CommandTick, type TickClient, tickOutputBytes } from './command-tick.ts';
import { FanOut } from './fan-out.ts';
import type { HeldMemory } from './held-memory.ts';
import { Monitors } from './monitors.ts';
import { type TrackingState, TrackingTable } from './tracking.ts';

afterEach(() => vi.restoreAllMocks());

interface Bench {
  tick: CommandTick<TickClient>;
  /** Names of clients that were served, and `|` where a tick ended. */
  seen: string[];
  client: (name: string, workMs: number, rounds?: number) => TickClient;
}

function tickWith(
  executors: () => readonly Executor[],
  unknown: () => unknown = () => {},
): CommandTick<TickClient> {
  return new CommandTick<TickClient>({
    executors,
    podAdmission: undefined,
    steps: undefined,
    beforeEnd: () => {},
    isWaiting: () => false,
    unknown,
    failed: () => {},
  });
}

/** Work takes as long as it says, on a clock of its own. */
function bench(): Bench {
  let now = 0;
  vi.spyOn(performance, 'now').mockImplementation(() => now);
  const seen: string[] = [];
  const tick = tickWith(() => {
    seen.push('|');
    return [];
  });
  const client = (name: string, workMs: number, rounds = 1): TickClient => {
    let left = rounds;
    const work = (): void => {
      seen.push(name);
      now += workMs;
      tick.lap();
      if (--left > 0) tick.resume(one);
    };
    const one: TickClient = {
      version: 2,
      closing: false,
      countError: () => {},
      receive: work,
      send: () => true,
      resumeNow: work,
      readAgain: () => {},
      keepAnswer: () => true,
      countWaiting: () => {},
      endSoon: () => {},
      destroy: () => {},
      stepInfo: () => ({ what: name, tenant: 0, bytes: 0 }),
    };
    return one;
  };
  return { tick, seen, client };
}

async function rounds(n: number): Promise<void> {
  for (let i = 0; i < n; i++) await new Promise(setImmediate);
}

/** Each tick has written at the position. `settled`: to be called with the outcomes, in the order of the ticks. */
function written(position: number): {
  executor: Executor;
  settled: ((outcome: Outcome) => void)[];
} {
  const settled: ((outcome: Outcome) => void)[] = [];
  const executor = {
    endTick: () => position,
    whenSettled: (_position: number, then: (outcome: Outcome) => void) => settled.push(then),
  } as unknown as Executor;
  return { executor, settled };
}

test('clients that go on share a tick until it has taken long, and then have the next one in order', async () => {
  const { tick, seen, client } = bench();
  for (const name of ['a', 'b', 'c']) tick.resume(client(name, 30, 2));
  for (const name of ['d', 'e', 'f']) tick.resume(client(name, 1));
  await rounds(20);
  const ticks = seen
    .join('')
    .split('|')
    .filter((text) => text !== '');
  // Each of the long ones has a tick of its own, and none goes on before all others have had a part.
  expect(ticks).toEqual(['a', 'b', 'c', 'defa', 'b', 'c']);
});

test('clients that have sent little go on before those that have sent much', async () => {
  const { tick, seen, client } = bench();
  for (const name of ['a', 'b', 'c']) tick.resume(client(name, 30));
  await rounds(1);
  for (const name of ['x', 'y']) tick.resume(client(name, 1), 100);
  await rounds(20);
  const ticks = seen
    .join('')
    .split('|')
    .filter((text) => text !== '');
  expect(ticks).toEqual(['a', 'xyb', 'c']);
});

test('a client with little to run goes on while others fill every tick', async () => {
  const { tick, seen, client } = bench();
  const large = client('large', 0);
  const bytes = Buffer.alloc(tickOutputBytes + 1);
  tick.resume(client('small', 0), 14);
  for (let round = 0; round < 5; round++) {
    // As a socket that is read in each round.
    setImmediate(() => {
      seen.push('large');
      tick.open(large).rawBytes(bytes, 0, bytes.length);
    });
    await rounds(1);
  }
  expect(seen.indexOf('small')).toBeGreaterThan(0);
  expect(seen.slice(0, seen.indexOf('small')).filter((name) => name === 'large')).toHaveLength(1);
});

test('a tick that has taken long takes small requests for a while, and large ones no more', async () => {
  const { tick, client } = bench();
  const few = 100;
  const many = 10_000;
  tick.schedule();
  expect(tick.isOverFor(many)).toBe(false);
  client('a', 10).resumeNow();
  expect([tick.isOverFor(few), tick.isOverFor(many)]).toEqual([false, true]);
  client('b', 20).resumeNow();
  expect([tick.isOverFor(few), tick.isOverFor(many)]).toEqual([true, true]);
  await rounds(1);
  tick.schedule();
  expect([tick.isOverFor(few), tick.isOverFor(many)]).toEqual([false, false]);
});

test('large answers that wait for the log are counted until they are sent', async () => {
  const { executor, settled: safe } = written(1);
  const { client } = bench();
  const tick = tickWith(() => [executor]);
  const waiting = new Map<string, number>();
  const sent: string[] = [];
  for (const [name, bytes] of [
    ['small', 100],
    ['large', 50_000],
    ['larger', 70_000],
  ] as const) {
    const one: TickClient = {
      ...client(name, 0),
      countWaiting: (more) => waiting.set(name, (waiting.get(name) ?? 0) + more),
      send: () => sent.push(name) > 0,
    };
    tick.open(one).rawBytes(Buffer.alloc(bytes), 0, bytes);
  }
  await rounds(1);
  expect([...waiting]).toEqual([
    ['large', 50_000],
    ['larger', 70_000],
  ]);
  expect(sent).toEqual([]);
  for (const then of safe) then('committed');
  expect([...waiting]).toEqual([
    ['large', 0],
    ['larger', 0],
  ]);
  expect(sent).toEqual(['small', 'large', 'larger']);
});

test('answers that saw what may be lost become errors, one a command', async () => {
  const { executor, settled } = written(7);
  const { client } = bench();
  let unknown = 0;
  const tick = tickWith(
    () => [executor, executor],
    () => unknown++,
  );
  const sent: string[] = [];
  const one = (name: string): TickClient => ({
    ...client(name, 0),
    send: (bytes, start, end) => sent.push(`${name} ${bytes.toString('latin1', start, end)}`) > 0,
    destroy: () => sent.push(`${name} destroyed`),
  });
  const [a, b, c] = [one('a'), one('b'), one('c')];
  tick.open(a).integer(1);
  tick.open(a).ok();
  tick.open(b).ok();
  tick.open(c).raw('$9\r\nhalf');
  tick.open(a).nil();
  await rounds(1);
  expect(settled).toHaveLength(2);
  settled[0]!('unknown');
  expect(sent).toEqual([]);
  settled[1]!('committed');
  const error = '-ERR outcome unknown\r\n';
  expect(sent).toEqual([`a ${error}${error}`, `b ${error}`, 'c destroyed', `a ${error}`]);
  expect(unknown).toBe(1);
});

test('of a tick that is lost, what was evaluated in it was not done, and the rest may be', async () => {
  const { executor, settled } = written(7);
  let ofPosition: Outcome;
  const pod = {
    whenSettled: (position: number, then: (outcome: Outcome) => void) => {
      if (position === 7) then(ofPosition);
    },
  };
  const { client } = bench();
  const tick = tickWith(() => [executor]);
  const sent: string[] = [];
  const one = (name: string): TickClient => ({
    ...client(name, 0),
    send: (bytes, start, end) => {
      const texts = bytes.toString('latin1', start, end).split('\r\n').slice(0, -1);
      sent.push(`${name} ${texts.map((text) => text.split(' ')[0]).join(' ')}`);
      return true;
    },
  });
  const [a, b] = [one('a'), one('b')];
  /** `+` is evaluated, `-` is not, `x` is evaluated and not answered. */
  const answer = (to: TickClient, kinds: string): void => {
    for (const kind of kinds) {
      const writer = tick.open(to);
      const mark = writer.pos;
      writer.ok();
      if (kind !== '-') tick.evaluated(mark, { pod, at: 7 });
      if (kind === 'x') tick.takeBack(to, mark);
    }
  };
  const run = async (outcome: Outcome): Promise<void> => {
    answer(a, '+++-+');
    answer(b, '-++x-x+');
    await rounds(1);
    ofPosition = outcome;
    settled.pop()!(outcome);
  };
  const [no, may] = ['-CLUSTERDOWN', '-ERR'];
  await run('lost');
  expect(sent).toEqual([`a ${no} ${no} ${no} ${may} ${no}`, `b ${may} ${no} ${no} ${may} ${no}`]);
  await run('unknown');
  expect(sent.slice(2)).toEqual([
    `a ${may} ${may} ${may} ${may} ${may}`,
    `b ${may} ${may} ${may} ${may} ${may}`,
  ]);
  answer(a, '-');
  await rounds(1);
  settled.pop()!('lost');
  expect(sent.at(-1)).toBe(`a ${may}`);
});

test('of a tick of several positions each answer is handled by the outcome of its own', async () => {
  const { executor, settled } = written(7);
  const outcomes: (Outcome | undefined)[] = ['committed', 'committed', 'lost', 'unknown'];
  const pod = {
    whenSettled: (position: number, then: (outcome: Outcome) => void) => {
      const outcome = outcomes[position];
      if (outcome !== undefined) then(outcome);
    },
  };
  const other = {
    whenSettled: (_position: number, then: (outcome: Outcome) => void) => then('committed'),
  };
  const { client } = bench();
  const tick = tickWith(() => [executor]);
  const sent: string[] = [];
  const one: TickClient = {
    ...client('a', 0),
    send: (bytes, start, end) => {
      sent.push(...bytes.toString('latin1', start, end).split('\r\n').slice(0, -1));
      return true;
    },
  };
  const ran = [
    ...[0, 1, 1, 2, 2, 3, 4].map((at) => ({ pod, at })),
    ...[2, 9].map((at) => ({ pod: other, at })),
    noLog,
  ];
  for (const [i, last] of ran.entries()) {
    const writer = tick.open(one);
    const mark = writer.pos;
    writer.integer(i);
    tick.evaluated(mark, last);
  }
  await rounds(1);
  settled.pop()!('unknown');
  const [no, may] = ['-CLUSTERDOWN', '-ERR'];
  expect(sent.map((text) => text.split(' ')[0])).toEqual([
    ...[':0', ':1', ':2', no, no, may, may],
    ...[':7', ':8', ':9'],
  ]);
});

test.each(['lost', 'unknown'] as const)(
  'of a tick that is %s no message of RESP2 becomes an error, and what clears caches is sent',
  async (outcome) => {
    const { executor, settled } = written(1);
    const tick = tickWith(() => [executor]);
    const { client } = bench();
    const sent = new Map<string, string>();
    const one = (name: string) => {
      const it: TickClient = {
        ...client(name, 0),
        send: (bytes, start, end) => {
          sent.set(name, bytes.toString('latin1', start, end).replaceAll('\r\n', ' '));
          return true;
        },
      };
      return Object.assign(it, {
        ...{ id: 1, db: 0, address: '', tenant: { number: 0 } },
        tracking: undefined as TrackingState | undefined,
        ...{ channels: new Set<string>(), patterns: new Set<string>() },
        ...{ shardChannels: new Set<string>(), held: undefined as unknown as HeldMemory },
        closed: false,
        answer: () => tick.open(it),
        pushed: (mark: number, isKept = false) => tick.pushed(mark, isKept),
      });
    };
    const [subscriber, cacher, monitor] = [one('subscriber'), one('cacher'), one('monitor')];
    const monitors = new Monitors<typeof monitor>();
    monitors.add(monitor);
    const audience = { listeners: new Set([subscriber, cacher]), pattern: undefined };
    const publish = (text: string): void => {
      const payload = Buffer.from(text);
      const message = { channel: Buffer.from('c'), payload, isSharded: false };
      void new FanOut().send(message, [audience], 2);
    };
    const table = new TrackingTable(() => cacher);
    cacher.channels.add('__redis__:invalidate');
    table.clients.add({ ...one('tracker'), tracking: { redirect: 1 } as TrackingState });
    publish('1');
    tick.open(subscriber).simple('PONG');
    publish('2');
    table.flushed();
    monitors.hear(0, '+1.5 [0 a] "get" "k"\r\n+1.6 [0 a] "get" "k"\r\n');
    tick.open(monitor).ok();
    publish('3');
    await rounds(1);
    settled[0]!(outcome);
    const error = '-ERR outcome unknown ';
    expect(Object.fromEntries(sent)).toEqual({
      subscriber: error,
      cacher: '*3 $7 message $20 __redis__:invalidate $-1 ',
      monitor: error,
    });
  },
);

test('answers leave in order for each client, whichever log is settled first', async () => {
  const settled: [string, (outcome: Outcome) => void][] = [];
  const positions: [number, number][] = [];
  const executors = ['x', 'y'].map((name, i) => ({
    endTick: () => positions[0]![i],
    whenSettled: (_position: number, then: (outcome: Outcome) => void) =>
      settled.push([name, then]),
  })) as unknown as Executor[];
  const { client } = bench();
  const tick = tickWith(() => executors);
  const sent: string[] = [];
  const one = (name: string): TickClient => ({
    ...client(name, 0),
    send: (bytes, start, end) => sent.push(name + bytes.toString('latin1', start, end)) > 0,
  });
  const [a, b, c] = [one('a'), one('b'), one('c')];
  const run = async (at: [number, number], ...answers: [TickClient, string][]): Promise<void> => {
    positions[0] = at;
    for (const [to, text] of answers) tick.open(to).raw(text);
    await rounds(1);
  };
  await run([1, -1], [a, '1']);
  await run([-1, -1], [b, '2'], [c, '2']);
  expect(sent).toEqual(['b2', 'c2']);
  // Clients that wait for nothing do not wait for others of the same tick.
  await run([-1, -1], [a, '3'], [b, '3']);
  expect(sent).toEqual(['b2', 'c2', 'b3']);
  await run([-1, 1], [b, '4'], [a, '4']);
  await run([-1, -1], [c, '5'], [a, '5'], [b, '5'], [a, '6']);
  expect(sent).toEqual(['b2', 'c2', 'b3', 'c5']);
  expect(settled.map(([name]) => name)).toEqual(['x', 'y']);
  settled[1]![1]('committed');
  expect(sent).toEqual(['b2', 'c2', 'b3', 'c5', 'b4', 'b5']);
  await run([-1, -1], [a, '7'], [b, '7']);
  expect(sent.slice(6)).toEqual(['b7']);
  settled[0]![1]('committed');
  expect(sent.slice(7)).toEqual(['a1', 'a3', 'a4', 'a5', 'a6', 'a7']);
});

test('a client that is told what others do does not have a third one wait for them', async () => {
  const settled: ((outcome: Outcome) => void)[] = [];
  const positions = [1, -1, -1];
  const executor = {
    endTick: () => positions.shift(),
    whenSettled: (_position: number, then: (outcome: Outcome) => void) => settled.push(then),
  } as unknown as Executor;
  const { client } = bench();
  const tick = tickWith(() => [executor]);
  const sent: string[] = [];
  const [writer, monitor, pinger] = ['writer', 'monitor', 'pinger'].map((name) => ({
    ...client(name, 0),
    send: () => sent.push(name) > 0,
  }));
  tick.open(monitor!).raw('set');
  tick.open(writer!).ok();
  await rounds(1);
  for (let n = 0; n < 2; n++) {
    tick.open(monitor!).raw('ping');
    tick.open(pinger!).raw('pong');
    await rounds(1);
  }
  expect(sent).toEqual(['pinger', 'pinger']);
  settled[0]!('committed');
  expect(sent.slice(2)).toEqual(['monitor', 'writer', 'monitor', 'monitor']);
});

test('a tick that ends early leaves the next one of the same round no more time', async () => {
  const { tick, client, seen } = bench();
  const long = client('long', 6, 1);
  tick.schedule();
  tick.receive(long, Buffer.alloc(0), 0);
  tick.endEarly();
  expect(seen).toEqual(['long', '|']);
  tick.lap();
  expect(tick.isOverFor(Infinity)).toBe(true);
  await rounds(1);
  tick.schedule();
  expect(tick.isOverFor(Infinity)).toBe(false);
});

test('ticks whose answers wait for the log use the same buffers again, and not before they are sent', async () => {
  const { executor, settled } = written(1);
  const { client } = bench();
  const tick = tickWith(() => [executor]);
  const memory = new Set<ArrayBufferLike>();
  const sent: string[] = [];
  let isFree = true;
  const one: TickClient = {
    ...client('a', 0),
    send: (bytes, start, end) => {
      memory.add(bytes.buffer);
      sent.push(bytes.toString('latin1', start, end));
      return isFree;
    },
  };
  const run = async (text: string): Promise<void> => {
    tick.open(one).raw(text);
    await rounds(1);
  };
  for (let i = 0; i < 20; i++) {
    await run(`${i}a`);
    await run(`${i}b`);
    for (const then of settled.splice(0)) then('committed');
  }
  expect(sent).toEqual(Array.from({ length: 20 }, (_, i) => [`${i}a`, `${i}b`]).flat());
  // Two wait, and one is written to.
  expect(memory.size).toBe(3);
  // The socket still holds the bytes.
  isFree = false;
  memory.clear();
  for (let i = 0; i < 5; i++) {
    await run(`${i}`);
    settled.pop()!('committed');
  }
  expect(memory.size).toBe(5);
});
