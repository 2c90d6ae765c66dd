// Amounts moved between accounts of one slot: two commands of a transaction. A read of all accounts
// at once must find the same sum at any time, whatever the outcome of uncertain moves.

import { setTimeout as pause } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import type { Random } from '../../support/random.ts';

const count = 5;
const each = 100;
const keys = Array.from({ length: count }, (_, i) => `{bank}:${i}`);
const withinMs = 120_000;

export class Accounts {
  /** Balances that do not add up. */
  readonly wrong: string[] = [];
  /** Acknowledged ones. */
  moves = 0;
  readonly #pauseMs: number;

  /** Clients pause for up to so many milliseconds between their requests. */
  constructor(pauseMs: number) {
    this.#pauseMs = pauseMs;
  }

  async open(redis: Redis): Promise<void> {
    await this.#until(() => redis.mset(keys.flatMap((key) => [key, String(each)])));
  }

  /** One client, until `isOver`. */
  async move(redis: Redis, random: Random, isOver: () => boolean): Promise<void> {
    while (!isOver()) {
      const amount = 1 + random.below(20);
      const [from, to] = [random.pick(keys), random.pick(keys)];
      try {
        if (random.chance(0.5)) this.#look(await redis.mget(keys));
        else {
          const answers = await redis.multi().decrby(from, amount).incrby(to, amount).exec();
          for (const [error] of answers ?? []) if (error) throw error;
          this.moves++;
        }
      } catch {
        // Both happened, or neither did.
        await pause(20);
      }
      await pause(random.below(this.#pauseMs));
    }
  }

  async close(redis: Redis): Promise<void> {
    this.#look(await this.#until(() => redis.mget(keys)));
  }

  #look(balances: readonly (string | null)[]): void {
    const sum = balances.reduce((all, one) => all + Number(one ?? Number.NaN), 0);
    if (sum !== count * each) this.wrong.push(balances.join());
  }

  async #until<T>(act: () => Promise<T>): Promise<T> {
    const end = performance.now() + withinMs;
    for (;;) {
      try {
        return await act();
      } catch (error) {
        if (performance.now() > end) throw error;
        await pause(50);
      }
    }
  }
}
