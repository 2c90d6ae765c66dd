import { expect, test } from 'vitest';
import { type HashKind, HashQueue } from './hash-queue.ts';

/** A queue whose hashes end when the test says so; one at a time. */
class Trial {
  readonly order: string[] = [];
  readonly refused: string[] = [];
  readonly queue = new HashQueue({ atOnce: 1, mostWaiting: { login: 4, change: 3 } });
  readonly #ends: (() => void)[] = [];

  add(name: string, kind: HashKind, tenant: string, address = ''): void {
    this.queue
      .run({ kind, tenant, address }, () => {
        this.order.push(name);
        return new Promise<void>((resolve) => this.#ends.push(resolve));
      })
      .catch(() => this.refused.push(name));
  }

  async finish(count = Infinity): Promise<string> {
    for (let i = 0; i < count && this.#ends.length > 0; i++) {
      this.#ends.shift()!();
      await new Promise(setImmediate);
    }
    return this.order.join(' ');
  }
}

test('tenants take turns, and the addresses of a tenant', async () => {
  const trial = new Trial();
  trial.add('first', 'login', 'a');
  for (const name of ['a1', 'a2', 'a3']) trial.add(name, 'login', 'a', 'x');
  trial.add('a4', 'login', 'a', 'y');
  trial.add('b1', 'login', 'b', 'x');
  trial.add('c1', 'login', 'c', 'x');
  expect(trial.queue.waiting('login')).toBe(6);
  expect(await trial.finish()).toBe('first a1 b1 c1 a4 a2 a3');
  expect([trial.queue.waiting('login'), trial.queue.started.login]).toEqual([0, 7]);
});

test('a tenant that changes many passwords holds up no login, and is refused beyond its bound', async () => {
  const trial = new Trial();
  trial.add('c0', 'change', 'a');
  for (let i = 1; i <= 5; i++) trial.add(`c${i}`, 'change', 'a');
  trial.add('login', 'login', 'b');
  trial.add('d1', 'change', 'b');
  await new Promise(setImmediate);
  expect(trial.refused).toEqual(['c4', 'c5']);
  expect(trial.queue.refused).toEqual({ login: 0, change: 2 });
  expect(await trial.finish()).toBe('c0 login c1 d1 c2 c3');
});

test('changes get one place in eight however many log in', async () => {
  const trial = new Trial();
  trial.add('l', 'login', 'a');
  trial.add('change', 'change', 'a');
  for (let i = 0; i < 20; i++) trial.add('l', 'login', `tenant ${i}`);
  const order = await trial.finish();
  expect(order.split(' ').indexOf('change')).toBe(8);
});

test('a hash that fails hands its place on', async () => {
  const queue = new HashQueue({ atOnce: 1, mostWaiting: { login: 9, change: 9 } });
  const request = { kind: 'login', tenant: 'a', address: '' } as const;
  const failed = queue.run(request, () => Promise.reject(new Error('no')));
  const next = queue.run(request, () => Promise.resolve('yes'));
  await expect(failed).rejects.toThrow('no');
  expect(await next).toBe('yes');
});
