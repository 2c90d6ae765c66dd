import { describe, expect, test } from 'vitest';
import { systemClock } from '../../universal-row/environment.ts';
import { Flow, type FlowControl } from './flow.ts';
import { FlowCancelled, FlowRun } from './flow-runner.ts';

/** Tasks that write down what happens, in flows written as `a b<a c<a,b`. */
class Story {
  readonly events: string[] = [];
  readonly #ends = new Map<string, { resolve: () => void; reject: (error: Error) => void }>();
  readonly #does = new Map<string, (control: FlowControl) => void>();

  /** Names in capitals wait until `end` or `fail`. */
  flow(line: string): Flow<Story> {
    const tasks = line.split(' ').map((place) => {
      const [name, after] = place.split('<') as [string, string | undefined];
      const waits = name === name.toUpperCase();
      const run = (story: Story, control: FlowControl) => story.#begin(name, waits, control);
      return { name, after: after?.split(',') ?? [], mayWait: waits, run };
    });
    return new Flow('story', tasks);
  }

  /** Sets the behaviour of a task at its start. */
  when(name: string, does: (control: FlowControl) => void): void {
    this.#does.set(name, does);
  }

  async end(name: string): Promise<void> {
    this.#ends.get(name)!.resolve();
    await settled();
  }

  async fail(name: string): Promise<void> {
    this.#ends.get(name)!.reject(new Error(`${name} failed`));
    await settled();
  }

  run(limits: { deadlineMs?: number; fanOut?: number } = {}): FlowRun<Story> {
    const deadlineAt = systemClock.monotonic() + (limits.deadlineMs ?? Infinity);
    return new FlowRun<Story>(this, { clock: systemClock, deadlineAt, fanOut: limits.fanOut ?? 8 });
  }

  get told(): string {
    return this.events.splice(0).join(' ');
  }

  #begin(name: string, waits: boolean, control: FlowControl): void | Promise<void> {
    this.events.push(name);
    this.#does.get(name)?.(control);
    if (!waits) return;
    return new Promise((resolve, reject) => {
      this.#ends.set(name, { resolve, reject });
    });
  }
}

function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** How a run ended, once it has. */
function ending(run: void | Promise<void>): { text: string } {
  const end = { text: 'not yet' };
  Promise.resolve(run).then(
    () => (end.text = 'done'),
    (error: Error) => (end.text = `${error.name}: ${error.message}`),
  );
  return end;
}

describe('a run', () => {
  test('is over in the same tick when nothing waits', () => {
    const story = new Story();
    expect(story.run().run(story.flow('a b<a c<a d<b,c'))).toBeUndefined();
    expect(story.told).toBe('a b c d');
  });

  test('lets what does not depend on a waiting task go on, and the rest follow it', async () => {
    const story = new Story();
    const end = ending(story.run().run(story.flow('a A<a B<a b<A c<B,b d<a')));
    expect(story.told).toBe('a A B d');
    await story.end('B');
    expect(story.told).toBe('');
    await story.end('A');
    expect(story.told).toBe('b c');
    expect(end.text).toBe('done');
  });

  test('has no more tasks waiting at once than the fan-out allows', async () => {
    const story = new Story();
    const end = ending(story.run({ fanOut: 2 }).run(story.flow('A B C D')));
    expect(story.told).toBe('A B');
    await story.end('B');
    expect(story.told).toBe('C');
    await story.end('A');
    expect(story.told).toBe('D');
    await story.end('C');
    expect(end.text).toBe('not yet');
    await story.end('D');
    expect(end.text).toBe('done');
  });

  test('ends with the first failure, whether or not it waited', async () => {
    const story = new Story();
    story.when('b', () => {
      throw new Error('no');
    });
    expect(() => story.run().run(story.flow('a b<a c<b'))).toThrow('no');
    expect(story.told).toBe('a b');

    const flow = story.flow('A B C<A,B d<B');
    const end = ending(story.run().run(flow));
    await story.fail('A');
    expect(end.text).toBe('Error: A failed');
    await story.end('B');
    expect(story.told).toBe('A B');
    expect(flow.costs.map(({ failures, cancelled }) => `${failures}${cancelled}`)).toEqual(
      flow.tasks.map(({ name }) => ({ A: '10', B: '01' })[name] ?? '00'),
    );
  });

  test('refuses a task that waits without having said so', async () => {
    const flow = new Flow<void>('f', [{ name: 'slow', after: [], run: async () => {} }]);
    const run = new FlowRun(undefined, { clock: systemClock, deadlineAt: Infinity, fanOut: 1 });
    const end = ending(run.run(flow));
    await settled();
    expect(end.text).toBe('FlowError: task slow waits, but does not say that it may');
  });
});

describe('a deadline', () => {
  test('stops all that comes after, tells what waits, and gives tokens back', async () => {
    const story = new Story();
    let unused = -1;
    let told: unknown;
    story.when('a', (control) => {
      control.reserve(100, (tokens) => (unused = tokens));
    });
    story.when('A', (control) => {
      expect(control.spend(30)).toBe(0);
      control.signal.addEventListener('abort', () => (told = control.signal.reason));
    });
    const run = story.run({ deadlineMs: 150 });
    const waits = run.run(story.flow('a A<a b<A c<b'));
    await expect(waits).rejects.toThrow(FlowCancelled);
    expect(told).toBeInstanceOf(FlowCancelled);
    expect(unused).toBe(70);
    await story.end('A');
    expect(story.told).toBe('a A');
    expect(() => run.run(story.flow('e'))).toThrow('longer than it may');
    expect(story.told).toBe('');
  });

  test('stops tasks that never wait as well', () => {
    const story = new Story();
    story.when('a', () => {
      const until = performance.now() + 8;
      while (performance.now() < until);
    });
    expect(() => story.run({ deadlineMs: 2 }).run(story.flow('a b<a'))).toThrow(FlowCancelled);
    expect(story.told).toBe('a');
  });

  test('that is not reached changes nothing', async () => {
    const story = new Story();
    const end = ending(story.run({ deadlineMs: 60_000 }).run(story.flow('A b<A')));
    await story.end('A');
    expect(end.text).toBe('done');
  });
});

test('a caller that gives up cancels the run', async () => {
  const story = new Story();
  const run = story.run();
  const end = ending(run.run(story.flow('A b<A')));
  run.cancel();
  await settled();
  expect(end.text).toBe('FlowCancelled: cancelled');
  await story.end('A');
  expect(story.told).toBe('A');
});

test('tokens are spent from what was reserved; what is left goes back once', () => {
  const run = new Story().run();
  const back: number[] = [];
  run.reserve(10, (tokens) => back.push(tokens));
  run.reserve(5, (tokens) => back.push(tokens * 1000));
  expect(run.spend(12)).toBe(0);
  expect(run.spend(5)).toBe(2);
  run.reserve(4, (tokens) => back.push(tokens));
  run.finish();
  run.finish();
  run.cancel();
  expect(back).toEqual([4]);
  run.reserve(7, (tokens) => back.push(tokens));
  expect(back).toEqual([4, 7]);
});

test('every task has its cost: runs, time on the event loop, time waiting', async () => {
  const story = new Story();
  story.when('b', () => {
    const until = performance.now() + 5;
    while (performance.now() < until);
  });
  const flow = story.flow('a b<a C<b');
  for (let i = 0; i < 3; i++) {
    const end = ending(story.run().run(flow));
    await new Promise((resolve) => setTimeout(resolve, 5));
    await story.end('C');
    expect(end.text).toBe('done');
  }
  const [a, b, c] = flow.costs;
  expect([a!.runs, b!.runs, c!.runs]).toEqual([3, 3, 3]);
  expect(b!.busyMs).toBeGreaterThanOrEqual(15);
  expect(a!.waitMs + b!.waitMs).toBe(0);
  expect(c!.waitMs).toBeGreaterThan(9);
});

test('reports what a flow of six tasks costs beyond the tasks', () => {
  const flow = new Flow<{ n: number }>(
    'six',
    ['decode', 'admit', 'translate', 'encode', 'log', 'reply'].map((name, i, names) => ({
      name,
      after: i === 0 ? [] : [names[i - 1]!],
      run: (context: { n: number }) => {
        context.n++;
      },
    })),
  );
  const context = { n: 0 };
  const limits = { clock: systemClock, deadlineAt: Infinity, fanOut: 8 };
  const rounds = 20_000;
  const round = () => {
    for (let i = 0; i < rounds; i++) {
      const run = new FlowRun(context, limits);
      void run.run(flow);
      run.finish();
    }
  };
  round();
  const startedAt = performance.now();
  round();
  const us = ((performance.now() - startedAt) * 1000) / rounds;
  console.info(`a flow of six tasks: ${us.toFixed(2)} µs`);
  expect(context.n).toBe(12 * rounds);
});
