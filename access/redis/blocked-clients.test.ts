import { expect, test } from 'vitest';
import type { RowObserver } from '../../universal-row/executor.ts';
import {
  BlockedClients,
  type KeyQueue,
  type Tried,
  type WaitingCommand,
} from './blocked-clients.ts';

class Keys {
  readonly observers = new Map<string, Set<RowObserver>>();
  /** Elements of each. */
  readonly elements = new Map<string, number>();
  /** Commands that were served, in their order. */
  readonly served: number[] = [];
  readonly blocked = new BlockedClients({
    changesOf: () => ({
      observe: (_table, key, observer) => {
        const id = key.toString();
        this.observers.set(id, (this.observers.get(id) ?? new Set()).add(observer));
      },
      unobserve: (_table, key, observer) => {
        this.observers.get(key.toString())!.delete(observer);
      },
    }),
    changed: () => {},
    begin: () => {},
    isFull: () => false,
  });

  wait(id: number, keys: readonly string[], how: Partial<Waiting> = {}): Waiting {
    const waiting = Object.assign(new Waiting(this, id, keys), how);
    this.blocked.add(
      waiting,
      0,
      keys.map((key) => Buffer.from(key)),
    );
    return waiting;
  }

  push(key: string, count = 1): void {
    this.elements.set(key, (this.elements.get(key) ?? 0) + count);
    for (const observer of this.observers.get(key) ?? []) observer.rowChanged(0, Buffer.from(key));
    this.blocked.serve();
  }

  take(key: string): boolean {
    const count = this.elements.get(key) ?? 0;
    if (count > 0) this.elements.set(key, count - 1);
    return count > 0;
  }

  async settled(): Promise<void> {
    while (this.blocked.isReady) await new Promise(setImmediate);
  }
}

class Waiting implements WaitingCommand {
  kind = 'list';
  isShared = false;
  isTrying = false;
  /** Its keys hold another type. */
  fails = false;
  /** Its attempts take until this resolves. */
  slow: Promise<void> | undefined;
  missedTimes = 0;
  readonly queues = new Set<KeyQueue>();
  readonly #keys: Keys;
  readonly #id: number;
  readonly #names: readonly string[];

  constructor(keys: Keys, id: number, names: readonly string[]) {
    this.#keys = keys;
    this.#id = id;
    this.#names = names;
  }

  attempt(): Tried | Promise<Tried> {
    const { slow } = this;
    if (slow === undefined) return this.#now();
    return slow.then(() => this.#now());
  }

  missed(): void {
    this.missedTimes++;
  }

  #now(): Tried {
    if (this.fails) return 'failed';
    if (!this.#names.some((name) => this.#keys.take(name))) return 'empty';
    this.#keys.served.push(this.#id);
    this.#keys.blocked.remove(this);
    return 'served';
  }
}

test('a push tries as many as it serves and one more, however many wait', async () => {
  const keys = new Keys();
  for (let id = 0; id < 10_000; id++) keys.wait(id, ['k']);
  expect(keys.observers.get('k')!.size).toBe(1);
  for (let n = 0; n < 100; n++) keys.push('k');
  expect(keys.blocked.tries).toBe(200);
  keys.push('k', 1000);
  // Not in one go.
  expect(keys.served).toHaveLength(164);
  await keys.settled();
  expect(keys.blocked.tries).toBe(200 + 1001);
  expect(keys.served).toEqual(Array.from({ length: 1100 }, (_, id) => id));
  keys.push('k', 10_000);
  await keys.settled();
  expect(keys.blocked).toMatchObject({ size: 0, keys: 0 });
  expect(keys.observers.get('k')!.size).toBe(0);
});

test('those of another kind, or that cannot run, do not speak for the others', async () => {
  const keys = new Keys();
  keys.wait(0, ['k'], { kind: 'sorted-set', fails: true });
  keys.wait(1, ['k'], { fails: true });
  keys.wait(2, ['k'], { fails: true });
  keys.wait(3, ['k']);
  keys.wait(4, ['other', 'k']);
  keys.wait(5, ['k']);
  keys.push('k', 2);
  await keys.settled();
  expect(keys.served).toEqual([3, 4]);
  expect(keys.blocked.size).toBe(4);
});

test('all that share are tried at a change, some in each round of the event loop', async () => {
  const keys = new Keys();
  for (let id = 0; id < 200; id++) keys.wait(id, [`k${id % 2}`, 'never'], { isShared: true });
  keys.push('never', 0);
  expect(keys.blocked.tries).toBe(64);
  keys.push('k1', 30);
  await keys.settled();
  expect(keys.served).toHaveLength(30);
  expect(keys.blocked.tries).toBeLessThanOrEqual(200 + 100);
});

test('those of one kind whose attempts take their time are tried once each when another one begins to wait', async () => {
  const keys = new Keys();
  const slow = (): Partial<Waiting> => ({ isShared: true, slow: new Promise(setImmediate) });
  const [first, second] = [keys.wait(1, ['k'], slow()), keys.wait(2, ['k'], slow())];
  keys.push('k', 0);
  expect([first, second].map(({ isTrying }) => isTrying)).toEqual([true, true]);
  keys.blocked.lookAgain(keys.wait(3, ['k'], slow()));
  keys.blocked.serve();
  for (let i = 0; i < 20; i++) await new Promise(setImmediate);
  expect([keys.blocked.tries, keys.blocked.isReady]).toEqual([3, false]);
  // What was passed over, as it was being tried, is tried once more.
  for (const one of [first, second]) one.slow = new Promise(setImmediate);
  keys.push('k', 0);
  keys.push('k', 0);
  for (let i = 0; i < 20; i++) await new Promise(setImmediate);
  expect(keys.blocked.tries).toBeLessThanOrEqual(3 + 2 * 3);
});

test('one that begins to wait late is served by what has come since', () => {
  for (const isShared of [false, true]) {
    const keys = new Keys();
    keys.elements.set('k', 1);
    keys.blocked.lookAgain(keys.wait(1, ['k'], { isShared }));
    keys.blocked.serve();
    expect(keys.served).toEqual([1]);
  }
});

test('an attempt that takes its time keeps the order', async () => {
  const keys = new Keys();
  let go = (): void => {};
  const slow = new Promise<void>((resolve) => (go = resolve));
  keys.wait(0, ['a', 'b'], { slow });
  keys.wait(1, ['a']);
  keys.wait(2, ['b']);
  keys.push('a', 2);
  keys.push('b', 1);
  keys.push('a', 1);
  expect(keys.served).toEqual([]);
  go();
  await expect.poll(() => keys.served).toEqual([0, 1, 2]);
  await keys.settled();
  expect(keys.blocked).toMatchObject({ size: 0, keys: 0 });
});

test.each([{ fails: true }, { fails: false }])(
  'a slow attempt without an answer is told of, and ends: $fails',
  async ({ fails }) => {
    const keys = new Keys();
    const slow = Promise.resolve();
    const waiting = keys.wait(0, ['a'], { slow, fails });
    keys.wait(1, ['a'], { slow });
    keys.push('a', fails ? 1 : 0);
    await expect.poll(() => waiting.missedTimes).toBeGreaterThan(0);
    await expect.poll(() => keys.served).toEqual(fails ? [1] : []);
    await keys.settled();
    expect(keys.blocked.tries).toBeLessThanOrEqual(3);
  },
);
